//! Assign: stores a value in a variable and hands it on. The inference that stores it does not read it yet.

use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Stores a tensor in a variable.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "new_value", outputs = "value", stateful, sink)]
pub struct Assign {
    /// Name of the variable.
    pub variable_id: String,
}

impl Op for Assign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, &self.variable_id)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, &self.variable_id)
    }
}

/// Stores a tensor in a variable whose type and shape come from the reader's initial value.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Assign", since = 3, until = 5, inputs = "new_value", outputs = "value", stateful, sink)]
pub struct AssignV3 {
    /// Name of the variable.
    pub variable_id: String,
}

impl Op for AssignV3 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, &self.variable_id)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, &self.variable_id)
    }
}

fn infer(cx: &mut InferCx<'_>, variable_id: &str) -> Result<()> {
    cx.require(!variable_id.is_empty(), || "attribute `variable_id` must not be empty".to_string())?;
    cx.output_like(0, 0);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, variable_id: &str) -> Result<()> {
    let value = cx.input(0).clone();
    cx.assign(variable_id, value.clone());
    cx.set(0, value)
}
