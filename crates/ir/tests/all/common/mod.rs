//! Small operations and XML pieces that the tests share. The operations stand in for library ones, so that a test fails
//! for one reason only.
#![allow(dead_code, unreachable_pub)]

use carafe_graph::{Attr, Body, EvalCx, Fact, InferCx, Model, Op, OpFactory, Registry, Result};
use carafe_ir::{ReadOptions, WriteOptions};
use carafe_tensor::{ElementType, PartialShape, SharedBytes};

/// Passes its input on.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Relu", xml = "ReLU", since = 1)]
pub struct Relu;

impl Op for Relu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// Takes one or two inputs.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "a, b?")]
pub struct Join {
    #[attr(default = 0)]
    pub axis: i64,
    #[attr(default = 1.0)]
    pub alpha: f32,
    #[attr(default = false)]
    pub flag: bool,
    #[attr(default = vec![])]
    pub sizes: Vec<i64>,
    #[attr(default = String::new())]
    pub text: String,
}

impl Op for Join {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// Two outputs like its input.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, outputs = "a, b")]
pub struct Pair;

impl Op for Pair {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        cx.output_like(1, 0);
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1)]
pub struct Padded {
    pub pads_begin: Vec<i64>,
    pub pads_end: Vec<i64>,
    #[attr(default = "explicit".to_string())]
    pub auto_pad: String,
}

impl Op for Padded {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1)]
pub struct Convert {
    pub destination_type: ElementType,
}

impl Op for Convert {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.set(0, self.destination_type, cx.shape(0).clone());
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "a, b")]
pub struct Subtract;

impl Op for Subtract {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, stateful)]
pub struct ReadValue {
    pub variable_id: String,
    pub variable_type: ElementType,
    pub variable_shape: PartialShape,
}

impl Op for ReadValue {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.set(0, self.variable_type, self.variable_shape.clone());
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, stateful, sink)]
pub struct Assign {
    pub variable_id: String,
}

impl Op for Assign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// A body with a port map.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "inputs...", outputs = "outputs...")]
pub struct Repeat {
    pub body: Body,
}

impl Op for Repeat {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.body.check(cx.n_inputs())?;
        for output in &self.body.outputs {
            let result = self.body.model.results()[output.result];
            let fact = self.body.model.fact(result.into());
            cx.set_fact(output.outer, Fact::new(fact.ty, fact.shape.clone()));
        }
        Ok(())
    }
}

/// Two bodies.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "condition, inputs...", outputs = "outputs...")]
pub struct Either {
    pub then_body: Body,
    pub else_body: Body,
}

impl Op for Either {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for body in [&self.then_body, &self.else_body] {
            body.check(cx.n_inputs())?;
        }
        for output in &self.then_body.outputs {
            cx.set_fact(output.outer, Fact::unknown());
        }
        Ok(())
    }
    fn eval(&self, _: &mut EvalCx<'_>) -> Result<()> {
        Ok(())
    }
}

/// The same name in another opset.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "MVN", since = 2, also = "opset1")]
pub struct Mvn;

impl Op for Mvn {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, also = "experimental, extension")]
pub struct Proposal;

impl Op for Proposal {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add_all([
        OpFactory::of::<Relu>(),
        OpFactory::of::<Join>(),
        OpFactory::of::<Pair>(),
        OpFactory::of::<Padded>(),
        OpFactory::of::<Convert>(),
        OpFactory::of::<Subtract>(),
        OpFactory::of::<ReadValue>(),
        OpFactory::of::<Assign>(),
        OpFactory::of::<Repeat>(),
        OpFactory::of::<Either>(),
        OpFactory::of::<Mvn>(),
        OpFactory::of::<Proposal>(),
    ]);
    registry
}

// Pieces of a file.

pub fn net(version: u32, layers: &str, edges: &[[u32; 4]], rest: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><net name=\"m\" version=\"{version}\"><layers>{layers}</layers>{}{rest}</net>",
        edges_xml(edges)
    )
}

pub fn edges_xml(edges: &[[u32; 4]]) -> String {
    let edge = |[a, b, c, d]: &[u32; 4]| {
        format!("<edge from-layer=\"{a}\" from-port=\"{b}\" to-layer=\"{c}\" to-port=\"{d}\"/>")
    };
    format!("<edges>{}</edges>", edges.iter().map(edge).collect::<String>())
}

/// Input ports 0.., then output ports with the given names.
pub fn layer(id: u32, name: &str, kind: &str, data: &str, inputs: u32, outputs: &[&str]) -> String {
    versioned(id, name, kind, "opset1", data, inputs, outputs)
}

pub fn versioned(id: u32, name: &str, kind: &str, opset: &str, data: &str, inputs: u32, outputs: &[&str]) -> String {
    let data = if data.is_empty() { String::new() } else { format!("<data {data}/>") };
    let ins: String = (0..inputs).map(|i| format!("<port id=\"{i}\"/>")).collect();
    let outs: String = (inputs..)
        .zip(outputs)
        .map(|(i, names)| format!("<port id=\"{i}\" precision=\"FP32\" names=\"{names}\"/>"))
        .collect();
    format!(
        "<layer id=\"{id}\" name=\"{name}\" type=\"{kind}\" version=\"{opset}\">{data}<input>{ins}</input>\
         <output>{outs}</output></layer>"
    )
}

pub fn parameter(id: u32, name: &str) -> String {
    layer(id, name, "Parameter", "shape=\"2,3\" element_type=\"f32\"", 0, &[""])
}

pub fn result(id: u32, name: &str) -> String {
    layer(id, name, "Result", "", 1, &[])
}

/// `x -> kind -> Result`
pub fn chain(middle: &str) -> String {
    net(11, &(parameter(0, "x") + middle + &result(2, "out")), &[[0, 0, 1, 0], [1, 1, 2, 0]], "")
}

pub fn read(xml: &str) -> Result<Model> {
    read_with(xml, &[])
}

pub fn read_with(xml: &str, weights: &[u8]) -> Result<Model> {
    carafe_ir::read(xml, SharedBytes::from_vec(weights.to_vec()), &registry(), &ReadOptions::default())
}

#[track_caller]
pub fn good(xml: &str) -> Model {
    read(xml).unwrap_or_else(|e| panic!("{e}\n{xml}"))
}

/// The message of a file that must be refused.
#[track_caller]
pub fn refused(xml: &str) -> String {
    read(xml).expect_err("the file must be refused").to_string()
}

/// Writes and reads again; the model must not change, and writing again must give the same bytes.
#[track_caller]
pub fn round_trip(model: &Model, registry: &Registry) -> Model {
    let (xml, weights) = carafe_ir::write_to(model, &WriteOptions::default()).unwrap();
    let options = ReadOptions { keep_unknown: true, ..ReadOptions::default() };
    let again = carafe_ir::read(&xml, SharedBytes::from_vec(weights.clone()), registry, &options)
        .unwrap_or_else(|e| panic!("{e}\n{xml}"));
    assert!(model.same_as(&again), "changed by writing and reading:\n{xml}");
    let (second_xml, second_weights) = carafe_ir::write_to(&again, &WriteOptions::default()).unwrap();
    assert_eq!(second_xml, xml);
    assert_eq!(second_weights, weights);
    again
}

/// Reads an attribute text the way an operation does.
pub fn attr<T: Attr>(model: &Model, node: &str, name: &str) -> T {
    let id = model.find_node(node).unwrap_or_else(|| panic!("no node `{node}`"));
    let attrs = model.node(id).op().attrs();
    let value = attrs.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no attribute `{name}`"));
    T::read(&value.1).unwrap()
}
