//! Runs a case in one compiled model with several sets of shapes: those of the case, longer and empty ones, and those of the
//! case again.
//! Where the case has weights they are also made to depend on the shapes, so that each set needs its own. What the case does
//! not state is held against evaluating the model.

use crate::case::{Case, Expect, Subject};
use crate::compare::compare;
use crate::paths::core;
use crate::runner::{InputsAs, any_dims, build, check_outputs, feed, find_op, is_unfoldable};
use carafe_graph::{AttrMap, AttrValue, Constant, ErrorKind, Model, NodeId, Result, Value};
use carafe_tensor::{ElementType, Tensor};
use std::collections::HashMap;

/// What the inputs of the case become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Parameters,
    Constants,
    /// As `Constants`, times a number that follows from the first shape and is 1 for that of the case.
    ShapedConstants,
}

/// Runs the check; a case that expects an error or is marked `static_only` has nothing to check.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    if matches!(case.expect, Expect::Error(_)) || case.options.static_only {
        return Ok(());
    }
    for form in [Form::Parameters, Form::Constants, Form::ShapedConstants] {
        let failed = |e: String| format!("{form:?}: {e}");
        let Some(model) = opened(case, form).map_err(|e| failed(e.to_string()))? else { continue };
        let inputs = feed(case, &model).map_err(|e| failed(e.to_string()))?;
        run(case, &model, &inputs).map_err(failed)?;
    }
    Ok(())
}

fn run(case: &Case, model: &Model, inputs: &[Tensor]) -> Result<(), String> {
    let text = |e: carafe_graph::Error| e.to_string();
    // What a chain of operations makes of an empty value may depend on how shapes were simplified: a Reshape to -1 has no one
    // answer there. So only single operations are tried with such.
    let times: &[usize] = if matches!(case.subject, Subject::Op { .. }) { &[2, 0] } else { &[2] };
    let others: Vec<_> = times.iter().filter_map(|&times| other_shapes(model, inputs, times)).collect();
    if others.is_empty() {
        return Ok(());
    }
    let compiled = core().compile_model(model, "CPU", &carafe::Properties::new()).map_err(text)?;
    let request = compiled.create_infer_request();
    let infer = |inputs: &[Tensor]| -> Result<Vec<Tensor>> { Ok(request.infer(inputs)?.into_vec()) };
    check_outputs(case, infer(inputs)).map_err(|e| format!("at first: {e}"))?;
    for (others, wanted) in others {
        let shapes: Vec<&[usize]> = others.iter().map(Tensor::shape).collect();
        let found = infer(&others).map_err(|e| format!("with shapes {shapes:?}: {e}"))?;
        for (i, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            compare(wanted, found, case.tolerance(wanted.element_type()))
                .map_err(|e| format!("with shapes {shapes:?}, output {i}: {e}"))?;
        }
        check_outputs(case, infer(inputs)).map_err(|e| format!("after shapes {shapes:?}: {e}"))?;
    }
    Ok(())
}

// The model with open shapes; `None` where it cannot have them.
fn opened(case: &Case, form: Form) -> Result<Option<Model>> {
    let inputs_as = if form == Form::Parameters { InputsAs::Parameters } else { InputsAs::ConstantsButFirst };
    let mut model = build(case, inputs_as)?;
    if is_unfoldable(&model) || model.parameters().is_empty() {
        return Ok(None);
    }
    let shapes: HashMap<usize, _> =
        (0..model.parameters().len()).map(|i| (i, any_dims(&model.fact(model.parameters()[i].into()).shape))).collect();
    let open = |e: carafe_graph::Error| if e.kind() == ErrorKind::Unsupported { Ok(None) } else { Err(e) };
    if let Err(e) = model.reshape(&shapes) {
        return open(e);
    }
    if form != Form::ShapedConstants {
        return Ok(Some(model));
    }
    let first = feed(case, &model)?.swap_remove(0);
    match scale_constants(&mut model, &first) {
        Ok(true) => Ok(Some(model)),
        Ok(false) => Ok(None),
        Err(e) => open(e),
    }
}

fn add(model: &mut Model, kind: &str, attrs: &[(&str, &str)], inputs: &[Value]) -> Result<Value> {
    let mut map = AttrMap::default();
    attrs.iter().for_each(|(name, value)| map.set(*name, AttrValue::Text(value.to_string())));
    let op = find_op(kind, None)?.create(&map)?;
    let name = format!("{kind}_{}", model.slots());
    Ok(model.add_ref(name, op, inputs)?.into())
}

// Puts a factor behind every constant of f32 with more than one element; whether there is one.
fn scale_constants(model: &mut Model, first: &Tensor) -> Result<bool> {
    let constants: Vec<(NodeId, ElementType)> = model
        .nodes()
        .filter(|(_, n)| n.op().is::<Constant>())
        .filter_map(|(id, n)| n.outputs()[0].fact.tensor().filter(|t| t.len() > 1).map(|t| (id, t.element_type())))
        .filter(|(_, ty)| *ty == ElementType::F32)
        .collect();
    if constants.is_empty() || first.is_empty() || first.rank() == 0 {
        return Ok(false);
    }
    let x: Value = model.parameters()[0].into();
    let shape = add(model, "ShapeOf", &[("output_type", "i64")], &[x])?;
    let axis = model.constant("factor_axis", Tensor::from_slice(&[1], &[0i64])?)?;
    let count = add(model, "ReduceProd", &[("keep_dims", "false")], &[shape, axis])?;
    let count = add(model, "Convert", &[("destination_type", "f32")], &[count])?;
    let usual = model.constant("factor_usual", Tensor::scalar(first.len() as f32))?;
    let factor = add(model, "Divide", &[], &[count, usual])?;
    for (id, _) in constants {
        let users = model.users(id.into()).to_vec();
        let scaled = add(model, "Multiply", &[], &[id.into(), factor])?;
        for user in users {
            model.set_input(user.node, user.input, scaled);
        }
    }
    model.infer()?;
    Ok(true)
}

// The tensor with an axis so many times as long, its elements repeated.
fn stretched(tensor: &Tensor, axis: usize, times: usize) -> Option<Tensor> {
    let from = tensor.shape().to_vec();
    let mut to = from.clone();
    *to.get_mut(axis)? *= times;
    let inner: usize = from[axis + 1..].iter().product();
    let position = |flat: usize| {
        let (row, column) = (flat / (inner * to[axis]), flat % (inner * to[axis]));
        Some(row * inner * from[axis] + column % (inner * from[axis]))
    };
    if tensor.is_empty() {
        return None;
    }
    tensor.select(&to, position).ok()
}

// Inputs with axes so many times as long that the model takes, with what it makes of them.
fn other_shapes(model: &Model, inputs: &[Tensor], times: usize) -> Option<(Vec<Tensor>, Vec<Tensor>)> {
    let rank = inputs.iter().map(Tensor::rank).max()?;
    let mut tries: Vec<Vec<Option<usize>>> = vec![];
    for axis in 0..rank {
        tries.push(inputs.iter().map(|t| (axis < t.rank()).then_some(axis)).collect());
        tries.push((0..inputs.len()).map(|i| (i == 0 && axis < inputs[0].rank()).then_some(axis)).collect());
    }
    tries.into_iter().find_map(|axes| {
        let change = |(t, axis): (&Tensor, &Option<usize>)| match axis {
            Some(axis) => stretched(t, *axis, times),
            None => Some(t.clone()),
        };
        let changed: Vec<Tensor> = inputs.iter().zip(&axes).map(change).collect::<Option<_>>()?;
        let same = changed.iter().zip(inputs).all(|(a, b)| a.shape() == b.shape());
        let outputs = if same { None } else { model.evaluate(&changed).ok() };
        Some((changed, outputs?))
    })
}
