//! What is kept from step to step: rows of earlier steps, and the number of the step.

use super::cx::size;
use crate::graph::DESCRIPTOR;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::state::{Assign, ReadValue};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(DESCRIPTOR, "NextStep", 1, next_step),
    rule_in(DESCRIPTOR, "Recall", 1, recall),
    rule_in(DESCRIPTOR, "Remember", 1, remember),
    rule_in(DESCRIPTOR, "Step", 1, step),
];

// The memory, oldest row first, and parts of it, from and to so many steps ago. Before the first step all are zeros.
fn recall(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let like = n.input(0)?;
    let (dim, steps): (i64, Vec<i64>) = (n.required("dim")?, n.required("steps")?);
    let frames = steps.iter().copied().max().unwrap_or(0);
    let parts: Vec<(i64, i64)> = steps.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let memory = match n.opt_attr::<String>("variable_id")? {
        None => like,
        Some(variable_id) => {
            let streams = n.shape(like).dims().and_then(|d| d.first().cloned()).unwrap_or_else(|| Dim::range(0, None));
            let (zero, count, width) = (n.scalar(ElementType::F32, 0.0)?, n.size(like, 0)?, n.i64s(&[frames * dim])?);
            let shape = n.concat(&[count, width], 0)?;
            let zeros = n.stretch(zero, shape)?;
            let variable_shape = PartialShape::new([streams, Dim::known(frames * dim)]);
            n.emit(ReadValue { variable_id, variable_type: ElementType::F32, variable_shape }, &[zeros])?
        }
    };
    let mut all = vec![memory];
    for (from, to) in parts {
        let (first, end) = ((frames - from) * dim, (frames - to + 1) * dim);
        all.push(if end - first == frames * dim { memory } else { n.part(memory, first, end, 1)? });
    }
    Ok(all.into())
}

// The newest row comes in at the end, the oldest goes. They are cut out of both, as `mo` does it: the CPU device of OpenVINO takes
// a concatenation that is assigned, or an input, for memory of the variable's own and overwrites it before it is read.
fn remember(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (memory, newest, dim) = (n.input(0)?, n.input(1)?, size(n, "dim")?);
    let whole = super::cx::columns(n, memory)?;
    let all = n.concat(&[memory, newest], 1)?;
    let next = n.part(all, dim, whole + dim, 1)?;
    assign(n, next)
}

fn assign(n: &mut NodeCx<'_>, next: Value) -> Result<Outputs> {
    match n.opt_attr::<String>("variable_id")? {
        None => Ok(next.into()),
        Some(variable_id) => {
            n.emit(Assign { variable_id }, &[next])?;
            Ok(Outputs::default())
        }
    }
}

fn step(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let Some(variable_id) = n.opt_attr::<String>("variable_id")? else { return Ok(n.input(0)?.into()) };
    let zero = n.constant(Tensor::from_slice(&[1], &[0i32])?)?;
    let variable_shape = PartialShape::new([Dim::known(1)]);
    Ok(n.emit(ReadValue { variable_id, variable_type: ElementType::I32, variable_shape }, &[zero])?.into())
}

// One more, and back by a period at the limit: nobody tells those steps apart.
fn next_step(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (step, period, limit): (_, f64, f64) = (n.input(0)?, n.required("period")?, n.required("limit")?);
    let next = n.plus_number(step, 1.0)?;
    let limit = n.number(next, limit)?;
    let is_over = n.greater_equal(next, limit)?;
    let back = n.plus_number(next, -period)?;
    let next = n.choose(is_over, back, next)?;
    assign(n, next)
}
