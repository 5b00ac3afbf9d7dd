//! What an operation is asked before a Transpose is taken through it ([`Op::reorder`]).

use crate::attr::AttrValue;
use crate::op::{Elementwise, Op, OpInfo};
use std::borrow::Cow;

/// The new order of axes, and what is constant at the node.
pub struct OrderCx<'a> {
    /// Axis `i` of the new output is axis `order[i]` of the old one.
    pub order: &'a [usize],
    /// How many inputs the node has.
    pub n_inputs: usize,
    /// Integers of an input that is a constant of the model.
    pub ints: &'a dyn Fn(usize) -> Option<Vec<i64>>,
}

impl std::fmt::Debug for OrderCx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OrderCx({:?})", self.order)
    }
}

/// An operation on reordered inputs.
#[derive(Debug)]
pub struct Reordered {
    /// The operation itself, with axes by their new numbers.
    pub op: Box<dyn Op>,
    /// The first so many inputs come in the new order; the others stay as they are.
    pub data: usize,
    /// Inputs that list something for each axis, in the new order.
    pub ints: Vec<(usize, Vec<i64>)>,
}

impl OrderCx<'_> {
    /// How many inputs come in the new order, by the words of a declaration: an elementwise operation does not know axes.
    pub(crate) fn by_info(&self, info: &OpInfo, attrs: Vec<(Cow<'static, str>, AttrValue)>) -> Option<usize> {
        match info.elementwise {
            Elementwise::No => None,
            Elementwise::First => Some(1),
            Elementwise::All => {
                let numpy = |value: AttrValue| value.to_text().is_some_and(|t| t == "numpy");
                let aligned = attrs.into_iter().all(|(name, value)| name != "auto_broadcast" || numpy(value));
                aligned.then_some(self.n_inputs)
            }
        }
    }
    /// An axis by its new number.
    pub fn axis(&self, axis: i64) -> Option<i64> {
        let old = crate::normalize_axis(axis, self.order.len()).ok()?;
        self.order.iter().position(|&a| a == old).map(|a| a as i64)
    }
    /// A list with an entry for each axis, in the new order; `None` where it is not constant or has another length.
    pub fn list(&self, input: usize) -> Option<Vec<i64>> {
        let old = (self.ints)(input)?;
        self.order.iter().map(|&a| old.get(a).copied()).collect()
    }
}
