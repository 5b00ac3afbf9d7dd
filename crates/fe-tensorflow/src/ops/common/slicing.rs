//! TensorFlow's slices.

use super::shapes::i64_vector;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::compare::Equal;
use carafe_ops::movement::{Slice, StridedSlice};

/// Bit fields over the entries of a strided slice: bit `i` is entry `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// The begin of the entry is not looked at.
    pub begin: i64,
    /// The end of the entry is not looked at.
    pub end: i64,
    /// The entry stands for all axes that the others do not need.
    pub ellipsis: i64,
    /// The entry is a new axis.
    pub new_axis: i64,
    /// The entry is one element, whose axis is gone.
    pub shrink_axis: i64,
}

impl Masks {
    /// The operation over this many entries.
    pub fn operation(self, entries: usize) -> StridedSlice {
        let bits = |mask: i64| -> Vec<i64> { (0..entries).map(|i| if i < 63 { mask >> i & 1 } else { 0 }).collect() };
        StridedSlice {
            begin_mask: bits(self.begin),
            end_mask: bits(self.end),
            new_axis_mask: bits(self.new_axis),
            shrink_axis_mask: bits(self.shrink_axis),
            ellipsis_mask: bits(self.ellipsis),
        }
    }
}

/// `x[begin:end:strides]` with masks.
pub fn strided_slice(n: &mut NodeCx<'_>, x: Value, [begin, end, strides]: [Value; 3], masks: Masks) -> Result<Value> {
    // Masks may be shorter than the entries, so a number of entries that is not known needs those of the bits only.
    let entries = [begin, end, strides].iter().find_map(|v| n.shape(*v).dims()?.first()?.size());
    let entries = entries.unwrap_or(32);
    let (begin, end, strides) = (i64_vector(n, begin)?, i64_vector(n, end)?, i64_vector(n, strides)?);
    n.emit(masks.operation(entries), &[x, begin, end, strides])
}

/// `size` elements of each axis from `begin` on; a size of -1 is all that follow.
pub fn slice(n: &mut NodeCx<'_>, x: Value, begin: Value, size: Value) -> Result<Value> {
    let (begin, size) = (i64_vector(n, begin)?, i64_vector(n, size)?);
    let stop = match (n.ints(begin), n.ints(size)) {
        (Some(begin), Some(size)) if begin.len() == size.len() => {
            let stop = |(b, s): (&i64, &i64)| if *s < 0 { i64::MAX } else { b.saturating_add(*s) };
            let stops: Vec<i64> = begin.iter().zip(&size).map(stop).collect();
            n.i64s(&stops)?
        }
        _ => {
            let stop = n.plus(begin, size)?;
            let rest = n.i64(-1)?;
            let to_end = n.emit(Equal::default(), &[size, rest])?;
            let shape = n.shape_of(x)?;
            n.choose(to_end, shape, stop)?
        }
    };
    let ones = match n.shape(begin).dims().and_then(|d| d.first()?.size()).or(n.rank(x)) {
        Some(rank) => n.i64s(&vec![1; rank])?,
        None => {
            let (one, shape) = (n.i64(1)?, n.shape_of(begin)?);
            n.stretch(one, shape)?
        }
    };
    n.emit(Slice, &[x, begin, stop, ones])
}
