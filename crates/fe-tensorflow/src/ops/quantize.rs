//! Quantization that is only played through in floats. The range is nudged so that 0 is one of its levels.

use super::common::shapes::scalar;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::quantize::FakeQuantize;

pub(crate) const RULES: &[StaticRule] = &[
    rule("FakeQuantWithMinMaxArgs", 0, |n| {
        let (min, max): (f64, f64) = (n.attr("min", -6.0)?, n.attr("max", 6.0)?);
        let x = n.input(0)?;
        let (min, max) = (n.scalar_like(x, min)?, n.scalar_like(x, max)?);
        fake_quantize(n, x, min, max)
    }),
    rule("FakeQuantWithMinMaxVars", 0, |n| {
        let (x, min, max) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (min, max) = (scalar(n, min)?, scalar(n, max)?);
        fake_quantize(n, x, min, max)
    }),
    // One range for each channel, which is the last axis.
    rule("FakeQuantWithMinMaxVarsPerChannel", 0, |n| {
        let (x, min, max) = (n.input(0)?, n.input(1)?, n.input(2)?);
        fake_quantize(n, x, min, max)
    }),
];

fn fake_quantize(n: &mut NodeCx<'_>, x: Value, min: Value, max: Value) -> Result<Outputs> {
    let bits: u32 = n.attr("num_bits", 8)?;
    let narrow: bool = n.attr("narrow_range", false)?;
    if !(2..=16).contains(&bits) {
        return Err(n.fail(format!("attribute `num_bits` must be from 2 to 16, found {bits}")));
    }
    let (least, most) = (f64::from(u8::from(narrow)), f64::from((1u32 << bits) - 1));
    let range = n.minus(max, min)?;
    let scale = n.over_number(range, most - least)?;
    let below = n.over(min, scale)?;
    let zero = n.sub_from(least, below)?;
    let (low, high) = (n.scalar_like(x, least)?, n.scalar_like(x, most)?);
    let zero = n.emit(Round { mode: RoundMode::HalfAwayFromZero }, &[zero])?;
    let zero = n.max(zero, low)?;
    let zero = n.min(zero, high)?;
    let (below, above) = (n.minus(low, zero)?, n.minus(high, zero)?);
    let (min, max) = (n.times(below, scale)?, n.times(above, scale)?);
    let op = FakeQuantize {
        levels: (most - least) as u64 + 1,
        auto_broadcast: Default::default(),
        auto_broadcast_axis: None,
    };
    Ok(n.emit(op, &[x, min, max, min, max])?.into())
}
