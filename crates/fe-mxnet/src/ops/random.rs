//! Random tensors. The numbers are others than MXNet's, of the same distribution.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::{Cos, Log};
use carafe_ops::random::RandomUniform;
use carafe_ops::random::random_uniform::Alignment;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_random_normal", 0, |n| normal(n, false)),
    rule("_random_normal_like", 0, |n| normal(n, true)),
    rule("_random_uniform", 0, |n| uniform(n, false)),
    rule("_random_uniform_like", 0, |n| uniform(n, true)),
];

fn shape_and_type(n: &mut NodeCx<'_>, is_like: bool) -> Result<(Value, ElementType)> {
    if is_like {
        let x = n.input(0)?;
        let ty = if n.ty(x).is_float() { n.ty(x) } else { ElementType::F32 };
        return Ok((n.shape_of(x)?, ty));
    }
    let shape = n.opt_ints("shape")?.unwrap_or_else(|| vec![1]);
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    Ok((n.i64s(&shape)?, ty))
}

fn between(n: &mut NodeCx<'_>, shape: Value, ty: ElementType, low: f64, high: f64, seed: u64) -> Result<Value> {
    let (low, high) = (n.scalar(ty, low)?, n.scalar(ty, high)?);
    let op =
        RandomUniform { output_type: ty, op_seed: seed, global_seed: 0, alignment: Alignment::Tensorflow };
    n.emit(op, &[shape, low, high])
}

fn uniform(n: &mut NodeCx<'_>, is_like: bool) -> Result<Outputs> {
    let (low, high) = (n.float("low", 0.0)?, n.float("high", 1.0)?);
    let (shape, ty) = shape_and_type(n, is_like)?;
    Ok(between(n, shape, ty, low, high, 0)?.into())
}

// Two uniform numbers give a normal one.
fn normal(n: &mut NodeCx<'_>, is_like: bool) -> Result<Outputs> {
    let (mean, deviation) = (n.float("loc", 0.0)?, n.float("scale", 1.0)?);
    let (shape, ty) = shape_and_type(n, is_like)?;
    let radius = between(n, shape, ty, 1e-7, 1.0, 1)?;
    let angle = between(n, shape, ty, 0.0, 2.0 * std::f64::consts::PI, 2)?;
    let radius = n.emit(Log, &[radius])?;
    let radius = n.times_number(radius, -2.0)?;
    let radius = n.sqrt(radius)?;
    let part = n.emit(Cos, &[angle])?;
    let y = n.times(radius, part)?;
    let y = n.times_number(y, deviation)?;
    Ok(n.plus_number(y, mean)?.into())
}
