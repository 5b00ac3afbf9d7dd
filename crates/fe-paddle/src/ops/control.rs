//! Conditions and loops. The blocks that they run read outer values by name. What a loop carries may change its shape from one iteration
//! to the next: then the body is translated for the wider shape.

use super::arrays;
use super::slots::Slots;
use crate::graph::UNSET;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Fact, Model, Result, Value};
use carafe_ops::control::{If, Loop};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("conditional_block", 0, conditional_block),
    rule("select_input", 0, select_input),
    rule("while", 0, while_loop),
];

/// Translations of a body before the shapes of what it carries count as unknown.
const MAX_ROUNDS: usize = 4;

// A condition as one boolean without axes.
fn truth(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    let v = n.convert(v, ElementType::Boolean)?;
    n.as_scalar(v)
}

// The tensors that a body gives; arrays as one tensor each.
fn settled(n: &NodeCx<'_>, sub: &mut SubModel) -> Result<()> {
    let mut values = vec![];
    for item in &sub.outputs {
        values.push(match item {
            Item::Tensor(v) => *v,
            Item::Sequence(items) => stack(&mut sub.model, items)?,
            _ => return Err(n.fail("a block must give tensors")),
        });
    }
    sub.outputs = values.iter().map(|v| Item::Tensor(*v)).collect();
    let old = sub.model.results().to_vec();
    old.into_iter().try_for_each(|r| sub.model.remove(r))?;
    for (i, v) in values.into_iter().enumerate() {
        sub.model.result(&format!("result/{i}"), v)?;
    }
    Ok(())
}

fn stack(model: &mut Model, items: &[Item]) -> Result<Value> {
    let mut parts = vec![];
    for item in items {
        let Item::Tensor(v) = item else { return Err(Error::invalid("an element of an array must be a tensor")) };
        parts.push(model.with_axes(*v, &[0])?);
    }
    match parts[..] {
        [] => Err(Error::unsupported("an array without elements leaves a block")),
        [one] => Ok(one),
        _ => model.put(carafe_ops::movement::Concat { axis: 0 }, &parts),
    }
}

// Captured values of a body as inputs of the operation around it, behind those that are there.
fn body(sub: SubModel, all: &mut Vec<Value>) -> Body {
    let mut body = Body::new(sub.model);
    for (value, parameter) in sub.captured {
        body.inputs.push(BodyInput { outer: Some(all.len()), parameter, slicing: None, back_edge: None });
        all.push(value);
    }
    body
}

fn conditional_block(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let condition = n.slot("Cond")?;
    let unset: Vec<i64> = n.attr(UNSET, vec![])?;
    n.ignore(&["is_scalar_condition", "skip_eager_deletion_vars"]);
    n.ignore_slots(&["X", "Input"]);
    let condition = truth(n, condition)?;
    if let Some(known) = n.ints(condition).and_then(|c| c.first().copied())
        && (known != 0 || unset.is_empty())
    {
        let sub = n.body(if known != 0 { "sub_block" } else { "else_block" }, &[])?;
        return Ok(Outputs(n.inline(&sub, &[])?));
    }
    let mut then = n.body("sub_block", &[])?;
    let mut other = n.body("else_block", &[])?;
    for i in unset {
        let Some(Item::Tensor(v)) = then.outputs.get(i as usize) else { continue };
        let fact = then.model.fact(*v).clone();
        let zeros = other.model.fixed(unset_value(&fact)?)?;
        other.outputs.insert((i as usize).min(other.outputs.len()), Item::Tensor(zeros));
    }
    settled(n, &mut then)?;
    settled(n, &mut other)?;
    let count = then.outputs.len();
    if other.outputs.len() != count {
        return Err(n.fail(format!("the branches give {count} and {} values", other.outputs.len())));
    }
    let mut all = vec![condition];
    let mut bodies = vec![];
    for sub in [then, other] {
        let mut made = body(sub, &mut all);
        made.outputs = (0..count).map(|i| BodyOutput { outer: i, result: i, slicing: None }).collect();
        bodies.push(made);
    }
    let (Some(else_body), Some(then_body)) = (bodies.pop(), bodies.pop()) else { return Err(n.fail("no branches")) };
    Ok(n.emit_all(If { then_body, else_body }, &all)?.into())
}

// What stands for a variable that has no value yet: nobody may read it then. The first open size is 0, the others meet every size.
fn unset_value(fact: &Fact) -> Result<Tensor> {
    let shape = fact.shape.dims().unwrap_or_default();
    let first = shape.iter().position(|d| !d.is_known());
    let size = |(i, d): (usize, &Dim)| d.size().unwrap_or(usize::from(Some(i) != first));
    let dims: Vec<usize> = shape.iter().enumerate().map(size).collect();
    let ty = if fact.ty.is_dynamic() { ElementType::F32 } else { fact.ty };
    let count = carafe_tensor::elements(&dims).filter(|c| *c <= 1 << 20);
    let dims = if count.is_some() { dims } else { vec![0; dims.len()] };
    Ok(Tensor::from_f64(ty, &dims, &vec![0.0; carafe_tensor::elements(&dims).unwrap_or(0)])?)
}

// One of two values by a number.
fn select_input(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = n.inputs_named("X")?;
    let mask = n.slot("Mask")?;
    let [other, then] = all[..] else { return Err(n.fail(format!("slot `X` has {} values, expected 2", all.len()))) };
    let condition = truth(n, mask)?;
    let mut bodies = vec![];
    for (i, v) in [then, other].into_iter().enumerate() {
        let mut model = Model::default();
        let fact = n.fact(v).clone();
        let x = model.parameter("x", fact.ty, fact.shape)?;
        model.result("y", x)?;
        let mut body = Body::new(model);
        body.inputs = vec![BodyInput { outer: Some(i + 1), parameter: 0, slicing: None, back_edge: None }];
        body.outputs = vec![BodyOutput { outer: 0, result: 0, slicing: None }];
        bodies.push(body);
    }
    let (Some(else_body), Some(then_body)) = (bodies.pop(), bodies.pop()) else { return Err(n.fail("no branches")) };
    Ok(n.emit_all(If { then_body, else_body }, &[condition, then, other])?.into())
}

// What a value is in every iteration: its content changes, and so may an empty axis.
fn plain(fact: &Fact) -> Fact {
    let mut shape = fact.shape.clone();
    for d in shape.dims_mut().into_iter().flatten() {
        *d = if d.get() == Some(0) { Dim::ANY } else { Dim::range(d.min(), d.max()) };
    }
    Fact::new(fact.ty, shape)
}

fn wider(a: &PartialShape, b: &PartialShape, round: usize) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => PartialShape::new(a.iter().zip(b).map(|(a, b)| match a == b {
            true => *a,
            false if round + 1 < MAX_ROUNDS => {
                let max = a.max().and_then(|a| Some(a.max(b.max()?)));
                if a.is_known() && b.is_known() { Dim::ANY } else { Dim::range(a.min().min(b.min()), max) }
            }
            false => Dim::ANY,
        })),
        _ => PartialShape::dynamic(),
    }
}

// The values that a loop begins with. One that has none yet has the type that its variable is declared with.
fn starts(n: &mut NodeCx<'_>) -> Result<Vec<Value>> {
    let mut all = vec![];
    let positions: Vec<usize> = n.input_ports().iter().enumerate().filter(|(_, p)| *p == "X").map(|(i, _)| i).collect();
    for (k, at) in positions.into_iter().enumerate() {
        let item = n.item(at)?;
        let given = match &item {
            Some(Item::Tensor(v)) => Some(*v),
            Some(array @ Item::Sequence(_)) => arrays::stacked(n, array)?,
            None | Some(Item::Nothing) => None,
            Some(_) => return Err(n.fail("a loop carries tensors and arrays of tensors")),
        };
        all.push(match given {
            Some(v) => v,
            None => {
                let declared = n.declared_input("sub_block", k).map(|ty| ty.fact());
                let fact = declared.filter(|f| !f.ty.is_dynamic() && f.shape.rank().is_some());
                let fact = fact.ok_or_else(|| n.fail("a variable of the loop has no value and no declared type"))?;
                n.constant(unset_value(&fact)?)?
            }
        });
    }
    Ok(all)
}

fn while_loop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let condition = n.slot("Condition")?;
    n.ignore(&["is_test", "skip_eager_deletion_vars"]);
    let first = truth(n, condition)?;
    let mut starts = starts(n)?;
    let mut states: Vec<Fact> = starts.iter().map(|v| plain(n.fact(*v))).collect();
    let sub = stable(n, &mut states)?;
    // A shape that the body widens must be open from the start.
    for (start, state) in starts.iter_mut().zip(&states) {
        if n.ty(*start) != state.ty {
            *start = n.convert(*start, state.ty)?;
        }
    }
    let count = starts.len();
    let trips = n.i64(-1)?;
    let mut all = vec![trips, first];
    all.extend(starts);
    let mut inner = body(sub, &mut all);
    inner.execution_condition = Some(0);
    let carried =
        (0..count).map(|i| BodyInput { outer: Some(i + 2), parameter: i, slicing: None, back_edge: Some(i + 1) });
    inner.inputs = carried.chain(std::mem::take(&mut inner.inputs)).collect();
    inner.outputs = (0..count).map(|i| BodyOutput { outer: i, result: i + 1, slicing: None }).collect();
    Ok(n.emit_all(Loop { body: inner }, &all)?.into())
}

// The body under types and shapes that hold in every iteration. Its first result is the condition, a boolean without axes.
fn stable(n: &mut NodeCx<'_>, states: &mut [Fact]) -> Result<SubModel> {
    for round in 0.. {
        let mut sub = n.body("sub_block", states)?;
        let Some(Item::Tensor(next)) = sub.outputs.first().cloned() else {
            return Err(n.fail("the loop has no condition"));
        };
        let mut next = next;
        if sub.model.fact(next).ty != ElementType::Boolean {
            next = sub.model.put(carafe_ops::convert::Convert { destination_type: ElementType::Boolean }, &[next])?;
        }
        if sub.model.fact(next).shape.rank() != Some(0) {
            let none = sub.model.fixed(Tensor::from_slice::<i64>(&[0], &[])?)?;
            next = sub.model.put(carafe_ops::movement::Reshape { special_zero: false }, &[next, none])?;
        }
        sub.outputs[0] = Item::Tensor(next);
        settled(n, &mut sub)?;
        let mut grown = false;
        for (state, item) in states.iter_mut().zip(&sub.outputs[1..]) {
            let Item::Tensor(v) = item else { continue };
            let found = sub.model.fact(*v);
            let shape = wider(&state.shape, &found.shape, round);
            if shape != state.shape || (found.ty != state.ty && !found.ty.is_dynamic()) {
                *state = Fact::new(found.ty, shape);
                grown = true;
            }
        }
        if !grown {
            sub.model.infer()?;
            return Ok(sub);
        }
        if round > 2 * MAX_ROUNDS {
            break;
        }
    }
    Err(n.unsupported("types and shapes of what the loop carries do not settle"))
}
