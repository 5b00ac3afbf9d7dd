//! Blocks of output pixels of one row for kernels of any size in up to three dimensions, with holes or without.

use super::target::Target;
use crate::simd::{Kernel, Simd, unroll};

/// Output columns of a block.
pub(super) const COLUMNS: usize = 8;

/// A block of output pixels, all channels.
pub(super) struct Span {
    /// The input under the first tap of the first column, which may lie in the padding.
    pub(super) input: *const f32,
    /// Kernel rows that lie in the image, by depth and by height.
    pub(super) depth: [usize; 2],
    pub(super) height: [usize; 2],
    /// Floats from tap to tap of each kernel axis.
    pub(super) tap_step: [usize; 3],
    pub(super) kernel: [usize; 3],
    /// Input column under the first tap of the first output column, of how many; whether columns or taps leave the image;
    /// pixels from tap to tap and from output column to output column.
    pub(super) x: isize,
    pub(super) width: usize,
    pub(super) edge: bool,
    pub(super) dilation: usize,
    pub(super) stride: usize,
    /// Floats from input pixel to input pixel.
    pub(super) step: usize,
    pub(super) weights: *const f32,
    pub(super) channels: usize,
    pub(super) target: Target,
}

pub(super) struct Any;

impl Kernel for Any {
    type Args<'a> = &'a Span;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(s: &Span) {
        // SAFETY: the span describes memory that is there, and the processor has the instructions.
        unsafe {
            let taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
            let (mut c, mut w) = (0, s.weights);
            if !s.edge {
                let all = L::first(L::N);
                while c + L::N <= s.channels {
                    span::<L, false>(s, c, w, all, false);
                    c += L::N;
                    w = w.add(taps * L::N);
                }
            }
            while c < s.channels {
                let more = s.channels - c;
                span::<L, true>(s, c, w, L::first(more), more < L::N);
                c += L::N;
                w = w.add(taps * L::N);
            }
        }
    }
}

/// With `CARE` columns or taps may be missing, and vectors may have fewer lanes, which is a `tail`.
#[inline(always)]
unsafe fn span<L: Simd, const CARE: bool>(s: &Span, c: usize, w: *const f32, mask: L::Mask, tail: bool) {
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
                            let v = if CARE { L::load_masked(at, mask) } else { L::load(at) };
                            acc[o] = v.mul_add(tap, acc[o]);
                        }
                    });
                    from = from.wrapping_add(s.tap_step[2]);
                    w = w.add(L::N);
                    x += s.dilation as isize;
                }
            }
        }
        unroll!(o < COLUMNS, 8, {
            if !CARE || o < s.target.columns {
                s.target.put::<L, CARE>(0, o, c, acc[o], mask, tail);
            }
        });
    }
}
