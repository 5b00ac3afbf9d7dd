//! `FFT` on CPU: pictures whose sides are powers of two, in f32, where the input lies. Others are left to the operation.

use crate::Fft;
use carafe_sdk::prelude::*;
use std::f64::consts::TAU;

pub(crate) struct FftKernel;

impl Kernel for FftKernel {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        "FFT"
    }
    fn opset(&self) -> Option<&str> {
        Some("mri")
    }
    fn name(&self) -> &str {
        "mri_fft"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        let sides = sides(site).filter(|s| s.iter().all(|n| n.is_power_of_two()));
        if sides.is_none() || site.inputs[0].ty != ElementType::F32 {
            return Ok(vec![]);
        }
        let port = PortLayout::plain(ElementType::F32);
        Ok(vec![Config::new(vec![port.clone()], vec![port.in_place_of(0)])])
    }
    fn init(&self, site: &Site, _config: usize) -> Result<Box<dyn PreparedKernel>> {
        let inverse = Fft::from_attrs(&site.attrs)?.inverse;
        let [height, width] = sides(site).ok_or_else(|| Error::invalid("the shape of the pictures is not known"))?;
        let sign = if inverse { TAU } else { -TAU };
        let scale = if inverse { 1.0 / (height * width) as f32 } else { 1.0 };
        Ok(Box::new(Pictures { rows: Line::new(width, sign), columns: Line::new(height, sign), scale }))
    }
}

// Height and width.
fn sides(site: &Site) -> Option<[usize; 2]> {
    match site.inputs.first()?.shape.to_static()?[..] {
        [.., height, width, 2] => Some([height, width]),
        _ => None,
    }
}

/// The transform of all pictures of a tensor.
struct Pictures {
    rows: Line,
    columns: Line,
    scale: f32,
}

impl PreparedKernel for Pictures {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        if io.in_place.is_none() {
            let x = io.input::<f32>(0)?;
            io.output::<f32>(0)?.copy_from_slice(x);
        }
        let (height, width) = (self.columns.points, self.rows.points);
        let threads = io.threads;
        each_chunk(threads, io.output::<f32>(0)?, 2 * height * width, |_, picture, _| {
            (0..height).for_each(|y| self.rows.transform(picture, y * width, 1));
            (0..width).for_each(|x| self.columns.transform(picture, x, width));
            picture.iter_mut().for_each(|v| *v *= self.scale);
        });
        Ok(())
    }
}

/// The transform of one line of a picture, in place.
struct Line {
    points: usize,
    /// Cosine and sine of the first half of a turn.
    turns: Vec<(f32, f32)>,
}

impl Line {
    fn new(points: usize, sign: f64) -> Line {
        let turn = |k: usize| {
            let (sin, cos) = (sign * k as f64 / points as f64).sin_cos();
            (cos as f32, sin as f32)
        };
        Line { points, turns: (0..points / 2).map(turn).collect() }
    }

    fn transform(&self, picture: &mut [f32], start: usize, stride: usize) {
        let (n, at) = (self.points, |k: usize| 2 * (start + k * stride));
        // Cooley and Tukey: points in the order of their reversed bits, then joined in pairs, fours, eights.
        for k in 1..n {
            let other = k.reverse_bits() >> (n.leading_zeros() + 1);
            if k < other {
                picture.swap(at(k), at(other));
                picture.swap(at(k) + 1, at(other) + 1);
            }
        }
        let mut half = 1;
        while half < n {
            for first in (0..n).step_by(2 * half) {
                for k in 0..half {
                    let (cos, sin) = self.turns[k * (n / 2 / half)];
                    let (a, b) = (at(first + k), at(first + k + half));
                    let re = picture[b] * cos - picture[b + 1] * sin;
                    let im = picture[b] * sin + picture[b + 1] * cos;
                    (picture[b], picture[b + 1]) = (picture[a] - re, picture[a + 1] - im);
                    picture[a] += re;
                    picture[a + 1] += im;
                }
            }
            half *= 2;
        }
    }
}
