//! Everything an author of operations needs: `use carafe::prelude::*;`.

pub use carafe_graph::{
    self, Attr, AttrMap, AttrValue, Body, Error, EvalCx, InferCx, Model, Op, OpFactory, Result, Value, attr_enum,
};
pub use carafe_tensor::{Dim, ElementType, Number, PartialShape, Tensor};
