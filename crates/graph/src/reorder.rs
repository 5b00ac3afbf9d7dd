//! What an operation is asked before a Transpose is taken through it ([`Op::reorder`]).

use crate::attr::AttrValue;
use crate::op::{Elementwise, Op, OpInfo};
use std::borrow::Cow;

type Attrs = Vec<(Cow<'static, str>, AttrValue)>;

/// The new order of axes, and what is constant at the node.
pub struct OrderCx<'a> {
    /// Axis `i` of the new output is axis `order[i]` of the old one.
    pub order: &'a [usize],
    /// How many inputs the node has.
    pub n_inputs: usize,
    /// The number of axes of an input, where it is known.
    pub rank: &'a dyn Fn(usize) -> Option<usize>,
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
    /// Inputs that name axes or list something for each of them, as they are for the new order.
    pub ints: Vec<(usize, Vec<i64>)>,
}

impl OrderCx<'_> {
    /// The node by the words of a declaration: an elementwise operation does not know axes, and a reduction that keeps its
    /// axes lists them.
    pub(crate) fn by_info(&self, op: &(impl Op + ?Sized)) -> Option<Reordered> {
        // Compiled for every operation, so it only asks.
        let (data, ints) = self.by_words(op.info(), &|| op.attrs())?;
        Some(Reordered { op: op.clone_op(), data, ints })
    }

    // How many inputs come in the new order, and the inputs that list axes.
    fn by_words(&self, info: &OpInfo, attrs: &dyn Fn() -> Attrs) -> Option<(usize, Vec<(usize, Vec<i64>)>)> {
        if info.reduces {
            let keeps = attrs().into_iter().find(|(name, _)| name == "keep_dims").and_then(|(_, v)| v.to_text());
            return if keeps? == "true" { Some((1, vec![(1, self.axes(1)?)])) } else { None };
        }
        match info.elementwise {
            Elementwise::No => None,
            Elementwise::First => Some((1, vec![])),
            Elementwise::All => {
                let numpy = |value: AttrValue| value.to_text().is_some_and(|t| t == "numpy");
                let aligned = attrs().into_iter().all(|(name, value)| name != "auto_broadcast" || numpy(value));
                aligned.then(|| (self.n_inputs, vec![]))
            }
        }
    }
    /// An axis by its new number.
    pub fn axis(&self, axis: i64) -> Option<i64> {
        let old = crate::normalize_axis(axis, self.order.len()).ok()?;
        self.order.iter().position(|&a| a == old).map(|a| a as i64)
    }
    /// The axes that a constant input lists, by their new numbers.
    pub fn axes(&self, input: usize) -> Option<Vec<i64>> {
        (self.ints)(input)?.into_iter().map(|a| self.axis(a)).collect()
    }
    /// A list with an entry for each axis, in the new order; `None` where it is not constant or has another length.
    pub fn list(&self, input: usize) -> Option<Vec<i64>> {
        let old = (self.ints)(input)?;
        if old.len() != self.order.len() {
            return None;
        }
        self.order.iter().map(|&a| old.get(a).copied()).collect()
    }
    /// Whether these axes stand in the same order among themselves before and after.
    pub fn keeps_order_of(&self, axes: impl Fn(usize) -> bool) -> bool {
        self.order.iter().copied().filter(|&a| axes(a)).is_sorted()
    }
}
