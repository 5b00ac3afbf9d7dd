//! ConvertPromoteTypes: both inputs in the type that holds both. Without `promote_unsafe` a promotion that could lose digits
//! is refused, and an integer counts as safe only in a float of more bits than it has.

use super::casting;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// Brings two tensors to one element type.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 14, inputs = "a, b", outputs = "a, b")]
pub struct ConvertPromoteTypes {
    /// Whether a promotion may lose digits.
    #[attr(default = false)]
    pub promote_unsafe: bool,
    /// Whether a scalar yields to the type of a tensor of the same kind (boolean, integer, float), as in PyTorch.
    #[attr(default = false)]
    pub pytorch_scalar_promotion: bool,
    /// What u64 and a signed integer become, for no integer holds both.
    #[attr(default = ElementType::F32)]
    pub u64_integer_promotion_target: ElementType,
}

impl Op for ConvertPromoteTypes {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for input in [0, 1] {
            let ty = cx.ty(input);
            let known = ty.is_dynamic() || kind(ty).is_some();
            cx.require(known, || format!("{} of type {ty} cannot be promoted", cx.port_name(input)))?;
        }
        let scalars = [0, 1].map(|i| cx.rank(i).map(|r| r == 0));
        let ty = self.common(cx.ty(0), cx.ty(1), scalars).map_err(|reason| cx.fail(reason))?;
        casting::infer(cx, 0, 0, ty)?;
        casting::infer(cx, 1, 1, ty)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        casting::eval(cx, 0, 0)?;
        casting::eval(cx, 1, 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Boolean,
    Integer,
    Float,
}

/// `None` for types that take no part in promotion.
fn kind(ty: ElementType) -> Option<Kind> {
    use ElementType::*;
    match ty {
        Boolean => Some(Kind::Boolean),
        U1 | U4 | U8 | U16 | U32 | U64 | I4 | I8 | I16 | I32 | I64 => Some(Kind::Integer),
        F8E4M3 | F8E5M2 | F16 | Bf16 | F32 | F64 => Some(Kind::Float),
        _ => None,
    }
}

impl ConvertPromoteTypes {
    /// The type of both outputs, or why there is none. `scalars` says which inputs are known to be scalars, or not.
    fn common(&self, a: ElementType, b: ElementType, scalars: [Option<bool>; 2]) -> Result<ElementType, String> {
        let (Some(ka), Some(kb)) = (kind(a), kind(b)) else { return Ok(ElementType::Dynamic) };
        if a == b {
            return Ok(a);
        }
        match (ka, kb) {
            (Kind::Boolean, _) => Ok(b),
            (_, Kind::Boolean) => Ok(a),
            (Kind::Integer, Kind::Float) => self.integer_to_float(a, b),
            (Kind::Float, Kind::Integer) => self.integer_to_float(b, a),
            _ if self.pytorch_scalar_promotion => match scalars {
                [Some(false), Some(true)] => self.scalar_into(b, a),
                [Some(true), Some(false)] => self.scalar_into(a, b),
                [Some(_), Some(_)] => self.same_kind(ka, a, b),
                // The ranks decide which type wins.
                _ => Ok(ElementType::Dynamic),
            },
            _ => self.same_kind(ka, a, b),
        }
    }

    fn integer_to_float(&self, integer: ElementType, float: ElementType) -> Result<ElementType, String> {
        if self.promote_unsafe || integer.bits() < float.bits() {
            Ok(float)
        } else {
            Err(format!("{integer} cannot be safely promoted to {float}"))
        }
    }

    fn scalar_into(&self, scalar: ElementType, tensor: ElementType) -> Result<ElementType, String> {
        let safe = scalar.bits() <= tensor.bits() && (tensor.is_signed() || !scalar.is_signed());
        if self.promote_unsafe || safe {
            Ok(tensor)
        } else {
            Err(format!("a scalar of type {scalar} cannot be safely promoted to {tensor}"))
        }
    }

    fn same_kind(&self, kind: Kind, a: ElementType, b: ElementType) -> Result<ElementType, String> {
        let (narrow, wide) = if a.bits() <= b.bits() { (a, b) } else { (b, a) };
        let unsafe_pair = || format!("{a} and {b} cannot be safely promoted to one type");
        if kind == Kind::Float {
            return match (narrow.bits() < wide.bits(), self.promote_unsafe) {
                (true, _) => Ok(wide),
                (false, true) if wide.bits() == 8 => Ok(ElementType::F16),
                (false, true) => Ok(ElementType::F32),
                (false, false) => Err(unsafe_pair()),
            };
        }
        if a.is_signed() == b.is_signed() || (narrow.bits() < wide.bits() && wide.is_signed()) {
            return Ok(wide);
        }
        if !self.promote_unsafe {
            return Err(unsafe_pair());
        }
        // The unsigned one is at least as wide: the next signed type above it holds both.
        Ok(match wide.bits() {
            64 => self.u64_integer_promotion_target,
            32 => ElementType::I64,
            16 => ElementType::I32,
            8 => ElementType::I16,
            _ => ElementType::I8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    fn common(promote_unsafe: bool, a: ElementType, b: ElementType) -> Option<ElementType> {
        let op = ConvertPromoteTypes {
            promote_unsafe,
            pytorch_scalar_promotion: false,
            u64_integer_promotion_target: F32,
        };
        let there = op.common(a, b, [Some(false); 2]).ok();
        assert_eq!(there, op.common(b, a, [Some(false); 2]).ok(), "{a} {b}");
        there
    }

    #[test]
    fn safe_promotions_keep_every_digit() {
        for (a, b, expected) in [
            (U8, I32, Some(I32)),
            (U8, I8, None),
            (I8, F16, Some(F16)),
            (I32, F32, None),
            (I32, F64, Some(F64)),
            (F16, Bf16, None),
            (F8E4M3, Bf16, Some(Bf16)),
            (Boolean, F8E5M2, Some(F8E5M2)),
            (U4, U8, Some(U8)),
            (U64, I64, None),
        ] {
            assert_eq!(common(false, a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn unsafe_promotions_always_find_a_type() {
        for (a, b, expected) in [
            (U8, I8, I16),
            (U8, I4, I16),
            (U4, I4, I8),
            (U16, I8, I32),
            (U32, I32, I64),
            (U64, I8, F32),
            (F16, Bf16, F32),
            (F8E4M3, F8E5M2, F16),
            (U64, F8E4M3, F8E4M3),
        ] {
            assert_eq!(common(true, a, b), Some(expected), "{a} {b}");
        }
    }
}
