//! Everything an author of operations needs: `use carafe::prelude::*;`.

pub use carafe_graph::{
    self, Attr, AttrMap, AttrValue, Body, Error, EvalCx, Fact, InferCx, Model, Op, OpFactory, OrderCx, Reordered,
    Result, RowKind, RowsCx, Value, attr_enum,
};
pub use carafe_tensor::{Dim, ElementType, Number, PartialShape, Tensor};
