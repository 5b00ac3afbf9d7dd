//! Operations that are written in Python: a node of a subclass of `Op`, asked by the engine for types, shapes and values.

use super::attrs;
use super::fact::GraphFact;
use super::op::GraphOp;
use super::{engine_tensor, tensor_object};
use crate::errors::raised;
use carafe::prelude::{EvalCx, InferCx, Op};
use carafe::{AttrValue, Body, Fact, OpDecl, OpInfo, PortInfo};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A node of Python as an operation. The node is asked through copies on other inputs, so it never changes.
#[derive(Debug)]
struct PythonOp {
    info: &'static OpInfo,
    node: Arc<Py<PyAny>>,
    attributes: Vec<(String, AttrValue)>,
    evaluates: bool,
}

impl Clone for PythonOp {
    fn clone(&self) -> PythonOp {
        let (node, attributes) = (self.node.clone(), self.attributes.clone());
        PythonOp { info: self.info, node, attributes, evaluates: self.evaluates }
    }
}

/// One declaration a type, kept for good: operations refer to it.
pub(crate) fn info_of(name: &str, opset: &str) -> &'static OpInfo {
    static KNOWN: OnceLock<Mutex<HashMap<(String, String), &'static OpInfo>>> = OnceLock::new();
    const ANY: &[PortInfo] = &[PortInfo { name: "inputs", optional: false, variadic: true }];
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    known.entry((name.to_string(), opset.to_string())).or_insert_with(|| {
        let name: &'static str = Box::leak(name.to_string().into_boxed_str());
        let opset: &'static str = Box::leak(opset.to_string().into_boxed_str());
        Box::leak(Box::new(OpInfo {
            name,
            xml_name: name,
            opset,
            inputs: ANY,
            outputs: ANY,
            any_attrs: true,
            doc: "An operation that is written in Python.",
            ..OpInfo::PLAIN
        }))
    })
}

fn helper<'py>(py: Python<'py>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("carafe._graph.custom")?.into_any().unbind()))?;
    module.bind(py).getattr(function)
}

impl Op for PythonOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> carafe::Result<()> {
        let inputs: Vec<GraphFact> = (0..cx.n_inputs()).map(|i| GraphFact(cx.fact(i).clone())).collect();
        let outputs: PyResult<Vec<Fact>> = Python::attach(|py| {
            let facts: Vec<GraphFact> = helper(py, "infer")?.call1((self.node.bind(py), inputs))?.extract()?;
            Ok(facts.into_iter().map(|f| f.0).collect())
        });
        for (i, fact) in outputs.map_err(raised)?.into_iter().enumerate() {
            cx.set_fact(i, fact);
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> carafe::Result<()> {
        let outputs: PyResult<Vec<carafe::Tensor>> = Python::attach(|py| {
            let inputs = (0..cx.n_inputs()).map(|i| tensor_object(cx.input(i).clone()));
            let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
            let made: Vec<Bound<'_, PyAny>> = helper(py, "evaluate")?.call1((self.node.bind(py), inputs))?.extract()?;
            made.iter().map(engine_tensor).collect()
        });
        for (i, tensor) in outputs.map_err(raised)?.into_iter().enumerate() {
            cx.set(i, tensor)?;
        }
        Ok(())
    }
    fn has_eval(&self) -> bool {
        self.evaluates
    }
}

impl OpDecl for PythonOp {
    fn info(&self) -> &'static OpInfo {
        self.info
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.attributes.iter().map(|(name, value)| (name.clone().into(), value.clone())).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        let same = |o: &PythonOp| std::ptr::eq(o.info, self.info) && o.attributes == self.attributes;
        other.get::<PythonOp>().is_some_and(same)
    }
    fn bodies(&self) -> Vec<(&'static str, &Body)> {
        vec![]
    }
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)> {
        vec![]
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}

/// The operation of a node that is written in Python.
#[pyfunction]
pub(super) fn python_op(
    node: Py<PyAny>,
    name: &str,
    opset: &str,
    attributes: &Bound<'_, PyDict>,
    evaluates: bool,
) -> PyResult<GraphOp> {
    let op = PythonOp { info: info_of(name, opset), node: Arc::new(node), attributes: listed(attributes)?, evaluates };
    Ok(GraphOp(Arc::new(op)))
}

fn listed(attributes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, AttrValue)>> {
    attributes.iter().map(|(key, value)| Ok((key.extract()?, attrs::guessed(&value)?))).collect()
}

/// The node behind such an operation.
pub(super) fn object_of(py: Python<'_>, op: &dyn Op) -> Option<Py<PyAny>> {
    op.get::<PythonOp>().map(|op| op.node.clone_ref(py))
}
