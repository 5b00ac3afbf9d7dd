//! Constants and variables.

use super::types::is_complex;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, TensorAttr};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    // The value that is written; see `writes.rs`.
    rule("Assign", 0, written),
    rule("AssignAdd", 0, |n| added(n, true)),
    rule("AssignAddVariableOp", 0, |n| added(n, true)),
    rule("AssignSub", 0, |n| added(n, false)),
    rule("AssignSubVariableOp", 0, |n| added(n, false)),
    rule("AssignVariableOp", 0, written),
    rule("Const", 0, constant),
    rule("IsVariableInitialized", 0, is_initialized),
    rule("VarIsInitializedOp", 0, is_initialized),
    rule("VarHandleOp", 0, variable),
    rule("Variable", 0, variable),
    rule("VariableV2", 0, variable),
];

fn constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "dtype");
    let tensor: TensorAttr = n.required("value")?;
    Ok(n.constant(tensor.0)?.into())
}

// A model that runs has its variables.
fn is_initialized(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dtype"]);
    Ok(n.scalar(ElementType::Boolean, 1.0)?.into())
}

fn written(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    is_complex(n, "dtype");
    Ok(n.input(0)?.into())
}

fn added(n: &mut NodeCx<'_>, plus: bool) -> Result<Outputs> {
    is_complex(n, "T");
    is_complex(n, "dtype");
    let (old, by) = (n.input(0)?, n.input(1)?);
    Ok(if plus { n.plus(old, by)? } else { n.minus(old, by)? }.into())
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
