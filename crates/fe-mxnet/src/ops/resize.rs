//! Images of another size.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::convert::Convert;
use carafe_ops::convolution::GroupConvolutionBackpropData;
use carafe_ops::convolution::window::PadType;
use carafe_ops::resize::Interpolate;
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Mode, NearestMode};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("UpSampling", 0, up_sampling),
    rule("_contrib_BilinearResize2D", 0, bilinear_resize),
];

fn interpolate(n: &mut NodeCx<'_>, x: Value, size: Value, mode: Mode, coordinates: Coordinates) -> Result<Value> {
    let axes = n.i64s(&[2, 3])?;
    let op = Interpolate {
        mode,
        shape_calculation_mode: ShapeCalculation::Sizes,
        coordinate_transformation_mode: coordinates,
        nearest_mode: NearestMode::Floor,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff: -0.75,
    };
    n.emit(op, &[x, size, axes])
}

fn up_sampling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args"]);
    let scale = n.needed_int("scale")?;
    if !(1..=1 << 16).contains(&scale) {
        return Err(n.fail(format!("attribute `scale` must be a positive number, found {scale}")));
    }
    let filters = n.int("num_filter", 0)?;
    let joining = n.word("multi_input_mode", "concat");
    match n.word("sample_type", "").as_str() {
        "nearest" => nearest(n, scale, &joining),
        "bilinear" => bilinear(n, scale, filters),
        other => Err(n.unknown_word("sample_type", other, "nearest, bilinear")),
    }
}

// Several images become as large as the first one does.
fn nearest(n: &mut NodeCx<'_>, scale: i64, joining: &str) -> Result<Outputs> {
    let all = n.inputs()?;
    let Some(&first) = all.first() else { return Err(n.fail("there is no image")) };
    let factor = n.i64s(&[scale, scale])?;
    let size = n.dims_at(first, &[2, 3])?;
    let size = n.times(size, factor)?;
    let mut images = vec![];
    for image in all {
        images.push(interpolate(n, image, size, Mode::Nearest, Coordinates::Asymmetric)?);
    }
    let joined = match joining {
        "concat" => n.concat(&images, 1)?,
        "sum" => images[1..].iter().try_fold(images[0], |sum, image| n.plus(sum, *image))?,
        other => return Err(n.unknown_word("multi_input_mode", other, "concat, sum")),
    };
    Ok(joined.into())
}

// A deconvolution of each channel, whose weights the file holds.
fn bilinear(n: &mut NodeCx<'_>, scale: i64, filters: i64) -> Result<Outputs> {
    n.ignore(&["num_filter"]);
    let (x, weight) = (n.input(0)?, n.input(1)?);
    if filters < 1 {
        return Err(n.fail(format!("attribute `num_filter` must be the number of channels, found {filters}")));
    }
    // [C, 1, k, k] as [C, 1, 1, k, k]
    let weight = n.unsqueeze(weight, &[1])?;
    let pad = (scale as f64 - 1.0) / 2.0;
    let pads = vec![pad.ceil() as i64; 2];
    let op = GroupConvolutionBackpropData {
        strides: vec![scale; 2],
        pads_begin: pads.clone(),
        pads_end: pads,
        dilations: vec![1; 2],
        auto_pad: PadType::Explicit,
        output_padding: vec![0; 2],
    };
    Ok(n.emit(op, &[x, weight])?.into())
}

fn bilinear_resize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (height, width) = (n.int("height", 1)?, n.int("width", 1)?);
    let scales = [n.opt_float("scale_height")?, n.opt_float("scale_width")?];
    let corners = n.flag("align_corners", true)?;
    let size = match n.word("mode", "size").as_str() {
        "size" => match scales {
            [Some(h), Some(w)] => scaled(n, x, h, w)?,
            _ => n.i64s(&[height, width])?,
        },
        "like" => {
            let like = n.input(1)?;
            n.dims_at(like, &[2, 3])?
        }
        "odd_scale" => {
            let [Some(h), Some(w)] = scales else { return Err(n.fail("`scale_height` and `scale_width` are missing")) };
            odd_scaled(n, x, h, w)?
        }
        "to_even_down" => stepped(n, x, 0, -1)?,
        "to_even_up" => stepped(n, x, 0, 1)?,
        "to_odd_down" => stepped(n, x, 1, -1)?,
        "to_odd_up" => stepped(n, x, 1, 1)?,
        other => {
            let known = "size, like, odd_scale, to_even_down, to_even_up, to_odd_down, to_odd_up";
            return Err(n.unknown_word("mode", other, known));
        }
    };
    let coordinates = if corners { Coordinates::AlignCorners } else { Coordinates::HalfPixel };
    Ok(interpolate(n, x, size, Mode::LinearOnnx, coordinates)?.into())
}

// Height and width times factors, rounded down.
fn scaled(n: &mut NodeCx<'_>, x: Value, h: f64, w: f64) -> Result<Value> {
    let size = n.dims_at(x, &[2, 3])?;
    let size = n.emit(Convert { destination_type: ElementType::F32 }, &[size])?;
    let factors = n.floats(&[2], &[h as f32, w as f32])?;
    let size = n.times(size, factors)?;
    n.emit(Convert { destination_type: ElementType::I64 }, &[size])
}

// An even size is multiplied, of an odd one all but one: `(size - 1) * factor + 1`.
fn odd_scaled(n: &mut NodeCx<'_>, x: Value, h: f64, w: f64) -> Result<Value> {
    let size = n.dims_at(x, &[2, 3])?;
    let two = n.i64s(&[2, 2])?;
    let odd = n.emit(FloorMod::default(), &[size, two])?;
    let even = n.minus(size, odd)?;
    let even = n.emit(Convert { destination_type: ElementType::F32 }, &[even])?;
    let factors = n.floats(&[2], &[h as f32, w as f32])?;
    let scaled = n.times(even, factors)?;
    let whole = n.emit(Convert { destination_type: ElementType::I64 }, &[scaled])?;
    n.plus(whole, odd)
}

// The size itself where it is even (0) or odd (1) already, else one more or less.
fn stepped(n: &mut NodeCx<'_>, x: Value, parity: i64, step: i64) -> Result<Value> {
    let size = n.dims_at(x, &[2, 3])?;
    let two = n.i64s(&[2, 2])?;
    let odd = n.emit(FloorMod::default(), &[size, two])?;
    let wanted = n.i64s(&[parity, parity])?;
    let is_right = n.equal(odd, wanted)?;
    let step = n.i64s(&[step, step])?;
    let other = n.plus(size, step)?;
    n.choose(is_right, size, other)
}
