//! From numbers to the steps of a grid and back.

use crate::simd::dispatch;
use crate::{Exec, Quantizer, SharedMut, part_of};

/// Elements below which more threads cost more than they bring.
const ALONE: usize = 16 * 1024;

fn parts(exec: &Exec<'_>, len: usize) -> usize {
    if len < ALONE { 1 } else { exec.threads() * 4 }
}

/// The step of each number, as a byte. The quantizer's steps are bytes.
pub fn quantize(exec: &Exec<'_>, quantizer: &Quantizer, from: &[f32], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "a byte for each number");
    let (len, out) = (from.len(), SharedMut::new(to));
    let parts = parts(exec, len);
    exec.each(parts, |part, _| {
        let range = part_of(len, parts, part);
        // SAFETY: parts are disjoint.
        let (from, to) = (&from[range.clone()], unsafe { out.part(range) });
        #[cfg(target_arch = "x86_64")]
        if exec.isa.avx512().is_some() {
            // SAFETY: the level is there, and the lengths are equal.
            return unsafe { avx512::quantize(quantizer, from, to) };
        }
        from.iter().zip(to).for_each(|(x, y)| *y = quantizer.step(*x) as u8);
    });
}

/// The numbers that bytes stand for: `(x - zero) * scale`.
pub fn dequantize(exec: &Exec<'_>, scale: f32, zero: u8, from: &[u8], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "a byte for each number");
    let (len, out) = (from.len(), SharedMut::new(to));
    let parts = parts(exec, len);
    exec.each(parts, |part, _| {
        let range = part_of(len, parts, part);
        // SAFETY: parts are disjoint.
        let (from, to) = (&from[range.clone()], unsafe { out.part(range) });
        // SAFETY: the body is safe code.
        unsafe {
            dispatch!(exec.isa, <'a, S>(from: &'a [u8], to: &'a mut [f32], scale: f32, zero: u8) {
                let _ = S::N;
                let zero = i32::from(zero);
                for (x, y) in from.iter().zip(to) {
                    *y = (i32::from(*x) - zero) as f32 * scale;
                }
            })
        }
    });
}

/// The steps of an image given as planes of floats, pixels of four bytes: up to four channels, and zeros for those that are not
/// there. `pixels` is the size of a plane.
pub fn quantize_planes(
    exec: &Exec<'_>,
    quantizer: &Quantizer,
    from: &[f32],
    [images, channels, pixels]: [usize; 3],
    to: &mut [u8],
) {
    assert!((1..=4).contains(&channels), "{channels} channels in four bytes");
    assert!(from.len() >= images * channels * pixels && to.len() >= images * pixels * 4, "an image of that size");
    let out = SharedMut::new(to);
    let parts = parts(exec, pixels);
    exec.each(images * parts, |chunk, _| {
        let (image, range) = (chunk / parts, part_of(pixels, parts, chunk % parts));
        let planes = &from[image * channels * pixels..][..channels * pixels];
        let start = image * pixels;
        // SAFETY: parts are disjoint.
        let to = unsafe { out.part((start + range.start) * 4..(start + range.end) * 4) };
        #[cfg(target_arch = "x86_64")]
        if exec.isa.avx512().is_some() {
            // SAFETY: the level is there; planes and pixels were checked.
            return unsafe { avx512::planes(quantizer, planes, pixels, range.start, to) };
        }
        for (pixel, i) in to.chunks_exact_mut(4).zip(range) {
            for (c, byte) in pixel.iter_mut().enumerate() {
                *byte = if c < channels { quantizer.step(planes[c * pixels + i]) as u8 } else { 0 };
            }
        }
    });
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use crate::Quantizer;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    fn steps(q: &Quantizer, x: __m512) -> __m512i {
        let y = _mm512_fmadd_ps(x, _mm512_set1_ps(q.inverse), _mm512_set1_ps(q.shift));
        // A number that is none becomes the least.
        let y = _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(q.low)), _mm512_set1_ps(q.high));
        _mm512_add_epi32(_mm512_cvtps_epi32(y), _mm512_set1_epi32(q.zero))
    }

    /// # Safety
    /// The slices are as long as each other.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn quantize(q: &Quantizer, from: &[f32], to: &mut [u8]) {
        for i in (0..from.len()).step_by(16) {
            let mask = mask_of(from.len() - i);
            // SAFETY: the mask leaves out what is not there.
            unsafe {
                let x = _mm512_maskz_loadu_ps(mask, from.as_ptr().add(i));
                let bytes = _mm512_cvtepi32_epi8(steps(q, x));
                match mask {
                    0xffff => _mm_storeu_si128(to.as_mut_ptr().add(i).cast(), bytes),
                    _ => _mm_mask_storeu_epi8(to.as_mut_ptr().add(i).cast(), mask, bytes),
                }
            }
        }
    }

    /// # Safety
    /// `planes` holds whole planes, and `to` the pixels from `start` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn planes(q: &Quantizer, planes: &[f32], pixels: usize, start: usize, to: &mut [u8]) {
        for i in (0..to.len() / 4).step_by(16) {
            let mask = mask_of(to.len() / 4 - i);
            let mut cells = _mm512_setzero_si512();
            for c in 0..planes.len() / pixels {
                // SAFETY: the mask leaves out what is not there.
                let x = unsafe { _mm512_maskz_loadu_ps(mask, planes.as_ptr().add(c * pixels + start + i)) };
                let shift = _mm_cvtsi32_si128(8 * c as i32);
                cells = _mm512_or_si512(cells, _mm512_sll_epi32(steps(q, x), shift));
            }
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr().add(4 * i).cast(), mask, cells) };
        }
    }

    fn mask_of(left: usize) -> u16 {
        if left >= 16 { 0xffff } else { ((1u32 << left) - 1) as u16 }
    }
}
