//! Products of matrices.

use super::fused::activated;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::linear::MatMul;

pub(crate) const RULES: &[StaticRule] =
    &[rule("BATCH_MATMUL", 1, batch_matmul), rule("FULLY_CONNECTED", 1, fully_connected)];

fn batch_matmul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["asymmetric_quantize_inputs"]);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (transpose_a, transpose_b) = (n.attr("adj_x", false)?, n.attr("adj_y", false)?);
    Ok(n.emit(MatMul { transpose_a, transpose_b }, &[a, b])?.into())
}

// Weights [O, I]; the data becomes rows of I unless its axes shall stay.
fn fully_connected(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["asymmetric_quantize_inputs", "quantized_bias_type", "quant_spec"]);
    let format: String = n.attr("weights_format", "DEFAULT".to_string())?;
    if format != "DEFAULT" {
        return Err(n.unsupported(format!("weights in the format {format} are not supported")));
    }
    let (mut x, weights, bias) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let keep: bool = n.attr("keep_num_dims", false)?;
    if !keep && n.rank(x) != Some(2) {
        let width = n.shape(weights).dim(1).get();
        let width = width.ok_or_else(|| n.unsupported("the shape of the weights must be known"))?;
        x = n.reshape(x, &[-1, width])?;
    }
    let mut y = n.product(x, weights, true)?;
    if let Some(bias) = bias {
        y = n.plus(y, bias)?;
    }
    Ok(activated(n, y)?.into())
}
