//! `x: A -> Convert(B) -> Convert(C)` becomes `x -> Convert(C)`, or `x` alone when C is A. Only where B holds every value
//! of A, so that nothing was lost on the way; Converts that widen stored weights stay.

use crate::shared::forward;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::convert::Convert;
use carafe_tensor::ElementType;

/// Two Converts in a row become one, where nothing was lost between them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::math::Tanh;

    fn pair(from: ElementType, middle: ElementType, last: ElementType) -> (Draft, usize, Vec<String>) {
        let mut d = Draft::new();
        let x = d.input_of("x", from, &[-1]);
        let a = d.add("a", Convert { destination_type: middle }, &[x]);
        let b = d.add("b", Convert { destination_type: last }, &[a]);
        d.result(b);
        let (fired, why) = d.run(&MergeConvertPairs);
        (d, fired, why)
    }

    #[test]
    fn widening_on_the_way_is_left_out() {
        use ElementType as E;
        let lossless =
            [(E::I32, E::I64, E::F32), (E::F16, E::F32, E::I32), (E::Boolean, E::F32, E::F16), (E::U8, E::I16, E::I8)];
        for (a, b, c) in lossless {
            let (d, fired, _) = pair(a, b, c);
            assert_eq!((fired, d.count("Convert")), (1, 1), "{a} {b} {c}");
        }
    }

    #[test]
    fn a_narrow_type_between_stays() {
        use ElementType as E;
        let lossy =
            [(E::F32, E::F16, E::F32), (E::I64, E::F32, E::I64), (E::F32, E::I64, E::F32), (E::I8, E::U8, E::I32)];
        for (a, b, c) in lossy {
            let (_, fired, why) = pair(a, b, c);
            assert_eq!(fired, 0);
            assert!(why[0].contains("does not hold every"), "{why:?}");
        }
        let (_, fired, why) = pair(E::I8, E::F32, E::U8);
        assert!(fired == 0 && why[0].contains("does not wrap"), "{why:?}");
    }

    #[test]
    fn there_and_back_is_nothing() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let x = d.add("tanh", Tanh, &[x]);
        let a = d.add("a", Convert { destination_type: ElementType::F64 }, &[x]);
        let b = d.add("b", Convert { destination_type: ElementType::F32 }, &[a]);
        let r = d.result(b);
        assert_eq!(d.run(&MergeConvertPairs).0, 1);
        assert_eq!((d.count("Convert"), d.model.result_name(r).as_str()), (0, "b"));
    }
}
