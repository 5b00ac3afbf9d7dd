//! Weight compression: tables of embeddings and weights of products as 8 or 4 bits, each row or group of a row with a scale of
//! its own. Data stays in float, so no data is needed.
//!
//! ```text
//! Convert((Convert(integers, f16) - Convert(zero points, f16)) * scales)    scales and zero points of rows
//! Convert(Reshape((... - ...) * scales))                                    of groups
//! ```

use crate::scope::IgnoredScope;
use crate::weights::stored;
use carafe_frontend::Progress;
use carafe_graph::{Error, Model, NodeId, Notes, Result, Value, run_passes};
use carafe_ops::arithmetic::{Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Reshape;
use carafe_passes::{NameUniquely, RemoveUnused};
use carafe_tensor::{ElementType, Tensor, f16};
use std::collections::BTreeMap;

/// What weights are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightMode {
    /// u8 with zero points.
    Int8,
    /// i8.
    Int8Sym,
    /// u4 with zero points, in groups.
    Int4Asym,
    /// i4, in groups.
    Int4Sym,
}

impl WeightMode {
    /// As options and reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            WeightMode::Int8 => "int8",
            WeightMode::Int8Sym => "int8_sym",
            WeightMode::Int4Asym => "int4_asym",
            WeightMode::Int4Sym => "int4_sym",
        }
    }
    fn is_int4(self) -> bool {
        matches!(self, WeightMode::Int4Asym | WeightMode::Int4Sym)
    }
    fn element_type(self) -> ElementType {
        match self {
            WeightMode::Int8 => ElementType::U8,
            WeightMode::Int8Sym => ElementType::I8,
            WeightMode::Int4Asym => ElementType::U4,
            WeightMode::Int4Sym => ElementType::I4,
        }
    }
}

/// How weights are compressed.
#[derive(Clone, Debug)]
pub struct CompressOptions {
    /// What they are stored as.
    pub mode: WeightMode,
    /// Elements of a row that share a scale, for 4 bits; `None` for whole rows.
    pub group_size: Option<usize>,
    /// Share of the weights that gets 4 bits, from 0 to 1; the others get [`WeightMode::Int8`].
    pub ratio: f64,
    /// Weights that stay as they are, by the operations that read them.
    pub ignored: IgnoredScope,
}

impl Default for CompressOptions {
    fn default() -> CompressOptions {
        let ignored = IgnoredScope::default();
        CompressOptions { mode: WeightMode::Int8, group_size: Some(128), ratio: 1.0, ignored }
    }
}

/// What became of the weights of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Name of the first node that reads them.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// Number of weights.
    pub weights: usize,
    /// What they are stored as; `None` when they stay as they are.
    pub mode: Option<WeightMode>,
    /// Elements that share a scale.
    pub group_size: usize,
    /// Length of the difference over the length of the weights.
    pub error: f64,
    /// Why they are not stored as asked.
    pub note: Option<String>,
}

/// A model with compressed weights.
#[derive(Debug)]
pub struct CompressedWeights {
    /// The model, ready to be written.
    pub model: Model,
    /// All weights, in order of computation.
    pub layers: Vec<Compression>,
    /// Bytes of these weights before and after.
    pub bytes: [u64; 2],
}

/// Weights that can be compressed, with all who read them.
struct Target {
    value: Value,
    readers: Vec<(NodeId, usize)>,
    floats: Tensor,
    /// Rows are summed over: the axis that a scale belongs to is the other one.
    rows_last: bool,
    is_table: bool,
}

/// Compresses the weights of products and the tables of embeddings. With 4 bits, tables and the last layer stay at 8 bits, and
/// so do layers whose rows the group size does not divide; the report says which.
pub fn compress_weights(model: &Model, options: &CompressOptions, progress: Progress<'_>) -> Result<CompressedWeights> {
    if !(0.0..=1.0).contains(&options.ratio) {
        return Err(Error::usage(format!("the ratio must be from 0 to 1, found {}", options.ratio)));
    }
    if options.group_size == Some(0) {
        return Err(Error::usage("the group size must be at least 1, or -1 for whole rows"));
    }
    options.ignored.check(model)?;
    let (targets, left) = targets(model, &options.ignored)?;
    if targets.is_empty() {
        return Err(Error::invalid(match left.first() {
            Some(row) => {
                let why = row.note.as_deref().unwrap_or_default();
                format!("no weights are left to compress: `{}`: {why}", row.name)
            }
            None => {
                "the model has no weights to compress: no matrix product or Gather with constant weights".to_string()
            }
        }));
    }
    for target in &targets {
        let floats = target.floats.to_vec::<f32>()?;
        if let Some(at) = floats.iter().position(|w| !w.is_finite()) {
            let name = model.node(target.readers[0].0).name();
            let about = format!("`{name}`: weight {at} is {}", floats[at]);
            return Err(Error::invalid(format!(
                "{about}; expected finite numbers; leave it out with an ignored scope"
            )));
        }
    }
    let choices = choose(model, &targets, options, progress)?;
    let mut model = model.clone();
    let (mut layers, mut bytes) = (left, [0; 2]);
    for (done, (target, (mode, group_size, note))) in targets.iter().zip(choices).enumerate() {
        progress.tell(done, targets.len(), "weights compressed");
        let packed = Packed::of(target, mode, group_size)?;
        let first = model.node(target.readers[0].0);
        let (name, type_name) = (first.name().to_string(), first.op().type_name().to_string());
        let new = packed.add_to(&mut model, &format!("{name}/weights"), target.floats.shape())?;
        for &(reader, input) in &target.readers {
            model.set_input(reader, input, new);
        }
        bytes[0] += stored_bytes(&model, target.value);
        bytes[1] += packed.bytes();
        let (weights, error) = (target.floats.len(), packed.error);
        layers.push(Compression { name, type_name, weights, mode: Some(mode), group_size: packed.group, error, note });
    }
    let order: BTreeMap<String, usize> = model
        .topological_order()?
        .into_iter()
        .enumerate()
        .map(|(i, id)| (model.node(id).name().to_string(), i))
        .collect();
    carafe_graph::sort_by_key(&mut layers, |row| order.get(&row.name).copied());
    // Nothing is folded: zero points stay as small as they are.
    run_passes(&mut model, &[&RemoveUnused, &NameUniquely], &mut Notes::default())?;
    Ok(CompressedWeights { model, layers, bytes })
}

fn stored_bytes(model: &Model, v: Value) -> u64 {
    let behind = model.producer::<Convert>(v).and_then(|(id, _)| model.input(id, 0)).unwrap_or(v);
    model.constant_of(behind).map_or(0, |t| t.byte_len() as u64)
}

// What can be compressed, in order of computation, and what is left alone.
fn targets(model: &Model, ignored: &IgnoredScope) -> Result<(Vec<Target>, Vec<Compression>)> {
    let mut found: Vec<Target> = Vec::new();
    let mut left = Vec::new();
    for id in model.topological_order()? {
        let node = model.node(id);
        let Some((input, rows_last)) = weights_of(model, id) else { continue };
        let value = node.inputs()[input];
        let Some(floats) = stored(model, value).filter(|t| t.rank() == 2 && !t.is_empty()) else { continue };
        let note = ignored.reason(node).or_else(|| {
            let other = model.users(value).iter().find(|u| weights_of(model, u.node) != Some((u.input, rows_last)))?;
            Some(format!("`{}` reads them in another way", model.node(other.node).name()))
        });
        if let Some(note) = note {
            left.push(Compression {
                name: node.name().to_string(),
                type_name: node.op().type_name().to_string(),
                weights: floats.len(),
                mode: None,
                group_size: 0,
                error: 0.0,
                note: Some(note),
            });
            continue;
        }
        let is_table = node.op().is::<Gather>();
        match found.iter_mut().find(|t| t.value == value) {
            Some(target) => {
                target.readers.push((id, input));
                target.is_table |= is_table;
            }
            None => found.push(Target { value, readers: vec![(id, input)], floats, rows_last, is_table }),
        }
    }
    Ok((found, left))
}

// The input with weights, and whether the elements that meet in a sum lie along its last axis.
fn weights_of(model: &Model, id: NodeId) -> Option<(usize, bool)> {
    let node = model.node(id);
    if let Some(op) = node.op().get::<MatMul>() {
        return Some((1, op.transpose_b));
    }
    let op = node.op().get::<Gather>()?;
    let axis = model.fact(*node.inputs().get(2)?).ints()?;
    (op.batch_dims == 0 && axis == [0]).then_some((0, true))
}

type Choice = (WeightMode, Option<usize>, Option<String>);

// What each is stored as.
fn choose(model: &Model, targets: &[Target], options: &CompressOptions, progress: Progress<'_>) -> Result<Vec<Choice>> {
    if !options.mode.is_int4() {
        return Ok(targets.iter().map(|_| (options.mode, None, None)).collect());
    }
    let last = targets.iter().rposition(|t| !t.is_table);
    let mut choices: Vec<Choice> = Vec::new();
    let mut open: Vec<(usize, f64)> = Vec::new();
    for (i, target) in targets.iter().enumerate() {
        progress.tell(i, targets.len(), "weights measured");
        let length = target.row_length();
        let eight = |why: String| (WeightMode::Int8, None, Some(why));
        let group = options.group_size.unwrap_or(length);
        choices.push(if target.is_table {
            eight("tables of embeddings stay at 8 bits".into())
        } else if Some(i) == last && targets.len() > 1 {
            eight("the last layer stays at 8 bits".into())
        } else if !length.is_multiple_of(group) {
            eight(format!("group size {group} does not divide rows of {length}"))
        } else {
            let error = if options.ratio < 1.0 { Packed::of(target, options.mode, Some(group))?.error } else { 0.0 };
            open.push((i, error));
            (options.mode, Some(group), None)
        });
    }
    if open.is_empty() {
        let name = model.node(targets[0].readers[0].0).name();
        let why = choices[0].2.clone().unwrap_or_default();
        return Err(Error::usage(format!("no weights can be stored as {}: `{name}`: {why}", options.mode.name())));
    }
    // The least sensitive first, as far as the ratio goes.
    carafe_graph::sort_by(&mut open, |a, b| a.1.total_cmp(&b.1));
    let total: usize = open.iter().map(|(i, _)| targets[*i].floats.len()).sum();
    let mut taken = 0;
    for (i, _) in open {
        taken += targets[i].floats.len();
        if taken as f64 > options.ratio * total as f64 * (1.0 + 1e-9) {
            choices[i] = (WeightMode::Int8, None, Some("beyond the ratio".into()));
        }
    }
    Ok(choices)
}

impl Target {
    fn row_length(&self) -> usize {
        self.floats.shape()[usize::from(self.rows_last)]
    }
}

/// Weights as integers.
struct Packed {
    mode: WeightMode,
    integers: Vec<i8>,
    zeros: Vec<u8>,
    scales: Vec<f32>,
    /// Whether f16 holds the scales.
    half: bool,
    rows_last: bool,
    /// Rows, groups of a row, elements of a group.
    rows: usize,
    groups: usize,
    group: usize,
    error: f64,
}

impl Packed {
    fn of(target: &Target, mode: WeightMode, group: Option<usize>) -> Result<Packed> {
        let &[a, b] = target.floats.shape() else { return Err(Error::invalid("weights must have two axes")) };
        let (rows, length) = if target.rows_last { (a, b) } else { (b, a) };
        let group = group.unwrap_or(length);
        let groups = length / group;
        let floats = target.floats.to_vec::<f32>()?;
        // An element of a row, wherever it lies.
        let at = |row: usize, k: usize| if target.rows_last { row * length + k } else { k * rows + row };
        let peak = floats.iter().fold(0f32, |m, w| m.max(w.abs()));
        // Scales that f16 cannot hold well stay f32.
        let steps = if mode.is_int4() { 15.0 } else { 255.0 };
        let half = peak < 6e4 && smallest_peak(&floats, rows, groups, group, &at) > 1e-5 * steps;
        let mut packed = Packed {
            mode,
            integers: vec![0; floats.len()],
            zeros: vec![],
            scales: vec![],
            half,
            rows_last: target.rows_last,
            rows,
            groups,
            group,
            error: 0.0,
        };
        let (mut lost, mut length_squared) = (0.0, 0.0);
        let mut values = vec![0f32; group];
        for (row, g) in packed.order() {
            values.iter_mut().enumerate().for_each(|(k, v)| *v = floats[at(row, g * group + k)]);
            let grid = Grid::best(&values, mode, half);
            for (k, v) in values.iter().enumerate() {
                let q = grid.integer(*v);
                // u8 is kept in the bits of i8.
                packed.integers[at(row, g * group + k)] = q as i32 as u8 as i8;
                lost += f64::from(v - (q - grid.zero) * grid.scale).powi(2);
                length_squared += f64::from(*v).powi(2);
            }
            packed.scales.push(grid.scale);
            packed.zeros.push(grid.zero as i32 as u8);
        }
        packed.error = if length_squared > 0.0 { (lost / length_squared).sqrt() } else { 0.0 };
        Ok(packed)
    }

    // Rows and groups in the order of the scales: as the weights lie.
    fn order(&self) -> Vec<(usize, usize)> {
        let (rows, groups) = (self.rows, self.groups);
        match self.rows_last {
            true => (0..rows).flat_map(|r| (0..groups).map(move |g| (r, g))).collect(),
            false => (0..groups).flat_map(|g| (0..rows).map(move |r| (r, g))).collect(),
        }
    }

    fn bytes(&self) -> u64 {
        let bits = self.mode.element_type().bits() as u64;
        let zeros = if self.has_zeros() { self.zeros.len() as u64 * bits / 8 } else { 0 };
        let scales = self.scales.len() as u64 * if self.half { 2 } else { 4 };
        (self.integers.len() as u64 * bits).div_ceil(8) + zeros + scales
    }

    fn has_zeros(&self) -> bool {
        matches!(self.mode, WeightMode::Int8 | WeightMode::Int4Asym)
    }

    fn add_to(&self, model: &mut Model, name: &str, shape: &[usize]) -> Result<Value> {
        let grouped = self.groups > 1;
        let (rows, groups, group) = (self.rows, self.groups, self.group);
        let (full, small) = match (grouped, self.rows_last) {
            (false, true) => (vec![rows, group], vec![rows, 1]),
            (false, false) => (vec![group, rows], vec![1, rows]),
            (true, true) => (vec![rows, groups, group], vec![rows, groups, 1]),
            (true, false) => (vec![groups, group, rows], vec![groups, 1, rows]),
        };
        let ty = self.mode.element_type();
        let wide = if self.half { ElementType::F16 } else { ElementType::F32 };
        let signed = ty.is_signed();
        let whole = |q: &i8| if signed { i64::from(*q) } else { i64::from(*q as u8) };
        let integers: Vec<i64> = self.integers.iter().map(whole).collect();
        let integers = model.constant(&format!("{name}/integers"), Tensor::from_i64(ty, &full, &integers)?)?;
        let convert = |to| Convert { destination_type: to };
        let mut v: Value = model.add(format!("{name}/convert"), convert(wide), &[integers])?.into();
        if self.has_zeros() {
            let zeros: Vec<i64> = self.zeros.iter().map(|z| i64::from(*z)).collect();
            let zeros = model.constant(&format!("{name}/zero_point"), Tensor::from_i64(ty, &small, &zeros)?)?;
            let zeros = model.add(format!("{name}/zero_point/convert"), convert(wide), &[zeros])?;
            v = model.add(format!("{name}/subtract"), Subtract::default(), &[v, zeros.into()])?.into();
        }
        let scales: Vec<f64> = self.scales.iter().map(|s| f64::from(*s)).collect();
        let scales = model.constant(&format!("{name}/scale"), Tensor::from_f64(wide, &small, &scales)?)?;
        v = model.add(format!("{name}/multiply"), Multiply::default(), &[v, scales])?.into();
        if grouped {
            let to: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
            let to = model.constant(&format!("{name}/shape"), Tensor::from_slice(&[to.len()], &to)?)?;
            v = model.add(format!("{name}/reshape"), Reshape { special_zero: false }, &[v, to])?.into();
        }
        if self.half {
            v = model.add(format!("{name}/decompressed"), convert(ElementType::F32), &[v])?.into();
        }
        Ok(v)
    }
}

// Largest magnitude of the group where that is smallest; groups of zeros do not count.
fn smallest_peak(floats: &[f32], rows: usize, groups: usize, group: usize, at: &dyn Fn(usize, usize) -> usize) -> f32 {
    let mut least = f32::INFINITY;
    for row in 0..rows {
        for g in 0..groups {
            let peak = (0..group).fold(0f32, |m, k| m.max(floats[at(row, g * group + k)].abs()));
            if peak > 0.0 {
                least = least.min(peak);
            }
        }
    }
    least
}

/// Scale and zero point of a group.
#[derive(Clone, Copy, Debug)]
struct Grid {
    scale: f32,
    zero: f32,
    low: f32,
    high: f32,
}

impl Grid {
    fn integer(&self, v: f32) -> f32 {
        ((v / self.scale).round_ties_even() + self.zero).clamp(self.low, self.high)
    }

    fn loss(&self, values: &[f32]) -> f64 {
        values.iter().map(|v| f64::from(v - (self.integer(*v) - self.zero) * self.scale).powi(2)).sum()
    }

    // The grid with the least loss among some that cut the range of the values a little.
    fn best(values: &[f32], mode: WeightMode, half: bool) -> Grid {
        let min = values.iter().fold(0f32, |m, v| m.min(*v));
        let max = values.iter().fold(0f32, |m, v| m.max(*v));
        let (low, high) = match mode {
            WeightMode::Int8 => (0.0, 255.0),
            WeightMode::Int8Sym => (-127.0, 127.0),
            WeightMode::Int4Asym => (0.0, 15.0),
            WeightMode::Int4Sym => (-8.0, 7.0),
        };
        let exact = |scale: f32| {
            let scale = if half { f16::from_f32(scale).to_f32() } else { scale };
            if scale > 0.0 && scale.is_finite() { scale } else { 1.0 }
        };
        let grid = |cut: f32| match mode {
            WeightMode::Int8Sym | WeightMode::Int4Sym => {
                let scale = exact(max.max(-min) * cut / -low);
                Grid { scale, zero: 0.0, low, high }
            }
            _ => {
                let scale = exact((max - min) * cut / high);
                Grid { scale, zero: (-min * cut / scale).round().clamp(low, high), low, high }
            }
        };
        let cuts: &[f32] = match mode {
            WeightMode::Int8 | WeightMode::Int8Sym => &[1.0],
            WeightMode::Int4Asym => &[1.0, 0.96, 0.92, 0.88, 0.84, 0.8],
            WeightMode::Int4Sym => &[8.0 / 7.0, 1.1, 1.05, 1.0, 0.96, 0.92, 0.88, 0.84],
        };
        let tried = cuts.iter().map(|cut| grid(*cut));
        let best = tried.map(|g| (g.loss(values), g)).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(grid(1.0), |(_, g)| g)
    }
}
