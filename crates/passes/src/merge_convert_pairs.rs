//! `x: A -> Convert(B) -> Convert(C)` becomes `x -> Convert(C)`, or `x` alone when C is A. Only where B holds every value
//! of A, so that nothing was lost on the way; Converts that widen stored weights stay.

use crate::shared::forward;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::convert::Convert;
use carafe_tensor::ElementType;

#[derive(Clone, Copy, Debug)]
pub struct MergeConvertPairs;

impl Rewrite for MergeConvertPairs {
    fn name(&self) -> &'static str {
        "merge_convert_pairs"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(last) = model.op_at::<Convert>(root).map(|c| c.destination_type) else { return Ok(Outcome::NoMatch) };
        let middle = model.node(root).inputs()[0];
        let Some((inner, _)) = model.producer::<Convert>(middle) else { return Ok(Outcome::NoMatch) };
        let x = model.node(inner).inputs()[0];
        if [inner, root].iter().any(|id| model.node(*id).rt_info.has("decompression")) {
            return Ok(Outcome::skip("it widens stored weights"));
        }
        let (a, b) = (model.fact(x).ty, model.fact(middle).ty);
        if !holds(b, a) {
            return Ok(Outcome::skip(format!("{b} does not hold every {a}")));
        }
        if last == a {
            return Ok(forward(model, root.into(), x));
        }
        // A negative integer that became a float is cut off by an unsigned type instead of wrapping.
        if a.is_integer() && b.is_float() && !last.is_float() {
            return Ok(Outcome::skip(format!("{a} to {last} through {b} does not wrap around")));
        }
        model.set_input(root, 0, x);
        Ok(Outcome::Done)
    }
}

// Whether every value of `small` is a value of `wide`.
fn holds(wide: ElementType, small: ElementType) -> bool {
    match (digits(wide), digits(small)) {
        (Some(w), Some(s)) => {
            let fractions = wide.is_float() || !small.is_float();
            wide == small || (fractions && w.bits >= s.bits && w.range >= s.range && (w.signed || !s.signed))
        }
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct Digits {
    // Length of the integers that are exact, sign left out.
    bits: u32,
    // Exponent of the largest value; for integers as long as they are.
    range: u32,
    signed: bool,
}

fn digits(ty: ElementType) -> Option<Digits> {
    use ElementType as E;
    let float = |bits, range| Some(Digits { bits, range, signed: true });
    let int = |bits, signed| Some(Digits { bits, range: bits, signed });
    match ty {
        E::F64 => float(53, 1024),
        E::F32 => float(24, 128),
        E::Bf16 => float(8, 128),
        E::F16 => float(11, 16),
        E::Boolean => int(1, false),
        E::I8 => int(7, true),
        E::I16 => int(15, true),
        E::I32 => int(31, true),
        E::I64 => int(63, true),
        E::U8 => int(8, false),
        E::U16 => int(16, false),
        E::U32 => int(32, false),
        E::U64 => int(64, false),
        _ => None,
    }
}
