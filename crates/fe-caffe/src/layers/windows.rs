//! Layers made of windows: the pyramid of poolings, and the matrix that a convolution multiplies with.

use super::convolution::{Windows, positive};
use super::cx::LayerCx;
use super::pooling::{Pool, average, max};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[rule("Im2col", 0, im2col), rule("SPP", 0, spp)];

// Each level has twice as many windows on an axis; each is one row in the end.
fn spp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let levels = positive(n, "pyramid_height", None)?;
    let method: String = n.attr("pool", "MAX".to_string())?;
    n.ignore(&["engine"]);
    let sizes = match n.shape(x).to_static() {
        Some(shape) if shape.len() == 4 => [shape[2] as i64, shape[3] as i64],
        _ => return Err(n.unsupported(format!("takes images of known size, found [{}]", n.shape(x)))),
    };
    let mut rows = vec![];
    for level in 0..levels {
        let windows = match level {
            0..=20 => 1i64 << level,
            _ => return Err(n.fail(format!("a pyramid of {levels} levels is too high"))),
        };
        let kernel = sizes.map(|size| (size + windows - 1) / windows);
        let pads = [0, 1].map(|i| (kernel[i] * windows - sizes[i] + 1) / 2);
        let pool = Pool { kernel, strides: kernel, pads, ceil: true };
        if let Some(i) = (0..2).find(|&i| pads[i] >= kernel[i]) {
            return Err(n.fail(format!("{windows} windows do not fit into {}", sizes[i])));
        }
        let y = match method.as_str() {
            "MAX" => max(n, x, pool)?[0],
            "AVE" => average(n, x, pool)?,
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
