//! Pixels of channels side by side, weighted and added up.

use crate::simd::Simd;

/// Pixels that one sample reads, each with its weight.
pub(super) struct Blend {
    pixels: [(*const f32, f32); MOST],
    count: usize,
}

/// Most pixels of a sample.
const MOST: usize = 16;
/// Vectors that are summed at once.
const BLOCK: usize = 4;

impl Blend {
    pub(super) fn new() -> Blend {
        Blend { pixels: [(std::ptr::null(), 0.0); MOST], count: 0 }
    }
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
    /// Another pixel, whose channels start here.
    #[inline(always)]
    pub(super) fn add(&mut self, pixel: *const f32, weight: f32) {
        self.pixels[self.count] = (pixel, weight);
        self.count += 1;
    }

    /// `to[c] = scale * sum of weight * pixel[c]` for `n` channels from `first` on.
    ///
    /// # Safety
    /// Each pixel has these channels, and `n` floats can be written.
    #[inline(always)]
    pub(super) unsafe fn write<S: Simd>(&self, first: usize, scale: f32, to: *mut f32, n: usize) {
        let pixels = &self.pixels[..self.count];
        let scale = S::splat(scale);
        let mut c = 0;
        // SAFETY: only channels below `n` are read and written.
        unsafe {
            while c + BLOCK * S::N <= n {
                let mut sums = [S::splat(0.0); BLOCK];
                for &(pixel, weight) in pixels {
                    let weight = S::splat(weight);
                    for v in 0..BLOCK {
                        sums[v] = S::load(pixel.add(first + c + v * S::N)).fma(weight, sums[v]);
                    }
                }
                for v in 0..BLOCK {
                    (sums[v] * scale).store(to.add(c + v * S::N));
                }
                c += BLOCK * S::N;
            }
            while c + S::N <= n {
                let mut sum = S::splat(0.0);
                for &(pixel, weight) in pixels {
                    sum = S::load(pixel.add(first + c)).fma(S::splat(weight), sum);
                }
                (sum * scale).store(to.add(c));
                c += S::N;
            }
            if c < n {
                let mut sum = S::splat(0.0);
                for &(pixel, weight) in pixels {
                    sum = S::load_partial(pixel.add(first + c), n - c).fma(S::splat(weight), sum);
                }
                (sum * scale).store_partial(to.add(c), n - c);
            }
        }
    }
}
