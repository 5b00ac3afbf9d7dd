//! What is done to the result of a matrix product or convolution while it is still in cache.

mod split;
mod typed;

pub(crate) use split::{Quick, SplitEpilogue};
pub use typed::{Addend, Quantizer, RoundTrip, TypedEpilogue, TypedOut};

/// A function of one number. The formulas are those of the operations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Act {
    #[default]
    None,
    Relu,
    Clamp {
        min: f32,
        max: f32,
    },
    /// `x` times the factor below zero.
    LeakyRelu(f32),
    /// `factor * (exp(x) - 1)` below zero.
    Elu(f32),
    /// `scale * (x > 0 ? x : alpha * (exp(x) - 1))`.
    Selu {
        alpha: f32,
        scale: f32,
    },
    Sigmoid,
    Tanh,
    /// `x * sigmoid(beta * x)`.
    Swish(f32),
    /// `x * clamp(x + 3, 0, 6) / 6`.
    HSwish,
    /// `clamp(x + 3, 0, 6) / 6`.
    HSigmoid,
    /// `clamp(alpha * x + beta, 0, 1)`.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    GeluErf,
    GeluTanh,
    Mish,
    SoftPlus,
    SoftSign,
}

/// A rectangle of a row-major matrix that one thread has just finished.
#[derive(Debug)]
pub struct Tile<'a> {
    /// From the first element of the rectangle to the last one of its last row.
    pub data: &'a mut [f32],
    /// Floats from row to row.
    pub stride: usize,
    /// Where the rectangle lies in the whole matrix.
    pub row: usize,
    pub column: usize,
    pub rows: usize,
    pub columns: usize,
}

/// Further work on finished rectangles: a fused chain of elementwise operations.
pub trait Finish: Sync {
    fn finish(&self, tile: Tile<'_>, thread: usize);
}

/// Applied to `C = A * B` in this order: `C + bias`, `+ add` (before the function) or the function first and then `+ add`
/// (`add_last`), then `finish`.
#[derive(Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// One number a column (output channel).
    pub bias: Option<&'a [f32]>,
    /// A matrix like the output, with its stride.
    pub add: Option<(&'a [f32], usize)>,
    /// What is added lies in the output before it is written; `add` is none then. Only where [`crate::Gemm::adds_over`] or
    /// [`crate::Conv::adds_over`] says so.
    pub add_own: bool,
    pub add_last: bool,
    pub act: Act,
    pub finish: Option<&'a dyn Finish>,
}

impl std::fmt::Debug for Epilogue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Epilogue(bias {}, add {}, {:?})", self.bias.is_some(), self.add.is_some(), self.act)
    }
}
