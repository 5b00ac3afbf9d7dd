//! The form between a model and a plan: values and units of work that fusing moves around.

use super::separable::Before;
use crate::backend::{Fusing, Known};
use crate::compressed::Compressed;
use crate::elementwise::Elt;
use crate::epilogue::ElementwiseOp;
use crate::grid::{Grid, Integers};
use carafe_graph::{Constant, Model, NodeId, Op, OpRef, Parameter, Result, ResultOp, Value};
use carafe_ops::carafe::{Dequantize, QuantizeDequantize};
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};
use std::collections::HashMap;

/// A value; its index is its name.
#[derive(Clone, Debug)]
pub(crate) struct Val {
    pub(crate) ty: ElementType,
    /// `None` when it is only known while running.
    pub(crate) shape: Option<Vec<usize>>,
    pub(crate) constant: Option<Tensor>,
    /// Which input of the model it is.
    pub(crate) input: Option<usize>,
    /// The steps on which its numbers lie.
    pub(crate) grid: Option<Grid>,
    /// Weights stored as integers; they have no unit.
    pub(crate) integers: Option<Integers>,
    /// Weights that stay compressed; they have no unit.
    pub(crate) compressed: Option<Compressed>,
    /// The narrower float type that those who read it compute in.
    pub(crate) preferred: Option<ElementType>,
    /// Whether its numbers were rounded to more steps than a byte counts.
    pub(crate) is_fine: bool,
}

impl Val {
    /// As a backend sees it.
    pub(crate) fn known(&self) -> Known<'_> {
        let is_constant = self.constant.is_some() || self.integers.is_some();
        Known { ty: self.ty, shape: self.shape.as_deref(), is_constant, is_fine: self.is_fine }
    }
}

/// Steps that a byte counts.
const BYTE_STEPS: u64 = 256;

// Whether an operation rounds to more steps than a byte counts, as quantization to 16 bits does.
fn rounds_finely(op: &dyn Op) -> bool {
    let levels = op.get::<FakeQuantize>().map(|op| op.levels);
    let steps = op.get::<QuantizeDequantize>().map(|op| op.high.abs_diff(op.low) + 1);
    levels.or(steps).is_some_and(|n| n > BYTE_STEPS)
}

/// One piece of work: an operation with what was fused into it.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) op: OpRef,
    /// Those of the operation, then those of `epilogue`.
    pub(crate) inputs: Vec<usize>,
    pub(crate) own_inputs: usize,
    pub(crate) outputs: Vec<usize>,
    pub(crate) epilogue: Vec<ElementwiseOp>,
    /// The unit is `epilogue` alone; `op` only names it.
    pub(crate) group: bool,
    /// Names of the nodes whose work was taken over.
    pub(crate) fused: Vec<String>,
    /// Inputs that are read with their axes in another order, by position: axis `order[i]` of the value is axis `i` of the
    /// operand. May be shorter than the inputs.
    pub(crate) orders: Vec<Option<Vec<usize>>>,
    /// The same for the result: axis `order[i]` of what the operation gives is axis `i` of the value.
    pub(crate) out_order: Option<Vec<usize>>,
    /// Element type in which it is to be computed.
    pub(crate) precision: ElementType,
    /// A convolution that gives input 0; its own inputs stand behind the others.
    pub(crate) before: Option<Box<Before>>,
}

// Weights that stay integers until a builder wants floats.
fn integers_of(model: &Model, id: NodeId) -> Option<Integers> {
    model.op_at::<Dequantize>(id)?;
    let constant = |i: usize| model.constant_of(model.input(id, i)?).cloned();
    let (data, scale) = (constant(0)?, constant(1)?);
    (data.element_type() == ElementType::I8 && scale.element_type() == ElementType::F32)
        .then_some(Integers { data, scale })
}

/// A model taken apart.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) values: Vec<Val>,
    /// In an order in which they can run.
    pub(crate) units: Vec<Unit>,
    pub(crate) outputs: Vec<usize>,
}

impl Draft {
    pub(crate) fn of(model: &Model, fusing: &dyn Fusing) -> Result<Draft> {
        let mut draft = Draft::default();
        let mut at: HashMap<Value, usize> = HashMap::new();
        for id in model.topological_order()? {
            let node = model.node(id);
            let op = node.op_ref();
            if op.is::<ResultOp>() {
                continue;
            }
            let mut outputs = vec![];
            for (port, output) in node.outputs().iter().enumerate() {
                at.insert(Value { node: id, port }, draft.values.len());
                outputs.push(draft.values.len());
                draft.values.push(Val {
                    ty: output.fact.ty,
                    shape: output.fact.shape.to_static(),
                    constant: if op.is::<Constant>() { output.fact.tensor().cloned() } else { None },
                    input: model.parameters().iter().position(|p| *p == id),
                    grid: None,
                    integers: None,
                    compressed: None,
                    preferred: None,
                    is_fine: rounds_finely(&**op),
                });
            }
            if op.is::<Parameter>() || op.is::<Constant>() {
                continue;
            }
            if let Some(integers) = integers_of(model, id) {
                draft.values[outputs[0]].integers = Some(integers);
                continue;
            }
            if let Some(compressed) = Compressed::of(model, id) {
                draft.values[outputs[0]].compressed = Some(compressed);
                continue;
            }
            let inputs: Vec<usize> = node.inputs().iter().map(|v| at[v]).collect();
            let known = |list: &[usize]| list.iter().map(|&v| draft.values[v].known()).collect::<Vec<_>>();
            let precision = fusing.precision(&**op, &known(&inputs), &known(&outputs));
            draft.units.push(Unit {
                node: id,
                name: node.name().to_string(),
                op: op.clone(),
                own_inputs: inputs.len(),
                inputs,
                outputs,
                epilogue: vec![],
                group: false,
                fused: vec![],
                orders: vec![],
                out_order: None,
                precision,
                before: None,
            });
        }
        draft.outputs = model.results().iter().map(|&r| at[&model.result_value(r)]).collect();
        Ok(draft)
    }

    /// What the unit is as an elementwise function that the backend fuses.
    pub(crate) fn elementwise(&self, unit: &Unit, fusing: &dyn Fusing) -> Option<(Elt, ElementType)> {
        if !unit.epilogue.is_empty() || unit.outputs.len() != 1 {
            return None;
        }
        let ports: Vec<&Val> = unit.inputs.iter().chain(&unit.outputs).map(|&v| &self.values[v]).collect();
        Elt::of(&*unit.op, &ports).filter(|(elt, ty)| fusing.fuses(elt, *ty))
    }

    /// For each value, the units that read it (once for each reading) and how often the model hands it out.
    pub(crate) fn readers(&self) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut readers = vec![vec![]; self.values.len()];
        for (u, unit) in self.units.iter().enumerate() {
            unit.inputs.iter().for_each(|&v| readers[v].push(u));
        }
        let mut handed = vec![0; self.values.len()];
        self.outputs.iter().for_each(|&v| handed[v] += 1);
        (readers, handed)
    }
}
