//! Random numbers. They are drawn from the right distribution; the numbers themselves are those of our generator.

use carafe_fe_tensorflow::ops::common::shapes::{i64_vector, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::{Cos, Log};
use carafe_ops::random::random_uniform::Alignment;
use carafe_ops::random::{Multinomial, RandomUniform};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("MULTINOMIAL", 1, multinomial),
    rule("RANDOM_STANDARD_NORMAL", 1, normal),
    rule("RANDOM_UNIFORM", 1, |n| {
        let seeds = seeds(n)?;
        Ok(uniform(n, 0.0, seeds)?.into())
    }),
];

fn seeds(n: &NodeCx<'_>) -> Result<[u64; 2]> {
    Ok([n.attr::<i64>("seed", 0)? as u64, n.attr::<i64>("seed2", 0)? as u64])
}

fn uniform(n: &mut NodeCx<'_>, low: f64, [global_seed, op_seed]: [u64; 2]) -> Result<Value> {
    let shape = n.input(0)?;
    let shape = i64_vector(n, shape)?;
    let (low, high) = (n.scalar(ElementType::F32, low)?, n.scalar(ElementType::F32, 1.0)?);
    let op = RandomUniform { output_type: ElementType::F32, op_seed, global_seed, alignment: Alignment::Tensorflow };
    n.emit(op, &[shape, low, high])
}

// The method of Box and Muller.
fn normal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let seeds = seeds(n)?;
    let radius = uniform(n, f64::from(f32::MIN_POSITIVE), seeds)?;
    let turn = uniform(n, 0.0, [seeds[0], seeds[1].wrapping_add(1)])?;
    let radius = n.emit(Log, &[radius])?;
    let radius = n.times_number(radius, -2.0)?;
    let radius = n.sqrt(radius)?;
    let angle = n.times_number(turn, std::f64::consts::TAU)?;
    let angle = n.emit(Cos, &[angle])?;
    Ok(n.times(radius, angle)?.into())
}

fn multinomial(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (logits, samples) = (n.input(0)?, n.input(1)?);
    let [global_seed, op_seed] = seeds(n)?;
    let samples = n.convert(samples, ElementType::I64)?;
    let samples = scalar(n, samples)?;
    let op = Multinomial {
        convert_type: ElementType::I64,
        with_replacement: true,
        log_probs: true,
        global_seed,
        op_seed,
    };
    Ok(n.emit(op, &[logits, samples])?.into())
}
