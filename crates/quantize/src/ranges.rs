//! From what was seen of a value to the grid it is rounded to: 256 steps, with zero on one of them.

use crate::histogram::{HALF, Histogram};
use crate::options::{Calibration, Preset};

/// Steps of data.
pub(crate) const LEVELS: u64 = 256;
/// Ranges narrower than this are widened to it: a scale must be a normal number.
const NARROWEST: f32 = 1e-12;

/// The limits of a FakeQuantize, on input and output alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub low: f32,
    pub high: f32,
}

impl Range {
    /// What FakeQuantize makes of a number.
    pub(crate) fn round(&self, x: f32) -> f32 {
        let steps = (LEVELS - 1) as f32;
        let q = ((x.clamp(self.low, self.high) - self.low) / (self.high - self.low) * steps).round_ties_even();
        q / steps * (self.high - self.low) + self.low
    }

    // -128..=127 steps.
    fn symmetric(peak: f32) -> Range {
        let step = peak.max(NARROWEST) / 127.0;
        Range { low: -128.0 * step, high: 127.0 * step }
    }

    // Zero becomes a step, and lies inside.
    fn with_zero(low: f32, high: f32) -> Range {
        let (low, high) = (low.min(0.0), high.max(0.0).max(NARROWEST));
        let steps = (LEVELS - 1) as f32;
        let step = (high - low) / steps;
        let zero = (-low / step).round().clamp(0.0, steps);
        Range { low: -zero * step, high: (steps - zero) * step }
    }
}

/// The grid of a value; `None` when it was never seen or has numbers that are not finite.
pub(crate) fn range_of(seen: &Histogram, calibration: Calibration, preset: Preset) -> Option<Range> {
    if seen.is_empty() || !seen.finite {
        return None;
    }
    let symmetric = preset == Preset::Performance && seen.min < 0.0;
    let (low, high) = match calibration {
        Calibration::MinMax => seen.mean_extremes(),
        Calibration::Percentile(p) if symmetric => {
            let peak = limit_at(&both(seen), total(seen) * p / 100.0 - seen.zeros as f64, seen.limit);
            (-peak, peak)
        }
        Calibration::Percentile(p) => {
            // What is left out is shared between the two ends.
            let outside = (1.0 - p / 100.0) / if seen.min < 0.0 { 2.0 } else { 1.0 };
            let end = |side: &[u64]| {
                let inside = side.iter().sum::<u64>() as f64 - outside * total(seen);
                limit_at(side, inside, seen.limit)
            };
            (-end(&seen.negative), end(&seen.positive))
        }
        Calibration::Entropy => {
            let steps = if symmetric { 128 } else { 256 };
            let peak = entropy(&both(seen), steps, seen.limit);
            (seen.min.max(-peak), seen.max.min(peak))
        }
    };
    // Bins end behind the numbers in them.
    let (low, high) = (low.max(seen.min), high.min(seen.max));
    Some(if symmetric { Range::symmetric(low.abs().max(high.abs())) } else { Range::with_zero(low, high) })
}

fn both(seen: &Histogram) -> Vec<u64> {
    seen.negative.iter().zip(&seen.positive).map(|(a, b)| a + b).collect()
}

// Numbers that were counted.
fn total(seen: &Histogram) -> f64 {
    (seen.zeros + seen.negative.iter().chain(&seen.positive).sum::<u64>()) as f64
}

// Where this many numbers lie below.
fn limit_at(counts: &[u64], wanted: f64, limit: f32) -> f32 {
    let mut below = 0;
    for (i, n) in counts.iter().enumerate() {
        below += n;
        if below as f64 >= wanted {
            return limit * (i + 1) as f32 / counts.len() as f32;
        }
    }
    limit
}

// The limit whose `steps` steps are closest to the counts, in the sense of Kullback and Leibler: what lies beyond is added to
// the last bin, and every step spreads its count over the bins that are not empty.
fn entropy(counts: &[u64], steps: usize, limit: f32) -> f32 {
    let mut best = (f64::INFINITY, HALF);
    let mut kept = steps;
    while kept <= counts.len() {
        let beyond: u64 = counts[kept..].iter().sum();
        let divergence = divergence(&counts[..kept], beyond, steps);
        if divergence <= best.0 {
            best = (divergence, kept);
        }
        kept += 16;
    }
    limit * best.1 as f32 / counts.len() as f32
}

fn divergence(counts: &[u64], beyond: u64, steps: usize) -> f64 {
    let n = counts.len();
    let total = (counts.iter().sum::<u64>() + beyond) as f64;
    let inside = counts.iter().sum::<u64>() as f64;
    if inside == 0.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for step in 0..steps {
        let (from, to) = (step * n / steps, (step + 1) * n / steps);
        let bins = &counts[from..to];
        let filled = bins.iter().filter(|c| **c > 0).count();
        let level = bins.iter().sum::<u64>() as f64 / filled.max(1) as f64 / inside;
        for (i, c) in bins.iter().enumerate() {
            let p = (*c + if from + i + 1 == n { beyond } else { 0 }) as f64 / total;
            if p > 0.0 {
                // A number beyond that meets an empty bin costs as much as a rare one.
                let q = if *c > 0 { level } else { 1e-4 / total };
                sum += p * (p / q).ln();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[f32]) -> Histogram {
        let mut h = Histogram::default();
        h.add(values);
        h
    }

    // Many numbers between -1 and 1, most of them near 0, and one outlier.
    fn bell(outlier: f32) -> Histogram {
        let values: Vec<f32> = (0..60_000).map(|i| (i as f32 / 30_000.0 - 1.0).powi(3)).chain([outlier]).collect();
        seen(&values)
    }

    #[test]
    fn zero_is_always_a_step() {
        for (low, high) in [(-0.3, 1.0), (-5.0, 0.1), (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0)] {
            for preset in [Preset::Performance, Preset::Mixed] {
                let r = range_of(&seen(&[low, high]), Calibration::MinMax, preset).unwrap();
                assert!(r.round(0.0).abs() < 1e-6, "{low} {high} {r:?}");
                assert!(r.high > r.low && (r.high - r.low).is_normal());
            }
        }
    }

    #[test]
    fn presets_differ_for_signed_values_only() {
        let of = |values: &[f32], preset| range_of(&seen(values), Calibration::MinMax, preset).unwrap();
        assert_eq!(of(&[0.0, 2.55], Preset::Performance), of(&[0.0, 2.55], Preset::Mixed));
        let r = of(&[-0.5, 1.27], Preset::Performance);
        assert!((r.low + 1.28).abs() < 1e-6 && (r.high - 1.27).abs() < 1e-6, "{r:?}");
        let r = of(&[-0.5, 1.27], Preset::Mixed);
        assert!((r.low + 0.5).abs() < 5e-3 && (r.high - 1.27).abs() < 5e-3, "{r:?}");
    }

    #[test]
    fn percentile_and_entropy_leave_an_outlier_out() {
        for preset in [Preset::Performance, Preset::Mixed] {
            for calibration in [Calibration::Percentile(99.9), Calibration::Entropy] {
                let r = range_of(&bell(20.0), calibration, preset).unwrap();
                assert!(r.high < 4.0 && r.high > 0.3, "{calibration:?} {preset:?} {r:?}");
            }
            let r = range_of(&bell(20.0), Calibration::MinMax, preset).unwrap();
            assert!(r.high > 19.0, "{r:?}");
        }
    }

    #[test]
    fn values_that_are_not_numbers_have_no_range() {
        assert!(range_of(&seen(&[1.0, f32::NAN]), Calibration::MinMax, Preset::Mixed).is_none());
        assert!(range_of(&Histogram::default(), Calibration::MinMax, Preset::Mixed).is_none());
    }

    #[test]
    fn rounding_is_that_of_fake_quantize() {
        let r = Range { low: -1.28, high: 1.27 };
        assert!((r.round(0.504) - 0.50).abs() < 1e-6 && (r.round(9.0) - 1.27).abs() < 1e-6);
    }
}
