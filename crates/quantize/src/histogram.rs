//! How the numbers of a value are spread: counts in equal bins around zero. A number beyond the last bin doubles the range and
//! adds neighbours together, so that one walk over the data is enough.

/// Bins on each side of zero.
pub(crate) const HALF: usize = 2048;
/// Numbers of one tensor that are counted; extremes are taken of all.
const COUNTED: usize = 1 << 17;

/// Extremes and spread of a value over all samples.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// Of the numbers on each side of zero, by magnitude.
    pub negative: Vec<u64>,
    pub positive: Vec<u64>,
    /// Exact zeros, of which rectified data is full: every grid has them, so they say nothing about its limits.
    pub zeros: u64,
    /// Magnitude at the end of the last bin; 0 before the first number.
    pub limit: f32,
    pub min: f32,
    pub max: f32,
    sum_min: f64,
    sum_max: f64,
    samples: usize,
    pub finite: bool,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            negative: vec![0; HALF],
            positive: vec![0; HALF],
            zeros: 0,
            limit: 0.0,
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
            sum_min: 0.0,
            sum_max: 0.0,
            samples: 0,
            finite: true,
        }
    }
}

impl Histogram {
    /// Adds the numbers of one sample.
    pub(crate) fn add(&mut self, values: &[f32]) {
        if values.is_empty() {
            return;
        }
        let (mut min, mut max, mut finite) = (f32::INFINITY, f32::NEG_INFINITY, true);
        for v in values {
            min = min.min(*v);
            max = max.max(*v);
            finite &= v.is_finite();
        }
        if !finite {
            self.finite = false;
            return;
        }
        self.min = self.min.min(min);
        self.max = self.max.max(max);
        self.sum_min += f64::from(min);
        self.sum_max += f64::from(max);
        self.samples += 1;
        self.widen(min.abs().max(max.abs()));
        if self.limit == 0.0 {
            return;
        }
        let per = HALF as f32 / self.limit;
        for v in values.iter().step_by(values.len().div_ceil(COUNTED)) {
            let bin = ((v.abs() * per) as usize).min(HALF - 1);
            match *v {
                v if v < 0.0 => self.negative[bin] += 1,
                v if v > 0.0 => self.positive[bin] += 1,
                _ => self.zeros += 1,
            }
        }
    }

    fn widen(&mut self, peak: f32) {
        if self.limit == 0.0 {
            self.limit = peak;
        }
        while self.limit < peak {
            self.limit *= 2.0;
            for side in [&mut self.negative, &mut self.positive] {
                for i in 0..HALF {
                    side[i] = if i < HALF / 2 { side[2 * i] + side[2 * i + 1] } else { 0 };
                }
            }
        }
    }

    /// Mean over the samples of their least and greatest number.
    pub(crate) fn mean_extremes(&self) -> (f32, f32) {
        let n = self.samples.max(1) as f64;
        ((self.sum_min / n) as f32, (self.sum_max / n) as f32)
    }

    /// Whether anything was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Brings the numbers of another value in, for values that share a range.
    pub(crate) fn join(&mut self, other: &Histogram) {
        self.finite &= other.finite;
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = Histogram { finite: self.finite, ..other.clone() };
            return;
        }
        self.widen(other.limit);
        for (to, from) in [(&mut self.negative, &other.negative), (&mut self.positive, &other.positive)] {
            for (i, n) in from.iter().enumerate() {
                let at = (((i as f32 + 0.5) * other.limit / self.limit.max(f32::MIN_POSITIVE)) as usize).min(HALF - 1);
                to[at] += n;
            }
        }
        self.zeros += other.zeros;
        // The extremes of joined values are those of whichever reaches further.
        let (a, b) = (self.mean_extremes(), other.mean_extremes());
        (self.samples, self.sum_min, self.sum_max) = (1, f64::from(a.0.min(b.0)), f64::from(a.1.max(b.1)));
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_sample_keeps_the_counts() {
        let mut h = Histogram::default();
        h.add(&[0.5, -0.25, 1.0]);
        h.add(&[7.0, -3.0]);
        let total: u64 = h.negative.iter().chain(&h.positive).sum();
        assert_eq!((total, h.min, h.max, h.limit), (5, -3.0, 7.0, 8.0));
        assert_eq!(h.mean_extremes(), (-1.625, 4.0));
    }

    #[test]
    fn numbers_that_are_not_finite_are_noticed() {
        let mut h = Histogram::default();
        h.add(&[1.0, f32::NAN]);
        assert!(!h.finite && h.is_empty());
        h.add(&[1.0, f32::INFINITY]);
        h.add(&[0.0, 0.0]);
        assert!(!h.finite && !h.is_empty());
    }

    #[test]
    fn joined_values_have_one_range() {
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        a.add(&[1.0, -1.0]);
        b.add(&[0.0, 6.0]);
        a.join(&b);
        assert_eq!((a.min, a.max, a.mean_extremes()), (-1.0, 6.0, (-1.0, 6.0)));
        assert_eq!((a.negative.iter().chain(&a.positive).sum::<u64>(), a.zeros), (3, 1));
    }
}
