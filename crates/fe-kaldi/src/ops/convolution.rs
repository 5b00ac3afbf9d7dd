//! Convolutions over the columns of a row.

use super::cx::{array, columns, numbers, opt_array, shape, size, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("ConvolutionComponent", 1, over_two),
    rule("Convolutional1dComponent", 1, |n| over_one(n, "FilterParams", "BiasParams")),
    rule("ConvolutionalComponent", 1, |n| over_one(n, "Filters", "Bias")),
    rule("TimeHeightConvolutionComponent", 1, time_height),
];

/// Numbers that filters may have.
const MAX_FILTERS: i64 = 1 << 28;

struct Window {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: (i64, i64),
}

fn convolve(n: &mut NodeCx<'_>, x: Value, filters: Value, w: Window) -> Result<Value> {
    let axes = w.strides.len();
    let op = Convolution {
        strides: w.strides,
        pads_begin: vec![w.pads.0; axes],
        pads_end: vec![w.pads.1; axes],
        dilations: w.dilations,
        auto_pad: PadType::Explicit,
    };
    n.emit(op, &[x, filters])
}

// Channels come last in rows: `[streams, channels, ..]` to one row, with the bias of each channel.
fn flat(n: &mut NodeCx<'_>, y: Value, order: &[i64], bias: Option<Value>, dim: i64) -> Result<Outputs> {
    let mut y = n.transpose(y, order)?;
    if let Some(bias) = bias {
        y = n.plus(y, bias)?;
    }
    Ok(n.reshape(y, &[0, dim])?.into())
}

// Frames stand side by side, and a filter goes over all of them at once.
fn over_one(n: &mut NodeCx<'_>, filters: &str, bias: &str) -> Result<Outputs> {
    n.ignore(&["InputDim", "OutputDim"]);
    let x = n.input(0)?;
    let (dim, step, stride) = (size(n, "PatchDim")?, size(n, "PatchStep")?, size(n, "PatchStride")?);
    let whole = columns(n, x)?;
    let frames = times(n, whole, stride, "columns of the input")?;
    let stored = shape(n, filters)?;
    let &[count, each] = &stored[..] else { return Err(n.fail(format!("`<{filters}>` must be a matrix"))) };
    if dim > stride || each as i64 != frames * dim {
        return Err(n.fail(format!(
            "filters of {each} numbers do not go over {frames} frames in patches of {dim} of {stride} columns"
        )));
    }
    let filters = array(n, filters)?;
    let filters = n.reshape(filters, &[count as i64, frames, dim])?;
    let rows = match n.attr("AppendedConv", false)? {
        false => n.reshape(x, &[0, frames, stride])?,
        // Frames alternate.
        true => {
            let rows = n.reshape(x, &[0, stride, frames])?;
            n.transpose(rows, &[0, 2, 1])?
        }
    };
    let y = convolve(n, rows, filters, Window { strides: vec![step], dilations: vec![1], pads: (0, 0) })?;
    let bias = array(n, bias)?;
    let patches = 1 + (stride - dim) / step;
    flat(n, y, &[0, 2, 1], Some(bias), patches * count as i64)
}

// Over x and y, with z as channels; rows have z or y as neighbours.
fn over_two(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (dx, dy, dz) = (size(n, "InputXDim")?, size(n, "InputYDim")?, size(n, "InputZDim")?);
    let (fx, fy) = (size(n, "FiltXDim")?, size(n, "FiltYDim")?);
    let strides = vec![size(n, "FiltXStep")?, size(n, "FiltYStep")?];
    let stored = shape(n, "FilterParams")?;
    let &[count, each] = &stored[..] else { return Err(n.fail("`<FilterParams>` must be a matrix")) };
    if fx > dx || fy > dy || fx.checked_mul(fy).and_then(|a| a.checked_mul(dz)) != Some(each as i64) {
        return Err(n.fail(format!("filters of {each} numbers are not {fx} by {fy} by {dz} of {dx} by {dy}")));
    }
    let cube = match n.attr("InputVectorization", 0)? {
        0 => {
            let cube = n.reshape(x, &[0, dx, dz, dy])?;
            n.transpose(cube, &[0, 2, 1, 3])?
        }
        1 => {
            let cube = n.reshape(x, &[0, dx, dy, dz])?;
            n.transpose(cube, &[0, 3, 1, 2])?
        }
        other => return Err(n.fail(format!("`<InputVectorization>` must be 0 or 1, found {other}"))),
    };
    let filters = array(n, "FilterParams")?;
    let filters = n.reshape(filters, &[count as i64, fx, fy, dz])?;
    let filters = n.transpose(filters, &[0, 3, 1, 2])?;
    let patches = (1 + (dx - fx) / strides[0]) * (1 + (dy - fy) / strides[1]);
    let y = convolve(n, cube, filters, Window { strides, dilations: vec![1, 1], pads: (0, 0) })?;
    let bias = array(n, "BiasParams")?;
    flat(n, y, &[0, 2, 3, 1], Some(bias), patches * count as i64)
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

// Over height, with the frames of the window as channels: they stand side by side already. Filters are stored for those pairs of
// time and height that they have; others are zero.
fn time_height(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["RequiredTimeOffsets"]);
    let x = n.input(0)?;
    let (inputs, outputs) = (size(n, "NumFiltersIn")?, size(n, "NumFiltersOut")?);
    let (height, out_height, step) = (size(n, "HeightIn")?, size(n, "HeightOut")?, size(n, "HeightSubsampleOut")?);
    let offsets: Vec<i64> = n.required("Offsets")?;
    let pairs: Vec<(i64, i64)> = offsets.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let mut times: Vec<i64> = pairs.iter().map(|p| p.0).collect();
    times.sort_unstable();
    times.dedup();
    let heights = || pairs.iter().map(|p| p.1);
    let (Some(low), Some(high)) = (heights().min(), heights().max()) else { return Err(n.fail("there are no offsets")) };
    if low < -height || high > out_height.saturating_mul(step).saturating_add(height) {
        return Err(n.fail(format!("offsets from {low} to {high} of a height of {height}")));
    }
    let dilation = heights().map(|h| h - low).fold(0, gcd).max(1);
    let taps = (high - low) / dilation + 1;
    let channels = times.len() as i64 * inputs;
    let numbers_of_filters = outputs.checked_mul(channels).and_then(|a| a.checked_mul(taps)).filter(|f| *f <= MAX_FILTERS);
    let count = numbers_of_filters.ok_or_else(|| n.fail("the filters are too large"))?;
    let stored = shape(n, "LinearParams")?;
    if stored != [outputs as usize, pairs.len() * inputs as usize] {
        return Err(n.fail(format!("`<LinearParams>` is {stored:?}, expected {outputs} rows of {} times {inputs}", pairs.len())));
    }
    let weights = numbers(n, "LinearParams")?;
    let mut filters = vec![0f32; count as usize];
    for (i, (t, h)) in pairs.iter().enumerate() {
        let frame = times.binary_search(t).unwrap_or(0);
        let tap = ((h - low) / dilation) as usize;
        for out in 0..outputs as usize {
            for channel in 0..inputs as usize {
                let to = (out * channels as usize + frame * inputs as usize + channel) * taps as usize + tap;
                filters[to] = weights[(out * pairs.len() + i) * inputs as usize + channel];
            }
        }
    }
    let filters = n.constant(Tensor::from_vec(&[outputs as usize, channels as usize, taps as usize], filters)?)?;
    let rows = n.reshape(x, &[0, times.len() as i64, height, inputs])?;
    let rows = n.transpose(rows, &[0, 1, 3, 2])?;
    let rows = n.reshape(rows, &[0, channels, height])?;
    // The first output looks at `low`, the last at `high` above its place; what is not there is zero, what is too much is cut.
    let first = low.max(0);
    let rows = if first > 0 { n.part(rows, first, height, 2)? } else { rows };
    let pads = ((-low).max(0), ((out_height - 1) * step + high + 1 - height).max(0));
    let y = convolve(n, rows, filters, Window { strides: vec![step], dilations: vec![dilation], pads })?;
    let y = n.part(y, 0, out_height, 2)?;
    let bias = opt_array(n, "BiasParams")?;
    flat(n, y, &[0, 2, 1], bias, out_height * outputs)
}
