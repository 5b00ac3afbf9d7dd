//! Several tensors into one, and one into several.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::{Concat, VariadicSplit};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("Concat", 0, concat),
    rule("SliceChannel", 0, slice_channel),
    rule("_npi_column_stack", 0, |n| numpy_stack(n, 2, 1)),
    rule("_npi_concatenate", 0, concatenate),
    rule("_npi_dstack", 0, |n| numpy_stack(n, 3, 2)),
    rule("_npi_hsplit", 0, |n| split(n, true)),
    rule("_npi_hstack", 0, hstack),
    rule("_npi_stack", 0, stack),
    rule("_npi_vstack", 0, |n| numpy_stack(n, 2, 0)),
    rule("_rnn_param_concat", 0, concat),
    rule("_split_v2", 0, |n| split(n, false)),
    rule("amp_multicast", 0, amp_multicast),
    rule("stack", 0, stack),
];

fn all_inputs(n: &mut NodeCx<'_>) -> Result<Vec<Value>> {
    n.ignore(&["num_args"]);
    let all = n.inputs()?;
    if all.is_empty() { Err(n.fail("there is nothing to join")) } else { Ok(all) }
}

fn concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = all_inputs(n)?;
    let axis = n.int("dim", 1)?;
    // Flat parameters of a recurrent layer have but one axis.
    let axis = if n.rank(all[0]) == Some(1) { 0 } else { axis };
    match all[..] {
        [one] => Ok(one.into()),
        _ => Ok(n.emit(Concat { axis }, &all)?.into()),
    }
}

// Without an axis all are made flat.
fn concatenate(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = all_inputs(n)?;
    if n.is_none("axis") {
        let all = all.into_iter().map(|v| n.reshape(v, &[-1])).collect::<Result<Vec<_>>>()?;
        return Ok(n.concat(&all, 0)?.into());
    }
    let axis = n.int("axis", 0)?;
    Ok(n.concat(&all, axis)?.into())
}

fn stack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis = n.int("axis", 0)?;
    let all = all_inputs(n)?;
    let parts = all.into_iter().map(|v| n.unsqueeze(v, &[axis])).collect::<Result<Vec<_>>>()?;
    Ok(n.concat(&parts, axis)?.into())
}

fn hstack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dim"]);
    let all = all_inputs(n)?;
    let axis = if n.known_rank(all[0])? <= 1 { 0 } else { 1 };
    Ok(n.concat(&all, axis)?.into())
}

// With at least so many axes, joined on one.
fn numpy_stack(n: &mut NodeCx<'_>, least: usize, axis: i64) -> Result<Outputs> {
    n.ignore(&["dim"]);
    let mut parts = vec![];
    for v in all_inputs(n)? {
        parts.push(match (n.known_rank(v)?, least, axis) {
            (0 | 1, 2, 0) => n.reshape(v, &[1, -1])?,
            (0 | 1, 2, _) => n.reshape(v, &[-1, 1])?,
            (0 | 1, ..) => n.reshape(v, &[1, -1, 1])?,
            (2, 3, _) => n.unsqueeze(v, &[2])?,
            _ => v,
        });
    }
    Ok(n.concat(&parts, axis)?.into())
}

fn slice_channel(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (axis, parts) = (n.int("axis", 1)?, n.needed_int("num_outputs")?);
    let parts = usize::try_from(parts).ok().filter(|p| (1..=1 << 16).contains(p));
    let parts = parts.ok_or_else(|| n.fail("attribute `num_outputs` must be a positive number"))?;
    let squeezes = n.flag("squeeze_axis", false)?;
    let all = if parts == 1 { vec![x] } else { n.split_equally(x, axis, parts)? };
    squeezed(n, all, axis, squeezes)
}

fn squeezed(n: &mut NodeCx<'_>, all: Vec<Value>, axis: i64, squeezes: bool) -> Result<Outputs> {
    let all = match squeezes {
        true => all.into_iter().map(|v| n.squeeze(v, &[axis])).collect::<Result<Vec<_>>>()?,
        false => all,
    };
    Ok(all.into())
}

// Equal parts, or cut at some indices.
fn split(n: &mut NodeCx<'_>, horizontal: bool) -> Result<Outputs> {
    let x = n.input(0)?;
    let squeezes = n.flag("squeeze_axis", false)?;
    let mut axis = n.int("axis", 1)?;
    if horizontal {
        axis = if n.known_rank(x)? == 1 { 0 } else { 1 };
    }
    let sections = n.int("sections", 0)?;
    let indices = n.ints_of("indices")?;
    if sections > 0 {
        let all = if sections == 1 { vec![x] } else { n.split_equally(x, axis, sections as usize)? };
        return squeezed(n, all, axis, squeezes);
    }
    // The first index is 0 in files of MXNet.
    let inner: Vec<i64> = match indices.split_first() {
        Some((0, rest)) => rest.to_vec(),
        _ => indices,
    };
    let mut lengths: Vec<i64> = vec![];
    let mut last = 0;
    for i in &inner {
        lengths.push(i - last);
        last = *i;
    }
    lengths.push(-1);
    let (axis_value, lengths) = (n.i64(axis)?, n.i64s(&lengths)?);
    let all = n.emit_all(VariadicSplit, &[x, axis_value, lengths])?;
    squeezed(n, all, axis, squeezes)
}

// All in the widest of their types, or the narrowest.
fn amp_multicast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_outputs"]);
    let narrow = n.flag("cast_narrow", false)?;
    let all = n.inputs()?;
    let floats = all.iter().map(|v| n.ty(*v)).filter(|ty| ty.is_float());
    let ty = if narrow { floats.min_by_key(|ty| ty.bits()) } else { floats.max_by_key(|ty| ty.bits()) };
    let ty = ty.unwrap_or(ElementType::F32);
    let cast = |n: &mut NodeCx<'_>, v: Value| if n.ty(v).is_float() { n.convert(v, ty) } else { Ok(v) };
    let all = all.into_iter().map(|v| cast(n, v)).collect::<Result<Vec<_>>>()?;
    Ok(all.into())
}
