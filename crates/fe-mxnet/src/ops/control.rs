//! Loops and conditions, whose bodies are symbols of their own. The node says which of its inputs each variable of a body is.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Fact, Model, Parameter, Result, Slicing, Value};
use carafe_ops::control::{If, Loop};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const RULES: &[StaticRule] =
    &[rule("_cond", 0, cond), rule("_foreach", 0, foreach), rule("_while_loop", 0, while_loop)];

fn locations(n: &NodeCx<'_>, name: &str) -> Result<Vec<usize>> {
    let all = n.ints_of(name)?;
    let all: Option<Vec<usize>> = all.iter().map(|i| usize::try_from(*i).ok()).collect();
    all.ok_or_else(|| n.fail(format!("attribute `{name}` must be positions")))
}

// What a value is in every iteration, as far as it is the same.
fn plain(fact: &Fact) -> Fact {
    let dims = fact.shape.dims().map(|dims| dims.iter().map(|d| Dim::range(d.min(), d.max())).collect::<Vec<_>>());
    Fact::new(fact.ty, dims.map_or_else(PartialShape::dynamic, PartialShape::new))
}

// A sub-graph for these facts of its variables.
fn body(n: &mut NodeCx<'_>, index: usize, facts: &[Fact]) -> Result<SubModel> {
    let sub = n.body(&format!("subgraph{index}"), facts)?;
    let declared = sub.model.parameters().len() - sub.captured.len();
    if declared != facts.len() || !sub.captured.is_empty() {
        let given = facts.len();
        return Err(n.fail(format!("sub-graph {index} has {declared} variables, the node gives {given}")));
    }
    Ok(sub)
}

fn results(model: &Model) -> Vec<Value> {
    model.results().iter().map(|r| model.result_value(*r)).collect()
}

// By position in the sub-graph: the input of the node.
fn sources(n: &NodeCx<'_>, parts: &[(&[usize], usize)]) -> Result<Vec<usize>> {
    let count = parts.iter().map(|(places, _)| places.len()).sum::<usize>();
    let mut all = vec![None; count];
    for (places, first) in parts {
        for (i, at) in places.iter().enumerate() {
            match all.get_mut(*at) {
                Some(slot @ None) => *slot = Some(first + i),
                _ => return Err(n.fail(format!("variable {at} of the sub-graph is given twice, or is none"))),
            }
        }
    }
    all.into_iter().map(|s| s.ok_or_else(|| n.fail("a variable of the sub-graph is given nothing"))).collect()
}

// Goes over the first axis of its data; states go from step to step.
fn foreach(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args", "num_outputs"]);
    let (data, states, rest) =
        (locations(n, "in_data_locs")?, locations(n, "in_state_locs")?, locations(n, "remain_locs")?);
    let n_out = usize::try_from(n.needed_int("num_out_data")?).unwrap_or(0);
    let inputs = n.inputs()?;
    if inputs.len() != data.len() + states.len() + rest.len() || data.is_empty() {
        return Err(n.fail(format!("has {} inputs, its settings name others", inputs.len())));
    }
    let sources = sources(n, &[(&data, 0), (&states, data.len()), (&rest, data.len() + states.len())])?;
    let is_data = |input: usize| input < data.len();
    let mut facts = vec![];
    for &input in &sources {
        let mut fact = plain(n.fact(inputs[input]));
        if is_data(input) && let Some(dims) = fact.shape.dims_mut() {
            if dims.is_empty() {
                return Err(n.fail("cannot go over the elements of a scalar"));
            }
            dims.remove(0);
        }
        facts.push(fact);
    }
    let mut model = body(n, 0, &facts)?.model;
    let parameters = model.parameters().to_vec();
    for (parameter, &input) in parameters.iter().zip(&sources) {
        if is_data(input) {
            let fact = plain(n.fact(inputs[input]));
            squeeze_parameter(&mut model, (*parameter).into(), &fact)?;
        }
    }
    let given = model.results().to_vec();
    if given.len() != n_out + states.len() {
        return Err(n.fail(format!("the body gives {} values, expected {}", given.len(), n_out + states.len())));
    }
    for result in &given[..n_out] {
        let value = model.result_value(*result);
        let row = model.with_axes(value, &[0])?;
        model.set_input(*result, 0, row);
    }
    always(&mut model)?;
    let mut inner = Body::new(model);
    inner.execution_condition = Some(given.len());
    for (parameter, &input) in sources.iter().enumerate() {
        let state = input.checked_sub(data.len()).filter(|s| *s < states.len());
        let slicing = is_data(input).then(|| Slicing::along(0));
        let back_edge = state.map(|s| n_out + s);
        inner.inputs.push(BodyInput { outer: Some(input + 2), parameter, slicing, back_edge });
    }
    for result in 0..given.len() {
        let slicing = (result < n_out).then(|| Slicing::along(0));
        inner.outputs.push(BodyOutput { outer: result, result, slicing });
    }
    let trips = n.length(inputs[0], 0)?;
    let condition = n.constant(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    let all = [&[trips, condition][..], &inputs].concat();
    Ok(n.emit_all(Loop { body: inner }, &all)?.into())
}

// One more result: the loop goes on.
fn always(model: &mut Model) -> Result<()> {
    let again = model.fixed(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    model.result("condition", again)?;
    model.infer()
}

fn squeeze_parameter(model: &mut Model, parameter: Value, whole: &Fact) -> Result<()> {
    let mut shape = whole.shape.clone();
    if let Some(dims) = shape.dims_mut() {
        dims[0] = Dim::known(1);
    }
    model.set_op(parameter.node, Arc::new(Parameter { shape, element_type: whole.ty }))?;
    let row = model.without_axes(parameter, &[0])?;
    model.replace_value(parameter, row);
    Ok(())
}

fn scalar_condition(n: &mut NodeCx<'_>, value: Value) -> Result<Value> {
    let value = n.as_condition(value)?;
    n.reshape(value, &[])
}

fn inlined(n: &mut NodeCx<'_>, sub: &SubModel, arguments: &[Value]) -> Result<Value> {
    match n.inline(sub, arguments)?[..] {
        [carafe_frontend::Item::Tensor(v), ..] => scalar_condition(n, v),
        _ => Err(n.fail("a condition must be one tensor")),
    }
}

fn cond(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args", "num_outputs"]);
    let inputs = n.inputs()?;
    let places = ["cond_input_locs", "then_input_locs", "else_input_locs"].map(|name| locations(n, name));
    let places = places.into_iter().collect::<Result<Vec<_>>>()?;
    if places.iter().flatten().any(|i| *i >= inputs.len()) {
        return Err(n.fail("a branch reads an input that is not there"));
    }
    let facts = |n: &NodeCx<'_>, places: &[usize]| places.iter().map(|i| plain(n.fact(inputs[*i]))).collect::<Vec<_>>();
    let of_condition = facts(n, &places[0]);
    let condition = body(n, 0, &of_condition)?;
    let arguments: Vec<Value> = places[0].iter().map(|i| inputs[*i]).collect();
    let condition = inlined(n, &condition, &arguments)?;
    let mut branches = vec![];
    for (i, places) in places.iter().enumerate().skip(1) {
        let given = facts(n, places);
        let mut inner = Body::new(body(n, i, &given)?.model);
        let connect = |(parameter, input): (usize, &usize)| BodyInput {
            outer: Some(input + 1),
            parameter,
            slicing: None,
            back_edge: None,
        };
        inner.inputs = places.iter().enumerate().map(connect).collect();
        let count = inner.model.results().len();
        inner.outputs = (0..count).map(|i| BodyOutput { outer: i, result: i, slicing: None }).collect();
        branches.push(inner);
    }
    let (Some(else_body), Some(then_body)) = (branches.pop(), branches.pop()) else { return Err(n.fail("no branches")) };
    let all = [&[condition][..], &inputs].concat();
    Ok(n.emit_all(If { then_body, else_body }, &all)?.into())
}

// Goes on while its condition holds. What a step gives is gathered; rows of steps that were not made are zeros.
fn while_loop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args", "num_outputs"]);
    let inputs = n.inputs()?;
    let n_out = usize::try_from(n.needed_int("num_out_data")?).unwrap_or(0);
    let most = n.needed_int("max_iterations")?;
    let (of_cond, of_func) = (locations(n, "cond_input_locs")?, locations(n, "func_input_locs")?);
    let vars = locations(n, "func_var_locs")?;
    if of_cond.iter().chain(&of_func).any(|i| *i >= inputs.len()) || vars.iter().any(|v| *v >= of_func.len()) {
        return Err(n.fail("a body reads an input that is not there"));
    }
    let facts = |n: &NodeCx<'_>, places: &[usize]| places.iter().map(|i| plain(n.fact(inputs[*i]))).collect::<Vec<_>>();
    let condition_facts = facts(n, &of_cond);
    let condition = body(n, 0, &condition_facts)?;
    let arguments: Vec<Value> = of_cond.iter().map(|i| inputs[*i]).collect();
    let first = inlined(n, &condition, &arguments)?;
    let func_facts = facts(n, &of_func);
    let mut model = body(n, 1, &func_facts)?.model;
    let given = model.results().to_vec();
    if given.len() != n_out + vars.len() {
        return Err(n.fail(format!("the body gives {} values, expected {}", given.len(), n_out + vars.len())));
    }
    // The condition reads what the step left of the variables, and the rest as it was. A value that only it reads gets a
    // parameter of its own.
    let new = results(&model);
    let mut known = vec![];
    let mut more = vec![];
    for &input in &of_cond {
        let var = vars.iter().position(|v| of_func[*v] == input);
        known.push(match (var, of_func.iter().position(|i| *i == input)) {
            (Some(var), _) => new[n_out + var],
            (None, Some(parameter)) => model.parameters()[parameter].into(),
            (None, None) => {
                let fact = plain(n.fact(inputs[input]));
                more.push(input);
                model.parameter(&format!("condition/{input}"), fact.ty, fact.shape)?
            }
        });
    }
    let again = appended(&mut model, &condition, &known)?;
    for result in &given[..n_out] {
        let value = model.result_value(*result);
        let row = model.with_axes(value, &[0])?;
        model.set_input(*result, 0, row);
    }
    model.result("condition", again)?;
    model.infer()?;
    let mut inner = Body::new(model);
    inner.execution_condition = Some(given.len());
    for (parameter, &input) in of_func.iter().chain(&more).enumerate() {
        let back_edge = vars.iter().position(|v| *v == parameter).map(|var| n_out + var);
        inner.inputs.push(BodyInput { outer: Some(input + 2), parameter, slicing: None, back_edge });
    }
    for result in 0..given.len() {
        let slicing = (result < n_out).then(|| Slicing::along(0));
        inner.outputs.push(BodyOutput { outer: result, result, slicing });
    }
    let trips = n.i64(most)?;
    let all = [&[trips, first][..], &inputs].concat();
    let mut outputs = n.emit_all(Loop { body: inner }, &all)?;
    for output in &mut outputs[..n_out] {
        *output = filled_up(n, *output, most)?;
    }
    Ok(outputs.into())
}

// Zeros behind the rows that there are.
fn filled_up(n: &mut NodeCx<'_>, rows: Value, most: i64) -> Result<Value> {
    let rank = n.known_rank(rows)?;
    let made = n.size(rows, 0)?;
    let all = n.i64s(&[most])?;
    let missing = n.minus(all, made)?;
    let begin = n.i64s(&vec![0; rank])?;
    let none = n.i64s(&vec![0; rank - 1])?;
    let end = if rank == 1 { missing } else { n.concat(&[missing, none], 0)? };
    let zero = n.scalar_like(rows, 0.0)?;
    let pad = carafe_ops::movement::Pad { pad_mode: carafe_ops::movement::pad::PadMode::Constant };
    n.emit(pad, &[rows, begin, end, zero])
}

// The nodes of the condition, over these values of the body; its result as a boolean scalar.
fn appended(model: &mut Model, condition: &SubModel, values: &[Value]) -> Result<Value> {
    let missing = || Error::invalid("the sub-graph of the condition is not in order");
    let parameters = condition.model.parameters().iter();
    let mut known: HashMap<Value, Value> = parameters.zip(values).map(|(p, v)| (Value::from(*p), *v)).collect();
    for id in condition.model.topological_order()? {
        let node = condition.model.node(id);
        if known.contains_key(&id.into()) || condition.model.results().contains(&id) {
            continue;
        }
        let inputs: Option<Vec<Value>> = node.inputs().iter().map(|v| known.get(v).copied()).collect();
        let name = format!("condition/{}", node.name());
        let new = model.add_ref(name, node.op_ref().clone(), &inputs.ok_or_else(missing)?)?;
        for port in 0..node.outputs().len() {
            known.insert(Value { node: id, port }, Value { node: new, port });
        }
    }
    let result = condition.model.results().first().copied().ok_or_else(missing)?;
    let value = known.get(&condition.model.result_value(result)).copied().ok_or_else(missing)?;
    let none = model.fixed(Tensor::zeros(ElementType::I64, &[0])?)?;
    let value = model.reshaped(value, none, false)?;
    if model.element(value) == ElementType::Boolean {
        return Ok(value);
    }
    let zero = model.number(value, 0.0)?;
    model.put(carafe_ops::compare::NotEqual::default(), &[value, zero])
}
