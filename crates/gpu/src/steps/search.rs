//! Choosing and accumulating along an axis, axes that get longer or shorter, and sequences that are turned around.

use super::movement::size_of;
use super::reduce::{element_macros, group};
use super::{Built, Port, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Pad, ReverseSequence};
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_ops::search::{CumSum, TopK};
use carafe_plan::Layout;
use carafe_tensor::{ElementType, strides};

const SEARCH: Source = Source("search.cl");
const PAD: Source = Source("pad.cl");

/// Elements that are put into the order of their places one by one.
const FEW: usize = 256;
/// Most that are chosen, each by a pass over all.
const MOST: usize = 1 << 14;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.is_empty() {
        return Ok(None);
    }
    let (op, ty) = (site.op, site.inputs[0].ty);
    if types::stored(ty).is_none() || (ty == ElementType::F64 && !site.cx.has_double()) {
        return Ok(None);
    }
    if let Some(op) = op.get::<TopK>() {
        top_k(site, op)
    } else if let Some(op) = op.get::<CumSum>() {
        cum_sum(site, op)
    } else if let Some(op) = op.get::<Pad>() {
        pad(site, op.pad_mode)
    } else if let Some(op) = op.get::<ReverseSequence>() {
        reverse_sequence(site, op)
    } else {
        Ok(None)
    }
}

fn around(port: &Port, axis: usize) -> (usize, usize, usize) {
    (port.shape[..axis].iter().product(), port.shape[axis], port.shape[axis + 1..].iter().product())
}

fn top_k(site: &Site<'_>, op: &TopK) -> Result<Option<Built>> {
    let (data, cx) = (&site.inputs[0], site.cx);
    let Ok(axis) = normalize_axis(op.axis, data.rank()) else { return Ok(None) };
    let ((outer, n, inner), k) = (around(data, axis), site.outputs[0].shape[axis]);
    let by_index = op.sort == TopKSort::Index;
    if k > n || k > if by_index { FEW } else { MOST } || data.ty == ElementType::Boolean {
        return Ok(None);
    }
    let index = if site.outputs[1].ty == ElementType::I64 { "long" } else { "int" };
    let (group, better) = (group(cx.group()), if op.mode == TopKMode::Max { "(a > b)" } else { "(a < b)" });
    let mut macros = element_macros(site, data);
    macros.extend([
        ("TOP_K", "1".to_string()),
        ("I", index.to_string()),
        ("BETTER", better.to_string()),
        ("BY_INDEX", usize::from(by_index).to_string()),
        ("GROUP", group.to_string()),
    ]);
    let kernel = cx.kernel(&SEARCH, "top_k", &macros)?;
    let args = vec![Arg::Read(0), Arg::Write(0), Arg::Write(1), n.into(), inner.into(), k.into()];
    let launch = Launch { kernel, args, global: [outer * inner * group, 1, 1], local: Some([group, 1, 1]) };
    let outputs = [cx.form(&site.outputs[0], Layout::PLAIN), Layout::PLAIN.into()];
    Ok(Some(Launches::new("top_k", vec![launch]).built([(0, cx.form(data, Layout::PLAIN))], outputs)))
}

fn cum_sum(site: &Site<'_>, op: &CumSum) -> Result<Option<Built>> {
    let (data, cx) = (&site.inputs[0], site.cx);
    let axis = match site.inputs.get(1) {
        Some(axis) => axis.ints().and_then(|v| v.first().copied()),
        None => Some(0),
    };
    let Some(Ok(axis)) = axis.map(|a| normalize_axis(a, data.rank())) else { return Ok(None) };
    let (outer, n, inner) = around(data, axis);
    let kernel = cx.kernel(&SEARCH, "cum_sum", &element_macros(site, data))?;
    let sizes = [outer * inner, n, inner, usize::from(op.exclusive), usize::from(op.reverse)];
    let args = [Arg::Read(0), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    let step = Launches::new("cum_sum", vec![Launch::flat(&kernel, args, outer * inner, cx.group())]);
    let form = cx.form(data, Layout::PLAIN);
    Ok(Some(step.built([(0, form)], [form])))
}

fn int8(numbers: impl Iterator<Item = i64>) -> Arg {
    let numbers: Vec<i64> = numbers.chain(std::iter::repeat(1)).take(8).collect();
    Arg::Value(numbers.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect())
}

fn pad(site: &Site<'_>, mode: PadMode) -> Result<Option<Built>> {
    let (from, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let layout = from.layout;
    let Some(begins) = site.inputs[1].ints() else { return Ok(None) };
    if from.rank() > 8 || from.rank() != begins.len() || types::movable(from.ty).is_none() {
        return Ok(None);
    }
    let has_value = mode == PadMode::Constant && site.inputs.len() > 3;
    let number = match mode {
        PadMode::Constant => 0,
        PadMode::Edge => 1,
        PadMode::Reflect => 2,
        PadMode::Symmetric => 3,
    };
    let macros = [
        ("T", types::of_size(size_of(cx, from)).to_string()),
        ("L", "int".to_string()),
        ("RANK", from.rank().to_string()),
        ("MODE", number.to_string()),
        ("VALUE", if has_value { "value[0]" } else { "0" }.to_string()),
    ];
    let kernel = cx.kernel(&PAD, "pad", &macros)?;
    let dims = |shape: &[usize]| int8(layout.dims(shape).into_iter().map(|n| n as i64));
    let begins: Vec<i64> = layout.order(from.rank()).into_iter().map(|a| begins[a]).collect();
    let args = vec![
        Arg::Read(0),
        Arg::Read(usize::from(has_value)),
        Arg::Write(0),
        out.len().into(),
        dims(&from.shape),
        dims(&out.shape),
        int8(begins.into_iter()),
    ];
    let mut reads = vec![(0, cx.form(from, layout))];
    if has_value {
        reads.push((3, cx.form(&site.inputs[3], Layout::PLAIN)));
    }
    let step = Launches::new("pad", vec![Launch::flat(&kernel, args, out.len(), cx.group())]);
    Ok(Some(step.built(reads, [cx.form(out, layout)])))
}

fn reverse_sequence(site: &Site<'_>, op: &ReverseSequence) -> Result<Option<Built>> {
    let (data, lengths, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let axes = (normalize_axis(op.batch_axis, data.rank()), normalize_axis(op.seq_axis, data.rank()));
    let (Ok(batch), Ok(seq)) = axes else { return Ok(None) };
    let index = match lengths.ty {
        ElementType::I32 => "int",
        ElementType::I64 => "long",
        _ => return Ok(None),
    };
    // What is longer than its axis is refused, which only the host can do.
    let (n, steps) = (data.shape[seq], strides(&data.shape));
    let fits = lengths.ints().is_some_and(|v| v.iter().all(|l| (0..=n as i64).contains(l)));
    if !fits || types::movable(data.ty).is_none() {
        return Ok(None);
    }
    let macros = [
        ("T", types::of_size(size_of(cx, data)).to_string()),
        ("L", index.to_string()),
        ("RANK", "0".to_string()),
        ("MODE", "1".to_string()),
    ];
    let kernel = cx.kernel(&PAD, "reverse_sequence", &macros)?;
    let sizes = [data.len(), data.shape[batch], steps[batch], n, steps[seq]];
    let args = [Arg::Read(0), Arg::Read(1), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    let step = Launches::new("reverse_sequence", vec![Launch::flat(&kernel, args, data.len(), cx.group())]);
    let form = cx.form(data, Layout::PLAIN);
    Ok(Some(step.built([(0, form), (1, Layout::PLAIN.into())], [form])))
}
