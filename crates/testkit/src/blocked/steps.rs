//! Steps of the tests' backend: plain loops over the places of elements, whatever the layout.

use super::{Blocked, Io, LAYOUT};
use carafe_graph::{Result, normalize_axis};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Concat, Reshape, Split, Squeeze, Unsqueeze, VariadicSplit};
use carafe_plan::elementwise::{Act, Binary, Elt, Unary};
use carafe_plan::{
    Built, DynamicOutput, ElementwiseOp, Form, Layout, Operand, Parts, RowStrides, Site, Source, Step, Work,
};
use carafe_tensor::{Element, ElementType, Tensor};
use std::sync::Arc;

pub(super) fn build(site: &Site<'_, Blocked>) -> Option<Built<Blocked>> {
    if site.group {
        return Some(group(site));
    }
    if let Some(op) = site.op.get::<Convolution>() {
        return convolution(site, op);
    }
    if !site.epilogue.is_empty() {
        return None;
    }
    let op = site.op;
    if op.is::<Reshape>() || op.is::<Squeeze>() || op.is::<Unsqueeze>() {
        return Some(Built::view(0, Layout::PLAIN, Layout::PLAIN));
    }
    if let Some(op) = op.get::<Concat>() {
        return concat(site, op.axis);
    }
    if op.is::<Split>() || op.is::<VariadicSplit>() {
        return split(site);
    }
    product(site, op.get::<MatMul>()?)
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn tensor(ty: ElementType, bytes: &[u8]) -> Result<Tensor> {
    Ok(Tensor::from_bytes(ty, &[bytes.len() * 8 / ty.bits()], bytes)?)
}

// Where in memory each element of a plain value lies.
fn positions(layout: Layout, shape: &[usize]) -> Vec<usize> {
    let (mut plain, mut positions) = (layout.plain_index(shape), vec![0; shape.iter().product()]);
    (0..layout.elements(shape))
        .for_each(|position| plain(position).into_iter().for_each(|flat| positions[flat] = position));
    positions
}

/// A value in another layout.
#[derive(Debug)]
pub(super) struct Reorder {
    pub(super) shape: Vec<usize>,
    pub(super) ty: ElementType,
    pub(super) from: Layout,
    pub(super) to: Layout,
}

impl Step<Blocked> for Reorder {
    fn kernel(&self) -> String {
        "reorder".into()
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        let plain = self.from.unpack(&tensor(self.ty, &io.inputs[0])?, &self.shape)?;
        io.outputs[0].copy_from_slice(self.to.pack(&plain)?.bytes());
        Ok(())
    }
}

/// A value in another type.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) from: ElementType,
    pub(super) to: ElementType,
}

impl Step<Blocked> for Cast {
    fn kernel(&self) -> String {
        "convert".into()
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        io.outputs[0].copy_from_slice(tensor(self.from, &io.inputs[0])?.cast(self.to)?.bytes());
        Ok(())
    }
}

/// Concatenation or split.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) parts: Parts,
    pub(super) strides: RowStrides,
}

impl Step<Blocked> for Move {
    fn kernel(&self) -> String {
        if self.parts.joins { "concat" } else { "split" }.into()
    }
    fn accepts_row_stride(&self, _: Operand, _: usize) -> bool {
        self.parts.of_rows
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Blocked>>> {
        Some(Arc::new(Move { parts: self.parts.clone(), strides: strides.clone() }))
    }
    fn parts(&self) -> Option<Parts> {
        Some(self.parts.clone())
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        let Parts { outer, whole, ranges, elem_size: size, joins, .. } = &self.parts;
        for row in 0..*outer {
            for (i, &(start, len)) in ranges.iter().enumerate() {
                let (part, all) = match joins {
                    true => (self.strides.read(i, len), self.strides.write(0, *whole)),
                    false => (self.strides.write(i, len), self.strides.read(0, *whole)),
                };
                let (part, all) = (row * part * size, (row * all + start) * size);
                let len = len * size;
                match joins {
                    true => io.outputs[0][all..all + len].copy_from_slice(&io.inputs[i][part..part + len]),
                    false => io.outputs[i][part..part + len].copy_from_slice(&io.inputs[0][all..all + len]),
                }
            }
        }
        Ok(())
    }
}

fn parts_of(shape: &[usize], axis: usize, lengths: Vec<usize>, bits: usize, joins: bool) -> Parts {
    let inner: usize = shape[axis + 1..].iter().product();
    let mut start = 0;
    let range = |n: usize| {
        start += n * inner;
        (start - n * inner, n * inner)
    };
    let ranges = lengths.into_iter().map(range).collect();
    let (outer, whole) = (shape[..axis].iter().product(), shape[axis] * inner);
    Parts { outer, whole, ranges, of_rows: axis + 1 == shape.len(), elem_size: bits / 8, joins }
}

fn concat(site: &Site<'_, Blocked>, axis: i64) -> Option<Built<Blocked>> {
    let out = &site.outputs[0];
    let axis = normalize_axis(axis, out.rank()).ok()?;
    let mut lengths: Vec<usize> = site.inputs.iter().map(|p| p.shape[axis]).collect();
    // Whole blocks lie one behind the other.
    let blocked = axis == 1 && site.inputs.iter().all(|p| p.layout == LAYOUT && p.shape[1].is_multiple_of(4));
    let layout = if blocked { LAYOUT } else { Layout::PLAIN };
    if blocked {
        lengths.iter_mut().for_each(|n| *n /= 4);
    }
    let parts = parts_of(&layout.dims(&out.shape), axis, lengths, out.ty.bits(), true);
    let work = Work::Step(Arc::new(Move { parts, strides: RowStrides::default() }));
    Some(Built::new(work, (0..site.inputs.len()).map(|i| (i, layout)), [layout]))
}

fn split(site: &Site<'_, Blocked>) -> Option<Built<Blocked>> {
    let from = &site.inputs[0];
    let axis = normalize_axis(*site.inputs[1].ints()?.first()?, from.rank()).ok()?;
    let lengths: Vec<usize> = site.outputs.iter().map(|p| p.shape[axis]).collect();
    let count = lengths.len();
    let parts = parts_of(&from.shape, axis, lengths, from.ty.bits(), false);
    let work = Work::Step(Arc::new(Move { parts, strides: RowStrides::default() }));
    Some(Built::new(work, [(0, Layout::PLAIN)], vec![Layout::PLAIN; count]))
}

fn apply(elt: Elt, x: f32, y: f32) -> f32 {
    match elt {
        Elt::Act(Act::LeakyRelu(slope)) => {
            if x < 0.0 {
                slope * x
            } else {
                x
            }
        }
        Elt::Act(_) => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Elt::Unary(Unary::Abs) => x.abs(),
        Elt::Unary(Unary::Negative) => -x,
        Elt::Unary(Unary::Sqrt) => x.sqrt(),
        Elt::Unary(Unary::Floor) => x.floor(),
        Elt::Unary(_) => x.ceil(),
        Elt::Binary(Binary::Add) => x + y,
        Elt::Binary(Binary::Subtract) => x - y,
        Elt::Binary(Binary::Multiply) => x * y,
        Elt::Binary(_) => x / y,
        Elt::Quantize(_) | Elt::RoundTrip(_) => f32::NAN,
    }
}

// One element through a list of functions; `main` is the result they follow.
fn apply_all(ops: &[ElementwiseOp], main: Option<f32>, input: impl Fn(usize) -> f32) -> f32 {
    let mut results: Vec<f32> = main.into_iter().collect();
    for op in ops {
        let operand = |k: usize| match op.sources.get(k) {
            Some(Source::Input(i)) => input(*i),
            Some(Source::Result(r)) => results[*r],
            None => 0.0,
        };
        let y = apply(op.elt, operand(0), operand(1));
        results.push(y);
    }
    results.last().copied().unwrap_or_default()
}

/// Elementwise functions over values of which each element of the result reads one.
#[derive(Clone, Debug)]
struct Group {
    ops: Vec<ElementwiseOp>,
    /// Elements of each input for each element of the result, as it lies; `None` for padding.
    reads: Vec<Vec<usize>>,
    written: Vec<usize>,
    /// Whether an input lies as the result does.
    alike: Vec<bool>,
    row: usize,
    strides: RowStrides,
}

fn strided(position: usize, row: usize, stride: usize) -> usize {
    if stride == 0 { position } else { position / row * stride + position % row }
}

impl Step<Blocked> for Group {
    fn kernel(&self) -> String {
        "elementwise".into()
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(i) => self.alike[i] && row == self.row,
            Operand::Write(_) => row == self.row,
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Blocked>>> {
        Some(Arc::new(Group { strides: strides.clone(), ..self.clone() }))
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.alike[read] && !self.strides.any()
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs: Vec<Vec<f32>> = io.inputs.iter().map(|b| elements(b)).collect();
        for (k, &position) in self.written.iter().enumerate() {
            let y =
                apply_all(&self.ops, None, |i| inputs[i][strided(self.reads[i][k], self.row, self.strides.read(i, 0))]);
            let to = 4 * strided(position, self.row, self.strides.write(0, 0));
            io.outputs[0][to..to + 4].copy_from_slice(&y.to_ne_bytes());
        }
        Ok(())
    }
}

fn group(site: &Site<'_, Blocked>) -> Built<Blocked> {
    let out = &site.outputs[0];
    // Images of one size stay as they are.
    let largest = site.inputs.iter().filter(|p| p.constant.is_none() && p.shape == out.shape).map(|p| p.layout).next();
    let layout = largest.unwrap_or(Layout::PLAIN);
    let written = positions(layout, &out.shape);
    let form = |shape: &[usize]| if shape == out.shape { layout } else { Layout::PLAIN };
    let reads = site.inputs.iter().map(|p| match p.shape == out.shape {
        true => written.clone(),
        false => broadcast(&p.shape, &out.shape),
    });
    let step = Group {
        ops: site.epilogue.to_vec(),
        reads: reads.collect(),
        alike: site.inputs.iter().map(|p| p.shape == out.shape).collect(),
        row: layout.dims(&out.shape).last().copied().unwrap_or(1),
        written,
        strides: RowStrides::default(),
    };
    Built::step(step, site.inputs.iter().enumerate().map(|(i, p)| (i, form(&p.shape))), layout)
}

// The element of a smaller value that meets each element of the result.
fn broadcast(own: &[usize], shape: &[usize]) -> Vec<usize> {
    let steps = carafe_tensor::strides(own);
    let ahead = shape.len() - own.len();
    let position = |mut flat: usize| {
        let mut at = 0;
        for axis in (0..shape.len()).rev() {
            let i = flat % shape[axis];
            flat /= shape[axis];
            if axis >= ahead && own[axis - ahead] != 1 {
                at += i * steps[axis - ahead];
            }
        }
        at
    };
    (0..shape.iter().product()).map(position).collect()
}

/// A convolution of blocked images, with its epilogue.
#[derive(Debug)]
struct Conv {
    data: [usize; 4],
    out: [usize; 4],
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 2],
    epilogue: Vec<ElementwiseOp>,
    /// Element of each further input for each element of the result, as the model counts.
    operands: Vec<Vec<usize>>,
    own_inputs: usize,
}

impl Step<Blocked> for Conv {
    fn kernel(&self) -> String {
        "conv_blocked+epilogue".into()
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs: Vec<Vec<f32>> = io.inputs.iter().map(|b| elements(b)).collect();
        let (from, to) = (positions(LAYOUT, &self.data), positions(LAYOUT, &self.out));
        let ([_, channels, height, width], [_, outs, rows, columns]) = (self.data, self.out);
        // Padding of blocks reads as zero, like any value of this layout.
        io.outputs[0].fill(0);
        for (k, &position) in to.iter().enumerate() {
            let (x, y) = (k % columns, k / columns % rows);
            let (o, n) = (k / (columns * rows) % outs, k / (columns * rows * outs));
            let mut sum = 0f64;
            for c in 0..channels {
                for ky in 0..self.kernel[0] {
                    for kx in 0..self.kernel[1] {
                        let row = (y * self.strides[0] + ky * self.dilations[0]).wrapping_sub(self.pads[0]);
                        let column = (x * self.strides[1] + kx * self.dilations[1]).wrapping_sub(self.pads[1]);
                        if row < height && column < width {
                            let at = from[((n * channels + c) * height + row) * width + column];
                            let tap = ((o * channels + c) * self.kernel[0] + ky) * self.kernel[1] + kx;
                            sum += f64::from(inputs[0][at]) * f64::from(inputs[1][tap]);
                        }
                    }
                }
            }
            let value = match self.epilogue.is_empty() {
                true => sum as f32,
                false => {
                    apply_all(&self.epilogue, Some(sum as f32), |i| inputs[i][self.operands[i - self.own_inputs][k]])
                }
            };
            io.outputs[0][4 * position..4 * position + 4].copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    }
}

fn convolution(site: &Site<'_, Blocked>, op: &Convolution) -> Option<Built<Blocked>> {
    let (data, filters, out) = (&site.inputs[0], &site.inputs[1], &site.outputs[0]);
    let two = |list: &[i64]| -> Option<[usize; 2]> {
        let list: Vec<usize> = list.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
        list.try_into().ok()
    };
    if !data.is_f32() || !filters.is_f32() || op.auto_pad != PadType::Explicit {
        return None;
    }
    two(&op.pads_end)?;
    let step = Conv {
        data: data.shape.clone().try_into().ok()?,
        out: out.shape.clone().try_into().ok()?,
        kernel: [filters.shape[2], filters.shape[3]],
        strides: two(&op.strides)?,
        dilations: two(&op.dilations)?,
        pads: two(&op.pads_begin)?,
        epilogue: site.epilogue.to_vec(),
        operands: site.inputs[site.own_inputs..].iter().map(|p| broadcast(&p.shape, &out.shape)).collect(),
        own_inputs: site.own_inputs,
    };
    let layout = |i: usize| if i == 0 { LAYOUT } else { Layout::PLAIN };
    Some(Built::step(step, (0..site.inputs.len()).map(|i| (i, layout(i))), LAYOUT))
}

/// A matrix product over operands of one type, which is its precision.
#[derive(Debug)]
struct Product {
    ty: ElementType,
    sizes: [usize; 3],
    /// First elements of the two operands for each matrix of the result.
    starts: Vec<[usize; 2]>,
    transposed: [bool; 2],
}

impl Step<Blocked> for Product {
    fn kernel(&self) -> String {
        "matmul".into()
    }
    fn run(&self, io: &mut Io) -> Result<()> {
        let operand =
            |i: usize| Ok::<_, carafe_graph::Error>(tensor(self.ty, &io.inputs[i])?.to_vec::<f64>()?.into_owned());
        let (a, b, [m, n, k]) = (operand(0)?, operand(1)?, self.sizes);
        let mut out = vec![];
        for &[first, second] in &self.starts {
            for (row, column) in (0..m * n).map(|i| (i / n, i % n)) {
                let term = |i: usize| {
                    let x = if self.transposed[0] { i * m + row } else { row * k + i };
                    let y = if self.transposed[1] { column * k + i } else { i * n + column };
                    a[first + x] * b[second + y]
                };
                out.push((0..k).map(term).sum::<f64>());
            }
        }
        let out = Tensor::from_vec(&[out.len()], out)?.cast(self.ty)?;
        io.outputs[0].copy_from_slice(out.bytes());
        Ok(())
    }
}

fn product(site: &Site<'_, Blocked>, op: &MatMul) -> Option<Built<Blocked>> {
    let (a, b, out) = (&site.inputs[0], &site.inputs[1], &site.outputs[0]);
    if !a.is_f32() || a.rank() < 2 || b.rank() < 2 {
        return None;
    }
    let rank = out.rank();
    let (m, n) = (out.shape[rank - 2], out.shape[rank - 1]);
    let k = a.shape[a.rank() - if op.transpose_a { 2 } else { 1 }];
    let batch = &out.shape[..rank - 2];
    let firsts = |p: &carafe_plan::Port, size: usize| {
        broadcast(&p.shape[..p.rank() - 2], batch).into_iter().map(move |i| i * size)
    };
    let starts = firsts(a, m * k).zip(firsts(b, k * n)).map(|(a, b)| [a, b]).collect();
    let step = Product { ty: site.precision, sizes: [m, n, k], starts, transposed: [op.transpose_a, op.transpose_b] };
    let form = Form::typed(Layout::PLAIN, site.precision);
    Some(Built::step(step, [(0, form), (1, form)], form))
}

/// NonZero.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) index: ElementType,
}

impl DynamicOutput<Blocked> for Found {
    fn kernel(&self) -> &'static str {
        "non_zero"
    }
    fn run(&self, (): &(), inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        // A number counts as a list of one.
        let shape = if inputs[0].rank() == 0 { &[1] } else { inputs[0].shape() };
        let all = inputs[0].to_vec::<f32>()?;
        let found: Vec<usize> = (0..all.len()).filter(|&i| all[i] != 0.0).collect();
        let steps = &carafe_tensor::strides(shape);
        let at = |axis: usize| found.iter().map(move |i| (i / steps[axis] % shape[axis]) as i64);
        let list: Vec<i64> = (0..shape.len()).flat_map(at).collect();
        Ok(vec![Tensor::from_i64(self.index, &[shape.len(), found.len()], &list)?])
    }
}
