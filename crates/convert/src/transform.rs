//! `--transform`: rewrites that are asked for by name. MakeStateful and LowLatency2 turn inputs and outputs, or the values a
//! loop carries, into variables that live from one inference to the next.

use super::places::{near, some_of};
use super::{pruning, syntax};
use carafe_graph::{AttrMap, Error, Model, NodeId, OpNew, Result, Value};
use carafe_ops::control::{Loop, TensorIterator};
use carafe_ops::movement::{Broadcast, Identity};
use carafe_ops::recurrent::{GruSequence, LstmSequence, RnnSequence};
use carafe_ops::shape::ShapeOf;
use carafe_ops::state::{Assign, ReadValue};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

const KNOWN: &[&str] = &["LowLatency2", "MakeStateful", "Pruning"];

/// Runs the named rewrites in order.
pub(super) fn apply(model: &mut Model, text: &str) -> Result<()> {
    for item in syntax::list(text)? {
        let (name, inside) = syntax::name_and_group(item, &[('[', ']')]);
        let arguments = arguments(inside.unwrap_or_default())?;
        let run = match name {
            "LowLatency2" => low_latency(model, &arguments),
            "MakeStateful" => make_stateful(model, &arguments),
            "Pruning" => allow(&arguments, &[]).and_then(|()| pruning::run(model)),
            _ => {
                Err(Error::usage(format!("unknown{}; known: {}", near(name, KNOWN.iter().copied()), KNOWN.join(", "))))
            }
        };
        run.map_err(|e| e.at(format!("`{name}`")))?;
        model.infer()?;
    }
    Ok(())
}

/// Names that extensions know, and the rest of the list.
pub(super) fn split(text: &str, extension: &[&str]) -> Result<(Vec<String>, Option<String>)> {
    let mut enable = Vec::new();
    let mut rest = Vec::new();
    for item in syntax::list(text)? {
        let (name, inside) = syntax::name_and_group(item, &[('[', ']')]);
        match (extension.contains(&name), inside) {
            (true, None | Some("")) => enable.push(name.to_string()),
            (true, Some(_)) => return Err(Error::usage("a rewrite of an extension takes no arguments").at(name)),
            (false, _) if KNOWN.contains(&name) => rest.push(item),
            (false, _) => {
                let all: Vec<&str> = KNOWN.iter().chain(extension).copied().collect();
                let like = near(name, all.iter().copied());
                return Err(Error::usage(format!("`{name}`: unknown{like}; known: {}", all.join(", "))));
            }
        }
    }
    Ok((enable, (!rest.is_empty()).then(|| rest.join(","))))
}

// `key=value;key=value`
fn arguments(inside: &str) -> Result<Vec<(&str, &str)>> {
    let parts = syntax::split_outside(inside, ';')?;
    parts
        .into_iter()
        .filter(|p| !p.is_empty())
        .map(|p| {
            let (key, value) = p.split_once('=').ok_or_else(|| {
                Error::usage(format!("argument `{p}` has no value; expected Name[key=value;key=value]"))
            })?;
            Ok((key.trim(), value.trim()))
        })
        .collect()
}

fn allow(arguments: &[(&str, &str)], known: &[&str]) -> Result<()> {
    match arguments.iter().find(|(key, _)| !known.contains(key)) {
        Some((key, _)) if known.is_empty() => Err(Error::usage(format!("takes no arguments, found `{key}`"))),
        Some((key, _)) => Err(Error::usage(format!("has no argument `{key}`; it has: {}", known.join(", ")))),
        None => Ok(()),
    }
}

fn make_stateful(model: &mut Model, arguments: &[(&str, &str)]) -> Result<()> {
    allow(arguments, &["param_res_names"])?;
    let text = arguments.iter().find(|(key, _)| *key == "param_res_names").map(|(_, v)| *v);
    let form = "expected MakeStateful[param_res_names={'input':'output','input2':'output2'}]";
    let pairs = text
        .and_then(|t| t.strip_prefix('{')?.strip_suffix('}'))
        .ok_or_else(|| Error::usage(format!("needs the pairs of inputs and outputs; {form}")))?;
    let quoted = |t: &str| t.trim().trim_matches(['\'', '"']).to_string();
    let mut plan = Vec::new();
    for pair in syntax::list(pairs)? {
        let (input, output) = split_pair(pair).ok_or_else(|| Error::usage(format!("`{pair}` is no pair; {form}")))?;
        let (input, output) = (quoted(input), quoted(output));
        let names: Vec<String> = model.parameters().iter().map(|&p| model.parameter_name(p)).collect();
        let parameter = model.find_parameter(&input).ok_or_else(|| {
            let like = near(&input, names.iter().map(String::as_str));
            Error::not_found(format!("the model has no input `{input}`{like}; it has: {}", some_of(&names)))
        })?;
        let names: Vec<String> = model.results().iter().map(|&r| model.result_name(r)).collect();
        let result = model.find_result(&output).ok_or_else(|| {
            let like = near(&output, names.iter().map(String::as_str));
            Error::not_found(format!("the model has no output `{output}`{like}; it has: {}", some_of(&names)))
        })?;
        plan.push((model.parameters()[parameter], model.results()[result], format!("{input}{output}")));
    }
    for (parameter, result, variable) in plan {
        if model.get(parameter).is_none() || model.get(result).is_none() {
            return Err(Error::usage(format!("variable `{variable}` names an input or output that another pair has")));
        }
        to_variable(model, parameter, result, variable)?;
    }
    Ok(())
}

// Splits at the colon between the quotes, for names may hold colons.
fn split_pair(pair: &str) -> Option<(&str, &str)> {
    let quoted = ["':", "\":"].iter().find_map(|end| {
        let at = pair.find(end)?;
        Some((&pair[..=at], &pair[at + 2..]))
    });
    quoted.or_else(|| pair.split_once(':'))
}

fn to_variable(model: &mut Model, parameter: NodeId, result: NodeId, variable: String) -> Result<()> {
    let fact = model.fact(parameter.into()).clone();
    let value = model.result_value(result);
    let given = model.fact(value);
    if !fact.shape.compatible(&given.shape) || (given.ty != fact.ty && !given.ty.is_dynamic()) {
        return Err(Error::usage(format!("variable `{variable}` reads {fact} but is given {given}")));
    }
    let name = model.node(parameter).name().to_string();
    let read = ReadValue { variable_id: variable.clone(), variable_type: fact.ty, variable_shape: plain(&fact.shape) };
    let read = model.add(format!("{name}/read"), read, &[])?;
    model.remove(result)?;
    model.replace_value(parameter.into(), read.into());
    let value = if value == Value::from(parameter) { read.into() } else { value };
    model.remove(parameter)?;
    model.set_name(read, name);
    model.add(format!("{variable}/assign"), Assign { variable_id: variable }, &[value])?;
    Ok(())
}

fn plain(shape: &PartialShape) -> PartialShape {
    // Through its text, which has no symbols.
    shape.to_string().parse().unwrap_or_else(|_| PartialShape::dynamic())
}

fn low_latency(model: &mut Model, arguments: &[(&str, &str)]) -> Result<()> {
    allow(arguments, &["use_const_initializer"])?;
    let zeros = match arguments.first().map(|(_, v)| v.to_ascii_lowercase()).as_deref() {
        None | Some("true" | "1") => true,
        Some("false" | "0") => false,
        Some(other) => {
            return Err(Error::usage(format!("`use_const_initializer` takes True or False, found `{other}`")));
        }
    };
    let mut done = 0;
    for id in model.topological_order()? {
        done += carry_body(model, id, zeros)? + carry_sequence(model, id, zeros)?;
    }
    if done == 0 {
        return Err(Error::usage("the model has no TensorIterator, Loop or recurrent sequence that carries a value"));
    }
    Ok(())
}

// Every value that a body carries from one iteration to the next.
fn carry_body(model: &mut Model, id: NodeId, zeros: bool) -> Result<usize> {
    let op = model.node(id).op();
    if !op.is::<TensorIterator>() && !op.is::<Loop>() {
        return Ok(0);
    }
    let mut op = op.clone_op();
    let mut bodies = op.bodies_mut();
    let Some((_, body)) = bodies.first_mut() else { return Ok(0) };
    let mut carried = Vec::new();
    for input in &body.inputs {
        let (Some(outer), Some(result)) = (input.outer, input.back_edge) else { continue };
        if is_passed_on(&body.model, input.parameter, result) {
            continue;
        }
        let parameter = body.model.node(body.model.parameters()[input.parameter]).name().to_string();
        // The last value must leave the body to be stored.
        let given = body.outputs.iter().find(|o| o.result == result && o.slicing.is_none()).map(|o| o.outer);
        let port = given.unwrap_or_else(|| {
            let port = body.outputs.iter().map(|o| o.outer + 1).max().unwrap_or(0);
            body.outputs.push(carafe_graph::BodyOutput { outer: port, result, slicing: None });
            port
        });
        carried.push((outer, port, parameter));
    }
    drop(bodies);
    model.set_op(id, Arc::from(op))?;
    let name = model.node(id).name().to_string();
    for (i, (outer, port, parameter)) in carried.iter().enumerate() {
        carry(model, id, *outer, *port, format!("{name}/{parameter}/variable_{i}"), zeros)?;
    }
    Ok(carried.len())
}

// Whether the next iteration gets what this one got, such as the condition of a loop that only counts.
fn is_passed_on(body: &Model, parameter: usize, result: usize) -> bool {
    let mut v = body.result_value(body.results()[result]);
    while body.node(v.node).op().is::<Identity>() {
        v = body.node(v.node).inputs()[0];
    }
    v == Value::from(body.parameters()[parameter])
}

// The hidden and cell states of a recurrent sequence.
fn carry_sequence(model: &mut Model, id: NodeId, zeros: bool) -> Result<usize> {
    let op = model.node(id).op();
    let n = match () {
        () if op.is::<LstmSequence>() => 2,
        () if op.is::<GruSequence>() || op.is::<RnnSequence>() => 1,
        () => 0,
    };
    let name = model.node(id).name().to_string();
    for i in 0..n {
        carry(model, id, i + 1, i + 1, format!("{name}/variable_{i}"), zeros)?;
    }
    Ok(n)
}

// Reads a variable into an input of the node and stores one of its outputs there.
fn carry(model: &mut Model, id: NodeId, input: usize, port: usize, variable: String, zeros: bool) -> Result<()> {
    let start = model.node(id).inputs()[input];
    let fact = model.fact(start).clone();
    let initial = if zeros { zero_like(model, start, &variable)? } else { start };
    let read = ReadValue { variable_id: variable.clone(), variable_type: fact.ty, variable_shape: plain(&fact.shape) };
    let read = model.add(format!("{variable}/read"), read, &[initial])?;
    model.set_input(id, input, read.into());
    model.add(format!("{variable}/assign"), Assign { variable_id: variable }, &[Value { node: id, port }])?;
    Ok(())
}

fn zero_like(model: &mut Model, v: Value, name: &str) -> Result<Value> {
    let fact = model.fact(v).clone();
    if let Some(shape) = fact.shape.to_static() {
        return model.constant(&format!("{name}/zeros"), Tensor::zeros(fact.ty, &shape)?);
    }
    let zero = model.constant(&format!("{name}/zero"), Tensor::zeros(fact.ty, &[])?)?;
    let shape = model.add(format!("{name}/shape"), ShapeOf { output_type: ElementType::I64 }, &[v])?;
    let wide = Broadcast::from_attrs(&AttrMap::default())?;
    Ok(model.add(format!("{name}/zeros"), wide, &[zero, shape.into()])?.into())
}
