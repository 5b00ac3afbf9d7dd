//! Extensions that are written in Python, as the engine takes them: operations, conversions of nodes, mappings, rewrites of decoded
//! graphs, and listeners. What a user writes is kept as a callable; `carafe._extensions` and `carafe.frontend` call this file.

use crate::core::{Core, Source};
use crate::errors::{OrRaise, failure, raised};
use crate::graph::{self, EngineModel, GraphFact, GraphOp};
use crate::types::Type;
use carafe::{
    Content, Error, Extension, Mapping, Model, NodeCx, NodeId, Notes, OpFactory, Pass, Phase, PhasedPass, ReadRequest,
    Rule, RuleOutputs, Value,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Begins the names of nodes that stand for the inputs of a source node.
const STAND_IN: &str = "carafe.input.";

/// No format numbers element types beyond this.
const TYPE_NUMBERS: i64 = 64;

/// Something that a core can be given. It has no name: what is given later stands in front, as with rules of the program.
#[pyclass(name = "NativeExtension", module = "carafe._native", frozen)]
pub(crate) struct NativeExtension(Extension);

#[pymethods]
impl NativeExtension {
    /// An operation: `create` gives a node of it for attributes.
    #[staticmethod]
    fn operation(name: &str, opset: &str, create: Py<PyAny>) -> NativeExtension {
        let made = move |attributes: &carafe::AttrMap| {
            let op = Python::attach(|py| {
                let dict = PyDict::new(py);
                for (key, value) in attributes.iter() {
                    dict.set_item(key, graph::attribute_to_python(py, value)?)?;
                }
                let op = create.bind(py).call1((dict,))?;
                Ok(op.cast_into::<GraphOp>()?.get().0.clone())
            });
            op.map_err(raised)
        };
        let factory = OpFactory::from_fn(graph::python_info(name, opset), made);
        NativeExtension(Extension { ops: vec![factory], ..Extension::default() })
    }

    /// A conversion of nodes of one type: `convert` gets a `SourceNode`, see `carafe.frontend`.
    #[staticmethod]
    #[pyo3(signature = (framework, domain, op_type, convert))]
    fn conversion(framework: Option<&str>, domain: Option<&str>, op_type: &str, convert: Py<PyAny>) -> NativeExtension {
        let mut rule = Rule::new(op_type, move |n: &mut NodeCx<'_>| translate(&convert, n));
        if let Some(framework) = framework {
            rule = rule.framework(framework);
        }
        if let Some(domain) = domain {
            rule = rule.domain(domain);
        }
        NativeExtension(Extension::default().rule(rule))
    }

    /// A mapping of one operation to another, by data alone: from where (format, domain, type), to what, ports by name (inputs,
    /// outputs), names and values of attributes. One that cannot be is an error when a node asks for it.
    #[staticmethod]
    fn mapping(
        from: (Option<String>, Option<String>, String),
        op: String,
        ports: (Vec<String>, Vec<String>),
        names: Vec<(String, String)>,
        values: &Bound<'_, PyDict>,
    ) -> PyResult<NativeExtension> {
        let mut mapping = Mapping {
            framework: from.0,
            domain: from.1,
            op_type: Some(from.2.clone()),
            attr_names: names,
            input_names: ports.0,
            output_names: ports.1,
            ..Mapping::new(op)
        };
        for (key, value) in values {
            mapping.attr_values.set(key.extract::<String>()?, graph::attribute_of_python(&value)?);
        }
        Ok(NativeExtension(match mapping.clone().into_rule() {
            Ok(_) => Extension::default().mapping(mapping),
            Err(e) => {
                let rule = Rule::new(from.2, move |_: &mut NodeCx<'_>| Err(e.clone()));
                Extension::default().rule(Rule { framework: mapping.framework, domain: mapping.domain, ..rule })
            }
        }))
    }

    /// A rewrite of models as they are decoded: `rewrite` gets and edits a `Model`.
    #[staticmethod]
    fn decoded(rewrite: Py<PyAny>) -> NativeExtension {
        let pass = PhasedPass::new(Phase::Decoded, Arc::new(Rewrite(rewrite)));
        NativeExtension(Extension::default().pass(pass))
    }

    /// Hears how far the reading of a model is: part, steps in all, steps done.
    #[staticmethod]
    fn progress(listener: Py<PyAny>) -> NativeExtension {
        let told = move |part: f32, total: u32, done: u32| {
            Python::attach(|py| report(py, listener.call1(py, (part, total, done))));
        };
        NativeExtension(Extension { progress: vec![Arc::new(told)], ..Extension::default() })
    }

    /// Hears of events: kind, category, action, label, value.
    #[staticmethod]
    fn telemetry(listener: Py<PyAny>) -> NativeExtension {
        let told = move |kind: &str, category: &str, action: &str, label: &str, value: i64| {
            Python::attach(|py| report(py, listener.call1(py, (kind, category, action, label, value))));
        };
        NativeExtension(Extension { telemetry: vec![Arc::new(told)], ..Extension::default() })
    }
}

// A listener cannot stop what it listens to: its exception is printed, as that of a thread would be.
fn report(py: Python<'_>, done: PyResult<Py<PyAny>>) {
    if let Err(e) = done {
        e.write_unraisable(py, None);
    }
}

/// A node of a file that is being converted.
#[pyclass(name = "SourceNode", module = "carafe._native", frozen, get_all)]
pub(crate) struct SourceNode {
    op_type: String,
    domain: String,
    version: i64,
    name: String,
    attributes: Py<PyDict>,
    /// Element types by their numbers in the format.
    types: HashMap<i64, Type>,
    /// Types and shapes; `None` for an input that is left out.
    inputs: Vec<Option<GraphFact>>,
    /// Inputs that are constants.
    constants: Vec<Option<Py<PyAny>>>,
    input_ports: Vec<String>,
    output_ports: Vec<String>,
    n_outputs: usize,
}

/// What a conversion gave: a model from the stand-ins to the outputs, names of the ports that they belong to, attributes that it read.
type Converted = (EngineModel, Option<Vec<String>>, Vec<String>);

// Calls the conversion with stand-ins for the inputs and emits what it built.
fn translate(convert: &Py<PyAny>, n: &mut NodeCx<'_>) -> carafe::Result<RuleOutputs> {
    let mut values: Vec<Option<Value>> = Vec::new();
    for i in 0..n.n_inputs() {
        values.push(n.opt(i)?);
    }
    let attributes: Vec<(String, carafe::AttrValue)> =
        n.attrs().iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    attributes.iter().for_each(|(name, _)| n.leave(name));
    let converted: PyResult<Converted> = Python::attach(|py| {
        let dict = PyDict::new(py);
        for (key, value) in &attributes {
            dict.set_item(key, graph::attribute_to_python(py, value)?)?;
        }
        let mut constants = Vec::new();
        for value in &values {
            let tensor = value.and_then(|v| n.tensor(v)).cloned();
            constants.push(tensor.map(|t| graph::tensor_to_python(py, t)).transpose()?);
        }
        let node = SourceNode {
            op_type: n.op_type().to_string(),
            domain: n.domain().to_string(),
            version: n.version(),
            name: n.name().to_string(),
            attributes: dict.unbind(),
            types: (0..TYPE_NUMBERS).filter_map(|code| Some((code, Type(n.element_type(code)?)))).collect(),
            inputs: values.iter().map(|v| v.map(|v| GraphFact(n.fact(v).clone()))).collect(),
            constants,
            input_ports: n.input_ports().to_vec(),
            output_ports: n.output_ports().to_vec(),
            n_outputs: n.n_outputs(),
        };
        convert.bind(py).call1((node,))?.extract()
    });
    let (model, ports, read) = converted.map_err(raised)?;
    let read: Vec<&str> = read.iter().map(String::as_str).collect();
    n.ignore(&read);
    let outputs = emit(n, &model.0, &values)?;
    match ports {
        None => Ok(outputs.into()),
        Some(ports) => n.by_output_names(ports.iter().map(String::as_str).zip(outputs)),
    }
}

// Copies the nodes of a model into the graph that is being translated; what stands for inputs becomes those.
fn emit(n: &mut NodeCx<'_>, model: &Model, inputs: &[Option<Value>]) -> carafe::Result<Vec<Value>> {
    let mut made: HashMap<Value, Value> = HashMap::new();
    for id in model.topological_order()? {
        let node = model.node(id);
        let stands_for = node.name().strip_prefix(STAND_IN).and_then(|i| i.parse::<usize>().ok());
        if let Some(value) = stands_for.and_then(|i| inputs.get(i).copied().flatten()) {
            made.insert(id.into(), value);
            continue;
        }
        if node.op().is::<carafe::ResultOp>() {
            continue;
        }
        if node.op().is::<carafe::Parameter>() {
            let text = "a conversion reads a Parameter that is no input of the node; use node.get_input(index)";
            return Err(Error::usage(text));
        }
        let from =
            node.inputs().iter().map(|v| made.get(v).copied().ok_or_else(|| Error::invalid("an edge without a start")));
        let from = from.collect::<carafe::Result<Vec<_>>>()?;
        let outputs = n.emit_ref(node.op_ref().clone(), &from)?;
        for (port, value) in outputs.into_iter().enumerate() {
            made.insert(Value { node: id, port }, value);
        }
    }
    let results = model.results().iter().map(|r| model.node(*r).inputs().first().and_then(|v| made.get(v)).copied());
    results.map(|v| v.ok_or_else(|| Error::invalid("an output of a conversion has no value"))).collect()
}

/// A rewrite of decoded models that is written in Python.
struct Rewrite(Py<PyAny>);

impl Pass for Rewrite {
    fn name(&self) -> &'static str {
        "decoder_transformation_of_python"
    }
    fn run(&self, model: &mut Model, _notes: &mut Notes) -> carafe::Result<usize> {
        let before = Arc::new(model.clone());
        let after = Python::attach(|py| {
            let object = graph::model_object(py, before.clone())?;
            self.0.bind(py).call1((&object,))?;
            graph::engine_model(&object)
        });
        let after = after.map_err(raised)?;
        if Arc::ptr_eq(&before, &after) {
            return Ok(0);
        }
        transplant(model, &after)?;
        Ok(1)
    }
}

// Makes a model what another is, in place: nodes of the same name, type and number of inputs stay the nodes that they are, since
// the reader knows what the file has for them.
fn transplant(model: &mut Model, after: &Model) -> carafe::Result<()> {
    let mut made: HashMap<Value, Value> = HashMap::new();
    let mut taken: HashSet<NodeId> = HashSet::new();
    let old: HashMap<String, NodeId> = model.nodes().map(|(id, node)| (node.name().to_string(), id)).collect();
    for id in after.topological_order()? {
        let node = after.node(id);
        let inputs =
            node.inputs().iter().map(|v| made.get(v).copied().ok_or_else(|| Error::invalid("an edge without a start")));
        let inputs = inputs.collect::<carafe::Result<Vec<_>>>()?;
        let is_same = |found: &NodeId| {
            let before = model.node(*found);
            let same_type =
                before.op().type_name() == node.op().type_name() && before.op().opset() == node.op().opset();
            same_type && before.inputs().len() == inputs.len() && before.outputs().len() == node.outputs().len()
        };
        let kept = old.get(node.name()).copied().filter(|found| !taken.contains(found)).filter(is_same);
        let new = match kept {
            Some(kept) => {
                for (i, value) in inputs.iter().enumerate() {
                    if model.node(kept).inputs()[i] != *value {
                        model.set_input(kept, i, *value);
                    }
                }
                if !model.node(kept).op().eq_op(node.op()) {
                    model.set_op(kept, node.op_ref().clone())?;
                }
                kept
            }
            None => model.add_ref(node.name(), node.op_ref().clone(), &inputs)?,
        };
        taken.insert(new);
        for port in 0..node.outputs().len() {
            made.insert(Value { node: id, port }, Value { node: new, port });
        }
    }
    let gone: Vec<NodeId> = model.results().iter().copied().filter(|r| !taken.contains(r)).collect();
    gone.into_iter().try_for_each(|r| model.remove(r))
}

/// Adds one extension to a core.
#[pyfunction]
fn add_native(core: &Core, extension: &NativeExtension) -> PyResult<()> {
    core.core.add_extension(extension.0.clone()).or_raise()
}

/// Name of the format of a file.
#[pyfunction]
fn format_of(py: Python<'_>, core: &Core, path: PathBuf) -> PyResult<&'static str> {
    py.detach(|| core.core.format_of(path)).or_raise()
}

/// Reads a model `whole`, `partial` (nodes without a rule are kept), or only `decoded`.
#[pyfunction]
fn read_with(py: Python<'_>, core: &Core, model: &Bound<'_, PyAny>, how: &str) -> PyResult<EngineModel> {
    let source = Source::of(model)?;
    let read = py.detach(|| {
        let request = match source.content() {
            Content::File(path) => ReadRequest::new(path),
            Content::Bytes(bytes) => ReadRequest::from_bytes(bytes),
        };
        match how {
            "decoded" => core.core.read_decoded(&request),
            _ => core.core.read(&ReadRequest { keep_unknown: how == "partial", ..request }).map(Some),
        }
    });
    let read = read.or_raise()?;
    let none = || failure("the format has no decoded form: its nodes are operations already");
    Ok(EngineModel(Arc::new(read.ok_or_else(none)?)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeExtension>()?;
    module.add_class::<SourceNode>()?;
    module.add_function(wrap_pyfunction!(add_native, module)?)?;
    module.add_function(wrap_pyfunction!(format_of, module)?)?;
    module.add_function(wrap_pyfunction!(read_with, module)?)
}
