//! A network that reconstructs pictures of magnetic resonance ends in
//!
//! ```text
//! StridedSlice ─┐
//!               ├─ Complex ── IFFT2D ── ComplexAbs
//! StridedSlice ─┘
//! ```
//!
//! This extension translates it with an operation of its own: `FFT` over pictures whose last axis is the pair of real and
//! imaginary part. `rewrites.rs` takes the complex numbers out of the graph before it is translated, the rules below make `FFT` of
//! what is left, and `kernel.rs` runs it on CPU.

mod kernel;
mod rewrites;

use carafe_sdk::prelude::*;
use std::f64::consts::TAU;

/// The Fourier transform of pictures, over their height and width: the axes in front of the last, which is the pair.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "FFT", opset = "mri", inputs = "data", outputs = "output")]
pub struct Fft {
    /// Whether it is the inverse transform, which divides by the number of points.
    #[attr(default = false)]
    pub inverse: bool,
}

impl Op for Fft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        if let Some(rank) = cx.rank(0) {
            let holds = rank >= 3 && cx.dim(0, rank - 1).compatible(Dim::known(2));
            cx.require(holds, || {
                format!("{} must be [.., height, width, 2], found [{}]", cx.port_name(0), cx.shape(0))
            })?;
        }
        cx.output_like(0, 0);
        Ok(())
    }
    /// By the definition; `kernel.rs` has the fast way.
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let &[.., height, width, _] = &shape[..] else { return Err(cx.fail("not a picture")) };
        let mut data = cx.get::<f64>(0)?.into_owned();
        let sign = if self.inverse { TAU } else { -TAU };
        for picture in data.chunks_mut((height * width * 2).max(1)) {
            (0..height).for_each(|y| transform(picture, y * width, 1, width, sign));
            (0..width).for_each(|x| transform(picture, x, width, height, sign));
        }
        if self.inverse {
            let points = (height * width) as f64;
            data.iter_mut().for_each(|v| *v /= points);
        }
        cx.put(0, &shape, data)
    }
}

// One line of a picture: `n` points from `start` on.
fn transform(picture: &mut [f64], start: usize, stride: usize, n: usize, sign: f64) {
    let at = |k: usize| 2 * (start + k * stride);
    let line: Vec<(f64, f64)> = (0..n).map(|k| (picture[at(k)], picture[at(k) + 1])).collect();
    for k in 0..n {
        let (mut re, mut im) = (0.0, 0.0);
        for (j, (a, b)) in line.iter().enumerate() {
            let (sin, cos) = (sign * (j * k % n) as f64 / n as f64).sin_cos();
            re += a * cos - b * sin;
            im += a * sin + b * cos;
        }
        (picture[at(k)], picture[at(k) + 1]) = (re, im);
    }
}

// The extractor: which attributes of the node become which of the operation.
fn fft(n: &mut NodeCx<'_>, inverse: bool) -> Result<Outputs> {
    n.ignore(&["Tcomplex"]);
    let x = n.input(0)?;
    Ok(n.emit(Fft { inverse }, &[x])?.into())
}

carafe_sdk::export_extension! {
    ops: [Fft],
    rules: [
        Rule::new("FFT2D", |n| fft(n, false)).framework("tensorflow"),
        Rule::new("IFFT2D", |n| fft(n, true)).framework("tensorflow"),
    ],
    decoded: [rewrites::PairOfSlices, rewrites::AbsOfPairs],
    kernels: [kernel::FftKernel],
}
