//! Copies of input rows with their padding, so that the innermost loops meet no border.

use super::ConvShape;
use crate::{Halves, Isa};
use std::ops::Range;

/// How rows of the input are laid out in scratch: `planes x rows x width` pixels of `pitch` floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    /// Floats from pixel to pixel.
    pub(crate) pitch: usize,
    /// Floats from row to row.
    pub(crate) row: usize,
    /// Floats from plane to plane.
    pub(crate) plane: usize,
}

impl Rows {
    pub(crate) fn new(shape: &ConvShape, pitch: usize) -> Rows {
        let out_width = shape.out_spatial()[2].max(1);
        let width = (out_width - 1) * shape.stride[2] + (shape.kernel[2] - 1) * shape.dilation[2] + 1;
        Rows { width, pitch, row: width * pitch, plane: 0 }
    }
    /// With room for what lies under `strip` rows of the output.
    pub(crate) fn sized(self, shape: &ConvShape, strip: usize) -> Rows {
        Rows { plane: Rows::under(shape, strip) * self.row, ..self }
    }
    /// Input rows under `count` rows of the output.
    pub(crate) fn under(shape: &ConvShape, count: usize) -> usize {
        (count.max(1) - 1) * shape.stride[1] + (shape.kernel[1] - 1) * shape.dilation[1] + 1
    }

    /// Copies what lies under rows `rows` of plane `depth` of image `image` of the output.
    pub(crate) fn fill(
        &self,
        isa: Isa,
        shape: &ConvShape,
        input: Input<'_>,
        image: usize,
        depth: usize,
        rows: Range<usize>,
        outside: f32,
        out: &mut [f32],
    ) {
        let [in_d, in_h, in_w] = shape.in_spatial;
        let count = Rows::under(shape, rows.len());
        let first = (rows.start * shape.stride[1]) as isize - shape.pad_begin[1] as isize;
        let left = shape.pad_begin[2].min(self.width);
        let inside = in_w.min(self.width - left);
        for (z, plane) in out.chunks_mut(self.plane).enumerate().take(shape.kernel[0]) {
            let mut lines = plane.chunks_mut(self.row);
            let iz = (depth * shape.stride[0] + z * shape.dilation[0]).wrapping_sub(shape.pad_begin[0]);
            for y in 0..count {
                let Some(line) = lines.next() else { return };
                let iy = (first + y as isize) as usize;
                if iz >= in_d || iy >= in_h {
                    line.fill(outside);
                    continue;
                }
                line[..left * self.pitch].fill(outside);
                line[(left + inside) * self.pitch..].fill(outside);
                let line = &mut line[left * self.pitch..(left + inside) * self.pitch];
                match input {
                    Input::ChannelsLast { data, stride } => {
                        let start = ((image * in_d + iz) * in_h + iy) * in_w * stride;
                        self.copy(shape.in_channels, &data[start..], stride, inside, line);
                    }
                    Input::Pairs { data, planes, halves } => {
                        let plane = in_d * in_h * in_w;
                        let start = image * planes * plane + (iz * in_h + iy) * in_w;
                        pair(isa, halves, &data[start..], plane, planes, inside, line);
                    }
                    Input::Planar(data) => {
                        let plane = in_d * in_h * in_w;
                        let start = image * shape.in_channels * plane + (iz * in_h + iy) * in_w;
                        interleave(isa, &data[start..], plane, shape.in_channels, inside, line);
                    }
                }
            }
        }
    }

    fn copy(&self, channels: usize, from: &[f32], stride: usize, pixels: usize, to: &mut [f32]) {
        if pixels == 0 {
            return;
        }
        if stride == self.pitch && channels == stride {
            to.copy_from_slice(&from[..to.len()]);
            return;
        }
        for (pixel, from) in to.chunks_mut(self.pitch).zip(from.chunks(stride)).take(pixels) {
            pixel[..channels].copy_from_slice(&from[..channels]);
        }
    }
}

/// The input of a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input<'a> {
    /// Pixels of `stride` floats.
    ChannelsLast { data: &'a [f32], stride: usize },
    /// One plane a channel.
    Planar(&'a [f32]),
    /// The same of floats that become pairs of numbers of 16 bits; behind an odd number of channels stands a zero.
    Pairs { data: &'a [f32], planes: usize, halves: Halves },
}

/// Rows of planes, one a channel, into pixels of pairs.
fn pair(isa: Isa, halves: Halves, from: &[f32], plane: usize, channels: usize, pixels: usize, to: &mut [f32]) {
    let cells = channels.div_ceil(2);
    if pixels == 0 {
        return;
    }
    assert!(from.len() >= (channels - 1) * plane + pixels && to.len() >= pixels * cells);
    #[cfg(target_arch = "x86_64")]
    {
        let rounds = match halves {
            Halves::Bf16 => halves.numbers().is_native(isa),
            Halves::F16 => isa.avx512().is_some(),
        };
        if rounds && (1..=avx512::MOST).contains(&channels) {
            let (from, to) = (from.as_ptr(), to.as_mut_ptr());
            // SAFETY: the lengths were checked above, and the instructions are there.
            return unsafe {
                match halves {
                    Halves::Bf16 => avx512::pairs::<false>(from, plane, channels, pixels, to),
                    Halves::F16 => avx512::pairs::<true>(from, plane, channels, pixels, to),
                }
            };
        }
    }
    let _ = isa;
    let bits = |c: usize, x: usize| if c < channels { u32::from(halves.bits(from[c * plane + x])) } else { 0 };
    for (x, pixel) in to.chunks_exact_mut(cells).enumerate().take(pixels) {
        for (cell, to) in pixel.iter_mut().enumerate() {
            *to = f32::from_bits(bits(2 * cell, x) | bits(2 * cell + 1, x) << 16);
        }
    }
}

/// Rows of planes, one a channel, into pixels.
fn interleave(isa: Isa, from: &[f32], plane: usize, channels: usize, pixels: usize, to: &mut [f32]) {
    if pixels == 0 {
        return;
    }
    if channels == 1 {
        return to.copy_from_slice(&from[..pixels]);
    }
    assert!(from.len() >= (channels - 1) * plane + pixels && to.len() >= pixels * channels);
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() && (2..=avx512::MOST).contains(&channels) {
        // SAFETY: the lengths were checked above, and the level is there.
        return unsafe { avx512::interleave(from.as_ptr(), plane, channels, pixels, to.as_mut_ptr()) };
    }
    let _ = isa;
    for c in 0..channels {
        for (x, y) in from[c * plane..].iter().take(pixels).zip(to[c..].iter_mut().step_by(channels)) {
            *y = *x;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use crate::simd::rounded_both;
    use std::arch::x86_64::*;

    /// Most channels of [`interleave`].
    pub(super) const MOST: usize = 4;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn interleave(from: *const f32, plane: usize, channels: usize, pixels: usize, to: *mut f32) {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match channels {
                2 => pixels_of::<2>(from, plane, pixels, to),
                3 => pixels_of::<3>(from, plane, pixels, to),
                _ => pixels_of::<MOST>(from, plane, pixels, to),
            }
        }
    }

    /// To f16, or to bf16 where there are instructions for it.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn pairs<const F16: bool>(
        from: *const f32,
        plane: usize,
        channels: usize,
        pixels: usize,
        to: *mut f32,
    ) {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match channels {
                1 => pairs_of::<1, F16>(from, plane, pixels, to),
                2 => pairs_of::<2, F16>(from, plane, pixels, to),
                3 => pairs_of::<3, F16>(from, plane, pixels, to),
                _ => pairs_of::<MOST, F16>(from, plane, pixels, to),
            }
        }
    }

    /// Two vectors rounded, the first in the lower half.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn rounded<const F16: bool>(low: __m512, high: __m512) -> __m512i {
        if !F16 {
            return rounded_both(low, high);
        }
        let low = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low);
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high))
    }

    /// Sixteen pixels at a time: pairs of channels are rounded and woven, then the two pairs of a pixel.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    unsafe fn pairs_of<const C: usize, const F16: bool>(from: *const f32, plane: usize, pixels: usize, to: *mut f32) {
        let mut woven = [0u16; 32];
        let mut turns = [[0i32; 16]; 2];
        for i in 0..32 {
            woven[i] = (i / 2 + i % 2 * 16) as u16;
            turns[i / 16][i % 16] = (i / 2 + i % 2 * 16) as i32;
        }
        // SAFETY: 64 bytes each; only pixels that are there are read and written.
        unsafe {
            let woven = _mm512_loadu_si512(woven.as_ptr().cast());
            let first = _mm512_loadu_si512(turns[0].as_ptr().cast());
            let second = _mm512_loadu_si512(turns[1].as_ptr().cast());
            let mut x = 0;
            while x < pixels {
                let left = (pixels - x).min(16);
                let mask = ((1u32 << left) - 1) as u16;
                let mut rows = [_mm512_setzero_ps(); MOST];
                for c in 0..C {
                    rows[c] = _mm512_maskz_loadu_ps(mask, from.add(c * plane + x));
                }
                let low = rounded::<F16>(rows[0], rows[1]);
                let low = _mm512_castsi512_ps(_mm512_permutexvar_epi16(woven, low));
                if C <= 2 {
                    _mm512_mask_storeu_ps(to.add(x), mask, low);
                } else {
                    let high = rounded::<F16>(rows[2], rows[3]);
                    let high = _mm512_castsi512_ps(_mm512_permutexvar_epi16(woven, high));
                    let two = if left < 8 { (1u32 << (2 * left)) - 1 } else { 0xffff };
                    let more = (1u32 << (2 * left).saturating_sub(16)) - 1;
                    _mm512_mask_storeu_ps(to.add(2 * x), two as u16, _mm512_permutex2var_ps(low, first, high));
                    let rest = _mm512_permutex2var_ps(low, second, high);
                    _mm512_mask_storeu_ps(to.wrapping_add(2 * x + 16), more as u16, rest);
                }
                x += 16;
            }
        }
    }

    /// Sixteen pixels at a time: each vector of the result picks its numbers from the vectors of all channels.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    unsafe fn pixels_of<const C: usize>(from: *const f32, plane: usize, pixels: usize, to: *mut f32) {
        let mut positions = [_mm512_setzero_si512(); C];
        let mut picks = [[0u16; C]; C];
        for v in 0..C {
            let mut position = [0i32; 16];
            for lane in 0..16 {
                let number = v * 16 + lane;
                position[lane] = (number / C) as i32;
                picks[v][number % C] |= 1 << lane;
            }
            // SAFETY: sixteen numbers.
            positions[v] = unsafe { _mm512_loadu_si512(position.as_ptr().cast()) };
        }
        let mix = |rows: &[__m512; C], v: usize| {
            let mut pixel = _mm512_permutexvar_ps(positions[v], rows[0]);
            for c in 1..C {
                pixel = _mm512_mask_permutexvar_ps(pixel, picks[v][c], positions[v], rows[c]);
            }
            pixel
        };
        let mut x = 0;
        let mut rows = [_mm512_setzero_ps(); C];
        // SAFETY: only pixels that are there are read and written.
        unsafe {
            while x + 16 <= pixels {
                for c in 0..C {
                    rows[c] = _mm512_loadu_ps(from.add(c * plane + x));
                }
                for v in 0..C {
                    _mm512_storeu_ps(to.add(x * C + v * 16), mix(&rows, v));
                }
                x += 16;
            }
            let mask = ((1u32 << (pixels - x)) - 1) as u16;
            for c in 0..C {
                rows[c] = _mm512_maskz_loadu_ps(mask, from.wrapping_add(c * plane + x));
            }
            for v in 0..C {
                let left = ((pixels - x) * C).saturating_sub(v * 16);
                let mask = if left >= 16 { 0xffff } else { ((1u32 << left) - 1) as u16 };
                _mm512_mask_storeu_ps(to.wrapping_add(x * C + v * 16), mask, mix(&rows, v));
            }
        }
    }
}

/// Copies the taps of output pixels `pixels` one after another, `pitch` floats a pixel: `taps x channels` of one group.
pub(crate) fn columns(
    shape: &ConvShape,
    input: &[f32],
    stride: usize,
    channels: Range<usize>,
    pixels: Range<usize>,
    pitch: usize,
    outside: f32,
    out: &mut [f32],
) {
    let [od, oh, ow] = shape.out_spatial();
    let [in_d, in_h, in_w] = shape.in_spatial;
    let at = |o: usize, k: usize, axis: usize| {
        (o * shape.stride[axis] + k * shape.dilation[axis]).wrapping_sub(shape.pad_begin[axis])
    };
    let count = channels.len();
    for (pixel, out) in pixels.zip(out.chunks_mut(pitch)) {
        let (x, y, z, image) = (pixel % ow, pixel / ow % oh, pixel / (ow * oh) % od, pixel / (ow * oh * od));
        let mut taps = out.chunks_exact_mut(count);
        for kz in 0..shape.kernel[0] {
            for ky in 0..shape.kernel[1] {
                for kx in 0..shape.kernel[2] {
                    let Some(tap) = taps.next() else { return };
                    let (iz, iy, ix) = (at(z, kz, 0), at(y, ky, 1), at(x, kx, 2));
                    if iz >= in_d || iy >= in_h || ix >= in_w {
                        tap.fill(outside);
                        continue;
                    }
                    let start = (((image * in_d + iz) * in_h + iy) * in_w + ix) * stride + channels.start;
                    tap.copy_from_slice(&input[start..start + count]);
                }
            }
        }
    }
}
