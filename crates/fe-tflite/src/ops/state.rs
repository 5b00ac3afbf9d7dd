//! Variables, which live from one inference to the next.

use crate::graph::STATE;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::state::{Assign, ReadValue};
use carafe_tensor::{ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("ASSIGN_VARIABLE", 1, assign_variable),
    rule("READ_VARIABLE", 1, read_variable),
    rule_in(STATE, "Variable", 1, variable),
];

// Without a name of a variable it is what was assigned before.
fn read_variable(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (ty, shape): (ElementType, PartialShape) = (n.required("output_type")?, n.required("output_shape")?);
    let initial = n.opt(0)?;
    let Some(id) = n.opt_attr::<String>("variable_id")? else {
        return Ok(initial.ok_or_else(|| n.fail("nothing was assigned"))?.into());
    };
    let inputs = match initial {
        Some(initial) => vec![initial],
        None => vec![zeros(n, ty, &shape)?],
    };
    let op = ReadValue { variable_id: id, variable_type: ty, variable_shape: shape };
    Ok(n.emit(op, &inputs)?.into())
}

fn assign_variable(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let value = n.input(0)?;
    let id: String = n.required("variable_id")?;
    if n.attr("is_last", true)? {
        assign(n, id, value)?;
    }
    Ok(Outputs::default())
}

fn variable(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (ty, shape): (ElementType, PartialShape) = (n.required("type")?, n.required("shape")?);
    let initial = zeros(n, ty, &shape)?;
    let op = ReadValue { variable_id: n.required("variable_id")?, variable_type: ty, variable_shape: shape };
    Ok(n.emit(op, &[initial])?.into())
}

fn zeros(n: &mut NodeCx<'_>, ty: ElementType, shape: &PartialShape) -> Result<Value> {
    let shape = shape.to_static().ok_or_else(|| n.unsupported(format!("a variable of shape [{shape}] has no first value")))?;
    n.constant(Tensor::zeros(ty, &shape)?)
}

/// Stores a value for the next inference.
pub(super) fn assign(n: &mut NodeCx<'_>, variable_id: String, value: Value) -> Result<()> {
    n.emit(Assign { variable_id }, &[value]).map(|_| ())
}
