//! A loop whose body is a sub-graph of the file with more behind it: what the sub-graph declares is given or carried, and
//! further values are carried beside.

use super::control::capture;
use carafe_frontend::{Item, NodeCx, SubModel};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Model, Result, Value};
use carafe_ops::control::Loop;
use carafe_tensor::{Dim, PartialShape};

pub(super) struct Repeat {
    body: Body,
    /// Values of the body that the sub-graph gives.
    pub outputs: Vec<Value>,
    inputs: Vec<Value>,
}

/// A value that is carried, as the body sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub now: Value,
    parameter: usize,
    start: Value,
}

impl Repeat {
    /// At most `trips` times, the first time if `goes_on`.
    pub(super) fn new(sub: SubModel, trips: Value, goes_on: Value) -> Result<Repeat> {
        let outputs = sub.outputs.iter().map(|item| match item {
            Item::Tensor(v) => Ok(*v),
            _ => Err(Error::invalid("every output of the sub-graph must be a tensor")),
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let mut inputs = vec![trips, goes_on];
        let mut body = Body::new(sub.model);
        let captured = capture(&mut body, &sub.captured, inputs.len());
        inputs.extend(captured);
        Ok(Repeat { body, outputs, inputs })
    }

    pub(super) fn model(&mut self) -> &mut Model {
        &mut self.body.model
    }

    fn connect(&mut self, parameter: usize, outer: Value, back_edge: Option<usize>) {
        let input = BodyInput { outer: Some(self.inputs.len()), parameter, slicing: None, back_edge };
        self.body.inputs.push(input);
        self.inputs.push(outer);
    }

    fn add_parameter(&mut self, n: &NodeCx<'_>, like: Value) -> Result<Value> {
        let fact = n.fact(like);
        let shape = match fact.shape.dims() {
            Some(dims) => PartialShape::new(dims.iter().map(|_| Dim::ANY)),
            None => PartialShape::dynamic(),
        };
        let name = format!("carried_{}", self.body.model.parameters().len());
        self.body.model.parameter(&name, fact.ty, shape)
    }

    /// The same value in every iteration, for a parameter of the sub-graph.
    pub(super) fn give(&mut self, parameter: usize, value: Value) {
        self.connect(parameter, value, None);
    }

    /// An outer value, in the body.
    pub(super) fn read(&mut self, n: &NodeCx<'_>, value: Value) -> Result<Value> {
        let inner = self.add_parameter(n, value)?;
        self.connect(self.body.model.parameters().len() - 1, value, None);
        Ok(inner)
    }

    /// A parameter of the sub-graph that changes.
    pub(super) fn declared(&self, parameter: usize, start: Value) -> Carried {
        Carried { now: self.body.model.parameters()[parameter].into(), parameter, start }
    }

    /// A further value that changes.
    pub(super) fn beside(&mut self, n: &NodeCx<'_>, start: Value) -> Result<Carried> {
        let now = self.add_parameter(n, start)?;
        Ok(Carried { now, parameter: self.body.model.parameters().len() - 1, start })
    }

    /// What a carried value is in the next iteration.
    pub(super) fn becomes(&mut self, carried: Carried, next: Value) -> Result<()> {
        let result = self.body.model.results().len();
        self.body.model.result(&format!("next_{result}"), next)?;
        self.connect(carried.parameter, carried.start, Some(result));
        self.body.outputs.push(BodyOutput { outer: self.body.outputs.len(), result, slicing: None });
        Ok(())
    }

    /// The carried values at the end, in the order of `becomes`.
    pub(super) fn finish(mut self, n: &mut NodeCx<'_>, goes_on: Value) -> Result<Vec<Value>> {
        self.body.execution_condition = Some(self.body.model.results().len());
        self.body.model.result("goes_on", goes_on)?;
        n.emit_all(Loop { body: self.body }, &self.inputs)
    }
}
