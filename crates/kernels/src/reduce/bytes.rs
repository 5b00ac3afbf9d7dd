//! Means of bytes over the pixels of channels-last images.

use crate::simd::dispatch;
use crate::{Exec, SharedMut};

/// Channels that are summed together.
const BLOCK: usize = 256;
/// Most pixels whose sum 32 bits hold.
pub const MOST_PIXELS: usize = 1 << 23;

/// The mean of each channel of each image: `(x - zero) * scale` over all pixels. Sums are exact.
pub fn mean_bytes(
    exec: &Exec<'_>,
    [images, pixels, channels]: [usize; 3],
    from: &[u8],
    (scale, zero): (f32, u8),
    out: &mut [f32],
) {
    assert!((1..=MOST_PIXELS).contains(&pixels), "{pixels} pixels");
    assert!(from.len() >= images * pixels * channels && out.len() >= images * channels, "images of that size");
    let blocks = channels.div_ceil(BLOCK);
    let out = SharedMut::new(out);
    exec.each(images * blocks, |chunk, _| {
        let (image, first) = (chunk / blocks, chunk % blocks * BLOCK);
        let width = BLOCK.min(channels - first);
        let mut sums = [0u32; BLOCK];
        for pixel in 0..pixels {
            let line = &from[(image * pixels + pixel) * channels + first..][..width];
            let sums = &mut sums[..width];
            // SAFETY: the body is safe code.
            unsafe {
                dispatch!(exec.isa, <'a, S>(line: &'a [u8], sums: &'a mut [u32]) {
                    let _ = S::N;
                    sums.iter_mut().zip(line).for_each(|(sum, x)| *sum += u32::from(*x));
                })
            }
        }
        // SAFETY: channels of an image are disjoint.
        let to = unsafe { out.part(image * channels + first..image * channels + first + width) };
        let taken = i64::from(zero) * pixels as i64;
        for (mean, sum) in to.iter_mut().zip(sums) {
            *mean = ((i64::from(sum) - taken) as f64 * f64::from(scale) / pixels as f64) as f32;
        }
    });
}
