//! Activation functions of recurrent cells, by name. Names ignore case; `alpha` and `beta` only mean something to
//! hardsigmoid.

use carafe_graph::{Error, Result};

/// A function with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activation {
    Sigmoid,
    Tanh,
    Relu,
    HardSigmoid { alpha: f64, beta: f64 },
}

impl Activation {
    /// One function per entry of `defaults`. An entry the lists leave out is the default; more than are needed, as for a
    /// second direction, are not looked at.
    pub(super) fn list<const N: usize>(
        names: &[String],
        alpha: &[f32],
        beta: &[f32],
        defaults: [&str; N],
    ) -> Result<[Activation; N]> {
        let mut list = [Activation::Tanh; N];
        for (i, slot) in list.iter_mut().enumerate() {
            let name = names.get(i).map_or(defaults[i], String::as_str).to_ascii_lowercase();
            *slot = match name.as_str() {
                "sigmoid" => Activation::Sigmoid,
                "tanh" => Activation::Tanh,
                "relu" => Activation::Relu,
                "hardsigmoid" => Activation::HardSigmoid {
                    alpha: alpha.get(i).map_or(0.2, |&a| a as f64),
                    beta: beta.get(i).map_or(0.5, |&b| b as f64),
                },
                _ => {
                    return Err(Error::invalid(format!(
                        "attribute `activations` knows sigmoid, tanh, relu and hardsigmoid, found `{name}`"
                    )));
                }
            };
        }
        Ok(list)
    }

    pub(super) fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(0.0),
            Activation::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
        }
    }
}
