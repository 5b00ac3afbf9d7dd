//! One row of pooled pixels. Windows are cut at the borders of the image, so pads are never read.

use crate::Isa;
use crate::simd::{Entry, Kernel, Number, Readable, Simd, entry, unroll};
use std::marker::PhantomData;

/// The windows of one output row.
#[derive(Clone, Copy)]
pub(super) struct Row<I, O> {
    /// The pixel under the first tap of a window at column 0, as if nothing were padded on the left; may lie outside.
    pub(super) input: *const I,
    /// Window rows inside of the image, by depth and by height.
    pub(super) depth: [usize; 2],
    pub(super) height: [usize; 2],
    /// Numbers from tap to tap by depth, height and width.
    pub(super) tap_step: [usize; 3],
    /// Pixels of an input row, and numbers from one to the next.
    pub(super) width: usize,
    pub(super) step: usize,
    /// Taps by width, pixels from tap to tap, from window to window, and before the first pixel.
    pub(super) taps: usize,
    pub(super) dilation: usize,
    pub(super) stride: usize,
    pub(super) pad: usize,
    pub(super) out: *mut O,
    pub(super) out_step: usize,
    pub(super) columns: usize,
    pub(super) channels: usize,
    /// What sums are divided by; 0 for the number of taps inside of the image, of so many rows.
    pub(super) divisor: f32,
    pub(super) rows: usize,
    /// What means are multiplied with, and what is added then.
    pub(super) factor: f32,
    pub(super) plus: f32,
}

/// Largest elements or means.
struct Pooled<I, O, const MAX: bool>(PhantomData<(I, O)>);

impl<I: Readable, O: Number, const MAX: bool> Kernel for Pooled<I, O, MAX> {
    type Args<'a> = &'a Row<I, O>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(r: &Row<I, O>) {
        let extent = (r.taps.max(1) - 1) as isize * r.dilation as isize;
        let x_of = |column: usize| (column * r.stride) as isize - r.pad as isize;
        // Most windows lie in the image; a division takes longer than a window.
        let is_whole = |column: usize| x_of(column) >= 0 && x_of(column) + extent < r.width as isize;
        // Vectors of a few channels of windows side by side, or of many channels of one.
        let (few, gaps) = (r.channels < 4 * L::N, [r.stride * r.step, r.out_step]);
        let mut column = 0;
        while column < r.columns {
            let x = x_of(column);
            let at_least = |p: isize| ((p - x).max(0) as usize).div_ceil(r.dilation).min(r.taps);
            let inside = if is_whole(column) { [0, r.taps] } else { [at_least(0), at_least(r.width as isize)] };
            let divisor = if r.divisor > 0.0 { r.divisor } else { (r.rows * (inside[1] - inside[0])) as f32 };
            let scale = if divisor > 0.0 { r.factor / divisor } else { 0.0 };
            let from = r.input.wrapping_offset(x * r.step as isize);
            let to = r.out.wrapping_add(column * r.out_step);
            let four = few && column + 4 <= r.columns && is_whole(column) && is_whole(column + 3);
            let mut c = 0;
            // SAFETY: taps outside of the image are left out; the row describes memory that is there.
            unsafe {
                let all = (L::first(L::N), L::N);
                while c + 4 * L::N <= r.channels {
                    let (from, to) = (from.wrapping_add(c), to.add(c));
                    window::<L, I, O, MAX, 4, false>(r, inside, (from, to, [L::N; 2]), scale, all);
                    c += 4 * L::N;
                }
                while c + L::N <= r.channels {
                    let at = (from.wrapping_add(c), to.add(c), gaps);
                    match four {
                        true => window::<L, I, O, MAX, 4, false>(r, inside, at, scale, all),
                        false => window::<L, I, O, MAX, 1, false>(r, inside, at, scale, all),
                    }
                    c += L::N;
                }
                if c < r.channels {
                    let some = (L::first(r.channels - c), r.channels - c);
                    let at = (from.wrapping_add(c), to.add(c), gaps);
                    match four {
                        true => window::<L, I, O, MAX, 4, true>(r, inside, at, scale, some),
                        false => window::<L, I, O, MAX, 1, true>(r, inside, at, scale, some),
                    }
                }
            }
            column += if four { 4 } else { 1 };
        }
    }
}

pub(super) fn of<I: Readable, O: Number>(isa: Isa, max: bool) -> Entry<Row<I, O>> {
    if max { entry::<Pooled<I, O, true>, _>(isa) } else { entry::<Pooled<I, O, false>, _>(isa) }
}

/// `V` vectors of channels, of one window or of windows side by side, each so many numbers behind the last. Of a tail there are
/// the first lanes, as mask and number.
#[inline(always)]
unsafe fn window<L: Simd, I: Readable, O: Number, const MAX: bool, const V: usize, const TAIL: bool>(
    r: &Row<I, O>,
    inside: [usize; 2],
    (from, to, gaps): (*const I, *mut O, [usize; 2]),
    scale: f32,
    (mask, n): (L::Mask, usize),
) {
    // SAFETY: as the caller says.
    unsafe {
        let mut acc = [L::splat(if MAX { O::LOWEST } else { 0.0 }); V];
        for d in r.depth[0]..r.depth[1] {
            for h in r.height[0]..r.height[1] {
                let mut at = from.wrapping_add(d * r.tap_step[0] + h * r.tap_step[1] + inside[0] * r.tap_step[2]);
                for _ in inside[0]..inside[1] {
                    unroll!(v < V, 4, {
                        let at = at.add(v * gaps[0]);
                        let x = if TAIL { I::load_first::<L>(at, mask, n) } else { I::load::<L>(at) };
                        acc[v] = if MAX { x.max(acc[v]) } else { x + acc[v] };
                    });
                    at = at.wrapping_add(r.tap_step[2]);
                }
            }
        }
        unroll!(v < V, 4, {
            let (y, to) = (acc[v], to.add(v * gaps[1]));
            let y = if MAX { y } else { y.mul_add(L::splat(scale), L::splat(r.plus)) };
            match (TAIL, MAX) {
                (true, _) => O::store_first(y, to, mask, n),
                // The largest is one of those that were read.
                (_, true) => O::store_exact(y, to),
                _ => O::store(y, to),
            }
        });
    }
}
