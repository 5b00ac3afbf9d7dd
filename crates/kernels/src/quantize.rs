//! From numbers to the steps of a grid and back.

use crate::simd::dispatch;
use crate::{Exec, Isa, Quantizer, SharedMut, part_of};

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
        steps_of(exec.isa, quantizer, from, to);
    });
}

/// The same on one thread; the slices are as long as each other.
pub(crate) fn steps_of(isa: Isa, quantizer: &Quantizer, from: &[f32], to: &mut [u8]) {
    debug_assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() {
        // SAFETY: the level is there, and the lengths are equal.
        return unsafe { avx512::quantize(quantizer, from, to) };
    }
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(from: &'a [f32], to: &'a mut [u8], quantizer: &'a Quantizer) {
            let _ = S::N;
            from.iter().zip(to).for_each(|(x, y)| *y = quantizer.step(*x) as u8);
        })
    }
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
        numbers_of(exec.isa, scale, zero, from, to);
    });
}

/// The same on one thread.
pub(crate) fn numbers_of(isa: Isa, scale: f32, zero: u8, from: &[u8], to: &mut [f32]) {
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(from: &'a [u8], to: &'a mut [f32], scale: f32, zero: u8) {
            let _ = S::N;
            let zero = i32::from(zero);
            for (x, y) in from.iter().zip(to) {
                *y = (i32::from(*x) - zero) as f32 * scale;
            }
        })
    }
}

/// Each byte through a table.
pub fn map_bytes(exec: &Exec<'_>, table: &[u8; 256], from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "a byte for each byte");
    mapped(exec, table, Some(from), to);
}

/// Each byte through a table, over itself.
pub fn map_bytes_in_place(exec: &Exec<'_>, table: &[u8; 256], data: &mut [u8]) {
    mapped(exec, table, None, data);
}

fn mapped(exec: &Exec<'_>, table: &[u8; 256], from: Option<&[u8]>, data: &mut [u8]) {
    let (len, out) = (data.len(), SharedMut::new(data));
    let parts = parts(exec, len);
    #[cfg(target_arch = "x86_64")]
    let wide = exec.isa.avx512().is_some() && is_x86_feature_detected!("avx512vbmi");
    exec.each(parts, |part, _| {
        // SAFETY: parts are disjoint.
        let data = unsafe { out.part(part_of(len, parts, part)) };
        if let Some(from) = from {
            data.copy_from_slice(&from[part_of(len, parts, part)]);
        }
        #[cfg(target_arch = "x86_64")]
        if wide {
            // SAFETY: the instructions were detected.
            return unsafe { avx512::map(table, data) };
        }
        data.iter_mut().for_each(|x| *x = table[usize::from(*x)]);
    });
}

/// An image given as planes of bytes as pixels of four bytes: up to four channels, and zeros for those that are not there.
/// `pixels` is the size of a plane.
pub fn weave_planes(exec: &Exec<'_>, from: &[u8], [images, channels, pixels]: [usize; 3], to: &mut [u8]) {
    assert!((1..=4).contains(&channels), "{channels} channels in four bytes");
    assert!(from.len() >= images * channels * pixels && to.len() >= images * pixels * 4, "an image of that size");
    let out = SharedMut::new(to);
    let parts = parts(exec, pixels);
    exec.each(images * parts, |chunk, _| {
        let (image, range) = (chunk / parts, part_of(pixels, parts, chunk % parts));
        let plane = |c: usize| &from[(image * channels + c) * pixels..][range.clone()];
        let start = image * pixels;
        // SAFETY: parts are disjoint.
        let to = unsafe { out.part((start + range.start) * 4..(start + range.end) * 4) };
        #[cfg(target_arch = "x86_64")]
        if exec.isa.avx512().is_some() {
            let planes = &from[image * channels * pixels..][..channels * pixels];
            // SAFETY: the level is there; planes and pixels were checked.
            return unsafe { avx512::weave(planes, pixels, range.start, to) };
        }
        for (i, pixel) in to.chunks_exact_mut(4).enumerate() {
            for (c, byte) in pixel.iter_mut().enumerate() {
                *byte = if c < channels { plane(c)[i] } else { 0 };
            }
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

    /// # Safety
    /// As for `planes`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn weave(planes: &[u8], pixels: usize, start: usize, to: &mut [u8]) {
        for i in (0..to.len() / 4).step_by(16) {
            let mask = mask_of(to.len() / 4 - i);
            let mut cells = _mm512_setzero_si512();
            for c in 0..planes.len() / pixels {
                // SAFETY: the mask leaves out what is not there.
                let x = unsafe { _mm_maskz_loadu_epi8(mask, planes.as_ptr().add(c * pixels + start + i).cast()) };
                let shift = _mm_cvtsi32_si128(8 * c as i32);
                cells = _mm512_or_si512(cells, _mm512_sll_epi32(_mm512_cvtepu8_epi32(x), shift));
            }
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr().add(4 * i).cast(), mask, cells) };
        }
    }

    /// # Safety
    /// The processor has `vpermi2b`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub(super) unsafe fn map(table: &[u8; 256], data: &mut [u8]) {
        // SAFETY: four vectors of the table.
        let quarter = |i: usize| unsafe { _mm512_loadu_si512(table.as_ptr().add(64 * i).cast()) };
        let [a, b, c, d] = [quarter(0), quarter(1), quarter(2), quarter(3)];
        for block in data.chunks_mut(64) {
            let mask = if block.len() == 64 { !0 } else { (1u64 << block.len()) - 1 };
            // SAFETY: the mask leaves out what is not there.
            unsafe {
                let x = _mm512_maskz_loadu_epi8(mask, block.as_ptr().cast());
                let (low, high) = (_mm512_permutex2var_epi8(a, x, b), _mm512_permutex2var_epi8(c, x, d));
                let y = _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
                _mm512_mask_storeu_epi8(block.as_mut_ptr().cast(), mask, y);
            }
        }
    }

    fn mask_of(left: usize) -> u16 {
        if left >= 16 { 0xffff } else { ((1u32 << left) - 1) as u16 }
    }
}
