//! Small models for the tests of passes.

use carafe_graph::{Model, NodeId, Notes, OpRef, Pass, Value, run_passes};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::sync::Arc;

/// A model under construction; numbers in shapes below 0 are unknown sizes.
pub(crate) struct Draft {
    pub(crate) model: Model,
}

impl Draft {
    pub(crate) fn new() -> Draft {
        Draft { model: Model::new("draft") }
    }
    pub(crate) fn input(&mut self, name: &str, shape: &[i64]) -> Value {
        self.input_of(name, ElementType::F32, shape)
    }
    pub(crate) fn input_of(&mut self, name: &str, ty: ElementType, shape: &[i64]) -> Value {
        let dims = shape.iter().map(|&n| if n < 0 { Dim::ANY } else { Dim::known(n) });
        self.model.parameter(name, ty, PartialShape::new(dims)).unwrap()
    }
    pub(crate) fn ints(&mut self, list: &[i64]) -> Value {
        self.model.constant("list", Tensor::from_slice(&[list.len()], list).unwrap()).unwrap()
    }
    pub(crate) fn int(&mut self, n: i64) -> Value {
        self.model.constant("number", Tensor::scalar(n)).unwrap()
    }
    pub(crate) fn floats(&mut self, shape: &[usize], x: f32) -> Value {
        let n: usize = shape.iter().product();
        self.model.constant("floats", Tensor::from_slice(shape, &vec![x; n]).unwrap()).unwrap()
    }
    pub(crate) fn add(&mut self, name: &str, op: impl carafe_graph::Op, inputs: &[Value]) -> Value {
        let op: OpRef = Arc::new(op);
        self.model.add_ref(name, op, inputs).unwrap().into()
    }
    pub(crate) fn result(&mut self, v: Value) -> NodeId {
        self.model.result("result", v).unwrap()
    }
    /// Runs the pass; how often it fired, and why it did not.
    pub(crate) fn run(&mut self, pass: &dyn Pass) -> (usize, Vec<String>) {
        let mut notes = Notes::enabled();
        run_passes(&mut self.model, &[pass], &mut notes).unwrap();
        self.model.infer().unwrap();
        let last = notes.lines.pop().unwrap_or_default();
        let fired = last.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        (fired, notes.lines.into_iter().filter(|l| l.contains("stays")).collect())
    }
    /// How many nodes of a type there are.
    pub(crate) fn count(&self, ty: &str) -> usize {
        self.model.nodes().filter(|(_, n)| n.op().info().name == ty).count()
    }
}
