//! Writes a FakeQuantize whose limits differ from channel to channel as the elementwise operations it is made of, which then
//! go along with whatever they stand behind; one range for all is an elementwise operation by itself. The order of operations
//! is that of the definition, and so are the roundings; only what lies above the range may differ in the last bit.

use super::draft::{Draft, Unit, Val};
use crate::backend::Fusing;
use crate::elementwise::{Binary, Elt};
use carafe_graph::{OpRef, Result};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::{Add, AutoBroadcast, Divide, Maximum, Minimum, Multiply, Subtract};
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};
use std::sync::Arc;

/// A constant operand: one number, or numbers of a shape that aligns with the last axes of the data.
#[derive(Clone, Debug)]
struct Limit {
    shape: Vec<usize>,
    values: Vec<f32>,
}

pub(super) fn spell_out(draft: &mut Draft, fusing: &dyn Fusing) -> Result<()> {
    if !fusing.fuses(&Elt::Binary(Binary::Multiply), ElementType::F32) {
        return Ok(());
    }
    let mut units = vec![];
    for unit in std::mem::take(&mut draft.units) {
        match limits(draft, &unit, fusing) {
            Some((limits, steps)) => spell(draft, &unit, &limits, steps, &mut units)?,
            None => units.push(unit),
        }
    }
    draft.units = units;
    Ok(())
}

// The four limits and how many steps lie between, if all is as the elementwise operations can do it.
fn limits(draft: &Draft, unit: &Unit, fusing: &dyn Fusing) -> Option<([Limit; 4], f32)> {
    let op = unit.op.get::<FakeQuantize>()?;
    if draft.elementwise(unit, fusing).is_some() {
        return None;
    }
    let data = &draft.values[unit.inputs[0]];
    let shape = data.shape.as_ref()?;
    let limit = |i: usize| -> Option<Limit> {
        let value = &draft.values[unit.inputs[i]];
        let t = value.constant.as_ref().filter(|_| value.ty == ElementType::F32)?;
        let own = t.shape();
        let aligned = own.len() <= shape.len()
            && own.iter().zip(&shape[shape.len() - own.len()..]).all(|(n, size)| *n == 1 || n == size);
        let plain = op.auto_broadcast == AutoBroadcast::Numpy || own.iter().all(|&n| n == 1);
        (aligned && plain).then_some(Limit { shape: own.to_vec(), values: t.to_vec::<f32>().ok()?.into_owned() })
    };
    let limits = [limit(1)?, limit(2)?, limit(3)?, limit(4)?];
    let meet = |a: &Limit, b: &Limit| a.shape == b.shape || a.values.len() == 1 || b.values.len() == 1;
    let paired = meet(&limits[0], &limits[1]) && meet(&limits[2], &limits[3]);
    let rising = paired && limits[1].with(&limits[0], |high, low| high - low).values.iter().all(|d| *d > 0.0);
    let known = data.ty == ElementType::F32 && !shape.contains(&0) && op.levels < 1 << 24;
    (rising && known).then_some((limits, (op.levels - 1) as f32))
}

impl Limit {
    fn with(&self, other: &Limit, f: impl Fn(f32, f32) -> f32) -> Limit {
        let shape = if self.values.len() >= other.values.len() { &self.shape } else { &other.shape };
        let n = self.values.len().max(other.values.len());
        let at = |l: &Limit, i: usize| l.values[if l.values.len() == 1 { 0 } else { i }];
        Limit { shape: shape.clone(), values: (0..n).map(|i| f(at(self, i), at(other, i))).collect() }
    }
    fn number(&self) -> Option<f32> {
        let first = *self.values.first()?;
        self.values.iter().all(|v| v.to_bits() == first.to_bits()).then_some(first)
    }
}

fn spell(draft: &mut Draft, unit: &Unit, limits: &[Limit; 4], steps: f32, units: &mut Vec<Unit>) -> Result<()> {
    let [low, high, out_low, out_high] = limits;
    let steps = Limit { shape: vec![], values: vec![steps] };
    let mut chain: Vec<(OpRef, Option<Limit>)> = vec![];
    match (low.number(), high.number()) {
        (Some(min), Some(max)) => chain.push((Arc::new(Clamp { min: min.into(), max: max.into() }), None)),
        _ => {
            chain.push((Arc::new(Maximum::default()), Some(low.clone())));
            chain.push((Arc::new(Minimum::default()), Some(high.clone())));
        }
    }
    if low.number() != Some(0.0) {
        chain.push((Arc::new(Subtract::default()), Some(low.clone())));
    }
    chain.push((Arc::new(Divide::default()), Some(high.with(low, |h, l| h - l))));
    chain.push((Arc::new(Multiply::default()), Some(steps.clone())));
    chain.push((Arc::new(Round { mode: RoundMode::HalfToEven }), None));
    chain.push((Arc::new(Divide::default()), Some(steps)));
    chain.push((Arc::new(Multiply::default()), Some(out_high.with(out_low, |h, l| h - l))));
    if out_low.number() != Some(0.0) {
        chain.push((Arc::new(Add::default()), Some(out_low.clone())));
    }
    let mut value = unit.inputs[0];
    let last = chain.len() - 1;
    for (k, (op, operand)) in chain.into_iter().enumerate() {
        let mut inputs = vec![value];
        if let Some(limit) = operand {
            inputs.push(draft.values.len());
            let constant = Some(Tensor::from_slice(&limit.shape, &limit.values)?);
            draft.values.push(Val {
                ty: ElementType::F32,
                shape: Some(limit.shape),
                constant,
                input: None,
                grid: None,
                integers: None,
                compressed: None,
                preferred: None,
                is_fine: false,
            });
        }
        value = unit.outputs[0];
        if k < last {
            value = draft.values.len();
            let like = &draft.values[unit.outputs[0]];
            draft.values.push(Val { constant: None, input: None, ..like.clone() });
        }
        let own_inputs = inputs.len();
        let name = if k == last { unit.name.clone() } else { format!("{}/{}", unit.name, op.type_name()) };
        units.push(Unit { name, op, inputs, own_inputs, outputs: vec![value], ..unit.clone() });
    }
    Ok(())
}
