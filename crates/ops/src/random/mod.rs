//! Random numbers that are the same in every implementation of the IR: the generators are fixed to the bit, and only two
//! seeds of 0 ask for numbers that differ from run to run.

mod generator;
mod rounding;

opset! {
    multinomial::{Multinomial},
    random_uniform::{RandomUniform},
}
