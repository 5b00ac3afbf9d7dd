//! Means of bytes over the pixels of channels-last images.

use crate::simd::dispatch;
use crate::{Exec, SharedMut};

/// Channels that are summed together.
const BLOCK: usize = 64;
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
    let taken = i64::from(zero) * pixels as i64;
    exec.each(images * blocks, |chunk, _| {
        let (image, first) = (chunk / blocks, chunk % blocks * BLOCK);
        let width = BLOCK.min(channels - first);
        let lines = &from[image * pixels * channels + first..];
        let mut sums = [0u32; BLOCK];
        let all = &mut sums;
        // SAFETY: the body is safe code.
        unsafe {
            dispatch!(exec.isa, <'a, S>(lines: &'a [u8], all: &'a mut [u32; BLOCK], pixels: usize, channels: usize) {
                let _ = S::N;
                sum(lines, all, pixels, channels);
            })
        }
        // SAFETY: channels of an image are disjoint.
        let to = unsafe { out.part(image * channels + first..image * channels + first + width) };
        for (mean, sum) in to.iter_mut().zip(sums) {
            *mean = ((i64::from(sum) - taken) as f64 * f64::from(scale) / pixels as f64) as f32;
        }
    });
}

// Sums of lines that lie `channels` apart. Blocks of known size stay in registers.
#[inline(always)]
fn sum(lines: &[u8], all: &mut [u32; BLOCK], pixels: usize, channels: usize) {
    let mut sums = [0u32; BLOCK];
    for pixel in 0..pixels {
        let line = &lines[pixel * channels..];
        match line.first_chunk::<BLOCK>() {
            Some(line) => (0..BLOCK).for_each(|c| sums[c] += u32::from(line[c])),
            None => line.iter().enumerate().for_each(|(c, x)| sums[c] += u32::from(*x)),
        }
    }
    *all = sums;
}
