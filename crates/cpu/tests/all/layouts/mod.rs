//! Runs an operation on the CPU device behind nothing, and behind a convolution, so that its input lies both ways; the
//! results must be those of evaluating the model.

#![allow(dead_code, unreachable_pub)]

use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::{Constant, Model, NodeId, Value};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_tensor::{ElementType, PartialShape, Tensor};

/// Small numbers that repeat only after long.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }
    pub fn shape(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| self.between(1, 7) as usize).collect()
    }
    /// Whole numbers, so that sums are exact.
    pub fn tensor(&mut self, ty: ElementType, shape: &[usize]) -> Tensor {
        let numbers: Vec<i64> = (0..shape.iter().product()).map(|_| self.between(-9, 9)).collect();
        Tensor::from_i64(ty, shape, &numbers).expect("a tensor")
    }
}

/// How the first input of an operation comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    Nothing,
    /// A convolution with a window of 1, whose result lies with the channels last.
    Convolution,
}

pub const FRONTS: [Front; 2] = [Front::Nothing, Front::Convolution];

/// A value of this shape behind the front; the parameter has it too.
pub fn front(model: &mut Model, random: &mut Random, front: Front, ty: ElementType, shape: &[usize]) -> Value {
    let name = format!("x{}", model.parameters().len());
    let x = model.parameter(&name, ty, PartialShape::of(shape)).expect("a parameter");
    let spatial = shape.len().saturating_sub(2);
    if front == Front::Nothing || spatial == 0 || ty != ElementType::F32 {
        return x;
    }
    let filters: Vec<usize> = [shape[1], shape[1]].into_iter().chain(vec![1; spatial]).collect();
    let filters = random.tensor(ElementType::F32, &filters);
    let filters = model.constant(&format!("{name}_filters"), filters).expect("a constant");
    let convolution = Convolution {
        strides: vec![1; spatial],
        pads_begin: vec![0; spatial],
        pads_end: vec![0; spatial],
        dilations: vec![1; spatial],
        auto_pad: PadType::Explicit,
    };
    model.add(format!("{name}_front"), convolution, &[x, filters]).expect("a convolution").into()
}

pub fn ints(model: &mut Model, name: &str, values: &[i64]) -> Value {
    let tensor = Tensor::from_slice(&[values.len()], values).expect("a tensor");
    model.constant(name, tensor).expect("a constant")
}

pub fn int(model: &mut Model, name: &str, value: i64) -> Value {
    model.constant(name, Tensor::scalar(value)).expect("a constant")
}

/// All outputs of node `op` on the device, which must do it with a kernel, against those of evaluating.
pub fn check(mut model: Model, op: NodeId, random: &mut Random) {
    for port in 0..model.node(op).outputs().len() {
        model.result(&format!("y{port}"), Value { node: op, port }).expect("a result");
    }
    let inputs: Vec<Tensor> = model
        .parameters()
        .iter()
        .map(|&p| {
            let fact = model.fact(p.into());
            random.tensor(fact.ty, &fact.shape.to_static().expect("known shapes"))
        })
        .collect();
    check_with(model, op, inputs);
}

/// As [`check`], with results in the model and given inputs.
pub fn check_with(model: Model, op: NodeId, inputs: Vec<Tensor>) {
    let what = format!("{:?} of {:?}", model.node(op).op(), inputs.iter().map(Tensor::shape).collect::<Vec<_>>());
    let wanted = model.evaluate(&inputs).expect("evaluation");
    let f32 = Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
    let compiled = CpuDevice::default().compile(&model, &f32).expect("a compiled model");
    let kernels = kernels_of(&model, op, &compiled.runtime_model());
    assert!(!kernels.iter().any(|k| k == "reference"), "no kernel for {what}: {kernels:?}");
    assert!(!kernels.is_empty() || is_no_op(&model, op, &inputs, &wanted[0]), "nothing is left of {what}");
    let mut request = compiled.create_request();
    // Twice, so that memory of the first run is used again.
    for _ in 0..2 {
        inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).expect("an input"));
        request.infer().expect("an inference");
        for (i, wanted) in wanted.iter().enumerate() {
            let found = request.output(i).expect("an output");
            assert_eq!(found.shape(), wanted.shape(), "{what}");
            assert!(found.content_eq(wanted), "{what}, output {i}:\n{found:?}\nwanted\n{wanted:?}");
        }
    }
}

// What runs a node of the model, or the nodes that a rewrite put in its place.
fn kernels_of(model: &Model, op: NodeId, runtime: &Model) -> Vec<String> {
    let kernel = |id: NodeId| {
        let named = runtime.node(id).rt_info.get("primitiveType").and_then(|a| a.fields.first());
        named.expect("every node says what runs it").1.clone()
    };
    if let Some(id) = runtime.find_node(model.node(op).name()) {
        return vec![kernel(id)];
    }
    let is_new = |id: NodeId| {
        let node = runtime.node(id);
        model.find_node(node.name()).is_none() && !node.op().is::<Constant>()
    };
    runtime.nodes().map(|(id, _)| id).filter(|id| is_new(*id)).map(kernel).collect()
}

// Whether the node gives its first input as it is, so that nothing needs to be left of it.
fn is_no_op(model: &Model, op: NodeId, inputs: &[Tensor], output: &Tensor) -> bool {
    let mut model = model.clone();
    model.result("entered", model.node(op).inputs()[0]).expect("a result");
    let all = model.evaluate(inputs).expect("evaluation");
    all.last().is_some_and(|entered| entered.shape() == output.shape() && entered.content_eq(output))
}
