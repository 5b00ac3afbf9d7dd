//! While becomes Loop. The condition is tested before each iteration: once outside for the first, and in the body, on the new
//! values, for each further one. A loop that counts up to a bound has a number of iterations instead (`loop_body.rs`). What the
//! body hands on as it is does not go around: a constant stays one inside. Types of carried values must hold in every
//! iteration, so shapes are widened and the body is translated again until one more adds nothing.

use super::loop_body::{LoopBody, State};
use super::truth::{boolean, known, truth};
use carafe_frontend::{Compose, Given, Item, NodeCx, Outputs, SourceGraph, SourceNode, StaticRule, SubModel, rule};
use carafe_graph::{Fact, ItemType, Result, Value};
use carafe_ops::control::Loop;
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_tensor::{Dim, PartialShape};
use std::collections::HashMap;

pub(super) const RULES: &[StaticRule] = &[rule("StatelessWhile", 0, while_rule), rule("While", 0, while_rule)];

/// Translations of a body before carried shapes count as unknown.
const MAX_ROUNDS: usize = 8;

/// A variable of the loop.
struct Variable {
    start: Item,
    /// What is carried, for one that changes.
    carried: Option<Carried>,
}

#[derive(Clone, Debug)]
struct Carried {
    start: Value,
    /// Type and shape in every iteration.
    fact: Fact,
    is_list: bool,
}

fn while_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut variables = variables(n)?;
    let body = stable_body(n, &mut variables)?;
    for carried in variables.iter_mut().filter_map(|v| v.carried.as_mut()) {
        settle_start(n, carried)?;
    }
    let given = given(&variables);
    let mut condition = n.body_given("cond", &given)?;
    let test = match condition.outputs.as_slice() {
        [Item::Tensor(v)] => *v,
        other => return Err(n.fail(format!("`cond` must give one tensor, found {} values", other.len()))),
    };
    let fact = condition.model.fact(test).clone();
    let test = truth(&mut condition.model, &fact, test)?;
    condition.outputs = vec![Item::Tensor(test)];
    let list: Vec<&Carried> = variables.iter().filter_map(|v| v.carried.as_ref()).collect();
    let starts: Vec<Value> = list.iter().map(|c| c.start).collect();
    let states: Vec<State> =
        list.iter().map(|c| State { is_list: c.is_list, from_zero: is_zero(n, c.start) }).collect();
    let nexts = body.outputs.iter().zip(&variables).filter(|(_, v)| v.carried.is_some());
    let nexts = nexts.map(|(item, _)| match item {
        Item::Tensor(v) => Ok(*v),
        _ => Err(n.fail("a loop variable must be a tensor in every iteration")),
    });
    let nexts = nexts.collect::<Result<Vec<_>>>()?;
    let mut inner = LoopBody::new(body, states, nexts)?;
    let bounds = inner.bounds(&condition, test);
    let (trips, first) = match bounds {
        Some(bounds) => {
            condition.outputs = bounds.iter().map(|b| Item::Tensor(b.limit)).collect();
            let limits = n.inline(&condition, &starts)?;
            let counters = bounds.iter().map(|b| starts[b.counter]);
            let counted: Vec<(Value, Item)> = counters.zip(limits).collect();
            let trips = trip_count(n, &counted)?;
            if n.ints(trips).is_some_and(|t| t == [0]) {
                return Ok(Outputs(variables.into_iter().map(|v| v.start).collect()));
            }
            inner.always_goes_on()?;
            (trips, n.constant(boolean(true)?)?)
        }
        None => {
            let first = n.inline(&condition, &starts)?;
            let Some(Item::Tensor(first)) = first.into_iter().next() else {
                return Err(n.fail("`cond` gives nothing"));
            };
            if known(n.fact(first)) == Some(false) {
                return Ok(Outputs(variables.into_iter().map(|v| v.start).collect()));
            }
            inner.goes_on_while(&condition)?;
            (n.i64(-1)?, first)
        }
    };
    let is_counted = inner.is_counted();
    let shapes: Vec<PartialShape> = inner.captured().map(|v| n.shape(v).clone()).collect();
    inner.slice_reads(&shapes)?;
    inner.join_writes()?;
    if is_counted {
        inner.drop_counters();
    }
    let (body, inputs, ends) = inner.finish(trips, first, &starts)?;
    let values = n.emit_all(Loop { body }, &inputs)?;
    let mut finals = vec![];
    for (k, end) in ends.iter().enumerate() {
        finals.push(end.value(n, starts[k], trips, &values)?);
    }
    let mut finals = finals.into_iter();
    let outputs = variables.into_iter().map(|v| match v.carried {
        Some(_) => finals.next().map_or(Item::Nothing, Item::Tensor),
        None => v.start,
    });
    Ok(Outputs(outputs.collect()))
}

fn is_zero(n: &NodeCx<'_>, v: Value) -> bool {
    n.rank(v) == Some(0) && n.ty(v).is_integer() && n.ints(v).is_some_and(|i| i == [0])
}

// The smallest of the limits, each less what its counter begins at, and 0 at least.
fn trip_count(n: &mut NodeCx<'_>, counted: &[(Value, Item)]) -> Result<Value> {
    let mut counts: Vec<Value> = vec![];
    for (start, limit) in counted {
        let Item::Tensor(limit) = limit else { return Err(n.fail("the limit of a loop must be a tensor")) };
        let count = if is_zero(n, *start) { *limit } else { n.minus(*limit, *start)? };
        let count = n.convert(count, carafe_tensor::ElementType::I64)?;
        let one = |v: Value| n.fact(v).dims().and_then(|d| d.first().copied());
        let same = |have: &Value| match (one(*have), one(count)) {
            (Some(a), Some(b)) if a.get().is_some() => a.get() == b.get(),
            (Some(a), Some(b)) => a.symbol().is_some() && a.symbol() == b.symbol(),
            _ => false,
        };
        if !counts.iter().any(|have| *have == count || same(have)) {
            counts.push(count);
        }
    }
    let known: Option<Vec<i64>> = counts.iter().map(|c| n.ints(*c)?.first().copied()).collect();
    if let Some(least) = known.and_then(|k| k.into_iter().min()) {
        return n.i64(least.max(0));
    }
    let mut trips = counts[0];
    for count in counts.into_iter().skip(1) {
        trips = n.min(trips, count)?;
    }
    match n.fact(trips).dims().and_then(|d| d.first().copied()) {
        Some(d) if d.min() >= 0 => Ok(trips),
        _ => {
            let none = n.i64(0)?;
            n.max(trips, none)
        }
    }
}

// What each variable begins as, and whether it changes.
fn variables(n: &mut NodeCx<'_>) -> Result<Vec<Variable>> {
    let count = n.n_inputs();
    n.attrs();
    for attribute in ["cond", "body"] {
        let Some(graph) = n.graph(attribute) else {
            return Err(n.fail(format!("attribute `{attribute}` is required and missing")));
        };
        let takes = graph.inputs.len();
        if takes != count {
            return Err(n.fail(format!("`{attribute}` takes {takes} inputs, the node gives {count}")));
        }
    }
    let is_fixed: Vec<bool> = match n.graph("body") {
        Some(graph) => {
            let gives = graph.outputs.as_ref().map_or(0, Vec::len);
            if gives != count {
                return Err(n.fail(format!("`body` gives {gives} values, the loop has {count} variables")));
            }
            let producers = producers(graph);
            (0..count).map(|i| hands_on(graph, &producers, i)).collect()
        }
        None => vec![],
    };
    let mut variables = vec![];
    for i in 0..count {
        let start = n.item(i)?.unwrap_or(Item::Nothing);
        let carried = match (&start, is_fixed[i]) {
            (_, true) => None,
            (Item::Tensor(v), false) => {
                // The engine has no type for a list.
                let is_list = n.declared_input("body", i).is_some_and(|ty| ty.element_type().is_dynamic());
                Some(Carried { start: *v, fact: plain(n.fact(*v)), is_list })
            }
            (_, false) => return Err(n.unsupported(format!("loop variable {i} is no tensor, and the body changes it"))),
        };
        variables.push(Variable { start, carried });
    }
    Ok(variables)
}

fn producers(graph: &SourceGraph) -> HashMap<&str, &SourceNode> {
    graph.nodes.iter().flat_map(|node| node.outputs.iter().map(move |o| (o.as_str(), node))).collect()
}

// Whether a body gives a variable back as it was.
fn hands_on(graph: &SourceGraph, producers: &HashMap<&str, &SourceNode>, variable: usize) -> bool {
    let Some(outputs) = &graph.outputs else { return false };
    let mut name = outputs[variable].name.as_str();
    for _ in 0..graph.nodes.len() + graph.aliases.len() + 1 {
        if let Some(of) = graph.aliases.get(name) {
            name = of;
            continue;
        }
        match producers.get(name) {
            Some(node) if node.op_type == "Identity" => match node.inputs.first() {
                Some(input) => name = input,
                None => return false,
            },
            _ => break,
        }
    }
    name == graph.inputs[variable].name
}

fn given(variables: &[Variable]) -> Vec<Given> {
    let given = |v: &Variable| match &v.carried {
        Some(carried) => Given::Whole(ItemType::of(&carried.fact)),
        None => Given::Outer(v.start.clone()),
    };
    variables.iter().map(given).collect()
}

// The body, translated under types that hold in every iteration.
fn stable_body(n: &mut NodeCx<'_>, variables: &mut [Variable]) -> Result<SubModel> {
    for round in 0..=MAX_ROUNDS + 1 {
        let body = n.body_given("body", &given(variables))?;
        let mut grown = false;
        for (i, variable) in variables.iter_mut().enumerate() {
            let Some(carried) = &mut variable.carried else { continue };
            let Some(Item::Tensor(next)) = body.outputs.get(i) else {
                return Err(n.unsupported(format!("loop variable {i} must be a tensor in every iteration")));
            };
            let next = body.model.fact(*next);
            let (ty, have) = (carried.fact.ty, next.ty);
            if !(ty.is_dynamic() || have.is_dynamic() || ty == have) {
                return Err(n.fail(format!("loop variable {i} is {ty} at first and {have} after an iteration")));
            }
            let shape = match round < MAX_ROUNDS {
                true if carried.is_list => wider_list(&carried.fact.shape, &next.shape),
                true => wider(&carried.fact.shape, &next.shape),
                false => PartialShape::dynamic(),
            };
            if shape != carried.fact.shape {
                carried.fact.shape = shape;
                grown = true;
            }
        }
        if !grown {
            return Ok(body);
        }
    }
    Err(n.fail("the shapes of the loop variables do not settle"))
}

// Of a start without elements nothing is known of later iterations.
fn plain(fact: &Fact) -> Fact {
    let dim = |d: &Dim| if d.get() == Some(0) { Dim::ANY } else { Dim::range(d.min(), d.max()) };
    let shape = fact.shape.dims().map_or(PartialShape::dynamic(), |d| PartialShape::new(d.iter().map(dim)));
    Fact::new(fact.ty, shape)
}

fn wider(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            PartialShape::new(a.iter().zip(b).map(|(a, b)| if covers(*a, *b) { *a } else { Dim::ANY }))
        }
        _ => PartialShape::dynamic(),
    }
}

// Elements of a list that was empty are as large as the first that is set; the start is stretched to it.
fn wider_list(a: &PartialShape, b: &PartialShape) -> PartialShape {
    let (Some(a), Some(b)) = (a.dims(), b.dims()) else { return PartialShape::dynamic() };
    if a.len() > b.len() || a.is_empty() {
        return PartialShape::dynamic();
    }
    let element = |(i, b): (usize, &Dim)| match a.get(i) {
        Some(a) if covers(*a, *b) => *a,
        Some(a) if i > 0 && a.get() != Some(1) => Dim::ANY,
        None | Some(_) if i > 0 => b.get().map_or(Dim::ANY, Dim::known),
        _ => Dim::ANY,
    };
    PartialShape::new(b.iter().enumerate().map(element))
}

fn covers(a: Dim, b: Dim) -> bool {
    a.min() <= b.min() && a.max().is_none_or(|a| b.max().is_some_and(|b| b <= a))
}

// Gives the start of a list the axes, and the sizes as far as they are known, that its elements have.
fn settle_start(n: &mut NodeCx<'_>, carried: &mut Carried) -> Result<()> {
    let (Some(have), Some(want)) = (n.shape(carried.start).dims(), carried.fact.shape.dims()) else { return Ok(()) };
    if !carried.is_list || have.is_empty() {
        return Ok(());
    }
    let new: Vec<i64> = (have.len() as i64..want.len() as i64).collect();
    let open = |(i, want): (usize, &Dim)| {
        want.get().filter(|w| i > 0 && *w > 1 && have.get(i).is_none_or(|h| h.get() == Some(1)))
    };
    let sizes: Vec<Option<i64>> = want.iter().enumerate().map(open).collect();
    if !new.is_empty() {
        carried.start = n.unsqueeze(carried.start, &new)?;
    }
    if sizes.iter().any(Option::is_some) {
        let sizes: Vec<i64> = sizes.into_iter().map(|s| s.unwrap_or(1)).collect();
        let target = n.i64s(&sizes)?;
        carried.start = n.emit(Broadcast { mode: BroadcastMode::Bidirectional }, &[carried.start, target])?;
    }
    Ok(())
}
