//! Random numbers. With a seed, uniform numbers are those of TensorFlow; others are only of the same distribution.

use super::common::shapes::{i64_vector, scalar};
use super::types::element_type;
use carafe_frontend::{Compose, NodeCx, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::{Cos, ErfInv, Log};
use carafe_ops::random::random_uniform::Alignment;
use carafe_ops::random::{Multinomial, RandomUniform};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Multinomial", 0, |n| {
        let ty = element_type(n, "output_dtype", ElementType::I64)?;
        let seeds = Seeds::read(n)?;
        let (logits, count) = (n.input(0)?, n.input(1)?);
        let count = n.convert(count, ElementType::I64)?;
        let count = scalar(n, count)?;
        let op = Multinomial {
            convert_type: ty,
            with_replacement: true,
            log_probs: true,
            global_seed: seeds.global,
            op_seed: seeds.own,
        };
        Ok(n.emit(op, &[logits, count])?.into())
    }),
    rule("RandomStandardNormal", 0, |n| {
        let ty = element_type(n, "dtype", ElementType::F32)?;
        let shape = n.input(0)?;
        Ok(normal(n, shape, ty)?.into())
    }),
    rule("RandomUniform", 0, |n| {
        let ty = element_type(n, "dtype", ElementType::F32)?;
        let (shape, seeds) = (n.input(0)?, Seeds::read(n)?);
        let (low, high) = (n.scalar(ty, 0.0)?, n.scalar(ty, 1.0)?);
        Ok(uniform(n, shape, low, high, ty, seeds)?.into())
    }),
    rule("RandomUniformInt", 0, |n| {
        let (shape, low, high) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (ty, seeds) = (n.ty(low), Seeds::read(n)?);
        let (low, high) = (scalar(n, low)?, scalar(n, high)?);
        Ok(uniform(n, shape, low, high, ty, seeds)?.into())
    }),
    // The quantile of a uniform number; the bounds are those of two standard deviations.
    rule("TruncatedNormal", 0, |n| {
        let ty = element_type(n, "dtype", ElementType::F32)?;
        let (shape, seeds) = (n.input(0)?, Seeds::read(n)?);
        let (low, high) = (n.scalar(ty, -0.954_499_736_103_641_6)?, n.scalar(ty, 0.954_499_736_103_641_6)?);
        let u = uniform(n, shape, low, high, ty, seeds)?;
        let y = n.emit(ErfInv, &[u])?;
        Ok(n.times_number(y, std::f64::consts::SQRT_2)?.into())
    }),
];

#[derive(Clone, Copy)]
struct Seeds {
    global: u64,
    own: u64,
}

impl Seeds {
    // Seeds are any number, so they may be text.
    fn read(n: &NodeCx<'_>) -> Result<Seeds> {
        let seed = |name: &str| n.attr::<i64>(name, 0).map(|s| s as u64);
        Ok(Seeds { global: seed("seed")?, own: seed("seed2")? })
    }
}

fn uniform(
    n: &mut NodeCx<'_>,
    shape: Value,
    low: Value,
    high: Value,
    output_type: ElementType,
    seeds: Seeds,
) -> Result<Value> {
    let shape = i64_vector(n, shape)?;
    let op = RandomUniform {
        output_type,
        op_seed: seeds.own,
        global_seed: seeds.global,
        alignment: Alignment::Tensorflow,
    };
    n.emit(op, &[shape, low, high])
}

// By the angle and the distance of a point.
fn normal(n: &mut NodeCx<'_>, shape: Value, ty: ElementType) -> Result<Value> {
    let seeds = Seeds::read(n)?;
    let other = Seeds { own: seeds.own.wrapping_add(1), ..seeds };
    let (zero, one) = (n.scalar(ty, 1e-7)?, n.scalar(ty, 1.0)?);
    let distance = uniform(n, shape, zero, one, ty, seeds)?;
    let other = if seeds.global == 0 && seeds.own == 0 { seeds } else { other };
    let angle = uniform(n, shape, zero, one, ty, other)?;
    let log = n.emit(Log, &[distance])?;
    let log = n.times_number(log, -2.0)?;
    let distance = n.sqrt(log)?;
    let angle = n.times_number(angle, std::f64::consts::TAU)?;
    let cos = n.emit(Cos, &[angle])?;
    n.times(distance, cos)
}
