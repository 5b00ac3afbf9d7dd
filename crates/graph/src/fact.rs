//! What is known of a value before anything runs: element type, partial shape, and for small integer tensors the
//! elements themselves, exactly or as intervals.

use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::fmt;

/// Knowledge about one value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Element type.
    pub ty: ElementType,
    /// Shape.
    pub shape: PartialShape,
    /// What is known of the elements.
    pub content: Content,
}

/// Knowledge about the elements of a value.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// Nothing.
    #[default]
    Unknown,
    /// All of it. Constants always have this.
    Known(Tensor),
    /// Each element as an interval; only for integer tensors of static shape, row-major.
    Partial(Vec<Dim>),
}

impl Fact {
    /// Type and shape, and nothing of the elements.
    pub fn new(ty: ElementType, shape: PartialShape) -> Fact {
        Fact { ty, shape, content: Content::Unknown }
    }
    /// Nothing is known.
    pub fn unknown() -> Fact {
        Fact::new(ElementType::Dynamic, PartialShape::dynamic())
    }
    /// All of a tensor.
    pub fn of(tensor: &Tensor) -> Fact {
        Fact {
            ty: tensor.element_type(),
            shape: PartialShape::of(tensor.shape()),
            content: Content::Known(tensor.clone()),
        }
    }
    /// The elements, when all are known.
    pub fn tensor(&self) -> Option<&Tensor> {
        match &self.content {
            Content::Known(t) => Some(t),
            _ => None,
        }
    }
    /// Elements as exact integers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        match &self.content {
            Content::Known(t) => t.to_vec::<i64>().ok().map(|v| v.into_owned()),
            Content::Partial(v) => v.iter().map(|d| d.get()).collect(),
            Content::Unknown => None,
        }
    }
    /// Elements as intervals.
    pub fn dims(&self) -> Option<Vec<Dim>> {
        match &self.content {
            Content::Known(t) if self.ty.is_integer() => {
                Some(t.to_vec::<i64>().ok()?.iter().map(|&n| Dim::known(n)).collect())
            }
            Content::Partial(v) => Some(v.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.ty, self.shape)
    }
}
