//! Random numbers. A seed, where one is given, makes a node give the same numbers in every run; they are not the numbers
//! of another implementation.

use super::casts::type_attr;
use super::shapes::scalar;
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
use carafe_ops::compare::{GreaterEqual, Less};
use carafe_ops::logic::{LogicalNot, LogicalOr};
use carafe_ops::math::{Cos, Log, Sqrt};
use carafe_ops::movement::{Broadcast, Identity, broadcast::BroadcastMode};
use carafe_ops::random::{Multinomial, RandomUniform, random_uniform::Alignment};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Bernoulli", 15, bernoulli),
    rule("Dropout", 1, |n| dropout_of_inference(n, MaskType::Data)),
    rule("Dropout", 10, |n| dropout_of_inference(n, MaskType::Boolean)),
    rule("Dropout", 12, dropout),
    rule("Multinomial", 7, multinomial),
    rule("RandomNormal", 1, |n| from_attribute(n, normal)),
    rule("RandomNormalLike", 1, |n| like_input(n, normal)),
    rule("RandomUniform", 1, |n| from_attribute(n, uniform)),
    rule("RandomUniformLike", 1, |n| like_input(n, uniform)),
];

/// Two seeds of 0 ask for other numbers in every run, so a given seed never becomes that.
fn seed(n: &NodeCx<'_>) -> Result<u64> {
    Ok(n.opt_attr::<f32>("seed")?.map_or(0, |s| u64::from(s.to_bits()) + 1))
}

/// Numbers in `[low, high)`; `salt` tells several streams of one node apart.
fn stream(n: &mut NodeCx<'_>, shape: Value, ty: ElementType, low: f64, high: f64, salt: u64) -> Result<Value> {
    let op_seed = match seed(n)? {
        0 => 0,
        s => s.wrapping_add(salt << 33),
    };
    let (low, high) = (n.scalar(ty, low)?, n.scalar(ty, high)?);
    let op = RandomUniform { output_type: ty, op_seed, global_seed: 0, alignment: Alignment::Tensorflow };
    n.emit(op, &[shape, low, high])
}

type Fill = fn(&mut NodeCx<'_>, Value, ElementType) -> Result<Value>;

fn from_attribute(n: &mut NodeCx<'_>, fill: Fill) -> Result<Outputs> {
    let ty = type_attr(n, "dtype")?.unwrap_or(ElementType::F32);
    let shape: Vec<i64> = n.required("shape")?;
    let shape = n.i64s(&shape)?;
    Ok(fill(n, shape, ty)?.into())
}

fn like_input(n: &mut NodeCx<'_>, fill: Fill) -> Result<Outputs> {
    let ty = type_attr(n, "dtype")?;
    let x = n.input(0)?;
    let ty = match ty.unwrap_or(n.ty(x)) {
        ElementType::Dynamic => ElementType::F32,
        ty => ty,
    };
    let shape = n.shape_of(x)?;
    Ok(fill(n, shape, ty)?.into())
}

fn uniform(n: &mut NodeCx<'_>, shape: Value, ty: ElementType) -> Result<Value> {
    let (low, high): (f64, f64) = (n.attr("low", 0.0)?, n.attr("high", 1.0)?);
    stream(n, shape, ty, low, high, 0)
}

// Box and Muller: sqrt(-2 ln u) * cos(2 pi v), with u above 0.
fn normal(n: &mut NodeCx<'_>, shape: Value, ty: ElementType) -> Result<Value> {
    let (mean, scale): (f64, f64) = (n.attr("mean", 0.0)?, n.attr("scale", 1.0)?);
    let wide = if ty == ElementType::F64 { ty } else { ElementType::F32 };
    let u = stream(n, shape, wide, 0.0, 1.0, 0)?;
    let v = stream(n, shape, wide, 0.0, std::f64::consts::TAU, 1)?;
    let (one, minus_two) = (n.scalar(wide, 1.0)?, n.scalar(wide, -2.0)?);
    let (mean, scale) = (n.scalar(wide, mean)?, n.scalar(wide, scale)?);
    let u = n.emit(Subtract::default(), &[one, u])?;
    let u = n.emit(Log, &[u])?;
    let u = n.emit(Multiply::default(), &[u, minus_two])?;
    let radius = n.emit(Sqrt, &[u])?;
    let turn = n.emit(Cos, &[v])?;
    let y = n.emit(Multiply::default(), &[radius, turn])?;
    let y = n.emit(Multiply::default(), &[y, scale])?;
    let y = n.emit(Add::default(), &[y, mean])?;
    n.convert(y, ty)
}

fn bernoulli(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = type_attr(n, "dtype")?;
    let x = n.input(0)?;
    let shape = n.shape_of(x)?;
    let wide = if n.ty(x) == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
    let drawn = stream(n, shape, wide, 0.0, 1.0, 0)?;
    let p = n.convert(x, wide)?;
    let hit = n.emit(Less::default(), &[drawn, p])?;
    Ok(match ty {
        Some(ty) => n.convert(hit, ty)?,
        None => n.convert_like(hit, x)?,
    }
    .into())
}

fn multinomial(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let convert_type = type_attr(n, "dtype")?.unwrap_or(ElementType::I32);
    let samples: i64 = n.attr("sample_size", 1)?;
    let op_seed = seed(n)?;
    let x = n.input(0)?;
    let samples = n.i64(samples)?;
    let op = Multinomial { convert_type, with_replacement: true, log_probs: true, global_seed: 0, op_seed };
    Ok(n.emit(op, &[x, samples])?.into())
}

enum MaskType {
    Data,
    Boolean,
}

// Before version 12 a model that is run only passes its data on.
fn dropout_of_inference(n: &mut NodeCx<'_>, mask: MaskType) -> Result<Outputs> {
    n.ignore(&["ratio", "is_test", "consumed_inputs"]);
    let x = n.input(0)?;
    let ty = match mask {
        MaskType::Data => n.ty(x),
        MaskType::Boolean => ElementType::Boolean,
    };
    passed(n, x, ty)
}

fn passed(n: &mut NodeCx<'_>, x: Value, mask: ElementType) -> Result<Outputs> {
    let y = n.emit(Identity, &[x])?;
    if !n.wants_output(1) {
        return Ok(y.into());
    }
    let (one, shape) = (n.scalar(mask, 1.0)?, n.shape_of(x)?);
    let kept = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[one, shape])?;
    Ok(vec![y, kept].into())
}

fn dropout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["seed"]);
    let (x, ratio, training) = (n.input(0)?, n.opt(1)?, n.opt(2)?);
    let Some(training) = training else { return passed(n, x, ElementType::Boolean) };
    let is = |t: &Tensor, number: f64| t.to_vec::<f64>().is_ok_and(|v| v.first() == Some(&number));
    let never = n.tensor(training).is_some_and(|t| is(t, 0.0));
    let nothing = ratio.and_then(|r| n.tensor(r)).is_some_and(|t| is(t, 0.0));
    if never || nothing {
        return passed(n, x, ElementType::Boolean);
    }
    let always = n.tensor(training).is_some();
    let ratio = match ratio {
        Some(r) => {
            let r = scalar(n, r)?;
            n.convert(r, ElementType::F32)?
        }
        None => n.scalar(ElementType::F32, 0.5)?,
    };
    let shape = n.shape_of(x)?;
    let drawn = stream(n, shape, ElementType::F32, 0.0, 1.0, 0)?;
    let mut kept = n.emit(GreaterEqual::default(), &[drawn, ratio])?;
    let one = n.scalar(ElementType::F32, 1.0)?;
    let mut share = n.emit(Subtract::default(), &[one, ratio])?;
    if !always {
        // Outside of training everything stays, as it is.
        let training = scalar(n, training)?;
        let idle = n.emit(LogicalNot, &[training])?;
        kept = n.emit(LogicalOr::default(), &[kept, idle])?;
        let idle = n.convert(idle, ElementType::F32)?;
        let raised = n.emit(Multiply::default(), &[ratio, idle])?;
        share = n.emit(Add::default(), &[share, raised])?;
    }
    let (factor, share) = (n.convert_like(kept, x)?, n.convert_like(share, x)?);
    let y = n.emit(Multiply::default(), &[x, factor])?;
    let y = n.emit(Divide::default(), &[y, share])?;
    Ok(Outputs(vec![Item::Tensor(y), Item::Tensor(kept)]))
}
