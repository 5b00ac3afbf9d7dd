//! Boxes of detectors: priors and anchors, coding and decoding, overlaps.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Sigmoid;
use carafe_ops::math::{Exp, Log};
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("anchor_generator", 0, anchor_generator),
    rule("box_coder", 0, box_coder),
    rule("density_prior_box", 0, density_prior_box),
    rule("iou_similarity", 0, iou_similarity),
    rule("polygon_box_transform", 0, polygon_box_transform),
    rule("prior_box", 0, prior_box),
    rule("yolo_box", 0, yolo_box),
];

/// Sizes of a picture as f32 scalars.
fn float_size(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    let size = n.length(x, axis)?;
    n.convert(size, ElementType::F32)
}

/// `0, 1, ..` along an axis of a value, as f32.
fn positions(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    let size = n.length(x, axis)?;
    let at = n.count_to(size, ElementType::I64)?;
    n.convert(at, ElementType::F32)
}

fn floats(n: &mut NodeCx<'_>, list: &[f32]) -> Result<Value> {
    n.constant(Tensor::from_slice(&[list.len()], list)?)
}

// Boxes `[H, W, P, 4]` of centres along the axes and of corners around them, `P` of each side.
fn around(n: &mut NodeCx<'_>, xs: Value, ys: Value, corners: [Value; 4]) -> Result<Value> {
    let (height, width) = (n.size(ys, 0)?, n.size(xs, 0)?);
    let count = n.size(corners[0], 0)?;
    let shape = n.concat(&[height, width, count], 0)?;
    let xs = n.unsqueeze(xs, &[0, 2])?;
    let ys = n.unsqueeze(ys, &[1, 2])?;
    let mut parts = vec![];
    for (i, corner) in corners.into_iter().enumerate() {
        let at = n.plus(if i % 2 == 0 { xs } else { ys }, corner)?;
        let at = n.stretch(at, shape)?;
        parts.push(n.unsqueeze(at, &[3])?);
    }
    n.concat(&parts, 3)
}

// The same four numbers for each box.
fn variances(n: &mut NodeCx<'_>, boxes: Value) -> Result<Value> {
    let list: Vec<f32> = n.attr("variances", vec![0.1, 0.1, 0.2, 0.2])?;
    let list = floats(n, &list)?;
    let shape = n.shape_of(boxes)?;
    n.stretch(list, shape)
}

// Ratios without doubles, 1 first, each followed by its inverse where `flip` says so.
fn expanded(ratios: &[f32], flip: bool) -> Vec<f32> {
    let mut all = vec![1.0f32];
    for ratio in ratios {
        if all.iter().any(|a| (a - ratio).abs() < 1e-6) {
            continue;
        }
        all.push(*ratio);
        if flip {
            all.push(1.0 / ratio);
        }
    }
    all
}

fn step(n: &mut NodeCx<'_>, given: f64, image: Value, feature: Value, axis: i64) -> Result<Value> {
    if given > 0.0 {
        return n.scalar(ElementType::F32, given);
    }
    let (whole, cells) = (float_size(n, image, axis)?, float_size(n, feature, axis)?);
    n.over(whole, cells)
}

fn prior_box(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (feature, image) = (n.slot("Input")?, n.slot("Image")?);
    let min_sizes: Vec<f32> = n.required("min_sizes")?;
    let max_sizes: Vec<f32> = n.attr("max_sizes", vec![])?;
    let ratios: Vec<f32> = n.attr("aspect_ratios", vec![1.0])?;
    let ratios = expanded(&ratios, n.attr("flip", false)?);
    let is_clipped: bool = n.attr("clip", false)?;
    let (step_w, step_h): (f64, f64) = (n.attr("step_w", 0.0)?, n.attr("step_h", 0.0)?);
    let offset: f64 = n.attr("offset", 0.5)?;
    let largest_second: bool = n.attr("min_max_aspect_ratios_order", false)?;
    // Halves of the sides, in the order of the boxes of a cell.
    let mut halves: Vec<(f32, f32)> = vec![];
    for (i, min) in min_sizes.iter().enumerate() {
        let square = max_sizes.get(i).map(|max| (min * max).sqrt() / 2.0);
        let of = |ratio: f32| (min * ratio.sqrt() / 2.0, min / ratio.sqrt() / 2.0);
        if largest_second {
            halves.push((min / 2.0, min / 2.0));
            halves.extend(square.map(|s| (s, s)));
            halves.extend(ratios.iter().filter(|r| (**r - 1.0).abs() >= 1e-6).map(|r| of(*r)));
        } else {
            halves.extend(ratios.iter().map(|r| of(*r)));
            halves.extend(square.map(|s| (s, s)));
        }
    }
    let boxes = cells(
        n,
        feature,
        image,
        (step_w, step_h),
        offset,
        &halves.iter().map(|(w, h)| [-w, -h, *w, *h]).collect::<Vec<_>>(),
    )?;
    let boxes = if is_clipped { n.between(boxes, 0.0, 1.0)? } else { boxes };
    let variances = variances(n, boxes)?;
    Ok(n.give(&[("Boxes", boxes), ("Variances", variances)]))
}

// Boxes of the cells of a feature map as parts of the picture; corners are relative to the centre of a cell.
fn cells(
    n: &mut NodeCx<'_>,
    feature: Value,
    image: Value,
    (step_w, step_h): (f64, f64),
    offset: f64,
    corners: &[[f32; 4]],
) -> Result<Value> {
    let (step_w, step_h) = (step(n, step_w, image, feature, 3)?, step(n, step_h, image, feature, 2)?);
    let (width, height) = (float_size(n, image, 3)?, float_size(n, image, 2)?);
    let mut centres = vec![];
    for (axis, step) in [(3, step_w), (2, step_h)] {
        let at = positions(n, feature, axis)?;
        let at = n.plus_number(at, offset)?;
        centres.push(n.times(at, step)?);
    }
    let mut lists = vec![];
    for i in 0..4 {
        let list: Vec<f32> = corners.iter().map(|c| c[i]).collect();
        lists.push(floats(n, &list)?);
    }
    let boxes = around(n, centres[0], centres[1], [lists[0], lists[1], lists[2], lists[3]])?;
    let (width, height) = (n.reshape(width, &[1])?, n.reshape(height, &[1])?);
    let size = n.concat(&[width, height, width, height], 0)?;
    n.over(boxes, size)
}

// Several boxes of each size, evenly spread over a cell.
fn density_prior_box(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (feature, image) = (n.slot("Input")?, n.slot("Image")?);
    let sizes: Vec<f32> = n.required("fixed_sizes")?;
    let ratios: Vec<f32> = n.required("fixed_ratios")?;
    let densities: Vec<i64> = n.required("densities")?;
    let is_clipped: bool = n.attr("clip", false)?;
    let is_flat: bool = n.attr("flatten_to_2d", false)?;
    let (step_w, step_h): (f64, f64) = (n.attr("step_w", 0.0)?, n.attr("step_h", 0.0)?);
    let offset: f64 = n.attr("offset", 0.5)?;
    let known = |axis: usize| Some((n.shape(image).dim(axis).get()? as f64, n.shape(feature).dim(axis).get()? as f64));
    let side = |given: f64, axis: usize| if given > 0.0 { Some(given) } else { known(axis).map(|(a, b)| a / b) };
    let (Some(cell_w), Some(cell_h)) = (side(step_w, 3), side(step_h, 2)) else {
        return Err(n.unsupported("steps of the boxes, or sizes of the picture, must be known"));
    };
    let average = ((cell_w + cell_h) * 0.5) as i64;
    let mut corners = vec![];
    for (size, density) in sizes.iter().zip(&densities) {
        let shift = average / (*density).max(1);
        for ratio in &ratios {
            let (w, h) = (size * ratio.sqrt(), size / ratio.sqrt());
            let start = -(average as f64) / 2.0 + shift as f64 / 2.0;
            for i in 0..*density {
                for j in 0..*density {
                    let x = (start + (j * shift) as f64) as f32;
                    let y = (start + (i * shift) as f64) as f32;
                    corners.push([x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]);
                }
            }
        }
    }
    // Boxes never leave the picture here.
    let boxes = cells(n, feature, image, (step_w, step_h), offset, &corners)?;
    let one = n.scalar(ElementType::F32, 1.0)?;
    let zero = n.scalar(ElementType::F32, 0.0)?;
    let (low, high) = (n.max(boxes, zero)?, n.min(boxes, one)?);
    let starts = n.part(low, 0, 2, 3)?;
    let ends = n.part(high, 2, 4, 3)?;
    let boxes = n.concat(&[starts, ends], 3)?;
    let boxes = if is_clipped { n.between(boxes, 0.0, 1.0)? } else { boxes };
    let boxes = if is_flat { n.reshape(boxes, &[-1, 4])? } else { boxes };
    let variances = variances(n, boxes)?;
    Ok(n.give(&[("Boxes", boxes), ("Variances", variances)]))
}

// Anchors in pixels, of each ratio and size around the centre of each cell.
fn anchor_generator(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let feature = n.slot("Input")?;
    let sizes: Vec<f32> = n.required("anchor_sizes")?;
    let ratios: Vec<f32> = n.required("aspect_ratios")?;
    let stride: Vec<f32> = n.required("stride")?;
    let offset: f32 = n.attr("offset", 0.5)?;
    let [stride_w, stride_h] = stride[..] else { return Err(n.fail("`stride` must be two numbers")) };
    let mut corners: [Vec<f32>; 4] = Default::default();
    for ratio in &ratios {
        for size in &sizes {
            let base_w = (stride_w * stride_h / ratio).sqrt().round();
            let base_h = (base_w * ratio).round();
            let (w, h) = (size / stride_w * base_w, size / stride_h * base_h);
            let (x, y) = (0.5 * (w - 1.0), 0.5 * (h - 1.0));
            [-x, -y, x, y].into_iter().zip(&mut corners).for_each(|(v, list)| list.push(v));
        }
    }
    let mut centres = vec![];
    for (axis, stride) in [(3, stride_w), (2, stride_h)] {
        let at = positions(n, feature, axis)?;
        let at = n.times_number(at, f64::from(stride))?;
        centres.push(n.plus_number(at, f64::from(offset * (stride - 1.0)))?);
    }
    let lists = [floats(n, &corners[0])?, floats(n, &corners[1])?, floats(n, &corners[2])?, floats(n, &corners[3])?];
    let anchors = around(n, centres[0], centres[1], lists)?;
    let variances = variances(n, anchors)?;
    Ok(n.give(&[("Anchors", anchors), ("Variances", variances)]))
}

// Width, height and centre of boxes along the last axis; `extra` is 1 where pixels count whole.
fn centred(n: &mut NodeCx<'_>, boxes: Value, extra: f64) -> Result<[Value; 4]> {
    let c = n.split_equally(boxes, -1, 4)?;
    let mut sizes = vec![];
    for (from, to) in [(0, 2), (1, 3)] {
        let size = n.minus(c[to], c[from])?;
        sizes.push(if extra == 0.0 { size } else { n.plus_number(size, extra)? });
    }
    let (half_w, half_h) = (n.times_number(sizes[0], 0.5)?, n.times_number(sizes[1], 0.5)?);
    Ok([sizes[0], sizes[1], n.plus(c[0], half_w)?, n.plus(c[1], half_h)?])
}

fn box_coder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (prior, target) = (n.slot("PriorBox")?, n.slot("TargetBox")?);
    let variance = n.opt_slot("PriorBoxVar")?;
    let listed: Vec<f32> = n.attr("variance", vec![])?;
    let code: String = n.attr("code_type", "encode_center_size".to_string())?;
    let is_normalized: bool = n.attr("box_normalized", true)?;
    let axis: i64 = n.attr("axis", 0)?;
    let extra = if is_normalized { 0.0 } else { 1.0 };
    let variance = match variance {
        Some(v) => Some(v),
        None if !listed.is_empty() => Some(floats(n, &listed)?),
        None => None,
    };
    let [width, height, x, y] = centred(n, prior, extra)?;
    let is_encoding = match code.as_str() {
        "encode_center_size" => true,
        "decode_center_size" => false,
        other => return Err(n.unsupported(format!("`code_type` is `{other}`"))),
    };
    // Priors stand along the second axis of the result, or along the first one.
    let at = if is_encoding || axis == 0 { 0 } else { 1 };
    let mut fit = vec![];
    for v in [width, height, x, y] {
        fit.push(n.unsqueeze(v, &[at])?);
    }
    let variance = match variance {
        Some(v) if n.rank(v) == Some(2) => Some(n.unsqueeze(v, &[at])?),
        other => other,
    };
    let out = if is_encoding {
        let [w, h, cx, cy] = centred(n, target, extra)?;
        let mut parts = vec![];
        for (v, centre, size) in [(cx, fit[2], fit[0]), (cy, fit[3], fit[1])] {
            let v = n.unsqueeze(v, &[1])?;
            let offset = n.minus(v, centre)?;
            parts.push(n.over(offset, size)?);
        }
        for (v, size) in [(w, fit[0]), (h, fit[1])] {
            let v = n.unsqueeze(v, &[1])?;
            let ratio = n.over(v, size)?;
            let ratio = n.abs(ratio)?;
            parts.push(n.put(Log, &[ratio])?);
        }
        let out = n.concat(&parts, 2)?;
        match variance {
            Some(v) => n.over(out, v)?,
            None => out,
        }
    } else {
        let deltas = match variance {
            Some(v) => n.times(target, v)?,
            None => target,
        };
        let d = n.split_equally(deltas, -1, 4)?;
        let mut centres = vec![];
        let mut halves = vec![];
        for i in 0..2 {
            let offset = n.times(d[i], fit[i])?;
            centres.push(n.plus(offset, fit[2 + i])?);
            let size = n.put(Exp, &[d[2 + i]])?;
            let size = n.times(size, fit[i])?;
            halves.push(n.times_number(size, 0.5)?);
        }
        let mut parts = vec![];
        for i in 0..2 {
            parts.push(n.minus(centres[i], halves[i])?);
        }
        for i in 0..2 {
            let end = n.plus(centres[i], halves[i])?;
            parts.push(if extra == 0.0 { end } else { n.plus_number(end, -extra)? });
        }
        n.concat(&parts, -1)?
    };
    Ok(n.give(&[("OutputBox", out)]))
}

fn iou_similarity(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, y) = (n.slot("X")?, n.slot("Y")?);
    let extra = if n.attr("box_normalized", true)? { 0.0 } else { 1.0 };
    let x = n.unsqueeze(x, &[1])?;
    let y = n.unsqueeze(y, &[0])?;
    let (a, b) = (n.split_equally(x, -1, 4)?, n.split_equally(y, -1, 4)?);
    let side = |n: &mut NodeCx<'_>, from: Value, to: Value| {
        let size = n.minus(to, from)?;
        if extra == 0.0 { Ok(size) } else { n.plus_number(size, extra) }
    };
    let mut areas = vec![];
    for c in [&a, &b] {
        let (w, h) = (side(n, c[0], c[2])?, side(n, c[1], c[3])?);
        areas.push(n.times(w, h)?);
    }
    let mut sides = vec![];
    for i in 0..2 {
        let (from, to) = (n.max(a[i], b[i])?, n.min(a[2 + i], b[2 + i])?);
        let size = side(n, from, to)?;
        let zero = n.number(size, 0.0)?;
        sides.push(n.max(size, zero)?);
    }
    let common = n.times(sides[0], sides[1])?;
    let all = n.plus(areas[0], areas[1])?;
    let all = n.minus(all, common)?;
    let ratio = n.over(common, all)?;
    let out = n.squeeze(ratio, &[-1])?;
    Ok(n.give(&[("Out", out)]))
}

// Offsets of corners become positions: 4 times the cell less the offset, x in even channels, y in odd ones.
fn polygon_box_transform(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Input")?;
    let channels = n.shape(x).dim(1).get();
    let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
    let (columns, rows) = (positions(n, x, 3)?, positions(n, x, 2)?);
    let (columns, rows) = (n.times_number(columns, 4.0)?, n.times_number(rows, 4.0)?);
    let rows = n.unsqueeze(rows, &[1])?;
    let is_even: Vec<f64> = (0..channels).map(|c| f64::from(u8::from(c % 2 == 0))).collect();
    let is_even = n.constant(Tensor::from_f64(ElementType::Boolean, &[channels as usize, 1, 1], &is_even)?)?;
    let base = n.choose(is_even, columns, rows)?;
    let base = n.convert_like(base, x)?;
    let out = n.minus(base, x)?;
    Ok(n.give(&[("Output", out)]))
}

// Boxes and scores of a grid of cells; what is not confident enough is zero.
fn yolo_box(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, size) = (n.slot("X")?, n.slot("ImgSize")?);
    let anchors: Vec<i64> = n.required("anchors")?;
    let classes: i64 = n.required("class_num")?;
    let threshold: f64 = n.required("conf_thresh")?;
    let ratio: i64 = n.attr("downsample_ratio", 32)?;
    let is_clipped: bool = n.attr("clip_bbox", true)?;
    let scale: f64 = n.attr("scale_x_y", 1.0)?;
    let is_aware: bool = n.attr("iou_aware", false)?;
    let factor: f64 = n.attr("iou_aware_factor", 0.5)?;
    let count = (anchors.len() / 2) as i64;
    let (rows, columns) = (n.size(x, 2)?, n.size(x, 3)?);
    let batch = n.size(x, 0)?;
    // With the overlap predicted too, that comes first, one channel of each anchor.
    let (overlap, x) = match is_aware {
        true => (Some(n.part(x, 0, count, 1)?), n.part(x, count, i64::MAX, 1)?),
        false => (None, x),
    };
    let middle = n.i64s(&[count, 5 + classes])?;
    let shape = n.concat(&[batch, middle, rows, columns], 0)?;
    let cells = n.reshaped(x, shape, false)?;
    let picture = n.convert(size, ElementType::F32)?;
    let mut sides = vec![];
    for i in [1, 0] {
        let side = n.part(picture, i, i + 1, 1)?;
        sides.push(n.unsqueeze(side, &[2, 3])?);
    }
    let mut halves = vec![];
    let mut centres = vec![];
    for (i, cells_of) in [columns, rows].into_iter().enumerate() {
        let size_of = n.as_scalar(cells_of)?;
        let at = n.count_to(size_of, ElementType::I64)?;
        let at = n.convert(at, ElementType::F32)?;
        let at = if i == 0 { at } else { n.unsqueeze(at, &[1])? };
        let whole = n.convert(size_of, ElementType::F32)?;
        let raw = n.part(cells, i as i64, i as i64 + 1, 2)?;
        let raw = n.squeeze(raw, &[2])?;
        let inside = n.put(Sigmoid, &[raw])?;
        let inside = n.times_number(inside, scale)?;
        let inside = n.plus_number(inside, -0.5 * (scale - 1.0))?;
        let position = n.plus(inside, at)?;
        let position = n.times(position, sides[i])?;
        centres.push(n.over(position, whole)?);
        let raw = n.part(cells, 2 + i as i64, 3 + i as i64, 2)?;
        let raw = n.squeeze(raw, &[2])?;
        let growth = n.put(Exp, &[raw])?;
        let list: Vec<f32> = anchors.iter().skip(i).step_by(2).map(|a| *a as f32).collect();
        let list = n.constant(Tensor::from_slice(&[count as usize, 1, 1], &list)?)?;
        let length = n.times(growth, list)?;
        let length = n.times(length, sides[i])?;
        let input = n.times_number(whole, ratio as f64)?;
        let length = n.over(length, input)?;
        halves.push(n.times_number(length, 0.5)?);
    }
    let confidence = n.part(cells, 4, 5, 2)?;
    let mut confidence = n.put(Sigmoid, &[confidence])?;
    if let Some(overlap) = overlap {
        let overlap = n.put(Sigmoid, &[overlap])?;
        let overlap = n.unsqueeze(overlap, &[2])?;
        let a = n.power_number(confidence, 1.0 - factor)?;
        let b = n.power_number(overlap, factor)?;
        confidence = n.times(a, b)?;
    }
    let limit = n.number(confidence, threshold)?;
    let is_kept = n.greater_equal(confidence, limit)?;
    let is_kept = n.convert(is_kept, ElementType::F32)?;
    let mut parts = vec![];
    for (i, is_end) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut at = if is_end { n.plus(centres[i], halves[i])? } else { n.minus(centres[i], halves[i])? };
        if is_clipped {
            at = match is_end {
                true => {
                    let last = n.plus_number(sides[i], -1.0)?;
                    n.min(at, last)?
                }
                false => {
                    let zero = n.number(at, 0.0)?;
                    n.max(at, zero)?
                }
            };
        }
        parts.push(n.unsqueeze(at, &[4])?);
    }
    let boxes = n.concat(&parts, 4)?;
    let kept = n.transpose(is_kept, &[0, 1, 3, 4, 2])?;
    let boxes = n.times(boxes, kept)?;
    let boxes = n.reshape(boxes, &[0, -1, 4])?;
    let raw = n.part(cells, 5, i64::MAX, 2)?;
    let scores = n.put(Sigmoid, &[raw])?;
    let scores = n.times(scores, confidence)?;
    let scores = n.times(scores, is_kept)?;
    let scores = n.transpose(scores, &[0, 1, 3, 4, 2])?;
    let scores = n.reshape(scores, &[0, -1, classes])?;
    Ok(n.give(&[("Boxes", boxes), ("Scores", scores)]))
}
