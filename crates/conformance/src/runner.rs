//! Builds a case as a model and checks what comes out. Operations are found by name without regard to case and
//! underscores, so `shape_of`, `ShapeOf` and `shapeof` are the same.

use crate::case::{Case, Expect, Expected, Subject};
use crate::compare::compare;
use carafe_graph::{AttrMap, AttrValue, Error, Fact, Model, OpFactory, OpRef, Registry, Result, Value};
use carafe_tensor::{PartialShape, SharedBytes, Tensor};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Everything the library has.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(carafe_ops::registry);
    &REGISTRY
}

/// What the inputs of a case become in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputsAs {
    /// Parameters; in a case about inference, inputs with a value are constants all the same.
    Parameters,
    /// Constants, so that the model has no inputs.
    Constants,
    /// The first is a parameter and the others are constants, as in most real models.
    ConstantsButFirst,
}

/// A name as cases are looked up by.
fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// Every class by its plain names. A plan asks for thousands.
fn by_plain_name() -> &'static HashMap<String, Vec<&'static OpFactory>> {
    static CLASSES: LazyLock<HashMap<String, Vec<&'static OpFactory>>> = LazyLock::new(|| {
        let mut classes: HashMap<String, Vec<&'static OpFactory>> = HashMap::new();
        for factory in registry().all() {
            let (name, xml_name) = (plain(factory.info.name), plain(factory.info.xml_name));
            if xml_name != name {
                classes.entry(xml_name).or_default().push(factory);
            }
            classes.entry(name).or_default().push(factory);
        }
        classes
    });
    &CLASSES
}

/// The class of operation a case is about.
pub fn find_op(name: &str, opset: Option<&str>) -> Result<&'static OpFactory> {
    let classes = by_plain_name().get(&plain(name)).map(Vec::as_slice).unwrap_or_default();
    let Some(newest) = classes.iter().max_by_key(|f| f.info.since) else {
        let near = registry().near(&name.replace('_', ""));
        return Err(Error::not_found(format!("operation `{name}` is unknown; similar: {}", near.join(", "))));
    };
    let found = match opset {
        None => Some(newest),
        Some(opset) => {
            let n = opset.strip_prefix("opset").and_then(|n| n.parse::<u32>().ok());
            classes.iter().find(|f| f.info.opset == opset || n.is_some_and(|n| f.info.in_opset(n)))
        }
    };
    found.copied().ok_or_else(|| {
        let have: Vec<_> = classes.iter().map(|f| format!("opset{} to opset{}", f.info.since, f.info.until)).collect();
        Error::not_found(format!(
            "{} is not in {}; it is in {}",
            newest.info.name,
            opset.unwrap_or(""),
            have.join(", ")
        ))
    })
}

/// The operation of a case with its attributes. `None` for a case about a model file.
pub fn make_op(case: &Case) -> Result<Option<OpRef>> {
    let Subject::Op { name, opset } = &case.subject else { return Ok(None) };
    let factory = find_op(name, opset.as_deref())?;
    // The operation itself would skip a name it does not know, and a misspelt case would test the default.
    for (attr, _) in &case.attrs {
        if !factory.info.attrs.iter().any(|a| a.name == attr) {
            let known: Vec<_> = factory.info.attrs.iter().map(|a| a.name).collect();
            return Err(Error::not_found(format!(
                "{} has no attribute `{attr}`; it has: {}",
                factory.info.name,
                known.join(", ")
            )));
        }
    }
    let attrs: AttrMap = case.attrs.iter().map(|(n, v)| (n.clone(), AttrValue::Text(v.clone()))).collect();
    factory.create(&attrs).map(Some)
}

/// The model of a case.
pub fn build(case: &Case, inputs_as: InputsAs) -> Result<Model> {
    let constants = inputs_as == InputsAs::Constants || case.is_inference();
    let Some(op) = make_op(case)? else { return load_model(case, constants) };
    let mut model = Model::new("case");
    let mut inputs: Vec<Value> = Vec::new();
    for (i, input) in case.inputs.iter().enumerate() {
        let constant = constants || (inputs_as == InputsAs::ConstantsButFirst && i > 0);
        inputs.push(match &input.value {
            Some(tensor) if constant => model.constant(&input.label, tensor.clone())?,
            _ => model.parameter(&input.label, input.ty, input.shape.clone())?,
        });
    }
    let node = model.add_ref("op", op, &inputs)?;
    for port in 0..model.node(node).outputs().len() {
        model.result(&format!("result_{port}"), Value { node, port })?;
    }
    Ok(model)
}

/// Reads the model file of a case: from beside the case file, or what the program holds. Inputs without a value get their shape from the case.
fn load_model(case: &Case, constants: bool) -> Result<Model> {
    let Subject::Model { file } = &case.subject else { return Err(Error::usage("the case is not about a model")) };
    let options = carafe_ir::ReadOptions::default();
    let mut model = if file.exists() {
        carafe_ir::read_file(file, registry(), &options)?
    } else {
        let (text, weights) = crate::embedded::model(file)?;
        carafe_ir::read(text, SharedBytes::from_vec(weights.to_vec()), registry(), &options)?
    };
    let known: Vec<String> = model.parameters().iter().map(|&p| model.parameter_name(p)).collect();
    let mut shapes = HashMap::new();
    let mut stored = Vec::new();
    for input in &case.inputs {
        let index = model.find_parameter(&input.label).ok_or_else(|| {
            Error::not_found(format!("the model has no input `{}`; it has: {}", input.label, known.join(", ")))
        })?;
        match &input.value {
            Some(tensor) if constants => stored.push((model.parameters()[index], &input.label, tensor)),
            Some(_) => {}
            None => drop(shapes.insert(index, input.shape.clone())),
        }
    }
    model.reshape(&shapes)?;
    for (parameter, label, tensor) in stored {
        let value = model.constant(&format!("{label}/value"), tensor.clone())?;
        model.replace_value(parameter.into(), value);
        model.remove(parameter)?;
    }
    model.infer()?;
    Ok(model)
}

/// The values for the parameters of a model made by `build`.
pub fn feed(case: &Case, model: &Model) -> Result<Vec<Tensor>> {
    let value = |index: usize| {
        let input = case.inputs.iter().find(|i| model.find_parameter(&i.label) == Some(index));
        input.and_then(|i| i.value.clone()).ok_or_else(|| {
            let name = model.parameter_name(model.parameters()[index]);
            Error::usage(format!("the case has no value for input `{name}`"))
        })
    };
    (0..model.parameters().len()).map(value).collect()
}

/// What is known of the results of a model before it runs.
pub fn result_facts(model: &Model) -> Vec<Fact> {
    model.results().iter().map(|&r| model.fact(model.result_value(r)).clone()).collect()
}

/// Checks what an evaluation gave.
pub fn check_outputs(case: &Case, found: Result<Vec<Tensor>>) -> Result<(), String> {
    let Some((expected, found)) = outcome(case, found)? else { return Ok(()) };
    for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
        let result = match &e.value {
            Some(value) => compare(value, f, case.tolerance(e.ty)),
            None if e.ty == f.element_type() && e.shape.accepts(f.shape()) => Ok(()),
            None => Err(format!("expected {}[{}], found {}{:?}", e.ty, e.shape, f.element_type(), f.shape())),
        };
        result.map_err(|m| format!("output {i}: {m}"))?;
    }
    Ok(())
}

/// Checks what an inference gave: element types and shapes, letter by letter.
pub fn check_facts(case: &Case, found: Result<Vec<Fact>>) -> Result<(), String> {
    let Some((expected, found)) = outcome(case, found)? else { return Ok(()) };
    for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
        let (wanted, got) = (format!("{}[{}]", e.ty, e.shape), format!("{}[{}]", f.ty, f.shape));
        if wanted != got {
            return Err(format!("output {i}: expected {wanted}, inferred {got}"));
        }
        if let Some(value) = &e.value {
            match f.tensor() {
                Some(t) => compare(value, t, case.tolerance(e.ty)).map_err(|m| format!("output {i}: {m}"))?,
                None => return Err(format!("output {i}: expected a value, inferred none")),
            }
        }
    }
    Ok(())
}

/// Pairs what a case expects with what was found, or is done where an error was expected and came.
fn outcome<T>(case: &Case, found: Result<Vec<T>>) -> Result<Option<(&[Expected], Vec<T>)>, String> {
    match (&case.expect, found) {
        (Expect::Error(text), Err(e)) if e.to_string().contains(text) => Ok(None),
        (Expect::Error(text), Err(e)) => Err(format!("expected an error with \"{text}\", found \"{e}\"")),
        (Expect::Error(text), Ok(_)) => Err(format!("expected an error with \"{text}\", found none")),
        (Expect::Outputs(_), Err(e)) => Err(e.to_string()),
        (Expect::Outputs(expected), Ok(found)) if expected.len() == found.len() => Ok(Some((expected, found))),
        (Expect::Outputs(expected), Ok(found)) => {
            Err(format!("expected {} outputs, found {}", expected.len(), found.len()))
        }
    }
}

/// Whether two evaluations may differ or depend on state, in this model or in a body of it; such a model is not folded.
pub fn is_unfoldable(model: &Model) -> bool {
    model.nodes().any(|(_, n)| {
        let info = n.op().info();
        info.random || info.stateful || n.op().bodies().iter().any(|(_, b)| is_unfoldable(&b.model))
    })
}

/// A shape of the same rank of which nothing else is known.
pub fn any_dims(shape: &PartialShape) -> PartialShape {
    shape.rank().map_or_else(PartialShape::dynamic, PartialShape::any_of_rank)
}
