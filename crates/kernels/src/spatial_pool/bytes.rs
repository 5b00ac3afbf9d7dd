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
    let [depth, height, width] = s.in_spatial;
    // Taps of a window that lie inside, along one axis.
    let inside = |o: usize, axis: usize| {
        (0..s.kernel[axis])
            .map(move |k| (o * s.stride[axis] + k * s.dilation[axis]).wrapping_sub(s.pad_begin[axis]))
            .filter(move |at| *at < s.in_spatial[axis])
    };
    // Columns whose windows have all their taps.
    let extent = (s.kernel[2] - 1) * s.dilation[2];
    let first = s.pad_begin[2].div_ceil(s.stride[2]).min(out_w);
    let end = (width + s.pad_begin[2]).checked_sub(extent + 1).map_or(0, |last| last / s.stride[2] + 1);
    let whole = first..end.clamp(first, out_w);
    exec.each(parts, |part, _| {
        for row in part_of(rows, parts, part) {
            let (y, z, image) = (row % out_h, row / out_h % out_d, row / out_h / out_d);
            let lines = || inside(z, 0).flat_map(|iz| inside(y, 1).map(move |iy| (image * depth + iz) * height + iy));
            let taps = |x: usize| -> Vec<usize> {
                let columns = || inside(x, 2);
                lines().flat_map(|line| columns().map(move |ix| (line * width + ix) * in_stride)).collect()
            };
            let start = row * out_w * out_stride;
            // SAFETY: rows of the output are disjoint.
            let to = unsafe { out.part(start..start + (out_w - 1) * out_stride + channels) };
            for x in (0..whole.start).chain(whole.end..out_w) {
                let pixel = &mut to[x * out_stride..][..channels];
                largest(exec.isa, input, &taps(x), 0, (pixel, channels, channels));
            }
            if !whole.is_empty() {
                let step = s.stride[2] * in_stride;
                let pixels = &mut to[whole.start * out_stride..(whole.end - 1) * out_stride + channels];
                largest(exec.isa, input, &taps(whole.start), step, (pixels, out_stride, channels));
            }
        }
    });
}

// The largest of the pixels that begin at `taps`, and of those that lie `step` further for each pixel of the output.
fn largest(isa: Isa, input: &[u8], taps: &[usize], step: usize, to: (&mut [u8], usize, usize)) {
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(input: &'a [u8], taps: &'a [usize], step: usize, to: (&'a mut [u8], usize, usize)) {
            let _ = S::N;
            let (to, stride, channels) = to;
            for (i, pixel) in to.chunks_mut(stride).enumerate() {
                let input = &input[i * step..];
                let mut rest = 0;
                rest += blocks::<64>(input, taps, &mut pixel[rest..channels], rest);
                rest += blocks::<16>(input, taps, &mut pixel[rest..channels], rest);
                blocks::<1>(input, taps, &mut pixel[rest..channels], rest);
            }
        })
    }
}

// Whole blocks of `N` channels, which stay in registers. Gives the channels that are done.
#[inline(always)]
fn blocks<const N: usize>(input: &[u8], taps: &[usize], to: &mut [u8], first: usize) -> usize {
    let (blocks, _) = to.as_chunks_mut::<N>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut best = [0; N];
        for tap in taps {
            let Some(from) = input[tap + first + i * N..].first_chunk::<N>() else { continue };
            (0..N).for_each(|c| best[c] = best[c].max(from[c]));
        }
        *block = best;
    }
    blocks.len() * N
}
