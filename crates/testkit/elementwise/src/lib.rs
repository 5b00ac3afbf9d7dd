//! Elementwise operations as an author in Rust writes them, for the tests that compare them with those in C and C++.

use carafe_sdk::prelude::*;

/// `x * sigmoid(beta * x)`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", elementwise, keeps_shape)]
struct SteepSwish {
    #[attr(default = 1.0)]
    beta: f32,
}

carafe_sdk::elementwise! { SteepSwish, |op, x| x / (1.0 + (-op.beta * x).exp()) }

/// A line.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", elementwise, keeps_shape)]
struct Shift {
    #[attr(default = 2.0)]
    by: f32,
    #[attr(default = 1.0)]
    plus: f32,
}

carafe_sdk::elementwise! { Shift, |op, x| x * op.by + op.plus }

carafe_sdk::export_extension! { elementwise: [SteepSwish, Shift] }
