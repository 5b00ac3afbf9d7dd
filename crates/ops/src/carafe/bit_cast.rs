//! BitCast: the same bits read as another element type of the same width. Nothing is converted.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};

/// Reads the bits as another type.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", own_type)]
pub struct BitCast {
    /// The new element type.
    pub destination_type: ElementType,
}

impl Op for BitCast {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (from, to) = (cx.ty(0), self.destination_type);
        let plain = |ty: ElementType| !ty.is_dynamic() && ty != ElementType::String;
        let fits = plain(to) && (from.is_dynamic() || (plain(from) && from.bits() == to.bits()));
        cx.require(fits, || format!("bits of {from} cannot be read as {to}"))?;
        cx.set(0, to, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let x = cx.input(0);
        if x.element_type() == ElementType::String || x.element_type().bits() != self.destination_type.bits() {
            return Err(cx.fail(format!("bits of {} cannot be read as {}", x.element_type(), self.destination_type)));
        }
        let y = Tensor::from_bytes(self.destination_type, x.shape(), x.bytes())?;
        cx.set(0, y)
    }
}
