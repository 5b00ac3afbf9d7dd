//! Binarization and ConvolutionBinary, as XNOR networks have them: data become their signs, weights their signs times one size
//! for each output, the mean of what they were. Padding is zero, which is no sign: so the convolution stays a plain one.

use super::convolution::{Windows, positive};
use super::cx::LayerCx;
use super::fillers::ignore;
use super::numbers::dim;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule("Binarization", 0, binarization), rule("ConvolutionBinary", 0, convolution_binary)];

// 1 above zero, else -1.
fn binarization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let mut limits = vec![];
    for limit in [0.0, -1.0, 1.0] {
        limits.push(n.scalar(ElementType::F32, limit)?);
    }
    let op = FakeQuantize { levels: 2, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
    Ok(n.emit(op, &[x, limits[0], limits[0], limits[1], limits[2]])?.into())
}

fn convolution_binary(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let rank = n.known_rank(x)?;
    if rank != 4 || n.attr::<i64>("group", 1)? != 1 || n.attr::<i64>("axis", 1)? != 1 {
        return Err(n.unsupported("binary convolutions of one group over images are supported"));
    }
    let windows = Windows::read(n, 2)?;
    let output = positive(n, "num_output", None)?;
    ignore(n, "weight_filler");
    ignore(n, "bias_filler");
    let has_bias: bool = n.attr("bias_term", true)?;
    n.takes_blobs(if has_bias { 2 } else { 1 })?;
    let weights = signs(n, x, &windows, output)?;
    let op = Convolution {
        strides: windows.strides,
        pads_begin: windows.pads.clone(),
        pads_end: windows.pads,
        dilations: windows.dilations,
        auto_pad: PadType::Explicit,
    };
    let y = n.emit(op, &[x, weights])?;
    if !has_bias {
        return Ok(y.into());
    }
    let bias = n.blob(1, &[1, output, 1, 1])?;
    Ok(n.plus(y, bias)?.into())
}

fn signs(n: &mut NodeCx<'_>, x: Value, windows: &Windows, output: usize) -> Result<Value> {
    let channels = dim(n, x, 1).and_then(|c| usize::try_from(c).ok());
    let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
    let shape = [output, channels, windows.kernel[0] as usize, windows.kernel[1] as usize];
    let stored = n.blob(0, &shape)?;
    let values = n.tensor(stored).map(|t| t.to_vec::<f32>().map(|v| v.into_owned())).transpose()?;
    let mut values = values.ok_or_else(|| n.fail("the weights are no constant"))?;
    for filter in values.chunks_exact_mut((shape[1] * shape[2] * shape[3]).max(1)) {
        let size = (filter.iter().map(|v| f64::from(v.abs())).sum::<f64>() / filter.len() as f64) as f32;
        filter.iter_mut().for_each(|v| *v = if *v > 0.0 { size } else { -size });
    }
    n.floats(&shape, &values)
}
