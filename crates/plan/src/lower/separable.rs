//! Puts a depthwise convolution into the pointwise one or the pool behind it, and a pointwise one into the depthwise one behind it,
//! where what lies between is too large to stay near.

use super::draft::{Draft, Unit};
use crate::backend::Fusing;
use crate::epilogue::ElementwiseOp;
use carafe_graph::Op;
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::pooling::MaxPool;
use carafe_tensor::ElementType;

/// A convolution that is done first.
#[derive(Clone, Debug)]
pub struct Before {
    pub(crate) unit: Unit,
    /// Where its inputs begin among those of the unit behind it.
    pub first_input: usize,
}

impl Before {
    /// The operation.
    pub fn op(&self) -> &dyn Op {
        &*self.unit.op
    }
    /// Inputs of the operation itself, and of its epilogue behind them.
    pub fn own_inputs(&self) -> usize {
        self.unit.own_inputs
    }
    /// The convolution that is done before this one; its inputs are counted among those of this one.
    pub fn before(&self) -> Option<&Before> {
        self.unit.before.as_deref()
    }
    /// Elementwise work between it and what comes behind.
    pub fn epilogue(&self) -> &[ElementwiseOp] {
        &self.unit.epilogue
    }
}

pub(super) fn fuse(draft: &mut Draft, fusing: &dyn Fusing) {
    let (readers, handed) = draft.readers();
    let mut gone = vec![false; draft.units.len()];
    for first in 0..draft.units.len() {
        let unit = &draft.units[first];
        let between = unit.outputs[0];
        let ([second], 0) = (&readers[between][..], handed[between]) else { continue };
        let then = &draft.units[*second];
        let spreads = unit.before.is_none() && is_pointwise(draft, unit) && is_depthwise(draft, then);
        let mixes = is_depthwise(draft, unit) && is_pointwise(draft, then);
        let pools = is_depthwise(draft, unit) && touches(then);
        if !spreads && !mixes && !pools {
            continue;
        }
        let mut joined = draft.units[*second].clone();
        let (ty, shape) = (draft.values[between].ty, &draft.values[between].shape);
        let bytes = shape.as_ref().and_then(|s| ty.byte_len(s.iter().product())).unwrap_or(0);
        if !fusing.fuses_separable(bytes) || joined.inputs[0] != between || joined.before.is_some() {
            continue;
        }
        joined.before = Some(Box::new(Before { unit: unit.clone(), first_input: joined.inputs.len() }));
        joined.inputs.extend(&unit.inputs);
        joined.fused.push(unit.name.clone());
        joined.fused.extend(unit.fused.iter().cloned());
        draft.units[*second] = joined;
        gone[first] = true;
    }
    let mut at = 0;
    draft.units.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}

// Only what is surely so; the builder looks closer.
fn is_depthwise(draft: &Draft, unit: &Unit) -> bool {
    let filters = unit.inputs.get(1).map(|&v| &draft.values[v]);
    unit.op.is::<GroupConvolution>()
        && filters.is_some_and(|f| {
            f.ty == ElementType::F32
                && f.constant.is_some()
                && f.shape.as_ref().is_some_and(|s| s.len() > 3 && s[1] == 1 && s[2] == 1)
        })
}

fn is_pointwise(draft: &Draft, unit: &Unit) -> bool {
    let filters = unit.inputs.get(1).map(|&v| &draft.values[v]);
    unit.op
        .get::<Convolution>()
        .is_some_and(|c| c.strides.iter().all(|&s| s == 1) && c.pads_begin.iter().chain(&c.pads_end).all(|&p| p == 0))
        && filters.is_some_and(|f| {
            f.ty == ElementType::F32
                && f.constant.is_some()
                && f.shape.as_ref().is_some_and(|s| s.len() > 2 && s[2..].iter().all(|&n| n == 1))
        })
}

// Windows of a pool that do not overlap, without anything around the image.
fn touches(unit: &Unit) -> bool {
    unit.op.get::<MaxPool>().is_some_and(|p| {
        p.strides == p.kernel
            && p.pads_begin.iter().chain(&p.pads_end).all(|&n| n == 0)
            && p.auto_pad == PadType::Explicit
    })
}
