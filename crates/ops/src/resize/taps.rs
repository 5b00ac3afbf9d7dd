//! Which pixels of an axis make an output pixel, and with which weights. Every mode is separable, so an axis is planned on
//! its own.

use std::ops::{Add, Div, Mul, Sub};

carafe_graph::attr_enum! {
    /// How pixels are blended.
    pub enum Mode {
        /// The nearest one.
        Nearest = "nearest",
        /// A triangle filter, as wide as the pixels get with antialias.
        Linear = "linear",
        /// The two neighbours, as ONNX defines it.
        LinearOnnx = "linear_onnx",
        /// Four neighbours with a cubic filter.
        Cubic = "cubic",
        /// The triangle filter of Pillow.
        BilinearPillow = "bilinear_pillow",
        /// The cubic filter of Pillow.
        BicubicPillow = "bicubic_pillow",
    }
}

carafe_graph::attr_enum! {
    /// Where an output pixel lies in the input.
    pub enum Coordinates {
        /// Pixels have their centre at half.
        HalfPixel = "half_pixel",
        /// As `HalfPixel`, but 0 for a single output pixel.
        PytorchHalfPixel = "pytorch_half_pixel",
        /// Pixels have their centre at 0.
        Asymmetric = "asymmetric",
        /// As `HalfPixel` without the way back.
        TfHalfPixelForNn = "tf_half_pixel_for_nn",
        /// First and last pixels fall together.
        AlignCorners = "align_corners",
    }
}

carafe_graph::attr_enum! {
    /// Which pixel is the nearest.
    pub enum NearestMode {
        /// The lower one of two equally near.
        RoundPreferFloor = "round_prefer_floor",
        /// The one farther from 0 of two equally near.
        RoundPreferCeil = "round_prefer_ceil",
        /// Always the lower one.
        Floor = "floor",
        /// Always the upper one.
        Ceil = "ceil",
        /// The upper one when the axis shrinks, else the integer part.
        Simple = "simple",
    }
}

/// An axis before and after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Size with pads.
    pub from: usize,
    /// Size of the result.
    pub to: usize,
    /// As given, or the quotient of the sizes.
    pub scale: f32,
}

impl Axis {
    /// Whether every pixel stays where it is, whatever the coordinates say.
    pub(super) fn unchanged(&self) -> bool {
        self.from == self.to
    }

    fn coordinate<F: Real>(&self, x: usize, coordinates: Coordinates) -> F {
        let [x, from, to, scale] = [x as f64, self.from as f64, self.to as f64, f64::from(self.scale)].map(F::of);
        let [half, one] = [0.5, 1.0].map(F::of);
        if self.scale == 1.0 || self.unchanged() {
            return x;
        }
        match coordinates {
            Coordinates::PytorchHalfPixel if self.to <= 1 => F::of(0.0),
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (x + half) / scale - half,
            Coordinates::Asymmetric => x / scale,
            Coordinates::TfHalfPixelForNn => (x + half) / scale,
            Coordinates::AlignCorners if self.to == 1 => F::of(0.0),
            Coordinates::AlignCorners => x * (from - one) / (to - one),
        }
    }

    fn clip(&self, at: i64) -> usize {
        at.clamp(0, self.from as i64 - 1) as usize
    }
}

/// What coordinates are computed in. Which pixel is the nearest is decided in f32, as it is elsewhere: the last bit counts.
/// Weights vary with the coordinate, and one in f32 would be off by more than sums of pixels are.
trait Real: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    fn of(x: f64) -> Self;
}
impl Real for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
}
impl Real for f64 {
    fn of(x: f64) -> f64 {
        x
    }
}

/// The source pixel of each output pixel.
pub(super) fn nearest(axis: Axis, coordinates: Coordinates, mode: NearestMode) -> Vec<usize> {
    let pick = |x: usize| {
        let c: f32 = axis.coordinate(x, coordinates);
        let at = match mode {
            NearestMode::RoundPreferFloor if c == c.trunc() + 0.5 => c.floor(),
            NearestMode::RoundPreferFloor | NearestMode::RoundPreferCeil => c.round(),
            NearestMode::Floor => c.floor(),
            NearestMode::Ceil => c.ceil(),
            NearestMode::Simple if axis.scale < 1.0 => c.ceil(),
            NearestMode::Simple => c.trunc(),
        };
        axis.clip(at as i64)
    };
    (0..axis.to).map(pick).collect()
}

/// What decides the taps of an axis.
#[derive(Clone, Copy, Debug)]
pub struct AxisPlan {
    /// Size before and after.
    pub from: usize,
    /// Size of the result.
    pub to: usize,
    /// As given, or the quotient of the sizes.
    pub scale: f32,
    /// How pixels are blended.
    pub mode: Mode,
    /// Where an output pixel lies in the input.
    pub coordinates: Coordinates,
    /// Which pixel is the nearest.
    pub nearest: NearestMode,
    /// The filter of mode `linear` is to cover all pixels, because some axis shrinks.
    pub widened: bool,
    /// Coefficient of the cubic filters.
    pub cube_coeff: f32,
}

/// Weighted pixels for each output pixel of an axis, for kernels that resize; `None` for the modes of Pillow, which round
/// between axes.
pub fn plan_axis(plan: &AxisPlan) -> Option<Vec<Vec<(usize, f64)>>> {
    let axis = Axis { from: plan.from, to: plan.to, scale: plan.scale };
    let one = |i: usize| vec![(i, 1.0)];
    Some(match plan.mode {
        Mode::Nearest => nearest(axis, plan.coordinates, plan.nearest).into_iter().map(one).collect(),
        _ if axis.unchanged() => (0..plan.to).map(one).collect(),
        Mode::Linear => linear(axis, plan.coordinates, if plan.widened { plan.scale } else { 1.0 }),
        Mode::LinearOnnx => linear_onnx(axis, plan.coordinates),
        Mode::Cubic => cubic(axis, plan.coordinates, plan.cube_coeff),
        Mode::BilinearPillow | Mode::BicubicPillow => return None,
    })
}

/// Weighted pixels for each output pixel.
pub(super) type Taps = Vec<Vec<(usize, f64)>>;

/// The triangle filter. `widening` is the scale of the axis when the filter is to cover all pixels of a smaller image, else 1.
pub(super) fn linear(axis: Axis, coordinates: Coordinates, widening: f32) -> Taps {
    let reach = if axis.scale > 1.0 { 2 } else { (2.0 / widening).ceil() as i64 };
    let one = |x: usize| {
        let c: f64 = axis.coordinate(x, coordinates);
        let middle = c.round() as i64;
        let (first, last) = (middle.saturating_sub(reach).max(0), middle.saturating_add(reach).min(axis.from as i64 - 1));
        let weight = |t: i64| (1.0 - (f64::from(widening) * (c - t as f64)).abs()).max(0.0);
        normalized((first..=last).map(|t| (t as usize, weight(t))).filter(|(_, w)| *w > 0.0).collect())
    };
    (0..axis.to).map(one).collect()
}

/// The two neighbours of a coordinate inside of the axis.
pub(super) fn linear_onnx(axis: Axis, coordinates: Coordinates) -> Taps {
    let one = |x: usize| {
        let c = axis.coordinate::<f64>(x, coordinates).clamp(0.0, axis.from as f64 - 1.0);
        let low = axis.clip(c as i64);
        let high = axis.clip(low as i64 + 1);
        if low == high {
            return vec![(low, 1.0)];
        }
        vec![(low, (c - high as f64).abs()), (high, (c - low as f64).abs())]
    };
    (0..axis.to).map(one).collect()
}

/// Four neighbours; the border pixel stands for those beyond.
pub(super) fn cubic(axis: Axis, coordinates: Coordinates, a: f32) -> Taps {
    let one = |x: usize| {
        let c: f64 = axis.coordinate(x, coordinates);
        let base = c.floor();
        let weights = cubic_weights(c - base, f64::from(a));
        (0..4).map(|i| (axis.clip((base as i64).saturating_add(i - 1)), weights[i as usize])).collect()
    };
    (0..axis.to).map(one).collect()
}

/// Weights of the four neighbours around a point at `f` of the way between the middle two.
pub(super) fn cubic_weights(f: f64, a: f64) -> [f64; 4] {
    let near = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
    let far = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
    [far(f + 1.0), near(f), near(1.0 - f), far(2.0 - f)]
}

/// The filters of Pillow, which widen on their own when the axis shrinks; `cubic` is the coefficient of the cubic one.
pub(super) fn pillow(axis: Axis, cubic: Option<f64>) -> Taps {
    let step = axis.from as f64 / axis.to as f64;
    let widening = step.max(1.0);
    // A product as in Pillow, not a quotient: the last bit decides about halves of integers.
    let narrowing = 1.0 / widening;
    let support = widening * if cubic.is_some() { 2.0 } else { 1.0 };
    let filter = |d: f64| {
        let d = d.abs();
        match cubic {
            None => (1.0 - d).max(0.0),
            Some(a) if d < 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
            Some(a) if d < 2.0 => (((d - 5.0) * d + 8.0) * d - 4.0) * a,
            Some(_) => 0.0,
        }
    };
    let one = |x: usize| {
        let centre = (x as f64 + 0.5) * step;
        let first = ((centre - support + 0.5) as i64).max(0) as usize;
        let last = ((centre + support + 0.5) as i64).clamp(0, axis.from as i64) as usize;
        normalized((first..last).map(|t| (t, filter((t as f64 - centre + 0.5) * narrowing))).collect())
    };
    (0..axis.to).map(one).collect()
}

fn normalized(mut taps: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let sum: f64 = taps.iter().map(|(_, w)| w).sum();
    if sum != 0.0 {
        taps.iter_mut().for_each(|(_, w)| *w /= sum);
    }
    taps
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: Axis = Axis { from: 4, to: 2, scale: 0.5 };

    #[test]
    fn exact_halves_go_where_the_mode_says() {
        let with = |mode| nearest(DOWN, Coordinates::HalfPixel, mode);
        assert_eq!(with(NearestMode::RoundPreferFloor), [0, 2]);
        assert_eq!(with(NearestMode::RoundPreferCeil), [1, 3]);
        assert_eq!(with(NearestMode::Simple), [1, 3]);
    }

    #[test]
    fn an_unchanged_axis_ignores_the_coordinates() {
        let axis = Axis { from: 3, to: 3, scale: 1.1 };
        assert_eq!(nearest(axis, Coordinates::TfHalfPixelForNn, NearestMode::Ceil), [0, 1, 2]);
    }

    #[test]
    fn weights_are_exact_far_from_the_first_pixel() {
        let taps = linear_onnx(Axis { from: 20, to: 80, scale: 4.0 }, Coordinates::AlignCorners);
        let (low, high) = (taps[71][0], taps[71][1]);
        assert_eq!((low.0, high.0), (17, 18));
        assert!((high.1 - 6.0 / 79.0).abs() < 1e-12 && (low.1 - 73.0 / 79.0).abs() < 1e-12, "{low:?} {high:?}");
    }

    #[test]
    fn weights_sum_to_one() {
        let axis = Axis { from: 5, to: 3, scale: 0.6 };
        let c = Coordinates::HalfPixel;
        let all = [
            linear(axis, c, 0.6),
            linear_onnx(axis, c),
            cubic(axis, c, -0.75),
            pillow(axis, None),
            pillow(axis, Some(-0.5)),
        ];
        for taps in all.iter().flatten() {
            assert!((taps.iter().map(|(_, w)| w).sum::<f64>() - 1.0).abs() < 1e-6);
        }
    }
}
