//! Channels and space, windows as columns, and parts of matrices.

use super::activation::split_axis;
use super::slots::{Slots, in_channels_first};
use super::windows::Windows;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Col2Im, DepthToSpace, Pad, ShuffleChannels, SpaceToDepth};
use carafe_ops::shape::Range;
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("channel_shuffle", 0, |n| shuffle(n, "groups")),
    rule("diag_v2", 0, diag),
    rule("fold", 0, fold),
    rule("pixel_shuffle", 0, pixel_shuffle),
    rule("pixel_unshuffle", 0, pixel_unshuffle),
    rule("sequence_mask", 0, sequence_mask),
    rule("shuffle_channel", 0, |n| shuffle(n, "group")),
    rule("temporal_shift", 0, temporal_shift),
    rule("tril", 0, |n| triangle(n, Some(true))),
    rule("tril_triu", 0, |n| triangle(n, None)),
    rule("triu", 0, |n| triangle(n, Some(false))),
    rule("unfold", 0, unfold),
];

fn shuffle(n: &mut NodeCx<'_>, attribute: &str) -> Result<Outputs> {
    let x = n.slot("X")?;
    let group: i64 = n.attr(attribute, 1)?;
    let is_last = n.is_channels_last("data_format")?;
    let out = in_channels_first(n, x, is_last, |n, x| n.emit(ShuffleChannels { axis: 1, group }, &[x]))?;
    Ok(n.give(&[("Out", out)]))
}

fn pixel_shuffle(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let block_size: i64 = n.attr("upscale_factor", 1)?;
    let is_last = n.is_channels_last("data_format")?;
    let op = DepthToSpace { block_size, mode: BlockOrder::DepthFirst };
    let out = in_channels_first(n, x, is_last, |n, x| n.emit(op, &[x]))?;
    Ok(n.give(&[("Out", out)]))
}

fn pixel_unshuffle(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let block_size: i64 = n.attr("downscale_factor", 1)?;
    let is_last = n.is_channels_last("data_format")?;
    let op = SpaceToDepth { block_size, mode: BlockOrder::DepthFirst };
    let out = in_channels_first(n, x, is_last, |n, x| n.emit(op, &[x]))?;
    Ok(n.give(&[("Out", out)]))
}

// The first channels come from the frame before, the next from the frame behind.
fn temporal_shift(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let frames: i64 = n.required("seg_num")?;
    let ratio: f32 = n.attr("shift_ratio", 0.25)?;
    let is_last = n.is_channels_last("data_format")?;
    let out = in_channels_first(n, x, is_last, |n, x| {
        let shape = n.shape_of(x)?;
        let channels = n.shape(x).dim(1).get();
        let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
        let (first, second) = ((channels as f32 * ratio) as i64, (channels as f32 * 2.0 * ratio) as i64);
        let clips = split_axis(n, x, 0, -1, frames)?;
        let zero = n.number(x, 0.0)?;
        let mut moved = vec![];
        for (from, to, by) in [(0, first, 1), (first, second, -1), (second, channels, 0)] {
            let part = n.part(clips, from, to, 2)?;
            moved.push(match by {
                0 => part,
                by => {
                    let cut = if by > 0 { n.part(part, 0, -1, 1)? } else { n.part(part, 1, i64::MAX, 1)? };
                    let begin = n.i64s(&[0, i64::from(by > 0), 0, 0, 0])?;
                    let end = n.i64s(&[0, i64::from(by < 0), 0, 0, 0])?;
                    n.put(Pad { pad_mode: PadMode::Constant }, &[cut, begin, end, zero])?
                }
            });
        }
        let all = n.concat(&moved, 2)?;
        n.reshaped(all, shape, false)
    })?;
    Ok(n.give(&[("Out", out)]))
}

fn four(n: &NodeCx<'_>, name: &str) -> Result<(Vec<i64>, Vec<i64>)> {
    let pads: Vec<i64> = n.attr(name, vec![0, 0])?;
    match pads[..] {
        [one] => Ok((vec![one, one], vec![one, one])),
        [h, w] => Ok((vec![h, w], vec![h, w])),
        [top, left, bottom, right] => Ok((vec![top, left], vec![bottom, right])),
        _ => Err(n.fail(format!("`{name}` has {} numbers, expected 2 or 4", pads.len()))),
    }
}

fn spatial(n: &NodeCx<'_>) -> Result<(Vec<i64>, Windows)> {
    let kernel: Vec<i64> = n.required("kernel_sizes")?;
    let (begin, end) = four(n, "paddings")?;
    let pair = |name: &str| -> Result<Vec<i64>> {
        let list: Vec<i64> = n.attr(name, vec![1, 1])?;
        Ok(if list.len() == 1 { vec![list[0]; 2] } else { list })
    };
    let w =
        Windows { strides: pair("strides")?, dilations: pair("dilations")?, begin, end, auto_pad: PadType::Explicit };
    Ok((if kernel.len() == 1 { vec![kernel[0]; 2] } else { kernel }, w))
}

// Each window becomes a column: a convolution whose filters each take one element.
fn unfold(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (kernel, w) = spatial(n)?;
    let channels = n.shape(x).dim(1).get().and_then(|c| usize::try_from(c).ok());
    let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
    let [height, width] = kernel[..] else { return Err(n.fail("`kernel_sizes` must be two numbers")) };
    let size = usize::try_from(height * width).ok().filter(|s| (1..=1 << 12).contains(s));
    let size = size.ok_or_else(|| n.fail(format!("windows of {height} by {width}")))?;
    let mut filters = vec![0f32; size * size];
    (0..size).for_each(|i| filters[i * size + i] = 1.0);
    let filters = Tensor::from_slice(&[1, size, 1, height as usize, width as usize], &filters)?;
    let filters = n.constant(filters)?;
    let filters = n.convert_like(filters, x)?;
    let shape = n.i64s(&[channels as i64, size as i64, 1, height, width])?;
    let filters = n.stretch(filters, shape)?;
    let op = GroupConvolution {
        strides: w.strides,
        pads_begin: w.begin,
        pads_end: w.end,
        dilations: w.dilations,
        auto_pad: PadType::Explicit,
    };
    let y = n.put(op, &[x, filters])?;
    let out = n.reshape(y, &[0, (channels * size) as i64, -1])?;
    Ok(n.give(&[("Y", out), ("Out", out)]))
}

fn fold(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (kernel, w) = spatial(n)?;
    let size: Vec<i64> = n.required("output_sizes")?;
    let (size, kernel) = (n.i64s(&size)?, n.i64s(&kernel)?);
    let op = Col2Im { strides: w.strides, dilations: w.dilations, pads_begin: w.begin, pads_end: w.end };
    let out = n.emit(op, &[x, size, kernel])?;
    Ok(n.give(&[("Y", out), ("Out", out)]))
}

fn counted(n: &mut NodeCx<'_>, size: Value) -> Result<Value> {
    let size = n.as_scalar(size)?;
    let (zero, one) = (n.i64(0)?, n.i64(1)?);
    n.put(Range { output_type: ElementType::I64 }, &[zero, size, one])
}

// What lies on one side of a diagonal; the rest is zero.
fn triangle(n: &mut NodeCx<'_>, lower: Option<bool>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let diagonal: i64 = n.attr("diagonal", 0)?;
    let is_lower = match lower {
        Some(lower) => lower,
        None => n.attr("lower", true)?,
    };
    let rank = n.known_rank(x)? as i64;
    let (rows, columns) = (n.size(x, rank - 2)?, n.size(x, rank - 1)?);
    let (rows, columns) = (counted(n, rows)?, counted(n, columns)?);
    let rows = n.unsqueeze(rows, &[1])?;
    let by = n.i64(diagonal)?;
    let limit = n.plus(rows, by)?;
    let kept = if is_lower { n.less_equal(columns, limit)? } else { n.greater_equal(columns, limit)? };
    let zero = n.number(x, 0.0)?;
    let out = n.choose(kept, x, zero)?;
    Ok(n.give(&[("Out", out)]))
}

// Row i is true up to the i-th length.
fn sequence_mask(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let ty = n.dtype("out_dtype")?.unwrap_or(ElementType::I64);
    let most = n.known_int("maxlen", &["MaxLenTensor"], -1)?;
    let lengths = n.convert(x, ElementType::I64)?;
    let most = if most > 0 {
        n.i64(most)?
    } else {
        let flat = n.reshape(lengths, &[-1])?;
        n.max_over(flat, &[0], false)?
    };
    let at = n.count_to(most, ElementType::I64)?;
    let lengths = n.unsqueeze(lengths, &[-1])?;
    let kept = n.less(at, lengths)?;
    let out = n.convert(kept, ty)?;
    Ok(n.give(&[("Y", out), ("Out", out)]))
}

// A vector on a diagonal of a matrix, or a diagonal of a matrix.
fn diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let offset: i64 = n.attr("offset", 0)?;
    let padding = n.number_of("padding_value", &[], 0.0, x)?;
    let shift = offset.abs();
    let out = match n.known_rank(x)? {
        1 => {
            let size = n.size(x, 0)?;
            let more = n.i64s(&[shift])?;
            let side = n.plus(size, more)?;
            let rows = counted(n, side)?;
            let columns = rows;
            let rows = n.unsqueeze(rows, &[1])?;
            let by = n.i64(offset)?;
            let target = n.plus(rows, by)?;
            let is_on = n.equal(columns, target)?;
            // Each row takes its element; those that have none are padding anyway.
            let first = n.i64(if offset < 0 { offset } else { 0 })?;
            let at = n.plus(rows, first)?;
            let zero = n.i64(0)?;
            let at = n.max(at, zero)?;
            let one = n.i64s(&[1])?;
            let last = n.minus(size, one)?;
            let at = n.min(at, last)?;
            let flat = n.reshape(at, &[-1])?;
            let values = n.gather(x, flat, 0)?;
            let values = n.unsqueeze(values, &[1])?;
            n.choose(is_on, values, padding)?
        }
        2 => {
            let (rows, columns) = (n.size(x, 0)?, n.size(x, 1)?);
            let down = n.i64s(&[(-offset).max(0)])?;
            let right = n.i64s(&[offset.max(0)])?;
            let (height, width) = (n.minus(rows, down)?, n.minus(columns, right)?);
            let count = n.min(height, width)?;
            let zero = n.i64s(&[0])?;
            let count = n.max(count, zero)?;
            let at = counted(n, count)?;
            let (row, column) = (n.plus(at, down)?, n.plus(at, right)?);
            let start = n.times(row, columns)?;
            let index = n.plus(start, column)?;
            let flat = n.reshape(x, &[-1])?;
            n.gather(flat, index, 0)?
        }
        rank => return Err(n.fail(format!("the input has {rank} axes, expected 1 or 2"))),
    };
    Ok(n.give(&[("Out", out)]))
}
