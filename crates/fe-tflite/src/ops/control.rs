//! Operators that run sub-graphs. A sub-graph reads nothing but its inputs. What a loop carries may change its shape from one
//! iteration to the next: then the body is translated for the wider shape.

use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Fact, Result, Value};
use carafe_ops::control::{If, Loop};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("CALL", 1, |n| inlined(n, "subgraph")),
    rule("IF", 1, if_rule),
    rule("STABLEHLO_COMPOSITE", 1, composite),
    rule("STABLEHLO_WHILE", 1, |n| {
        n.ignore(super::shapes::DECLARED);
        while_rule(n)
    }),
    rule("WHILE", 1, while_rule),
];

/// Translations of a body before the shapes of what it carries count as unknown.
const MAX_ROUNDS: usize = 4;

/// Puts the operations of a sub-graph where the operator is.
pub(super) fn inlined(n: &mut NodeCx<'_>, attribute: &str) -> Result<Outputs> {
    let inputs = n.inputs()?;
    let facts: Vec<Fact> = inputs.iter().map(|v| n.fact(*v).clone()).collect();
    let body = n.body(attribute, &facts)?;
    check_inputs(n, &body, inputs.len())?;
    Ok(Outputs(n.inline(&body, &inputs)?))
}

fn composite(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(super::shapes::DECLARED);
    n.ignore(&["name", "composite_attributes", "composite_attributes_format", "version"]);
    inlined(n, "decomposition_subgraph")
}

fn check_inputs(n: &NodeCx<'_>, body: &SubModel, given: usize) -> Result<()> {
    let declared = body.model.parameters().len() - body.captured.len();
    match declared == given {
        true => Ok(()),
        false => Err(n.fail(format!("the sub-graph has {declared} inputs, the operator gives {given}"))),
    }
}

fn if_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut inputs = n.inputs()?;
    if inputs.is_empty() {
        return Err(n.fail("there is no condition"));
    }
    let condition = inputs.remove(0);
    let facts: Vec<Fact> = inputs.iter().map(|v| plain(n.fact(*v))).collect();
    let condition = n.reshape(condition, &[1])?;
    let mut bodies = vec![];
    for name in ["then_subgraph", "else_subgraph"] {
        let sub = n.body(name, &facts)?;
        check_inputs(n, &sub, inputs.len())?;
        let results = sub.model.results().len();
        let mut body = Body::new(sub.model);
        body.inputs = (0..inputs.len())
            .map(|i| BodyInput { outer: Some(i + 1), parameter: i, slicing: None, back_edge: None })
            .collect();
        body.outputs = (0..results).map(|i| BodyOutput { outer: i, result: i, slicing: None }).collect();
        bodies.push(body);
    }
    let (Some(else_body), Some(then_body)) = (bodies.pop(), bodies.pop()) else { return Err(n.fail("no branches")) };
    let all: Vec<Value> = [condition].into_iter().chain(inputs).collect();
    Ok(n.emit_all(If { then_body, else_body }, &all)?.into())
}

// The condition is asked before the first iteration, and behind the body of each for the next.
fn while_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let starts = n.inputs()?;
    let facts: Vec<Fact> = starts.iter().map(|v| n.fact(*v).clone()).collect();
    let condition = n.body("cond_subgraph", &facts)?;
    check_inputs(n, &condition, starts.len())?;
    let first = n.inline(&condition, &starts)?;
    let first = tensor(n, first)?;
    let first = n.reshape(first, &[])?;
    let (mut body, states) = stable(n, "body_subgraph", facts.iter().map(plain).collect())?;
    let condition = n.body("cond_subgraph", &states)?;
    let next = append(&mut body.model, &condition)?;
    let results = body.model.results().to_vec();
    let again = body.model.result("condition", next)?;
    // The condition goes first.
    let mut order = vec![again];
    order.extend(results);
    let values: Vec<Value> = order.iter().map(|r| body.model.result_value(*r)).collect();
    order.into_iter().try_for_each(|r| body.model.remove(r))?;
    for (i, v) in values.iter().enumerate() {
        body.model.result(&format!("result/{i}"), *v)?;
    }
    body.model.infer()?;
    let mut inner = Body::new(body.model);
    inner.execution_condition = Some(0);
    inner.inputs = (0..starts.len())
        .map(|i| BodyInput { outer: Some(i + 2), parameter: i, slicing: None, back_edge: Some(i + 1) })
        .collect();
    inner.outputs = (0..starts.len()).map(|i| BodyOutput { outer: i, result: i + 1, slicing: None }).collect();
    let trips = n.i64(-1)?;
    let inputs: Vec<Value> = [trips, first].into_iter().chain(starts).collect();
    Ok(n.emit_all(Loop { body: inner }, &inputs)?.into())
}


fn tensor(n: &NodeCx<'_>, items: Vec<Item>) -> Result<Value> {
    match items[..] {
        [Item::Tensor(v)] => Ok(v),
        _ => Err(n.fail("a condition must be one tensor")),
    }
}

// What a value is in every iteration: its content changes, and so may an empty axis.
fn plain(fact: &Fact) -> Fact {
    let mut shape = fact.shape.clone();
    if let Some(dims) = shape.dims_mut() {
        for d in dims.iter_mut() {
            *d = if d.get() == Some(0) { Dim::ANY } else { Dim::range(d.min(), d.max()) };
        }
    }
    Fact::new(fact.ty, shape)
}

// The body under shapes that hold in every iteration.
fn stable(n: &mut NodeCx<'_>, attribute: &str, mut states: Vec<Fact>) -> Result<(SubModel, Vec<Fact>)> {
    for round in 0.. {
        let sub = n.body(attribute, &states)?;
        check_inputs(n, &sub, states.len())?;
        let results: Vec<Fact> =
            sub.model.results().iter().map(|r| sub.model.fact(sub.model.result_value(*r)).clone()).collect();
        if results.len() != states.len() {
            return Err(n.fail(format!("the body gives {} values and takes {}", results.len(), states.len())));
        }
        let mut grown = false;
        for (state, next) in states.iter_mut().zip(&results) {
            let wider = wider(&state.shape, &next.shape, round);
            if wider != state.shape {
                *state = Fact::new(state.ty, wider);
                grown = true;
            }
        }
        if !grown || round > MAX_ROUNDS {
            return Ok((sub, states));
        }
    }
    Err(n.fail("the shapes of what the loop carries do not settle"))
}

fn wider(a: &PartialShape, b: &PartialShape, round: usize) -> PartialShape {
    let covers = |a: Dim, b: Dim| a.min() <= b.min() && a.max().is_none_or(|a| b.max().is_some_and(|b| b <= a));
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() && round < MAX_ROUNDS => {
            PartialShape::new(a.iter().zip(b).map(|(a, b)| if covers(*a, *b) { *a } else { Dim::ANY }))
        }
        _ => PartialShape::dynamic(),
    }
}

// Appends the condition to a body: it reads what the body gives. Gives the condition as a scalar.
fn append(body: &mut carafe_graph::Model, condition: &SubModel) -> Result<Value> {
    let mut known = std::collections::HashMap::new();
    let results = body.results().to_vec();
    for (&parameter, result) in condition.model.parameters().iter().zip(results) {
        known.insert(Value::from(parameter), body.result_value(result));
    }
    let missing = || carafe_graph::Error::invalid("the sub-graph of the condition is not in order");
    for id in condition.model.topological_order()? {
        let node = condition.model.node(id);
        if known.contains_key(&id.into()) || condition.model.results().contains(&id) {
            continue;
        }
        let inputs: Option<Vec<Value>> = node.inputs().iter().map(|v| known.get(v).copied()).collect();
        let new = body.add_ref(format!("condition/{}", node.name()), node.op_ref().clone(), &inputs.ok_or_else(missing)?)?;
        for port in 0..node.outputs().len() {
            known.insert(Value { node: id, port }, Value { node: new, port });
        }
    }
    let result = condition.model.results().first().copied().ok_or_else(missing)?;
    let value = known.get(&condition.model.result_value(result)).copied().ok_or_else(missing)?;
    let none = body.fixed(Tensor::zeros(ElementType::I64, &[0])?)?;
    body.reshaped(value, none, false)
}
