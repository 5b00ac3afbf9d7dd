//! Fourier transforms of the last one to three axes. Complex numbers are pairs, see `complex.rs`.

use super::common::shapes::i64_vector;
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result};
use carafe_ops::signal::{Dft, Idft, Irdft, Rdft};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchFFT", 0, |n| transform(n, Dft, 1)),
    rule("BatchFFT2D", 0, |n| transform(n, Dft, 2)),
    rule("BatchFFT3D", 0, |n| transform(n, Dft, 3)),
    rule("BatchIFFT", 0, |n| transform(n, Idft, 1)),
    rule("BatchIFFT2D", 0, |n| transform(n, Idft, 2)),
    rule("BatchIFFT3D", 0, |n| transform(n, Idft, 3)),
    rule("FFT", 0, |n| transform(n, Dft, 1)),
    rule("FFT2D", 0, |n| transform(n, Dft, 2)),
    rule("FFT3D", 0, |n| transform(n, Dft, 3)),
    rule("IFFT", 0, |n| transform(n, Idft, 1)),
    rule("IFFT2D", 0, |n| transform(n, Idft, 2)),
    rule("IFFT3D", 0, |n| transform(n, Idft, 3)),
    rule("IRFFT", 0, |n| to_real(n, 1)),
    rule("IRFFT2D", 0, |n| to_real(n, 2)),
    rule("IRFFT3D", 0, |n| to_real(n, 3)),
    rule("RFFT", 0, |n| of_real(n, 1)),
    rule("RFFT2D", 0, |n| of_real(n, 2)),
    rule("RFFT3D", 0, |n| of_real(n, 3)),
];

fn transform<O: Op>(n: &mut NodeCx<'_>, op: O, axes: i64) -> Result<Outputs> {
    is_complex(n, "Tcomplex");
    let x = n.input(0)?;
    // The pairs are not counted.
    let axes = n.i64s(&(-axes..0).collect::<Vec<_>>())?;
    Ok(n.emit(op, &[x, axes])?.into())
}

fn of_real(n: &mut NodeCx<'_>, axes: i64) -> Result<Outputs> {
    is_complex(n, "Tcomplex");
    let part = element_type(n, "Tcomplex", ElementType::F32)?;
    let (x, length) = (n.input(0)?, n.input(1)?);
    let axes = n.i64s(&(-axes..0).collect::<Vec<_>>())?;
    let length = i64_vector(n, length)?;
    let y = n.emit(Rdft, &[x, axes, length])?;
    Ok(n.convert(y, part)?.into())
}

fn to_real(n: &mut NodeCx<'_>, axes: i64) -> Result<Outputs> {
    is_complex(n, "Tcomplex");
    let ty = element_type(n, "Treal", ElementType::F32)?;
    let (x, length) = (n.input(0)?, n.input(1)?);
    let axes = n.i64s(&(-axes..0).collect::<Vec<_>>())?;
    let length = i64_vector(n, length)?;
    let y = n.put(Irdft, &[x, axes, length])?;
    Ok(n.convert(y, ty)?.into())
}
