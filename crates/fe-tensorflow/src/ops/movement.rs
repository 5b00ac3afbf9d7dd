//! Operations that move elements: joined, split, cut, padded, repeated, turned around.

use super::common::layout::Layout;
use super::common::shapes::{i64_vector, rank, scalar};
use super::common::slicing::{self, Masks};
use super::common::space::{batch_to_space, depth_to_space, space_to_batch, space_to_depth};
use super::common::{padding, shapes};
use super::complex::{self, axes_of, axis_of, list_of};
use super::shape::axis_input;
use super::types::is_complex;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::extract_image_patches::PatchPad;
use carafe_ops::movement::{
    ExtractImagePatches, ReverseSequence, Roll, Slice, Split, Tile, Transpose, VariadicSplit,
};
use carafe_ops::search::CumSum;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchToSpace", 0, |n| batch_and_space(n, batch_to_space)),
    rule("BatchToSpaceND", 0, |n| {
        let (x, block, crops) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(batch_to_space(n, x, block, crops)?.into())
    }),
    rule("Concat", 0, |n| {
        let complex = is_complex(n, "T");
        let axis = axis_input(n, 0, complex)?;
        let values = (1..n.n_inputs()).map(|i| n.input(i)).collect::<Result<Vec<_>>>()?;
        Ok(n.concat(&values, axis)?.into())
    }),
    rule("ConcatV2", 0, |n| {
        let complex = is_complex(n, "T");
        let last = n.n_inputs().saturating_sub(1);
        let axis = axis_input(n, last, complex)?;
        let values = (0..last).map(|i| n.input(i)).collect::<Result<Vec<_>>>()?;
        Ok(n.concat(&values, axis)?.into())
    }),
    rule("ConjugateTranspose", 0, |n| transpose(n, true)),
    rule("Cumprod", 0, cumprod),
    rule("Cumsum", 0, |n| {
        let (exclusive, reverse) = (n.attr("exclusive", false)?, n.attr("reverse", false)?);
        let (x, axis) = (n.input(0)?, n.input(1)?);
        let axis = scalar(n, axis)?;
        Ok(n.emit(CumSum { exclusive, reverse }, &[x, axis])?.into())
    }),
    rule("DepthToSpace", 0, |n| blocks(n, depth_to_space)),
    rule("ExtractImagePatches", 0, extract_image_patches),
    rule("MirrorPad", 0, |n| {
        let mode: String = n.required("mode")?;
        let (x, pads) = (n.input(0)?, n.input(1)?);
        match mode.as_str() {
            "REFLECT" => Ok(padding::mirror(n, x, pads, false)?.into()),
            "SYMMETRIC" => Ok(padding::mirror(n, x, pads, true)?.into()),
            other => Err(n.unsupported(format!("attribute `mode` is `{other}`; known are REFLECT, SYMMETRIC"))),
        }
    }),
    rule("Pack", 0, pack),
    rule("Pad", 0, |n| {
        let (x, pads) = (n.input(0)?, n.input(1)?);
        let pads = pads_of(n, pads)?;
        Ok(padding::pad(n, x, pads, None)?.into())
    }),
    rule("PadV2", 0, |n| {
        let (x, pads, value) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let value = scalar(n, value)?;
        Ok(padding::pad(n, x, pads, Some(value))?.into())
    }),
    rule("Reverse", 0, |n| {
        let (x, mask) = (n.input(0)?, n.input(1)?);
        let Some(mask) = n.ints(mask) else {
            return Err(n.unsupported("the reversed axes must be known when the model is read"));
        };
        let axes: Vec<i64> = (0i64..).zip(mask).filter(|(_, m)| *m != 0).map(|(a, _)| a).collect();
        Ok(reversed(n, x, &axes)?.into())
    }),
    rule("ReverseSequence", 0, |n| {
        let (seq_axis, batch_axis): (i64, i64) = (n.required("seq_dim")?, n.attr("batch_dim", 0)?);
        let (x, lengths) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(ReverseSequence { batch_axis, seq_axis }, &[x, lengths])?.into())
    }),
    rule("ReverseV2", 0, |n| {
        let complex = is_complex(n, "T");
        let (x, axes) = (n.input(0)?, n.input(1)?);
        let Some(axes) = n.ints(axes) else {
            return Err(n.unsupported("the reversed axes must be known when the model is read"));
        };
        let axes: Vec<i64> = axes.into_iter().map(|a| axis_of(a, complex)).collect();
        Ok(reversed(n, x, &axes)?.into())
    }),
    rule("Roll", 0, |n| {
        let complex = is_complex(n, "T");
        let (x, shift, axes) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (shift, axes) = (i64_vector(n, shift)?, axes_of(n, axes, complex)?);
        Ok(n.emit(Roll, &[x, shift, axes])?.into())
    }),
    rule("Slice", 0, |n| {
        let complex = is_complex(n, "T");
        let (x, begin, size) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (begin, size) = (list_of(n, begin, complex, 0)?, list_of(n, size, complex, 2)?);
        Ok(slicing::slice(n, x, begin, size)?.into())
    }),
    rule("SpaceToBatch", 0, |n| batch_and_space(n, space_to_batch)),
    rule("SpaceToBatchND", 0, |n| {
        let (x, block, pads) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(space_to_batch(n, x, block, pads)?.into())
    }),
    rule("SpaceToDepth", 0, |n| blocks(n, space_to_depth)),
    rule("Split", 0, |n| {
        let complex = is_complex(n, "T");
        let num_splits: usize = n.required("num_split")?;
        let (axis, x) = (n.input(0)?, n.input(1)?);
        let axis = n.convert(axis, ElementType::I64)?;
        let axis = axes_of(n, axis, complex)?;
        let axis = scalar(n, axis)?;
        Ok(n.emit_all(Split { num_splits }, &[x, axis])?.into())
    }),
    rule("SplitV", 0, |n| {
        let complex = is_complex(n, "T");
        let (x, sizes, axis) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let sizes = i64_vector(n, sizes)?;
        let axis = axes_of(n, axis, complex)?;
        let axis = scalar(n, axis)?;
        Ok(n.emit_all(VariadicSplit, &[x, axis, sizes])?.into())
    }),
    rule("StridedSlice", 0, strided_slice),
    rule("Tile", 0, |n| {
        let complex = is_complex(n, "T");
        let (x, repeats) = (n.input(0)?, n.input(1)?);
        let repeats = list_of(n, repeats, complex, 1)?;
        Ok(n.emit(Tile, &[x, repeats])?.into())
    }),
    rule("Transpose", 0, |n| transpose(n, false)),
    rule("Unpack", 0, unpack),
];

fn transpose(n: &mut NodeCx<'_>, conjugate: bool) -> Result<Outputs> {
    let (x, order) = (n.input(0)?, n.input(1)?);
    if !is_complex(n, "T") {
        let order = i64_vector(n, order)?;
        return Ok(n.emit(Transpose, &[x, order])?.into());
    }
    let last = rank(n, x)?;
    let last = n.plus_number(last, -1.0)?;
    let order = i64_vector(n, order)?;
    let order = n.concat(&[order, last], 0)?;
    let y = n.emit(Transpose, &[x, order])?;
    Ok(if conjugate { complex::conjugate(n, y)? } else { y }.into())
}

fn blocks(n: &mut NodeCx<'_>, of: fn(&mut NodeCx<'_>, Value, i64, Layout) -> Result<Value>) -> Result<Outputs> {
    let block: i64 = n.required("block_size")?;
    if !(1..=i64::from(i32::MAX)).contains(&block) {
        return Err(n.fail(format!("attribute `block_size` must be positive, found {block}")));
    }
    let layout = super::convolution::layout(n, 2)?;
    let x = n.input(0)?;
    Ok(of(n, x, block, layout)?.into())
}

// Images only, one block size for both axes.
fn batch_and_space(
    n: &mut NodeCx<'_>,
    of: fn(&mut NodeCx<'_>, Value, Value, Value) -> Result<Value>,
) -> Result<Outputs> {
    let block: i64 = n.required("block_size")?;
    let (x, margins) = (n.input(0)?, n.input(1)?);
    let block = n.i64s(&[block, block])?;
    Ok(of(n, x, block, margins)?.into())
}

fn extract_image_patches(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let layout = Layout::ChannelsLast;
    let list = |name: &str| super::convolution::spatial_list(n, name, 2, layout);
    let (sizes, strides, rates) = (list("ksizes")?, list("strides")?, list("rates")?);
    let padding: String = n.required("padding")?;
    let auto_pad = match padding.as_str() {
        "SAME" => PatchPad::SameUpper,
        "VALID" => PatchPad::Valid,
        other => return Err(n.unsupported(format!("attribute `padding` is `{other}`; known are SAME, VALID"))),
    };
    let x = n.input(0)?;
    let x = layout.to_first(n, x, 2)?;
    let y = n.emit(ExtractImagePatches { sizes, strides, rates, auto_pad }, &[x])?;
    Ok(layout.from_first(n, y, 2)?.into())
}

fn pack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let complex = is_complex(n, "T");
    let axis = axis_of(n.attr("axis", 0)?, complex);
    let values = n.inputs()?;
    let values = values.into_iter().map(|v| n.unsqueeze(v, &[axis])).collect::<Result<Vec<_>>>()?;
    Ok(n.concat(&values, axis)?.into())
}

fn unpack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let complex = is_complex(n, "T");
    let axis = axis_of(n.attr("axis", 0)?, complex);
    let count: usize = n.required("num")?;
    let x = n.input(0)?;
    if count == 0 {
        return Ok(Outputs::default());
    }
    let parts = n.split_equally(x, axis, count)?;
    let parts = parts.into_iter().map(|v| n.squeeze(v, &[axis])).collect::<Result<Vec<_>>>()?;
    Ok(parts.into())
}

// Pairs of complex numbers are not padded.
fn pads_of(n: &mut NodeCx<'_>, pads: Value) -> Result<Value> {
    if !is_complex(n, "T") {
        return Ok(pads);
    }
    let pads = n.convert(pads, ElementType::I64)?;
    let none = n.constant(carafe_tensor::Tensor::from_slice(&[1, 2], &[0i64, 0])?)?;
    n.concat(&[pads, none], 0)
}

/// The data with these axes turned around.
pub(super) fn reversed(n: &mut NodeCx<'_>, x: Value, axes: &[i64]) -> Result<Value> {
    if axes.is_empty() {
        return Ok(x);
    }
    let list = |value: i64| vec![value; axes.len()];
    let (start, stop, step) = (n.i64s(&list(-1))?, n.i64s(&list(i64::MIN))?, n.i64s(&list(-1))?);
    let axes = n.i64s(axes)?;
    n.emit(Slice, &[x, start, stop, step, axes])
}

fn strided_slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut masks = Masks {
        begin: n.attr("begin_mask", 0)?,
        end: n.attr("end_mask", 0)?,
        ellipsis: n.attr("ellipsis_mask", 0)?,
        new_axis: n.attr("new_axis_mask", 0)?,
        shrink_axis: n.attr("shrink_axis_mask", 0)?,
    };
    let complex = is_complex(n, "T");
    let (x, mut bounds) = (n.input(0)?, [n.input(1)?, n.input(2)?, n.input(3)?]);
    if complex && masks.ellipsis != 0 {
        // Entries behind an ellipsis count from the end, where the pairs are: they get an entry that takes all.
        let entries = bounds.iter().find_map(|v| n.shape(*v).dims()?.first()?.size());
        let entries = entries.filter(|e| *e < 62);
        let entries = entries.ok_or_else(|| n.unsupported("the number of entries of the slice must be known"))?;
        for bound in &mut bounds {
            *bound = list_of(n, *bound, true, 1)?;
        }
        masks.begin |= 1 << entries;
        masks.end |= 1 << entries;
    }
    Ok(slicing::strided_slice(n, x, bounds, masks)?.into())
}

// Each element becomes the product over a new axis of everything that counts for it, the rest taken as 1.
fn cumprod(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (exclusive, reverse): (bool, bool) = (n.attr("exclusive", false)?, n.attr("reverse", false)?);
    let (x, axis) = (n.input(0)?, n.input(1)?);
    let rank = n.known_rank(x)?;
    let axis = shapes::known_number(n, axis, "the axis")?;
    let axis = n.axis(axis, rank)? as i64;
    let last = rank as i64 - 1;
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.swap(axis as usize, last as usize);
    let x = n.transpose(x, &order)?;
    let size = n.length(x, -1)?;
    let from = n.count_to(size, ElementType::I64)?;
    let to = n.unsqueeze(from, &[1])?;
    let counts = match (exclusive, reverse) {
        (false, false) => n.less_equal(from, to)?,
        (true, false) => n.less(from, to)?,
        (false, true) => n.greater_equal(from, to)?,
        (true, true) => n.greater(from, to)?,
    };
    let (factors, one) = (n.unsqueeze(x, &[-2])?, n.scalar_like(x, 1.0)?);
    let factors = n.choose(counts, factors, one)?;
    let over = n.i64s(&[-1])?;
    let y = n.put(carafe_ops::reduce::ReduceProd { keep_dims: false }, &[factors, over])?;
    Ok(n.transpose(y, &order)?.into())
}
