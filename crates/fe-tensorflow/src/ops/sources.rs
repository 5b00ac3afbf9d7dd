//! Operations without inputs: constants and variables.

use super::types::is_complex;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, TensorAttr};

pub(super) const RULES: &[StaticRule] = &[
    rule("Const", 0, constant),
    rule("VarHandleOp", 0, variable),
    rule("Variable", 0, variable),
    rule("VariableV2", 0, variable),
];

fn constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "dtype");
    let tensor: TensorAttr = n.required("value")?;
    Ok(n.constant(tensor.0)?.into())
}

// Its value lies with the node where it is known.
fn variable(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "dtype");
    match n.opt(0)? {
        Some(value) => Ok(value.into()),
        None => Err(n.unsupported(
            "the variable has no value: the graph is not frozen and comes without a checkpoint; pass one with \
             `--input_checkpoint`, or cut the variable off with `--input`",
        )),
    }
}
