//! If and Case. All that a branch is given, and all that it reads of the graph around it, becomes an input of the operation.
//! A condition that is known leaves one branch, in place.

use super::ports::capture;
use super::truth::{known, truth};
use carafe_frontend::{Compose, Given, Item, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyOutput, Model, Result, Value};
use carafe_ops::control::If;

pub(super) const RULES: &[StaticRule] = &[
    rule("Case", 0, case_rule),
    rule("If", 0, if_rule),
    rule("StatelessCase", 0, case_rule),
    rule("StatelessIf", 0, if_rule),
];

fn if_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.attrs();
    let condition = n.input(0)?;
    let arguments = arguments(n)?;
    let fact = n.fact(condition).clone();
    let condition = truth(n, &fact, condition)?;
    if let Some(taken) = known(n.fact(condition)) {
        let branch = branch(n, if taken { "then_branch" } else { "else_branch" }, &arguments)?;
        return Ok(Outputs(n.inline(&branch, &[])?));
    }
    let branches = vec![branch(n, "then_branch", &arguments)?, branch(n, "else_branch", &arguments)?];
    choose(n, &[condition], branches)
}

fn case_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.attrs();
    let index = n.input(0)?;
    let arguments = arguments(n)?;
    let names: Vec<String> = n.graphs().into_iter().filter(|g| g.starts_with("branches")).map(String::from).collect();
    let last = names.len().checked_sub(1).ok_or_else(|| n.fail("attribute `branches` is required and missing"))?;
    // An index outside of the branches means the last one.
    if let Some(&[at]) = n.ints(index).as_deref() {
        let at = usize::try_from(at).map_or(last, |at| at.min(last));
        let branch = branch(n, &names[at], &arguments)?;
        return Ok(Outputs(n.inline(&branch, &[])?));
    }
    let branches = names.iter().map(|name| branch(n, name, &arguments)).collect::<Result<Vec<_>>>()?;
    let mut tests = vec![];
    for at in 0..last {
        tests.push(n.equal_number(index, at as f64)?);
    }
    if tests.is_empty() {
        return Ok(Outputs(n.inline(&branches[0], &[])?));
    }
    choose(n, &tests, branches)
}

// What the node gives to its branches.
fn arguments(n: &mut NodeCx<'_>) -> Result<Vec<Item>> {
    (1..n.n_inputs()).map(|i| Ok(n.item(i)?.unwrap_or(Item::Nothing))).collect()
}

fn branch(n: &mut NodeCx<'_>, attribute: &str, arguments: &[Item]) -> Result<SubModel> {
    if let Some(graph) = n.graph(attribute)
        && graph.inputs.len() != arguments.len()
    {
        let (takes, given) = (graph.inputs.len(), arguments.len());
        return Err(n.fail(format!("`{attribute}` takes {takes} inputs, the node gives {given}")));
    }
    let given: Vec<Given> = arguments.iter().cloned().map(Given::Outer).collect();
    n.body_given(attribute, &given)
}

// The first branch whose test holds, else the last.
fn choose(n: &mut NodeCx<'_>, tests: &[Value], mut branches: Vec<SubModel>) -> Result<Outputs> {
    let counts: Vec<usize> = branches.iter().map(|b| b.outputs.len()).collect();
    if let Some(other) = counts.iter().find(|c| **c != counts[0]) {
        return Err(n.fail(format!("all branches need the same outputs, found {} and {other}", counts[0])));
    }
    let is_tensor = |item: &Item| matches!(item, Item::Tensor(_));
    if let Some(i) = branches.iter().find_map(|b| b.outputs.iter().position(|o| !is_tensor(o))) {
        return Err(n.unsupported(format!("output {i} of a branch must be a tensor")));
    }
    let mut rest = branches.pop().ok_or_else(|| n.fail("there are no branches"))?;
    while let (Some(branch), [_, ..]) = (branches.pop(), tests) {
        let test = tests[branches.len()];
        if branches.is_empty() {
            let (op, inputs) = operation(branch, rest, test);
            return Ok(n.emit_all(op, &inputs)?.into());
        }
        rest = nested(n, test, branch, rest)?;
    }
    Err(n.fail("there are no branches"))
}

// The operation and what it reads, all of the graph around it.
fn operation(then: SubModel, other: SubModel, test: Value) -> (If, Vec<Value>) {
    let mut inputs = vec![test];
    let [then_body, else_body] = [then, other].map(|branch| {
        let results = branch.model.results().len();
        let mut body = Body::new(branch.model);
        capture(&mut body, &branch.captured, &mut inputs);
        body.outputs = (0..results).map(|i| BodyOutput { outer: i, result: i, slicing: None }).collect();
        body
    });
    (If { then_body, else_body }, inputs)
}

// The choice as a sub-graph, to be a branch itself.
fn nested(n: &NodeCx<'_>, test: Value, then: SubModel, other: SubModel) -> Result<SubModel> {
    let (op, outer) = operation(then, other, test);
    let mut model = Model::new("choice");
    let mut captured: Vec<(Value, usize)> = vec![];
    let mut inputs = vec![];
    for v in outer {
        let at = match captured.iter().find(|(have, _)| *have == v) {
            Some((_, at)) => *at,
            None => {
                let fact = n.fact(v).clone();
                model.parameter(&format!("captured/{}", captured.len()), fact.ty, fact.shape)?;
                captured.push((v, captured.len()));
                captured.len() - 1
            }
        };
        inputs.push(model.parameters()[at].into());
    }
    let values = model.put_all(op, &inputs)?;
    for (i, &v) in values.iter().enumerate() {
        model.result(&format!("result/{i}"), v)?;
    }
    Ok(SubModel { model, captured, outputs: values.into_iter().map(Item::Tensor).collect() })
}
