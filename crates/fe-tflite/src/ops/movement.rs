//! Elements that move.

use super::fourier::complex_axis;
use super::fused::activated;
use crate::graph::COMPLEX_INPUT;
use carafe_fe_tensorflow::ops::common::padding;
use carafe_fe_tensorflow::ops::common::shapes::{i64_vector, known_number, scalar};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{Reshape, Reverse, ReverseSequence, Squeeze, Tile, Transpose, Unsqueeze};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("CONCATENATION", 1, concatenation),
    rule("DENSIFY", 1, |n| Ok(n.input(0)?.into())),
    rule("EXPAND_DIMS", 1, expand_dims),
    rule("MIRROR_PAD", 1, mirror_pad),
    rule("PACK", 1, pack),
    rule("PAD", 1, |n| {
        let (x, pads) = (n.input(0)?, n.input(1)?);
        Ok(padding::pad(n, x, pads, None)?.into())
    }),
    rule("PADV2", 1, |n| {
        let (x, pads, value) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let value = scalar(n, value)?;
        Ok(padding::pad(n, x, pads, Some(value))?.into())
    }),
    rule("RESHAPE", 1, reshape),
    rule("REVERSE_SEQUENCE", 1, reverse_sequence),
    rule("REVERSE_V2", 1, reverse),
    rule("SQUEEZE", 1, squeeze),
    rule("TILE", 1, tile),
    rule("TRANSPOSE", 1, transpose),
];

fn concatenation(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (inputs, axis) = (n.inputs()?, n.attr::<i64>("axis", 0)?);
    let y = n.concat(&inputs, axis)?;
    Ok(activated(n, y)?.into())
}

fn pack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["values_count"]);
    let axis: i64 = n.attr("axis", 0)?;
    let mut parts = vec![];
    for v in n.inputs()? {
        parts.push(n.unsqueeze(v, &[axis])?);
    }
    Ok(n.concat(&parts, axis)?.into())
}

fn expand_dims(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = (n.input(0)?, n.input(1)?);
    if n.attr(COMPLEX_INPUT, false)? {
        let axis = known_number(n, axis, "axis")?;
        return Ok(n.unsqueeze(x, &[complex_axis(axis)])?.into());
    }
    let axis = i64_vector(n, axis)?;
    Ok(n.emit(Unsqueeze, &[x, axis])?.into())
}

fn mirror_pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, pads) = (n.input(0)?, n.input(1)?);
    let mode: String = n.attr("mode", "REFLECT".to_string())?;
    Ok(padding::mirror(n, x, pads, mode == "SYMMETRIC")?.into())
}

// The tensor of the shape counts where there is one. Old files mean a scalar by the option [0].
fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let option: Option<Vec<i64>> = n.opt_attr("new_shape")?;
    let tensor = n.opt(1)?.filter(|s| n.rank(*s).is_none_or(|r| r == 1));
    let mut shape = match (tensor, option) {
        (Some(shape), _) => n.convert(shape, ElementType::I64)?,
        (None, Some(option)) if option == [0] => n.i64s(&[])?,
        (None, Some(option)) => n.i64s(&option)?,
        (None, None) => return Err(n.fail("there is neither an input nor an option with the shape")),
    };
    if n.attr(COMPLEX_INPUT, false)? {
        let two = n.i64s(&[2])?;
        shape = n.concat(&[shape, two], 0)?;
    }
    Ok(n.emit(Reshape { special_zero: false }, &[x, shape])?.into())
}

fn reverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axes) = (n.input(0)?, n.input(1)?);
    let axes = i64_vector(n, axes)?;
    let (Some(list), Some(rank)) = (n.ints(axes), n.rank(x)) else {
        return Ok(n.emit(Reverse { mode: ReverseMode::Index }, &[x, axes])?.into());
    };
    let list = list.iter().map(|a| n.axis(*a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?;
    let axes = n.i64s(&list)?;
    Ok(n.emit(Reverse { mode: ReverseMode::Index }, &[x, axes])?.into())
}

fn reverse_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, lengths) = (n.input(0)?, n.input(1)?);
    let (seq_axis, batch_axis) = (n.attr("seq_dim", 0)?, n.attr("batch_dim", 0)?);
    Ok(n.emit(ReverseSequence { batch_axis, seq_axis }, &[x, lengths])?.into())
}

fn squeeze(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, mut axes) = (n.input(0)?, n.attr::<Vec<i64>>("squeeze_dims", vec![])?);
    if n.attr(COMPLEX_INPUT, false)? {
        axes = axes.into_iter().map(complex_axis).collect();
    }
    if axes.is_empty() {
        return Ok(n.emit(Squeeze { allow_axis_skip: false }, &[x])?.into());
    }
    Ok(n.squeeze(x, &axes)?.into())
}

fn tile(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, repeats) = (n.input(0)?, n.input(1)?);
    let repeats = i64_vector(n, repeats)?;
    Ok(n.emit(Tile, &[x, repeats])?.into())
}

fn transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, order) = (n.input(0)?, n.input(1)?);
    let order = i64_vector(n, order)?;
    Ok(n.emit(Transpose, &[x, order])?.into())
}
