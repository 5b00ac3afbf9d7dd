//! The custom operators of MediaPipe's networks. Those that stem from builtin ones hold their options as the C struct of the
//! builtin; the others hold flexbuffers. `version` 2 of the landmark operators is the one that published networks use.

use super::elementwise::angle;
use super::fused::named;
use super::weights::reordered;
use crate::graph::{CUSTOM, RAW_OPTIONS};
use carafe_fe_tensorflow::ops::common::{Layout, Padding, Windows, pooling};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, TensorAttr, Value};
use carafe_ops::convolution::ConvolutionBackpropData;
use carafe_ops::convolution::window::PadType;
use carafe_ops::math::{Cos, Sin};
use carafe_ops::reduce::ReduceMin;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(CUSTOM, "Convolution2DTransposeBias", 1, transpose_conv_bias),
    rule_in(CUSTOM, "Landmarks2TransformMatrix", 2, landmarks_to_matrix),
    rule_in(CUSTOM, "MaxPoolingWithArgmax2D", 1, max_pool_argmax),
    rule_in(CUSTOM, "MaxUnpooling2D", 1, max_unpool),
    rule_in(CUSTOM, "TransformLandmarks", 2, transform_landmarks),
    rule_in(CUSTOM, "TransformTensorBilinear", 2, transform_tensor),
];

const LAYOUT: Layout = Layout::ChannelsLast;
/// Activations by their number in the structs.
const ACTIVATIONS: &[&str] = &["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"];

/// The options as `N` numbers of 32 bits: what the file leaves out is 0.
fn numbers<const N: usize>(n: &NodeCx<'_>) -> Result<[i64; N]> {
    let raw: Option<TensorAttr> = n.opt_attr(RAW_OPTIONS)?;
    let raw = raw.ok_or_else(|| n.fail("its options are missing"))?;
    let mut all = [0; N];
    for (number, bytes) in all.iter_mut().zip(raw.0.bytes().chunks_exact(4)) {
        *number = i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    }
    Ok(all)
}

fn padding(n: &NodeCx<'_>, number: i64) -> Result<Padding> {
    match number {
        1 => Ok(Padding::Same),
        2 => Ok(Padding::Valid),
        other => Err(n.fail(format!("padding {other} is not known"))),
    }
}

fn positive(n: &NodeCx<'_>, what: &str, values: [i64; 2]) -> Result<[i64; 2]> {
    match values.iter().all(|v| *v > 0) {
        true => Ok(values),
        false => Err(n.fail(format!("{what} of {values:?} are not possible"))),
    }
}

// Height and width of `[N, H, W, C]`.
fn image_size(n: &NodeCx<'_>, x: Value) -> Result<[i64; 2]> {
    let size = |axis| n.shape(x).dim(axis).get();
    match (n.rank(x), size(1), size(2)) {
        (Some(4), Some(h), Some(w)) => Ok([h, w]),
        _ => Err(n.unsupported(format!("height and width of the data must be known, found [{}]", n.shape(x)))),
    }
}

// Data, filters [O, H, W, I], bias. SAME cuts what a convolution of the result would have padded.
fn transpose_conv_bias(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters, bias) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let [pad, stride_w, stride_h] = numbers(n)?;
    let strides = positive(n, "strides", [stride_h, stride_w])?;
    let (size, kernel) = (image_size(n, x)?, image_size(n, filters)?);
    let cut = |i: usize| (kernel[i] - (size[i] - 1).rem_euclid(strides[i]) - 1).max(0);
    let cut = if padding(n, pad)? == Padding::Same { [cut(0), cut(1)] } else { [0, 0] };
    let op = ConvolutionBackpropData {
        strides: strides.to_vec(),
        pads_begin: cut.iter().map(|c| c / 2).collect(),
        pads_end: cut.iter().map(|c| c - c / 2).collect(),
        dilations: vec![1, 1],
        auto_pad: PadType::Explicit,
        output_padding: vec![0, 0],
    };
    let filters = reordered(n, filters, &[3, 0, 1, 2], None)?;
    let x = LAYOUT.to_first(n, x, 2)?;
    let y = n.emit(op, &[x, filters])?;
    let y = LAYOUT.from_first(n, y, 2)?;
    Ok(n.plus(y, bias)?.into())
}

// The largest of each window, and its number inside of the window, as a float and a tenth.
fn max_pool_argmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let [pad, stride_w, stride_h, width, height, activation] = numbers(n)?;
    let strides = positive(n, "strides", [stride_h, stride_w])?;
    let kernel = positive(n, "windows", [height, width])?;
    let size = image_size(n, x)?;
    let padding = padding(n, pad)?;
    let starts = |i: usize| -> Vec<i64> {
        let (size, kernel, stride) = (size[i], kernel[i], strides[i]);
        let count = if padding == Padding::Same { (size + stride - 1) / stride } else { (size - kernel) / stride + 1 };
        let before = (((count - 1) * stride + kernel - size) / 2).max(0);
        (0..count.max(0)).map(|o| o * stride - before).collect()
    };
    let (rows, columns) = (starts(0), starts(1));
    let w = Windows { strides: strides.to_vec(), dilations: vec![1, 1], padding: padding.clone() };
    let (y, index) = pooling::max_with_index(n, x, kernel.to_vec(), &w, false)?;
    // The index counts rows, columns and channels of the image.
    let channels = n.length(x, -1)?;
    let position = n.over(index, channels)?;
    let image_width = n.i64(size[1])?;
    let row = n.over(position, image_width)?;
    let before = n.times(row, image_width)?;
    let column = n.minus(position, before)?;
    let rows = n.constant(Tensor::from_slice(&[rows.len(), 1, 1], &rows)?)?;
    let columns = n.constant(Tensor::from_slice(&[columns.len(), 1], &columns)?)?;
    let (row, column) = (n.minus(row, rows)?, n.minus(column, columns)?);
    let row = n.times_number(row, width as f64)?;
    let number = n.plus(row, column)?;
    let number = n.convert(number, ElementType::F32)?;
    let number = n.plus_number(number, f64::from(0.1f32))?;
    let activation = usize::try_from(activation).ok().and_then(|a| ACTIVATIONS.get(a)).copied().unwrap_or("?");
    Ok(vec![named(n, y, activation)?, number].into())
}

// Each element goes to the place in its window that the number says, zeros to the others.
fn max_unpool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, number) = (n.input(0)?, n.input(1)?);
    let [_, stride_w, stride_h, width, height] = numbers(n)?;
    let [height, width] = positive(n, "windows", [height, width])?;
    if [stride_h, stride_w] != [height, width] {
        return Err(n.unsupported(format!("windows of {height}x{width} with other strides, {stride_h}x{stride_w}")));
    }
    let number = n.convert(number, ElementType::I64)?;
    let (x, number) = (n.unsqueeze(x, &[3])?, n.unsqueeze(number, &[3])?);
    let places: Vec<i64> = (0..height * width).collect();
    let places = n.constant(Tensor::from_slice(&[places.len(), 1], &places)?)?;
    let chosen = n.equal(number, places)?;
    let zero = n.scalar_like(x, 0.0)?;
    // [N, H, W, height * width, C] to [N, H, height, W, width, C].
    let spread = n.choose(chosen, x, zero)?;
    let shape = n.shape_of(spread)?;
    let sizes = |n: &mut NodeCx<'_>, axis: i64| n.part(shape, axis, axis + 1, 0);
    let (images, rows, columns, channels) = (sizes(n, 0)?, sizes(n, 1)?, sizes(n, 2)?, sizes(n, 4)?);
    let (tall, wide) = (n.i64s(&[height])?, n.i64s(&[width])?);
    let cut = n.concat(&[images, rows, columns, tall, wide, channels], 0)?;
    let cut = n.reshaped(spread, cut, false)?;
    let cut = n.transpose(cut, &[0, 1, 3, 2, 4, 5])?;
    let (all_rows, all_columns) = (n.times(rows, tall)?, n.times(columns, wide)?);
    let whole = n.concat(&[images, all_rows, all_columns, channels], 0)?;
    Ok(n.reshaped(cut, whole, false)?.into())
}

// An element of a matrix [1, 4, 4] as a vector of one.
fn element(n: &mut NodeCx<'_>, matrix: Value, row: i64, column: i64) -> Result<Value> {
    let flat = n.reshape(matrix, &[-1])?;
    let at = row * 4 + column;
    n.part(flat, at, at + 1, 0)
}

// x and y of points are transformed by the first two rows of the matrix, z stays.
fn transform_landmarks(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (points, matrix) = (n.input(0)?, n.input(1)?);
    n.ignore(&["dimensions", "scale"]);
    let (x, y) = (n.part(points, 0, 1, -1)?, n.part(points, 1, 2, -1)?);
    let mut parts = vec![];
    for row in 0..2 {
        let (a, b, c) = (element(n, matrix, row, 0)?, element(n, matrix, row, 1)?, element(n, matrix, row, 3)?);
        let (ax, by) = (n.times(x, a)?, n.times(y, b)?);
        let sum = n.plus(ax, by)?;
        parts.push(n.plus(sum, c)?);
    }
    match n.shape(points).dims().and_then(|d| d.last()?.get()) {
        Some(2) => {}
        Some(3) => parts.push(n.part(points, 2, 3, -1)?),
        _ => return Err(n.unsupported(format!("points of shape [{}] must have 2 or 3 numbers", n.shape(points)))),
    }
    Ok(n.concat(&parts, -1)?.into())
}

// Pixels of the image where the matrix leads to; zero where that is outside. Pixels have their centres at halves.
fn transform_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (image, matrix) = (n.input(0)?, n.input(1)?);
    let size = [n.required::<i64>("output_height")?, n.required::<i64>("output_width")?];
    let [height, width] = positive(n, "sizes", size)?;
    let source = image_size(n, image)?;
    let centres = |count: i64| (0..count).map(|i| i as f32 + 0.5).collect::<Vec<f32>>();
    let x = n.constant(Tensor::from_slice(&[1, width as usize], &centres(width))?)?;
    let y = n.constant(Tensor::from_slice(&[height as usize, 1], &centres(height))?)?;
    let (mut inside, mut grid) = (None, vec![]);
    for (row, size) in [(0, source[1]), (1, source[0])] {
        let (a, b, c) = (element(n, matrix, row, 0)?, element(n, matrix, row, 1)?, element(n, matrix, row, 3)?);
        let (ax, by) = (n.times(x, a)?, n.times(y, b)?);
        let sum = n.plus(ax, by)?;
        let sum = n.plus(sum, c)?;
        let at = n.plus_number(sum, -0.5)?;
        let (first, last) = (n.scalar_like(at, 0.0)?, n.scalar_like(at, (size - 1) as f64)?);
        let (low, high) = (n.greater_equal(at, first)?, n.less_equal(at, last)?);
        let both = n.and(low, high)?;
        inside = Some(match inside {
            Some(other) => n.and(other, both)?,
            None => both,
        });
        // From -1 at the first pixel to 1 at the last.
        let scaled = n.times_number(at, 2.0 / (size - 1).max(1) as f64)?;
        let scaled = n.plus_number(scaled, -1.0)?;
        grid.push(n.unsqueeze(scaled, &[-1])?);
    }
    let grid = n.concat(&grid, -1)?;
    let grid = n.unsqueeze(grid, &[0])?;
    let image = LAYOUT.to_first(n, image, 2)?;
    let op =
        GridSample { align_corners: true, mode: SampleMode::Bilinear, padding_mode: PaddingMode::Border };
    let y = n.emit(op, &[image, grid])?;
    let y = LAYOUT.from_first(n, y, 2)?;
    let Some(inside) = inside else { return Ok(y.into()) };
    let (inside, zero) = (n.unsqueeze(inside, &[0, -1])?, n.scalar_like(y, 0.0)?);
    Ok(n.choose(inside, y, zero)?.into())
}

// The box around some points, turned so that two of them lie level: a matrix from pixels of the crop to the image.
fn landmarks_to_matrix(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let points = n.input(0)?;
    let subset: Vec<i64> = n.required("subset_idxs")?;
    let (left, right): (i64, i64) = (n.required("left_rotation_idx")?, n.required("right_rotation_idx")?);
    let target: f64 = n.attr("target_rotation_radians", 0.0)?;
    let scale: [f64; 2] = [n.required("scale_x")?, n.required("scale_y")?];
    let size = positive(n, "sizes", [n.required("output_width")?, n.required("output_height")?])?;
    let points = n.reshape(points, &[-1, 3])?;
    let count = n.shape(points).dim(0).get();
    let all = subset.iter().chain([&left, &right]);
    if subset.is_empty() || all.clone().any(|i| *i < 0 || count.is_some_and(|count| *i >= count)) {
        return Err(n.fail("its indices of points are empty or outside of the points"));
    }
    let coordinate = |n: &mut NodeCx<'_>, indices: &[i64], axis: i64| -> Result<Value> {
        let indices = n.i64s(indices)?;
        let chosen = n.gather(points, indices, 0)?;
        let column = n.part(chosen, axis, axis + 1, 1)?;
        n.reshape(column, &[-1])
    };
    let mut across = vec![];
    for axis in [1, 0] {
        let (from, to) = (coordinate(n, &[left], axis)?, coordinate(n, &[right], axis)?);
        across.push(n.minus(to, from)?);
    }
    let turned = angle(n, across[0], across[1])?;
    let turn = n.sub_from(target, turned)?;
    let (cos, sin) = (n.emit(Cos, &[turn])?, n.emit(Sin, &[turn])?);
    let minus_sin = n.times_number(sin, -1.0)?;
    // (x, y) turned: cos and -sin, sin and cos.
    let turn = |n: &mut NodeCx<'_>, x: Value, y: Value, a: Value, b: Value| -> Result<Value> {
        let (ax, by) = (n.times(x, a)?, n.times(y, b)?);
        n.plus(ax, by)
    };
    let (x, y) = (coordinate(n, &subset, 0)?, coordinate(n, &subset, 1)?);
    let level = [turn(n, x, y, cos, minus_sin)?, turn(n, x, y, sin, cos)?];
    let (mut extent, mut middle) = (vec![], vec![]);
    for (i, v) in level.into_iter().enumerate() {
        let axes = n.i64s(&[0])?;
        let low = n.emit(ReduceMin { keep_dims: true }, &[v, axes])?;
        let high = n.max_over(v, &[0], true)?;
        let wide = n.minus(high, low)?;
        extent.push(n.times_number(wide, scale[i] / size[i] as f64)?);
        let sum = n.plus(low, high)?;
        middle.push(n.times_number(sum, 0.5)?);
    }
    let half = [-0.5 * size[0] as f64, -0.5 * size[1] as f64];
    let zero = n.constant(Tensor::from_slice(&[1], &[0f32])?)?;
    let mut elements = vec![];
    for (a, b) in [(cos, sin), (minus_sin, cos)] {
        let centre = turn(n, middle[0], middle[1], a, b)?;
        let (ax, by) = (n.times(a, extent[0])?, n.times(b, extent[1])?);
        let (back_x, back_y) = (n.times_number(ax, half[0])?, n.times_number(by, half[1])?);
        let back = n.plus(back_x, back_y)?;
        elements.extend([ax, by, zero, n.plus(centre, back)?]);
    }
    elements.push(n.constant(Tensor::from_slice(&[8], &[0f32, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])?)?);
    let matrix = n.concat(&elements, 0)?;
    Ok(n.reshape(matrix, &[1, 4, 4])?.into())
}
