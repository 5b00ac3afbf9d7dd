//! Gathers and scatters: elements that are read or written at indices, which come while running. What lies outside of an axis is
//! told to the host, which refuses it.

use super::movement::size_of;
use super::view::copy;
use super::{Built, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::machine::ALIGNMENT;
use crate::programs::Source;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::indexing::{
    Gather, GatherElements, GatherND, GatherNDV5, OneHot, Reduction, ScatterElementsUpdate, ScatterNDUpdate,
    ScatterUpdate,
};
use carafe_plan::{Layout, View};
use carafe_tensor::{ElementType, strides};

const SOURCE: Source = Source("indexing.cl");

/// Where kernels tell of an index that is outside of its axis.
const FAULTS: [Arg; 2] = [Arg::Faults, Arg::Step];

/// Tuples that are put in one after the other where they are joined.
const FEW_TUPLES: usize = 1 << 12;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.len() < 2 {
        return Ok(None);
    }
    let op = site.op;
    if let Some(op) = op.get::<OneHot>() {
        return one_hot(site, op);
    }
    let indices = &site.inputs[1];
    if !is_index(indices.ty) || types::movable(site.inputs[0].ty).is_none() {
        return Ok(None);
    }
    if let Some(op) = op.get::<Gather>() {
        gather(site, op.batch_dims)
    } else if let Some(op) = op.get::<GatherElements>() {
        gather_elements(site, op.axis)
    } else if let Some(op) = op.get::<GatherND>() {
        gather_nd(site, op.batch_dims)
    } else if let Some(op) = op.get::<GatherNDV5>() {
        // It joins batch axes, which the current version does not.
        gather_nd(site, op.batch_dims)
    } else if let Some(op) = op.get::<ScatterElementsUpdate>() {
        scatter_elements(site, op.reduction, op.use_init_val)
    } else if let Some(op) = op.get::<ScatterNDUpdate>() {
        scatter_nd(site, op.reduction)
    } else if op.is::<ScatterUpdate>() {
        scatter_update(site)
    } else {
        Ok(None)
    }
}

fn is_index(ty: ElementType) -> bool {
    matches!(ty, ElementType::I32 | ElementType::I64)
}

fn macros(site: &Site<'_>, data: usize) -> [(&'static str, String); 2] {
    let index = if site.inputs[1].ty == ElementType::I64 { "long" } else { "int" };
    [("T", types::of_size(size_of(site.cx, &site.inputs[data])).into()), ("I", index.into())]
}

fn int8(numbers: &[usize]) -> Arg {
    let number = |i: usize| numbers.get(i).map_or(1i32, |&n| n as i32);
    Arg::Value((0..8).flat_map(|i| number(i).to_ne_bytes()).collect())
}

fn axis_of(site: &Site<'_>, input: usize, rank: usize) -> Option<usize> {
    normalize_axis(*site.inputs.get(input)?.ints()?.first()?, rank).ok()
}

// A step over these inputs, all plain.
fn plain(site: &Site<'_>, name: &str, launches: Vec<Launch>, inputs: &[usize]) -> Built {
    let reads = inputs.iter().map(|&i| (i, site.cx.form(&site.inputs[i], Layout::PLAIN)));
    Launches::new(name, launches).built(reads, [site.cx.form(&site.outputs[0], Layout::PLAIN)])
}

fn gather(site: &Site<'_>, batch_dims: i64) -> Result<Option<Built>> {
    let (data, list, out, cx) = (&site.inputs[0], &site.inputs[1], &site.outputs[0], site.cx);
    let Some(axis) = axis_of(site, 2, data.rank()) else { return Ok(None) };
    let batch = if batch_dims < 0 { batch_dims + list.rank() as i64 } else { batch_dims };
    let Ok(batch) = usize::try_from(batch) else { return Ok(None) };
    // A list of indices keeps the number of axes, and with it the layout.
    let layout = if list.rank() == 1 && batch == 0 { data.layout } else { Layout::PLAIN };
    let (dims, axis) = (layout.dims(&data.shape), layout.axis(axis, data.rank()));
    let (outer, n, inner) =
        (dims[batch..axis].iter().product::<usize>(), dims[axis], dims[axis + 1..].iter().product());
    let m: usize = list.shape[batch..].iter().product();
    let kernel = cx.kernel(&SOURCE, "gather", &macros(site, 0))?;
    let sizes: [usize; 5] = [out.len(), outer, n, m, inner];
    let args = [Arg::Read(0), Arg::Read(1), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    let step = Launches::new("gather", vec![Launch::flat(&kernel, args, out.len(), cx.group())]);
    let reads = [(0, cx.form(data, layout)), (1, Layout::PLAIN.into())];
    Ok(Some(step.built(reads, [cx.form(out, layout)])))
}

fn gather_elements(site: &Site<'_>, axis: i64) -> Result<Option<Built>> {
    let (data, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let Ok(axis) = normalize_axis(axis, data.rank()) else { return Ok(None) };
    let n = data.shape[axis];
    let inner: usize = out.shape[axis + 1..].iter().product();
    let kernel = cx.kernel(&SOURCE, "gather_elements", &macros(site, 0))?;
    let sizes = [out.len(), n, out.shape[axis], inner];
    let args =
        [Arg::Read(0), Arg::Read(1), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).chain(FAULTS).collect();
    Ok(Some(plain(site, "gather_elements", vec![Launch::flat(&kernel, args, out.len(), cx.group())], &[0, 1])))
}

fn gather_nd(site: &Site<'_>, batch: usize) -> Result<Option<Built>> {
    let (data, list, out, cx) = (&site.inputs[0], &site.inputs[1], &site.outputs[0], site.cx);
    let Some((&tuple, positions)) = list.shape.split_last() else { return Ok(None) };
    let shape = &data.shape[batch..];
    if tuple > 8 {
        return Ok(None);
    }
    let per_batch: usize = positions[batch..].iter().product();
    let (plane, inner): (usize, usize) = (shape.iter().product(), shape[tuple..].iter().product());
    let kernel = cx.kernel(&SOURCE, "gather_nd", &macros(site, 0))?;
    let args = vec![
        Arg::Read(0),
        Arg::Read(1),
        Arg::Write(0),
        out.len().into(),
        tuple.into(),
        int8(&shape[..tuple]),
        per_batch.into(),
        plane.into(),
        inner.into(),
        Arg::Faults,
        Arg::Step,
    ];
    Ok(Some(plain(site, "gather_nd", vec![Launch::flat(&kernel, args, out.len(), cx.group())], &[0, 1])))
}

// The copy of the data that updates are put over.
fn data_first(site: &Site<'_>) -> Result<Launch> {
    let whole = View::whole(&[site.inputs[0].len()]);
    copy(site.cx, &whole, &whole, size_of(site.cx, &site.inputs[0]), Arg::Read(0), Arg::Write(0))
}

// What joins an element `a` and an update `b`, and what a sum begins with. `None` for what is left to the host.
fn join(how: Reduction, ty: ElementType) -> Option<(String, String)> {
    let (own, wide) = (types::computed(ty)?, types::wrapping(ty));
    let boolean = ty == ElementType::Boolean;
    let wrapped = |sign: &str| match ty.is_integer() {
        true => format!("({own})(({wide})a {sign} ({wide})b)"),
        false => format!("a {sign} b"),
    };
    let (low, high) = limits(ty)?;
    let (value, neutral) = match how {
        Reduction::None => ("b".into(), "0"),
        Reduction::Sum | Reduction::Max if boolean => ("(uchar)(a | b)".into(), "0"),
        Reduction::Prod | Reduction::Min if boolean => ("(uchar)(a & b)".into(), "1"),
        Reduction::Sub if boolean => ("(uchar)(a ^ b)".into(), "0"),
        Reduction::Sum => (wrapped("+"), "0"),
        Reduction::Sub => (wrapped("-"), "0"),
        Reduction::Prod => (wrapped("*"), "1"),
        Reduction::Min => ("b < a ? b : a".into(), high),
        Reduction::Max => ("b > a ? b : a".into(), low),
        Reduction::Mean => return None,
    };
    Some((value, neutral.to_string()))
}

/// The lowest and the highest finite number of a type.
pub(super) fn limits(ty: ElementType) -> Option<(&'static str, &'static str)> {
    use ElementType as E;
    Some(match ty {
        E::F32 | E::F16 | E::Bf16 => ("-FLT_MAX", "FLT_MAX"),
        E::F64 => ("-DBL_MAX", "DBL_MAX"),
        E::I8 => ("CHAR_MIN", "CHAR_MAX"),
        E::I16 => ("SHRT_MIN", "SHRT_MAX"),
        E::I32 => ("INT_MIN", "INT_MAX"),
        E::I64 => ("LONG_MIN", "LONG_MAX"),
        E::U8 => ("0", "UCHAR_MAX"),
        E::Boolean => ("0", "1"),
        E::U16 => ("0", "USHRT_MAX"),
        E::U32 => ("0", "UINT_MAX"),
        E::U64 => ("0", "ULONG_MAX"),
        _ => return None,
    })
}

// Macros for kernels that join.
fn joining(site: &Site<'_>, how: Reduction) -> Option<Vec<(&'static str, String)>> {
    let (ty, cx) = (site.inputs[0].ty, site.cx);
    let stored = cx.stored(ty);
    if ty == ElementType::F64 && !cx.has_double() {
        return None;
    }
    let (value, neutral) = join(how, ty)?;
    let mut all = macros(site, 0).to_vec();
    all.extend([
        ("S", types::stored(stored)?.to_string()),
        ("N", types::computed(ty)?.to_string()),
        ("JOIN", value),
        ("NEUTRAL", neutral),
        ("LOAD_N(p, i)", types::load(stored, "(p)", "(i)")),
        ("STORE_N(p, i, v)", types::store(stored, "(p)", "(i)", "(v)")),
    ]);
    Some(all)
}

fn scatter_elements(site: &Site<'_>, how: Reduction, keep: bool) -> Result<Option<Built>> {
    let (data, list, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let Some(axis) = axis_of(site, 3, data.rank()) else { return Ok(None) };
    let beyond = |a: usize| a != axis && list.shape[a] > data.shape[a];
    let known = list.shape == site.inputs[2].shape && data.rank() <= 8;
    if (0..data.rank()).any(beyond) || !known {
        return Ok(None);
    }
    let Some(macros) = joining(site, how) else { return Ok(None) };
    let kernel = cx.kernel(&SOURCE, "scatter_elements", &macros)?;
    let lines = list.len() / list.shape[axis];
    let args = vec![
        Arg::Read(1),
        Arg::Read(2),
        Arg::Write(0),
        lines.into(),
        data.shape[axis].into(),
        list.shape[axis].into(),
        data.rank().into(),
        axis.into(),
        int8(&list.shape),
        int8(&strides(&data.shape)),
        int8(&strides(&list.shape)),
        Arg::Int(i32::from(keep || how == Reduction::None)),
        Arg::Faults,
        Arg::Step,
    ];
    let launches = vec![data_first(site)?, Launch::flat(&kernel, args, lines, cx.group())];
    Ok(Some(plain(site, "scatter_elements", launches, &[0, 1, 2])))
}

fn scatter_nd(site: &Site<'_>, how: Reduction) -> Result<Option<Built>> {
    let (data, list, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let Some((&tuple, positions)) = list.shape.split_last() else { return Ok(None) };
    if tuple > 8 || tuple > data.rank() {
        return Ok(None);
    }
    let (tuples, inner): (usize, usize) = (positions.iter().product(), data.shape[tuple..].iter().product());
    let dims = int8(&data.shape[..tuple]);
    if how != Reduction::None {
        let Some(macros) = joining(site, how).filter(|_| tuples <= FEW_TUPLES) else { return Ok(None) };
        let kernel = cx.kernel(&SOURCE, "scatter_nd", &macros)?;
        let args = vec![
            Arg::Read(1),
            Arg::Read(2),
            Arg::Write(0),
            inner.into(),
            tuples.into(),
            tuple.into(),
            dims,
            Arg::Faults,
            Arg::Step,
        ];
        let launches = vec![data_first(site)?, Launch::flat(&kernel, args, inner, cx.group())];
        return Ok(Some(plain(site, "scatter_nd", launches, &[0, 1, 2])));
    }
    let macros = macros(site, 0);
    let [clear, find, put] =
        ["clear_winners", "find_winners", "put_winners"].map(|name| cx.kernel(&SOURCE, name, &macros));
    let (slices, group) = (data.len() / inner, cx.group());
    let bytes = (slices * 4).next_multiple_of(ALIGNMENT);
    let winners = Arg::Workspace(0, bytes);
    let launches = vec![
        data_first(site)?,
        Launch::flat(&clear?, vec![winners.clone(), slices.into()], slices, group),
        Launch::flat(
            &find?,
            vec![Arg::Read(1), winners.clone(), tuples.into(), tuple.into(), dims.clone(), Arg::Faults, Arg::Step],
            tuples,
            group,
        ),
        Launch::flat(
            &put?,
            vec![
                Arg::Read(1),
                Arg::Read(2),
                winners,
                Arg::Write(0),
                (tuples * inner).into(),
                tuple.into(),
                dims,
                inner.into(),
                Arg::Faults,
                Arg::Step,
            ],
            tuples * inner,
            group,
        ),
    ];
    Ok(Some(plain(site, "scatter_nd", launches, &[0, 1, 2]).with_workspace(bytes)))
}

fn scatter_update(site: &Site<'_>) -> Result<Option<Built>> {
    let (data, list, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let Some(axis) = axis_of(site, 3, data.rank()) else { return Ok(None) };
    let (outer, inner): (usize, usize) = (data.shape[..axis].iter().product(), data.shape[axis + 1..].iter().product());
    let kernel = cx.kernel(&SOURCE, "scatter_update", &macros(site, 0))?;
    let sizes = [outer * inner, data.shape[axis], list.len(), inner];
    let args =
        [Arg::Read(1), Arg::Read(2), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).chain(FAULTS).collect();
    let launches = vec![data_first(site)?, Launch::flat(&kernel, args, outer * inner, cx.group())];
    Ok(Some(plain(site, "scatter", launches, &[0, 1, 2])))
}

fn one_hot(site: &Site<'_>, op: &OneHot) -> Result<Option<Built>> {
    let (list, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let Ok(axis) = normalize_axis(op.axis, out.rank()) else { return Ok(None) };
    if !is_index(list.ty) || types::movable(out.ty).is_none() || site.inputs.len() != 4 {
        return Ok(None);
    }
    let index = if list.ty == ElementType::I64 { "long" } else { "int" };
    let macros = [("T", types::of_size(size_of(cx, out)).to_string()), ("I", index.to_string())];
    let kernel = cx.kernel(&SOURCE, "one_hot", &macros)?;
    let inner: usize = out.shape[axis + 1..].iter().product();
    let negative = op.negative_indices_mode == NegativeIndices::Normalize;
    let mut args = vec![Arg::Read(0), Arg::Read(1), Arg::Read(2), Arg::Write(0)];
    args.extend([out.len(), out.shape[axis], inner, usize::from(negative)].map(Arg::from));
    Ok(Some(plain(site, "one_hot", vec![Launch::flat(&kernel, args, out.len(), cx.group())], &[0, 2, 3])))
}
