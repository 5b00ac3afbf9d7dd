//! Fourier transforms over the last axis. Complex numbers stand interleaved; the way back is not divided by the length.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::signal::{Dft, Idft};

pub(super) const RULES: &[StaticRule] = &[rule("_contrib_fft", 0, fft), rule("_contrib_ifft", 0, ifft)];

// `[.., d]` to `[.., 2 d]`.
fn fft(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["compute_size"]);
    let x = n.input(0)?;
    let rank = n.known_rank(x)? as i64;
    let real = n.unsqueeze(x, &[rank])?;
    let imaginary = n.filled_like(real, 0.0)?;
    let both = n.concat(&[real, imaginary], rank)?;
    let axes = n.i64s(&[rank - 1])?;
    let y = n.emit(Dft, &[both, axes])?;
    let mut pattern = vec![0; rank as usize - 1];
    pattern.push(-1);
    Ok(n.reshape(y, &pattern)?.into())
}

// `[.., 2 d]` to `[.., d]`.
fn ifft(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["compute_size"]);
    let x = n.input(0)?;
    let rank = n.known_rank(x)? as i64;
    let mut pattern = vec![0; rank as usize - 1];
    pattern.extend([-1, 2]);
    let pairs = n.reshape(x, &pattern)?;
    let axes = n.i64s(&[rank - 1])?;
    let y = n.emit(Idft, &[pairs, axes])?;
    let zero = n.i64(0)?;
    let real = n.gather(y, zero, rank)?;
    let size = n.length(real, rank - 1)?;
    let size = n.convert_like(size, real)?;
    Ok(n.times(real, size)?.into())
}
