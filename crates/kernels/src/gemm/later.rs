//! Functions that take more than a few instructions, applied to sums that are stored already.

use crate::{Act, Isa};

pub(crate) fn act(_isa: Isa, act: Act, data: &mut [f32]) {
    for x in data {
        *x = one(act, *x);
    }
}

fn one(act: Act, x: f32) -> f32 {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f32| if x > 20.0 { x } else { x.exp().ln_1p() };
    match act {
        Act::None => x,
        Act::Relu => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Act::Clamp { min, max } => {
            if x < min {
                min
            } else if x > max {
                max
            } else {
                x
            }
        }
        Act::LeakyRelu(factor) => {
            if x < 0.0 {
                x * factor
            } else {
                x
            }
        }
        Act::Elu(factor) => {
            if x < 0.0 {
                factor * x.exp_m1()
            } else {
                x
            }
        }
        Act::Selu { alpha, scale } => scale * if x > 0.0 { x } else { alpha * x.exp_m1() },
        Act::Sigmoid => sigmoid(x),
        Act::Tanh => x.tanh(),
        Act::Swish(beta) => x * sigmoid(beta * x),
        Act::HSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
        Act::GeluErf => x * 0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
        Act::GeluTanh => 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh()),
        Act::Mish => x * softplus(x).tanh(),
        Act::SoftPlus => softplus(x),
        Act::SoftSign => x / (1.0 + x.abs()),
    }
}

// Abramowitz and Stegun 7.1.26 in double precision: an error below 2e-7.
fn erf(x: f32) -> f32 {
    let z = f64::from(x.abs());
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = 0.254_829_592 + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429)));
    let y = 1.0 - t * series * (-z * z).exp();
    (if x < 0.0 { -y } else { y }) as f32
}
