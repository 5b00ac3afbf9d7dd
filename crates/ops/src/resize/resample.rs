//! Applies the plan of each axis to a tensor, one axis after the other.

use super::taps::{Axis, Coordinates, Mode, NearestMode, Taps, cubic, linear, linear_onnx, nearest, pillow};
use crate::index::{around, offsets};
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, Result};
use carafe_tensor::{ElementType, Tensor, strides};

/// A resize with everything known.
#[derive(Debug)]
pub(super) struct Resize<'a> {
    pub mode: Mode,
    pub coordinates: Coordinates,
    pub nearest: NearestMode,
    pub antialias: bool,
    pub cube_coeff: f32,
    /// One for each axis of the data, not negative.
    pub pads_begin: &'a [usize],
    /// Shape with pads.
    pub padded: &'a [usize],
    /// Axes to resize with their scales, in the order given.
    pub scales: &'a [(usize, f32)],
}

impl Resize<'_> {
    /// Resizes input 0 to output 0.
    pub(super) fn run(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out_shape = cx.out_shape(0)?;
        if out_shape.contains(&0) {
            return cx.put(0, &out_shape, Vec::<f64>::new());
        }
        if self.padded.contains(&0) {
            return Err(cx.fail(format!("data of shape {:?} has no pixel to resize", self.padded)));
        }
        // Plans of the axes grow with the output, so a size past memory is refused before they are made.
        Tensor::zeros(cx.ty(0), &out_shape)?;
        if self.mode == Mode::Nearest { self.pick(cx, &out_shape) } else { self.blend(cx, &out_shape) }
    }

    fn axis(&self, axis: usize, out_shape: &[usize]) -> Axis {
        let scale = self.scales.iter().find(|(a, _)| *a == axis).map_or(1.0, |(_, s)| *s);
        Axis { from: self.padded[axis], to: out_shape[axis], scale }
    }

    /// Moves pixels, so it serves every element type.
    fn pick(&self, cx: &mut EvalCx<'_>, out_shape: &[usize]) -> Result<()> {
        let data = cx.input(0);
        let steps = strides(data.shape());
        // For each output position on an axis, the offset it adds; none in the padding.
        let sources: Vec<Vec<Option<usize>>> = (0..out_shape.len())
            .map(|i| {
                let inside = |at: usize| {
                    let at = at.checked_sub(self.pads_begin[i]).filter(|&at| at < data.shape()[i])?;
                    Some(at * steps[i])
                };
                nearest(self.axis(i, out_shape), self.coordinates, self.nearest).into_iter().map(inside).collect()
            })
            .collect();
        let picked = data.select(out_shape, |mut flat| {
            let mut source = 0;
            for (axis, positions) in sources.iter().enumerate().rev() {
                source += positions[flat % out_shape[axis]]?;
                flat /= out_shape[axis];
            }
            Some(source)
        })?;
        cx.set(0, picked)
    }

    fn blend(&self, cx: &mut EvalCx<'_>, out_shape: &[usize]) -> Result<()> {
        let ty = cx.ty(0);
        let mut data = self.padded_data(cx)?;
        let mut shape = self.padded.to_vec();
        let by_pillow = matches!(self.mode, Mode::BilinearPillow | Mode::BicubicPillow);
        let shrinks = self.scales.iter().any(|(_, scale)| *scale < 1.0);
        // Pillow resamples the width, listed last, before the height; the order matters as it rounds in between.
        for &(axis, scale) in self.scales.iter().rev() {
            let plan = self.axis(axis, out_shape);
            if plan.unchanged() {
                continue;
            }
            let taps = match self.mode {
                Mode::Linear => linear(plan, self.coordinates, if self.antialias && shrinks { scale } else { 1.0 }),
                Mode::LinearOnnx | Mode::Nearest => linear_onnx(plan, self.coordinates),
                Mode::Cubic => cubic(plan, self.coordinates, self.cube_coeff),
                Mode::BilinearPillow => pillow(plan, None),
                Mode::BicubicPillow => pillow(plan, Some(f64::from(self.cube_coeff))),
            };
            data = along(&data, &shape, axis, &taps)?;
            shape[axis] = plan.to;
            if by_pillow && ty.is_integer() {
                data.iter_mut().for_each(|x| *x = saturated((*x + 0.5f64.copysign(*x)).trunc(), ty));
            }
        }
        if ty.is_integer() && !by_pillow {
            let round = self.mode == Mode::Linear;
            // Sums of exact weights may end just below an integer in f64; f32 is where it is cut off.
            data.iter_mut().for_each(|x| *x = f64::from(if round { (*x as f32).round() } else { (*x as f32).trunc() }));
        }
        cx.put(0, out_shape, data)
    }

    fn padded_data(&self, cx: &EvalCx<'_>) -> Result<Vec<f64>> {
        let data = cx.get::<f64>(0)?;
        let shape = cx.shape(0);
        if shape == self.padded {
            return Ok(data.into_owned());
        }
        let mut out: Vec<f64> = zeros(self.padded)?;
        let steps = strides(self.padded);
        let start: usize = self.pads_begin.iter().zip(&steps).map(|(p, s)| p * s).sum();
        for (&x, at) in data.iter().zip(offsets(shape, &steps)) {
            out[start + at] = x;
        }
        Ok(out)
    }
}

/// Blends along one axis.
fn along(data: &[f64], shape: &[usize], axis: usize, taps: &Taps) -> Result<Vec<f64>> {
    let (outer, n, inner) = around(shape, axis);
    let mut out: Vec<f64> = zeros(&[outer, taps.len(), inner])?;
    for (o, rows) in out.chunks_exact_mut(taps.len() * inner).enumerate() {
        for (row, taps) in rows.chunks_exact_mut(inner).zip(taps) {
            for &(t, w) in taps {
                for (y, x) in row.iter_mut().zip(&data[(o * n + t) * inner..][..inner]) {
                    *y += w * x;
                }
            }
        }
    }
    Ok(out)
}

/// Limits a whole number to what an integer type holds.
fn saturated(x: f64, ty: ElementType) -> f64 {
    let bits = ty.bits() as i32;
    let (low, high) = if ty.is_signed() {
        (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)
    } else {
        (0.0, 2f64.powi(bits) - 1.0)
    };
    x.clamp(low, high)
}
