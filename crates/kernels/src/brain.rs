//! Numbers of bfloat16 on their way into products: planes of floats become pixels, floats become bits.

use crate::cast::f32_to_brain;
use crate::simd::dispatch;
use crate::{Exec, SharedMut, part_of};

/// Planes of up to four channels as pixels of four bf16, those without a plane zero.
pub fn brain_planes(exec: &Exec<'_>, from: &[f32], [images, channels, pixels]: [usize; 3], to: &mut [u16]) {
    assert!((1..=4).contains(&channels), "{channels} channels in four numbers");
    assert!(from.len() >= images * channels * pixels && to.len() >= images * pixels * 4, "an image of that size");
    let out = SharedMut::new(to);
    let parts = (exec.threads() * 4).min(pixels.div_ceil(1024)).max(1);
    exec.each(images * parts, |chunk, _| {
        let (image, range) = (chunk / parts, part_of(pixels, parts, chunk % parts));
        let planes = &from[image * channels * pixels..][..channels * pixels];
        let plane = |c: usize| &planes[c.min(channels - 1) * pixels..][range.clone()];
        let start = image * pixels;
        // SAFETY: parts are disjoint.
        let to = unsafe { out.part((start + range.start) * 4..(start + range.end) * 4) };
        let four = [0, 1, 2, 3].map(plane);
        let kept = [0, 1, 2, 3].map(|c| if c < channels { u16::MAX } else { 0 });
        // SAFETY: the body is safe code.
        unsafe {
            dispatch!(exec.isa, <'a, S>(four: [&'a [f32]; 4], kept: [u16; 4], to: &'a mut [u16]) {
                let _ = S::N;
                for (i, pixel) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    *pixel = [0, 1, 2, 3].map(|c| bits(four[c][i]) & kept[c]);
                }
            })
        }
    });
}

/// The bits of numbers, rounded to the nearest.
pub fn brain_bits(from: &[f32]) -> Vec<u16> {
    from.iter().map(|x| f32_to_brain(*x).0).collect()
}

#[inline(always)]
fn bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let chosen = if x.is_nan() { bits | 0x0040_0000 } else { rounded };
    (chosen >> 16) as u16
}
