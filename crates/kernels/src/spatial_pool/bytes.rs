//! Largest bytes of windows on channels-last images.

use super::PoolShape;
use crate::simd::dispatch;
use crate::{Exec, SharedMut, part_of};

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
                for iz in inside(z, 0) {
                    for iy in inside(y, 1) {
                        for ix in inside(x, 2) {
                            let [depth, height, width] = s.in_spatial;
                            let pixel = ((image * depth + iz) * height + iy) * width + ix;
                            let from = &input[pixel * in_stride..][..channels];
                            // SAFETY: the body is safe code.
                            unsafe {
                                dispatch!(exec.isa, <'a, S>(from: &'a [u8], to: &'a mut [u8]) {
                                    let _ = S::N;
                                    to.iter_mut().zip(from).for_each(|(y, x)| *y = (*y).max(*x));
                                })
                            }
                        }
                    }
                }
            }
        }
    });
}
