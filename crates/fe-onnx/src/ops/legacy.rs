//! Operations of before the standard that old exporters still wrote.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[rule("Affine", 1, affine), rule("ImageScaler", 1, image_scaler)];

fn affine(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (alpha, beta): (f64, f64) = (n.attr("alpha", 1.0)?, n.attr("beta", 0.0)?);
    let x = n.input(0)?;
    let (alpha, beta) = (n.scalar_like(x, alpha)?, n.scalar_like(x, beta)?);
    let y = n.emit(Multiply::default(), &[x, alpha])?;
    Ok(n.emit(Add::default(), &[y, beta])?.into())
}

// One factor for the whole image, then one offset for each channel.
fn image_scaler(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let scale: f64 = n.attr("scale", 1.0)?;
    let bias: Vec<f64> = n.attr("bias", vec![])?;
    let x = n.input(0)?;
    let scale = n.scalar_like(x, scale)?;
    let y = n.emit(Multiply::default(), &[x, scale])?;
    if bias.is_empty() {
        return Ok(y.into());
    }
    let bias = n.constant(Tensor::from_f64(ElementType::F32, &[1, bias.len(), 1, 1], &bias)?)?;
    let bias = n.convert_like(bias, x)?;
    Ok(n.emit(Add::default(), &[y, bias])?.into())
}
