//! Operations on images and boxes. GridSample of volumes has no counterpart and is composed of one Gather for each corner.

use super::convolution::Windows;
use super::roi_align_max::RoiAlignMax;
use super::shapes::scalar;
use super::volume_sample::{Border, VolumeSample};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::ConvolutionBackpropData;
use carafe_ops::convolution::window::PadType;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{NonMaxSuppression, PoolMode, ROIAlign, ROIPooling};
use carafe_ops::movement::Col2Im;
use carafe_ops::reduce::ReduceProd;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_ops::shape::Eye;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AffineGrid", 20, affine_grid),
    rule("Col2Im", 18, col2im),
    rule("GridSample", 16, grid_sample),
    rule("MaxRoiPool", 1, max_roi_pool),
    rule("NonMaxSuppression", 10, non_max_suppression),
    rule("RoiAlign", 10, |n| roi_align(n, "output_half_pixel")),
    rule("RoiAlign", 16, |n| roi_align(n, "half_pixel")),
];

fn max_roi_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.input(0)?, n.input(1)?);
    let shape: Vec<i64> = n.required("pooled_shape")?;
    let [pooled_h, pooled_w] = shape[..] else {
        return Err(n.fail(format!("attribute `pooled_shape` must have 2 values, found {shape:?}")));
    };
    let op = ROIPooling { pooled_h, pooled_w, spatial_scale: n.attr("spatial_scale", 1.0)?, method: RoiMethod::Max };
    Ok(n.emit(op, &[x, rois])?.into())
}

fn roi_align(n: &mut NodeCx<'_>, default: &str) -> Result<Outputs> {
    let (x, rois, images) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let mode: String = n.attr("mode", "avg".to_string())?;
    let position: String = n.attr("coordinate_transformation_mode", default.to_string())?;
    let half_pixel = match position.as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            return Err(n.fail(format!(
                "attribute `coordinate_transformation_mode` is `{other}`; known are half_pixel, output_half_pixel"
            )));
        }
    };
    let pooled = [n.attr("output_height", 1)?, n.attr("output_width", 1)?];
    let sampling_ratio: i64 = n.attr("sampling_ratio", 0)?;
    let spatial_scale: f32 = n.attr("spatial_scale", 1.0)?;
    if pooled.iter().any(|p| !(1..=1 << 16).contains(p)) || sampling_ratio < 0 {
        return Err(n.fail(format!("an output of {pooled:?} with {sampling_ratio} samples cannot be")));
    }
    match mode.as_str() {
        "avg" => {}
        "max" => {
            let op = RoiAlignMax { pooled, sampling_ratio, spatial_scale: f64::from(spatial_scale), half_pixel };
            return Ok(op.emit(n, x, rois, images)?.into());
        }
        other => return Err(n.fail(format!("attribute `mode` is `{other}`; known are avg, max"))),
    }
    let op = ROIAlign {
        pooled_h: pooled[0],
        pooled_w: pooled[1],
        sampling_ratio,
        spatial_scale,
        mode: PoolMode::Avg,
        aligned_mode: if half_pixel { AlignedMode::HalfPixelForNn } else { AlignedMode::Asymmetric },
    };
    Ok(n.emit(op, &[x, rois, images])?.into())
}

fn non_max_suppression(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (boxes, scores) = (n.input(0)?, n.input(1)?);
    let centre: bool = n.attr("center_point_box", false)?;
    let mut limits = vec![];
    for (input, default) in [(2, 0.0), (3, 0.0), (4, f64::from(f32::MIN))] {
        limits.push(match n.opt(input)? {
            Some(v) => scalar(n, v)?,
            None if input == 2 => n.i64(0)?,
            None => n.scalar(ElementType::F32, default)?,
        });
    }
    // A negative number is no bound to the operation; one that only the run knows counts as 0, as in ONNX Runtime.
    match n.ints(limits[0]).as_deref() {
        Some(&[count]) if count < 0 => {
            return Err(n.fail(format!("max_output_boxes_per_class must not be negative, found {count}")));
        }
        Some(_) => {}
        None => {
            let zero = n.scalar_like(limits[0], 0.0)?;
            limits[0] = n.max(limits[0], zero)?;
        }
    }
    let op = NonMaxSuppression {
        box_encoding: if centre { BoxEncoding::Center } else { BoxEncoding::Corner },
        sort_result_descending: false,
        output_type: ElementType::I64,
    };
    let selected = n.emit_all(op, &[boxes, scores, limits[0], limits[1], limits[2]])?;
    Ok(selected[0].into())
}

fn grid_sample(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, grid) = (n.input(0)?, n.input(1)?);
    let align_corners: bool = n.attr("align_corners", false)?;
    let mode: String = n.attr("mode", "linear".to_string())?;
    let padding: String = n.attr("padding_mode", "zeros".to_string())?;
    // Version 16 says bilinear and bicubic.
    let mode = match mode.as_str() {
        "bilinear" | "linear" => SampleMode::Bilinear,
        "nearest" => SampleMode::Nearest,
        "bicubic" | "cubic" => SampleMode::Bicubic,
        other => return Err(n.fail(format!("attribute `mode` is `{other}`; known are linear, nearest, cubic"))),
    };
    let padding_mode = match padding.as_str() {
        "zeros" => PaddingMode::Zeros,
        "border" => PaddingMode::Border,
        "reflection" => PaddingMode::Reflection,
        other => {
            return Err(n.fail(format!("attribute `padding_mode` is `{other}`; known are zeros, border, reflection")));
        }
    };
    if n.rank(x).or(n.rank(grid)).is_none_or(|r| r == 4) {
        return Ok(n.emit(GridSample { align_corners, mode, padding_mode }, &[x, grid])?.into());
    }
    let linear = match mode {
        SampleMode::Bilinear => true,
        SampleMode::Nearest => false,
        SampleMode::Bicubic => return Err(n.unsupported("mode cubic is supported for images of rank 4 alone")),
    };
    let border = match padding_mode {
        PaddingMode::Zeros => Border::Zeros,
        PaddingMode::Border => Border::Nearest,
        PaddingMode::Reflection => Border::Mirror,
    };
    Ok(VolumeSample { align_corners, linear, border }.sample(n, x, grid)?.into())
}

fn affine_grid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (theta, size) = (n.input(0)?, n.input(1)?);
    let align_corners: bool = n.attr("align_corners", false)?;
    let of_theta = n.shape(theta).dims().and_then(|d| d.get(1)).and_then(|d| d.size());
    let count = length(n, size).or(of_theta.map(|d| d.saturating_add(2)));
    let axes = match count {
        Some(4) => 2,
        Some(5) => 3,
        _ => return Err(n.unsupported("the number of axes must be known, 2 or 3")),
    };
    // The lines of points between -1 and 1, from the last axis to the first, as theta takes them.
    let mut points = vec![];
    let shape = n.part(size, 2, i64::MAX, 0)?;
    for axis in (0..axes).rev() {
        let at = n.i64(axis as i64)?;
        let length = n.gather(shape, at, 0)?;
        let line = n.count_to(length, ElementType::F32)?;
        let length = n.convert(length, ElementType::F32)?;
        let (line, steps) = match align_corners {
            true => (line, n.plus_number(length, -1.0)?),
            false => (n.plus_number(line, 0.5)?, length),
        };
        let line = n.times_number(line, 2.0)?;
        let line = n.over(line, steps)?;
        let line = n.plus_number(line, -1.0)?;
        let mut pattern = vec![1; axes];
        pattern[axis] = -1;
        let line = n.reshape(line, &pattern)?;
        let plane = n.stretch(line, shape)?;
        points.push(n.reshape(plane, &[-1, 1])?);
    }
    let zeros = n.minus(points[0], points[0])?;
    points.push(n.plus_number(zeros, 1.0)?);
    let points = n.concat(&points, 1)?;
    let points = n.convert_like(points, theta)?;
    // [points, axes + 1] times [N, axes, axes + 1] turned.
    let grid = n.product(points, theta, true)?;
    let batch = n.part(size, 0, 1, 0)?;
    let last = n.i64s(&[axes as i64])?;
    let shape = n.concat(&[batch, shape, last], 0)?;
    Ok(n.reshaped(grid, shape, false)?.into())
}

// Number of elements of a vector, where known.
fn length(n: &NodeCx<'_>, vector: Value) -> Option<usize> {
    n.shape(vector).dims().and_then(|d| d.first()).and_then(|d| d.size())
}

fn col2im(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, image, block) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let w = Windows::read(n, length(n, image).or(length(n, block)))?;
    if w.n_spatial() == 2 {
        let op =
            Col2Im { strides: w.strides, dilations: w.dilations, pads_begin: w.pads_begin, pads_end: w.pads_end };
        return Ok(n.emit(op, &[x, image, block])?.into());
    }
    let image = n.convert(image, ElementType::I64)?;
    let block = n.convert(block, ElementType::I64)?;
    spread_columns(n, x, image, block, w)
}

// A transposed convolution whose filters set each element of the block apart adds columns into an image as well.
fn spread_columns(n: &mut NodeCx<'_>, x: Value, image: Value, block: Value, w: Windows) -> Result<Outputs> {
    let axes = w.n_spatial();
    let first = n.i64s(&[0])?;
    let volume = n.emit(ReduceProd { keep_dims: false }, &[block, first])?;
    let diagonal = n.i64(0)?;
    let filters = n.emit(Eye { output_type: ElementType::F32 }, &[volume, volume, diagonal])?;
    let filters = n.convert_like(filters, x)?;
    let lead = n.i64s(&[-1, 1])?;
    let shape = n.concat(&[lead, block], 0)?;
    let filters = n.reshaped(filters, shape, false)?;

    // Numbers of windows along each axis.
    let sums: Vec<i64> = (0..axes).map(|i| w.pads_begin[i] + w.pads_end[i] - 1).collect();
    let (sums, dilations, strides) = (n.i64s(&sums)?, n.i64s(&w.dilations)?, n.i64s(&w.strides)?);
    let holes = n.plus_number(block, -1.0)?;
    let holes = n.times(holes, dilations)?;
    let room = n.plus(image, sums)?;
    let room = n.minus(room, holes)?;
    let steps = n.over(room, strides)?;
    let windows = n.plus_number(steps, 1.0)?;
    let volume = n.reshape(volume, &[1])?;
    let all = n.i64s(&[-1])?;
    let shape = n.concat(&[all, volume, windows], 0)?;
    let columns = n.reshaped(x, shape, false)?;

    let padded: Vec<i64> = vec![0; axes];
    let op = ConvolutionBackpropData {
        strides: w.strides,
        pads_begin: w.pads_begin,
        pads_end: w.pads_end,
        dilations: w.dilations,
        auto_pad: PadType::Explicit,
        output_padding: padded,
    };
    let images = n.emit(op, &[columns, filters, image])?;
    let (batch, rows) = (n.size(x, 0)?, n.size(x, 1)?);
    let channels = n.over(rows, volume)?;
    let shape = n.concat(&[batch, channels, image], 0)?;
    Ok(n.reshaped(images, shape, false)?.into())
}
