//! Layers made of windows: the pyramid of poolings, and the matrix that a convolution multiplies with.

use super::convolution::{Windows, positive};
use super::cx::LayerCx;
use super::numbers::{dims, picked, size};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Pad, Reshape};
use carafe_ops::reduce::{ReduceMax, ReduceMean};
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[rule("Im2col", 0, im2col), rule("SPP", 0, spp)];

// Each level has twice as many windows on an axis; each is one row in the end. Windows of a level do not overlap, and the
// padded image is just as large as all of them: its axes fall into windows and their positions.
fn spp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let levels = positive(n, "pyramid_height", None)?;
    let method: String = n.attr("pool", "MAX".to_string())?;
    n.ignore(&["engine"]);
    let whole = size(n, x)?;
    let known = n.ints(whole).unwrap_or_default();
    let lead = dims(n, x, &[0, 1])?;
    let mut rows = vec![];
    for level in 0..levels {
        let windows = match level {
            0..=20 => 1i64 << level,
            _ => return Err(n.fail(format!("a pyramid of {levels} levels is too high"))),
        };
        // Caffe refuses windows that lie in the padding alone.
        let pad_of = |size: i64, kernel: i64| (kernel * windows - size + 1) / 2;
        let kernel_of = |size: i64| (size + windows - 1) / windows;
        if let Some(size) = known.iter().find(|&&size| pad_of(size, kernel_of(size)) >= kernel_of(size)) {
            return Err(n.fail(format!("{windows} windows do not fit into {size}")));
        }
        let count = n.i64s(&[windows])?;
        let above = n.plus_number(whole, (windows - 1) as f64)?;
        let kernel = n.over(above, count)?;
        let covered = n.times(kernel, count)?;
        let missing = n.minus(covered, whole)?;
        let end = n.i64s(&[2])?;
        let end = n.over(missing, end)?;
        let begin = n.minus(missing, end)?;
        let none = n.i64s(&[0, 0])?;
        let (begin, end) = (n.concat(&[none, begin], 0)?, n.concat(&[none, end], 0)?);
        let value = n.scalar_like(x, if method == "MAX" { f64::from(f32::MIN) } else { 0.0 })?;
        let padded = n.emit(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, value])?;
        let (height, width) = (picked(n, kernel, &[0])?, picked(n, kernel, &[1])?);
        let shape = n.concat(&[lead, count, height, count, width], 0)?;
        let y = n.emit(Reshape { special_zero: false }, &[padded, shape])?;
        let axes = n.i64s(&[3, 5])?;
        let y = match method.as_str() {
            "MAX" => n.emit(ReduceMax { keep_dims: false }, &[y, axes])?,
            "AVE" => n.emit(ReduceMean { keep_dims: false }, &[y, axes])?,
            other => return Err(n.unsupported(format!("pooling `{other}` is not supported, MAX and AVE are"))),
        };
        rows.push(n.reshape(y, &[0, -1])?);
    }
    Ok(n.concat(&rows, 1)?.into())
}

/// Numbers that the windows of all channels may take.
const MOST: usize = 1 << 26;

// Windows as channels: a convolution each of whose filters takes one element of a window.
fn im2col(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    n.ignore(&["num_output", "bias_term", "group"]);
    if n.attr::<i64>("axis", 1)? != 1 {
        return Err(n.unsupported("channels must be at axis 1"));
    }
    let rank = n.known_rank(x)?;
    if !(3..=5).contains(&rank) {
        return Err(n.unsupported(format!("takes 1 to 3 spatial axes, a bottom of rank {rank} has others")));
    }
    let w = Windows::read(n, rank - 2)?;
    let Some(channels) = n.shape(x).dim(1).size() else {
        return Err(n.unsupported("the number of channels must be known"));
    };
    let volume = w.kernel.iter().try_fold(1usize, |p, k| p.checked_mul(*k as usize));
    let total = volume.and_then(|v| v.checked_mul(v)?.checked_mul(channels)).filter(|t| *t <= MOST);
    let (Some(volume), Some(total)) = (volume, total) else {
        return Err(n.unsupported(format!("windows of {:?} on {channels} channels are too large", w.kernel)));
    };
    let mut values = vec![0f32; total];
    for (i, filter) in values.chunks_mut(volume).enumerate() {
        filter[i % volume] = 1.0;
    }
    let mut shape = vec![channels, volume, 1];
    shape.extend(w.kernel.iter().map(|k| *k as usize));
    let filters = n.named_constant("windows", Tensor::from_vec(&shape, values)?)?;
    let op = GroupConvolution {
        strides: w.strides,
        pads_begin: w.pads.clone(),
        pads_end: w.pads,
        dilations: w.dilations,
        auto_pad: PadType::Explicit,
    };
    Ok(n.emit(op, &[x, filters])?.into())
}
