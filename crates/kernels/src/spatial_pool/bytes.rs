//! Largest bytes of windows on channels-last images.

use super::PoolShape;
use crate::simd::dispatch;
use crate::{Exec, Isa, SharedMut, part_of};

/// The largest byte of each window and channel. Every window must have a pixel inside of the image.
pub fn max_pool_bytes(
    exec: &Exec<'_>,
    s: &PoolShape,
    (input, in_stride): (&[u8], usize),
    (out, out_stride): (&mut [u8], usize),
) {
    let in_pixels = s.batch * s.in_spatial.iter().product::<usize>();
    let [out_d, out_h, out_w] = s.out_spatial;
    let rows = s.batch * out_d * out_h;
    let channels = s.channels;
    if rows * out_w * channels == 0 {
        return;
    }
    assert!(in_stride >= channels && out_stride >= channels, "pixels overlap");
    assert!(in_pixels > 0 && input.len() >= (in_pixels - 1) * in_stride + channels, "input of {s:?}");
    assert!(out.len() >= (rows * out_w - 1) * out_stride + channels, "output of {s:?}");
    let parts = (exec.threads() * 4).min(rows);
    let out = SharedMut::new(out);
    // Taps of a window that lie inside, along one axis.
    let inside = |o: usize, axis: usize| {
        (0..s.kernel[axis])
            .map(move |k| (o * s.stride[axis] + k * s.dilation[axis]).wrapping_sub(s.pad_begin[axis]))
            .filter(move |at| *at < s.in_spatial[axis])
    };
    exec.each(parts, |part, _| {
        for row in part_of(rows, parts, part) {
            let (y, z, image) = (row % out_h, row / out_h % out_d, row / out_h / out_d);
            for x in 0..out_w {
                let start = (row * out_w + x) * out_stride;
                // SAFETY: pixels of the output are disjoint.
                let to = unsafe { out.part(start..start + channels) };
                to.fill(0);
                let (mut taps, mut count) = ([0; MOST_TAPS], 0);
                for iz in inside(z, 0) {
                    for iy in inside(y, 1) {
                        for ix in inside(x, 2) {
                            if count == MOST_TAPS {
                                largest(exec.isa, input, &taps, to);
                                count = 0;
                            }
                            let [depth, height, width] = s.in_spatial;
                            taps[count] = (((image * depth + iz) * height + iy) * width + ix) * in_stride;
                            count += 1;
                        }
                    }
                }
                largest(exec.isa, input, &taps[..count], to);
            }
        }
    });
}

/// Pixels that are compared at once.
const MOST_TAPS: usize = 64;
/// Channels that stay in registers.
const BLOCK: usize = 64;

// The largest of what is there and of the pixels that begin at `taps`.
fn largest(isa: Isa, input: &[u8], taps: &[usize], to: &mut [u8]) {
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(input: &'a [u8], taps: &'a [usize], to: &'a mut [u8]) {
            let _ = S::N;
            let (blocks, rest) = to.as_chunks_mut::<BLOCK>();
            let first = blocks.len() * BLOCK;
            for (i, block) in blocks.iter_mut().enumerate() {
                let mut best = *block;
                for tap in taps {
                    let Some(from) = input[tap + i * BLOCK..].first_chunk::<BLOCK>() else { continue };
                    (0..BLOCK).for_each(|c| best[c] = best[c].max(from[c]));
                }
                *block = best;
            }
            for tap in taps {
                rest.iter_mut().zip(&input[tap + first..]).for_each(|(y, x)| *y = (*y).max(*x));
            }
        })
    }
}
