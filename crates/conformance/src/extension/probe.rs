//! Models of one node with many shapes and types, and what to put in.

use crate::values::{wave_float, wave_int};
use carafe::{ElementType, Model, PartialShape, Tensor};
use carafe_graph::{EvalEnv, OpRef, Result, run as eval_model};

/// Name of the node under test.
pub(super) const NODE: &str = "node";

/// What goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    Random,
    /// Others for each number.
    Seeded(u64),
    /// NaN, infinities, both zeros, the smallest and the largest numbers.
    Edge,
}

/// A node of one operation with exact shapes.
pub(super) struct Probe {
    pub(super) model: Model,
    op: OpRef,
    ty: ElementType,
    shape: Vec<usize>,
    n_inputs: usize,
}

/// Odd sizes, ones, a scalar, nothing at all, and more than a thread's share.
const SHAPES: &[&[usize]] =
    &[&[1, 2, 2, 3], &[2, 3, 5, 7], &[1, 3, 1, 1], &[17], &[3, 5], &[], &[0, 3], &[1, 4, 33, 67]];

const TYPES: &[ElementType] = &[
    ElementType::F32,
    ElementType::F16,
    ElementType::Bf16,
    ElementType::F64,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::Boolean,
];

/// All that `infer` takes.
pub(super) fn probes(op: &OpRef) -> Vec<Probe> {
    let ports = op.info().inputs;
    let n_inputs = ports.iter().map(|p| if p.variadic { 2 } else { usize::from(!p.optional) }).sum();
    let all = TYPES.iter().flat_map(|ty| SHAPES.iter().map(move |shape| (*ty, *shape)));
    all.filter_map(|(ty, shape)| {
        let model = build(op, ty, n_inputs, &PartialShape::of(shape)).ok()?;
        Some(Probe { model, op: op.clone(), ty, shape: shape.to_vec(), n_inputs })
    })
    .collect()
}

fn build(op: &OpRef, ty: ElementType, n_inputs: usize, shape: &PartialShape) -> Result<Model> {
    let mut model = Model::new("probe");
    let inputs =
        (0..n_inputs).map(|i| model.parameter(&format!("x{i}"), ty, shape.clone())).collect::<Result<Vec<_>>>()?;
    let node = model.add_ref(NODE, op.clone(), &inputs)?;
    for port in 0..model.node(node).outputs().len() {
        model.result(&format!("y{port}"), carafe::Value { node, port })?;
    }
    Ok(model)
}

impl Probe {
    pub(super) fn title(&self) -> String {
        format!("{}{:?}", self.ty, self.shape)
    }
    pub(super) fn op(&self) -> &OpRef {
        &self.op
    }
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
    pub(super) fn with_shapes(&self, shape: impl Fn(&[usize]) -> PartialShape) -> Result<Model> {
        build(&self.op, self.ty, self.n_inputs, &shape(&self.shape))
    }
    /// What the operation gives by its own evaluation.
    pub(super) fn eval(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        eval_model(&self.model, inputs, &mut EvalEnv::default())
    }
    /// `half`: the device works in f16, whose numbers are fewer.
    pub(super) fn inputs(&self, values: Values, half: bool) -> Result<Vec<Tensor>, String> {
        let n = self.elements();
        let tensor = |port: usize| {
            let seed = match values {
                Values::Seeded(seed) => 1000 * (seed + 1),
                _ => 0,
            } + port as u64
                + 1;
            let data: Vec<f64> = match (values, self.ty.is_float()) {
                (Values::Random | Values::Seeded(_), true) => (0..n).map(|i| wave_float(seed, i as u64)).collect(),
                (Values::Random | Values::Seeded(_), false) => {
                    (0..n).map(|i| (wave_int(seed, i as u64) % 2) as f64).collect()
                }
                (Values::Edge, true) => edges(self.ty, half).into_iter().cycle().skip(port).take(n).collect(),
                (Values::Edge, false) => [0.0, 1.0].into_iter().cycle().take(n).collect(),
            };
            Tensor::from_f64(self.ty, &self.shape, &data).map_err(|e| e.to_string())
        };
        (0..self.n_inputs).map(tensor).collect()
    }
}

fn edges(ty: ElementType, half: bool) -> Vec<f64> {
    let mut all = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5];
    all.extend(match ty {
        _ if half => [65504.0, -65504.0, 6.1e-5, 6e-8],
        ElementType::F16 => [65504.0, -65504.0, 6.1e-5, 6e-8],
        _ => [f64::from(f32::MAX), f64::from(f32::MIN), f64::from(f32::MIN_POSITIVE), f64::from(f32::from_bits(1))],
    });
    all
}
