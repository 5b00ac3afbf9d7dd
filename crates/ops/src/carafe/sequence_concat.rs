//! SequenceConcat: the elements of a packed sequence joined along an axis, an old or a new one. An empty sequence has no
//! concatenation.

use super::sequence::require_sequence;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::{Dim, ElementType, PackedSequence, PartialShape, Tensor};

/// Joins the elements of a sequence.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "sequence", outputs = "joined")]
pub struct SequenceConcat {
    /// Where to join, in the result; negative counts from the end.
    pub axis: i64,
    /// Whether the axis is a new one, of which each element takes one place.
    #[attr(default = false)]
    pub new_axis: bool,
    /// Type of the elements, where known.
    #[attr(default = ElementType::Dynamic)]
    pub element_type: ElementType,
    /// Shape of each element, as far as known.
    #[attr(default = PartialShape::dynamic())]
    pub shape: PartialShape,
}

impl Op for SequenceConcat {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_sequence(cx, 0)?;
        let mut shape = self.shape.clone();
        if let Some(dims) = shape.dims_mut() {
            let axis = self.axis_of(dims.len())?;
            match self.new_axis {
                true => dims.insert(axis, Dim::ANY),
                false => dims[axis] = Dim::ANY,
            }
        }
        cx.set(0, self.element_type, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let sequence = PackedSequence::open(cx.input(0))?;
        let mut items = (0..sequence.len()).map(|i| sequence.get(i)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = items.first() else { return Err(cx.fail("an empty sequence has no concatenation")) };
        let axis = self.axis_of(first.rank())?;
        if self.new_axis {
            for item in &mut items {
                let mut shape = item.shape().to_vec();
                shape.insert(axis.min(shape.len()), 1);
                *item = item.reshaped(&shape)?;
            }
        }
        let (ty, mut shape) = (items[0].element_type(), items[0].shape().to_vec());
        shape[axis] = 0;
        for item in &items {
            let agrees = item.rank() == shape.len()
                && item.shape().iter().zip(&shape).enumerate().all(|(i, (a, b))| i == axis || a == b);
            if !agrees || item.element_type() != ty {
                let found = format!("{ty}{:?} and {}{:?}", items[0].shape(), item.element_type(), item.shape());
                return Err(cx.fail(format!("elements must agree except on axis {axis}, found {found}")));
            }
            shape[axis] = shape[axis].saturating_add(item.shape()[axis]);
        }
        let mut joined = Tensor::zeros(ty, &shape)?;
        // Sizes of a tensor without elements may be anything.
        let (outer, along, inner) = if joined.is_empty() { (0, 0, 0) } else { around(&shape, axis) };
        let mut position = 0;
        for item in &items {
            let chunk = item.shape()[axis] * inner;
            for o in 0..outer {
                joined.copy_elements(o * along * inner + position, item, o * chunk, chunk)?;
            }
            position += chunk;
        }
        cx.set(0, joined)
    }
}

impl SequenceConcat {
    fn axis_of(&self, rank: usize) -> Result<usize> {
        normalize_axis(self.axis, rank + usize::from(self.new_axis))
    }
}
