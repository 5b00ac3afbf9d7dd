//! The operation library. One operation is one file: attributes, `infer` and `eval`, with its older versions beside it.
//! A family is a folder whose `mod.rs` lists its files in an `opset!`; the list below joins the families.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use carafe_graph::{Constant, OpFactory, Parameter, Registry, ResultOp};

#[macro_use]
mod macros;

pub mod buffer;
mod cost;
pub mod index;

families! {
    activation, arithmetic, carafe, colour, compare, control, convert, convolution, detection, embedding, indexing, linear,
    logic, math, movement, normalization, pooling, quantize, random, recurrent, reduce, resize, search, shape, signal,
    state, strings,
}

/// Everything in this library, registered.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add_all(factories());
    registry
}

/// Every operation of every family, the structural ones included.
pub fn factories() -> Vec<OpFactory> {
    let mut all = vec![OpFactory::of::<Parameter>(), OpFactory::of::<Constant>(), OpFactory::of::<ResultOp>()];
    all.extend(family_factories());
    all
}
