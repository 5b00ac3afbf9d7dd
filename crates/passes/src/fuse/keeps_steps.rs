//! Which operations give numbers of their first input alone, so that what lies on a grid goes on to lie on it.

use carafe_graph::Op;
use carafe_ops::movement::{ExtractImagePatches, SpaceToBatch};
use carafe_ops::pooling::MaxPool;
use carafe_ops::resize::{Interpolate, Mode};

/// Whether every number of the result is one of the floats that go in. An operation of an extension says so by `moves`.
pub fn keeps_steps(op: &dyn Op) -> bool {
    // These fill up with zeros, which are steps of their own.
    if op.is::<SpaceToBatch>() || op.is::<ExtractImagePatches>() {
        return false;
    }
    if let Some(i) = op.get::<Interpolate>() {
        return i.mode == Mode::Nearest && i.pads_begin.iter().chain(&i.pads_end).all(|p| *p == 0);
    }
    op.is::<MaxPool>() || op.info().moves.first() == Some(&0)
}

/// Whether the floats of an input are numbers that such an operation passes on, not a parameter of it.
pub fn passes_on(op: &dyn Op, input: usize) -> bool {
    input == 0 || !op.is::<Interpolate>()
}
