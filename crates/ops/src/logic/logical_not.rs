//! LogicalNot: true where the input is false. Numbers are taken too, and keep their type: 1 where the input is 0, else 0.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Number};

/// The opposite.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct LogicalNot;

impl Op for LogicalNot {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        cx.require(ty != ElementType::String, || format!("{} must be boolean or numeric, found {ty}", cx.port_name(0)))?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => {
            let y: Vec<u8> = cx.get::<T>(0)?.iter().map(|&x| u8::from(x == T::zero())).collect();
            let shape = cx.shape(0).to_vec();
            cx.put(0, &shape, y)
        })
    }
}
