//! Rules, one file a family. They know the names of a `ProgramDesc`; those of Paddle 3 are turned into them before (`pir/names.rs`).

mod activation;
mod arrays;
mod binary;
mod boxes;
mod control;
mod convolution;
mod indexing;
mod linear;
mod lod;
mod movement;
mod normalization;
mod padding;
mod pooling;
mod proposals;
mod quantize;
mod recurrent;
mod reduce;
mod reshape;
mod resize;
mod search;
mod slicing;
mod slots;
mod sources;
mod space;
mod unary;
mod windows;

use carafe_frontend::StaticRule;

pub(crate) use lod::is_over_sequences;

/// All rules.
pub(crate) fn all() -> Vec<StaticRule> {
    [
        activation::RULES,
        arrays::RULES,
        binary::RULES,
        boxes::RULES,
        control::RULES,
        convolution::RULES,
        indexing::RULES,
        linear::RULES,
        lod::RULES,
        movement::RULES,
        normalization::RULES,
        padding::RULES,
        pooling::RULES,
        proposals::RULES,
        quantize::RULES,
        recurrent::RULES,
        reduce::RULES,
        reshape::RULES,
        resize::RULES,
        search::RULES,
        slicing::RULES,
        sources::RULES,
        space::RULES,
        unary::RULES,
    ]
    .concat()
}
