//! Blocks of output pixels of one row for kernels of any size in up to three dimensions, with holes or without.

use super::target::Target;
use crate::simd::{Kernel, Number, Simd, unroll};
use std::marker::PhantomData;

/// Output columns of a block.
pub(super) const COLUMNS: usize = 8;

/// A block of output pixels, all channels.
pub(super) struct Span<T> {
    /// The input under the first tap of the first column, which may lie in the padding.
    pub(super) input: *const T,
    /// Kernel rows that lie in the image, by depth and by height.
    pub(super) depth: [usize; 2],
    pub(super) height: [usize; 2],
    /// Numbers from tap to tap of each kernel axis.
    pub(super) tap_step: [usize; 3],
    pub(super) kernel: [usize; 3],
    /// Input column under the first tap of the first output column, of how many; whether columns or taps leave the image;
    /// pixels from tap to tap and from output column to output column.
    pub(super) x: isize,
    pub(super) width: usize,
    pub(super) edge: bool,
    pub(super) dilation: usize,
    pub(super) stride: usize,
    /// Numbers from input pixel to input pixel.
    pub(super) step: usize,
    pub(super) weights: *const f32,
    pub(super) channels: usize,
    pub(super) target: Target<T>,
}

pub(super) struct Any<T>(PhantomData<T>);

impl<T: Number> Kernel for Any<T> {
    type Args<'a> = &'a Span<T>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(s: &Span<T>) {
        // SAFETY: the span describes memory that is there, and the processor has the instructions.
        unsafe {
            let taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
            let (mut c, mut w) = (0, s.weights);
            if !s.edge {
                let all = L::first(L::N);
                while c + L::N <= s.channels {
                    span::<L, T, false>(s, c, w, all, L::N);
                    c += L::N;
                    w = w.add(taps * L::N);
                }
            }
            while c < s.channels {
                let more = s.channels - c;
                span::<L, T, true>(s, c, w, L::first(more), more.min(L::N));
                c += L::N;
                w = w.add(taps * L::N);
            }
        }
    }
}

/// With `CARE` columns or taps may be missing, and vectors may have fewer lanes: the first `n`.
#[inline(always)]
unsafe fn span<L: Simd, T: Number, const CARE: bool>(s: &Span<T>, c: usize, w: *const f32, mask: L::Mask, n: usize) {
    // SAFETY: the caller describes memory that is there, and the processor has the instructions.
    unsafe {
        let mut acc = [s.target.start::<L, CARE>(c, mask); COLUMNS];
        let column_step = s.stride * s.step;
        for kd in s.depth[0]..s.depth[1] {
            for kh in s.height[0]..s.height[1] {
                let mut from = s.input.wrapping_add(kd * s.tap_step[0] + kh * s.tap_step[1] + c);
                let mut w = w.add((kd * s.kernel[1] + kh) * s.kernel[2] * L::N);
                let mut x = s.x;
                for _ in 0..s.kernel[2] {
                    let tap = L::load(w);
                    unroll!(o < COLUMNS, 8, {
                        if !CARE || ((x + (o * s.stride) as isize) as usize) < s.width {
                            let at = from.wrapping_add(o * column_step);
                            let v = if CARE { T::load_first::<L>(at, mask, n) } else { T::load::<L>(at) };
                            acc[o] = v.mul_add(tap, acc[o]);
                        }
                    });
                    from = from.wrapping_add(s.tap_step[2]);
                    w = w.add(L::N);
                    x += s.dilation as isize;
                }
            }
        }
        s.target.put::<L, CARE, 1, COLUMNS>(c, [acc], mask, n);
    }
}
