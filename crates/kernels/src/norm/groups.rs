//! GroupNorm and InstanceNorm of images that lie channels last. Each channel gets its mean and squared deviations first,
//! block by block of pixels; groups are put together from their channels.

use super::NormKind;
use crate::eltwise::pieces;
use crate::simd::dispatch;
use crate::vmath::{put, take};
use crate::{Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// Pixels of a block; with [`TILE`] channels it stays in the first cache for its two passes.
const BLOCK: usize = 32;
/// Channels that are worked on together.
const TILE: usize = 64;

/// Normalises `batch` images of `pixels` x `channels`, each group of channels with all its pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    kind: NormKind,
    batch: usize,
    pixels: usize,
    channels: usize,
    groups: usize,
}

impl GroupNorm {
    /// As many groups as channels is InstanceNorm. Panics when the groups do not divide the channels, or the kind has no mean.
    pub fn new(kind: NormKind, batch: usize, pixels: usize, channels: usize, groups: usize) -> GroupNorm {
        assert!(groups > 0 && channels.is_multiple_of(groups), "{channels} channels in {groups} groups");
        assert!(kind.has_mean(), "{kind:?} of groups");
        GroupNorm { kind, batch, pixels, channels, groups }
    }

    // How many threads share the pixels of one image.
    fn parts(&self, threads: usize) -> usize {
        let enough = self.pixels * self.channels >= 32_768;
        if enough { threads.min(self.pixels.div_ceil(BLOCK)).max(1) } else { 1 }
    }

    /// Floats that the scratch of a thread must have, for as many threads.
    pub fn scratch_floats(&self, threads: usize) -> usize {
        // A mean and squared deviations of every channel and part in f64, then a mean, a factor and a term.
        self.batch * self.channels * (4 * self.parts(threads) + 3)
    }

    /// `gamma` and `beta` have a number for each channel.
    pub fn run(&self, exec: &Exec<'_>, x: &[f32], gamma: Option<&[f32]>, beta: Option<&[f32]>, out: &mut [f32]) {
        let GroupNorm { batch, pixels, channels, .. } = *self;
        assert_eq!(x.len(), batch * pixels * channels, "the input");
        assert_eq!(x.len(), out.len(), "the output");
        assert!(
            [gamma, beta].iter().flatten().all(|v| v.len() == channels),
            "a number for each of {channels} channels"
        );
        if x.is_empty() {
            return;
        }
        let parts = self.parts(exec.threads());
        // The results of all threads meet in the memory of the first.
        let mut scratch = exec.scratch.of(0);
        assert!(scratch.len() >= self.scratch_floats(exec.threads()), "scratch of {} floats", scratch.len());
        let (moments, factors) = scratch.split_at_mut(4 * batch * channels * parts);
        let moments: &mut [f64] = bytemuck::cast_slice_mut(moments);
        let shared = SharedMut::new(moments);
        let each_part = |unit: usize| {
            let (image, part) = (unit / parts, unit % parts);
            let image = &x[image * pixels * channels..][..pixels * channels];
            // SAFETY: units have moments of their own.
            let to = unsafe { shared.part(unit * 2 * channels..(unit + 1) * 2 * channels) };
            moments_of(exec.isa, image, channels, part_of(pixels, parts, part), to);
        };
        let chunks = if pieces(exec, x.len()) == 1 { 1 } else { batch * parts };
        exec.each(chunks, |chunk, _| part_of(batch * parts, chunks, chunk).for_each(each_part));
        for image in 0..batch {
            let moments = &mut moments[image * parts * 2 * channels..][..parts * 2 * channels];
            self.factors(parts, moments, gamma, beta, &mut factors[image * 3 * channels..][..3 * channels]);
        }
        let rows = batch * pixels;
        let chunks = pieces(exec, x.len()).min(rows);
        let (to, factors) = (SharedMut::new(out), &*factors);
        exec.each(chunks, |chunk, _| {
            for row in part_of(rows, chunks, chunk) {
                let at = row * channels..(row + 1) * channels;
                let factors = &factors[row / pixels * 3 * channels..][..3 * channels];
                // SAFETY: chunks have rows of their own.
                let out = unsafe { to.part(at.clone()) };
                scale(exec.isa, &x[at], factors, out);
            }
        });
    }

    // Joins the parts of every channel and the channels of every group: means, then factors, then terms.
    fn factors(&self, parts: usize, moments: &mut [f64], gamma: Option<&[f32]>, beta: Option<&[f32]>, out: &mut [f32]) {
        let channels = self.channels;
        let (first, others) = moments.split_at_mut(2 * channels);
        let (means, squares) = first.split_at_mut(channels);
        let mut count = part_of(self.pixels, parts, 0).len() as f64;
        for (part, other) in others.chunks_exact(2 * channels).enumerate() {
            let n = part_of(self.pixels, parts, part + 1).len() as f64;
            let join = Join::new(count, n);
            for c in 0..channels {
                join.add((&mut means[c], &mut squares[c]), (other[c], other[channels + c]));
            }
            count += n;
        }
        let width = channels / self.groups;
        let (mean_out, rest) = out.split_at_mut(channels);
        let (factor_out, term_out) = rest.split_at_mut(channels);
        for group in (0..channels).step_by(width.max(1)) {
            let mine = group..group + width;
            let mean = means[mine.clone()].iter().sum::<f64>() / width as f64;
            let apart = mine.clone().map(|c| (means[c] - mean) * (means[c] - mean) * self.pixels as f64 + squares[c]);
            let factor = self.kind.factor(apart.sum(), width * self.pixels);
            for c in mine {
                mean_out[c] = mean as f32;
                let factor = factor * gamma.map_or(1.0, |g| f64::from(g[c]));
                factor_out[c] = factor as f32;
                // What the mean lost when it was stored.
                let lost = (f64::from(mean_out[c]) - mean) * factor;
                term_out[c] = (beta.map_or(0.0, |b| f64::from(b[c])) + lost) as f32;
            }
        }
    }
}

/// Joins the mean and squared deviations of some elements with those of `n` more.
struct Join {
    share: f64,
    weight: f64,
}

impl Join {
    fn new(count: f64, n: f64) -> Join {
        Join { share: n / (count + n), weight: count * n / (count + n) }
    }
    #[inline(always)]
    fn add(&self, (mean, squares): (&mut f64, &mut f64), other: (f64, f64)) {
        let apart = other.0 - *mean;
        *mean += apart * self.share;
        *squares += other.1 + apart * apart * self.weight;
    }
}

/// Means, then squared deviations, of every channel over some pixels.
fn moments_of(isa: Isa, x: &[f32], channels: usize, pixels: Range<usize>, out: &mut [f64]) {
    let (means, squares) = out.split_at_mut(channels);
    let mut count = 0.0;
    let start = pixels.start;
    for first in pixels.clone().step_by(BLOCK) {
        let n = BLOCK.min(pixels.end - first);
        let join = Join::new(count, n as f64);
        for column in (0..channels).step_by(TILE) {
            let width = TILE.min(channels - column);
            let (mut mean, mut rest, mut square) = ([0.0f32; TILE], [0.0f32; TILE], [0.0f32; TILE]);
            let to = [mean.as_mut_ptr(), rest.as_mut_ptr(), square.as_mut_ptr()];
            let block = x[first * channels + column..(first + n - 1) * channels + column + width].as_ptr();
            // SAFETY: `n` rows of `width` floats lie in the slice above; the results hold a tile; `dispatch!` checks the machine.
            unsafe {
                dispatch!(isa, <S>(block: *const f32, n: usize, channels: usize, width: usize, to: [*mut f32; 3]) {
                    let share = S::splat(1.0 / n as f32);
                    let mut c = 0;
                    while c < width {
                        let lanes = S::N.min(width - c);
                        macro_rules! at {
                            ($k:expr) => {
                                take::<S>(block.add($k * channels + c), 0, lanes)
                            };
                        }
                        // Two chains each, since one addition waits for the last.
                        let (mut s0, mut s1) = (S::splat(0.0), S::splat(0.0));
                        for k in 0..n / 2 {
                            s0 = s0 + at!(2 * k);
                            s1 = s1 + at!(2 * k + 1);
                        }
                        if n % 2 == 1 {
                            s0 = s0 + at!(n - 1);
                        }
                        let mean = (s0 + s1) * share;
                        let (mut q0, mut q1) = (S::splat(0.0), S::splat(0.0));
                        // What the sum of deviations is not 0 by, the mean is off by.
                        let (mut r0, mut r1) = (S::splat(0.0), S::splat(0.0));
                        for k in 0..n / 2 {
                            let (d0, d1) = (at!(2 * k) - mean, at!(2 * k + 1) - mean);
                            q0 = d0.fma(d0, q0);
                            q1 = d1.fma(d1, q1);
                            r0 = r0 + d0;
                            r1 = r1 + d1;
                        }
                        if n % 2 == 1 {
                            let d = at!(n - 1) - mean;
                            q0 = d.fma(d, q0);
                            r0 = r0 + d;
                        }
                        mean.store_partial(to[0].add(c), lanes);
                        ((r0 + r1) * share).store_partial(to[1].add(c), lanes);
                        (q0 + q1).store_partial(to[2].add(c), lanes);
                        c += lanes;
                    }
                })
            }
            for c in 0..width {
                let rest = f64::from(rest[c]);
                let other = (f64::from(mean[c]) + rest, f64::from(square[c]) - n as f64 * rest * rest);
                let all = (&mut means[column + c], &mut squares[column + c]);
                if first == start { (*all.0, *all.1) = other } else { join.add(all, other) }
            }
        }
        count += n as f64;
    }
}

/// `(x - mean) * factor + term` of one pixel.
fn scale(isa: Isa, x: &[f32], factors: &[f32], out: &mut [f32]) {
    let len = x.len();
    assert!(factors.len() == 3 * len && out.len() == len);
    let (x, factors, out) = (x.as_ptr(), factors.as_ptr(), out.as_mut_ptr());
    // SAFETY: all hold a number for each channel; `dispatch!` checks the machine.
    unsafe {
        dispatch!(isa, <S>(x: *const f32, factors: *const f32, out: *mut f32, len: usize) {
            let mut i = 0;
            while i < len {
                let left = len - i;
                let (mean, factor) = (take::<S>(factors, i, left), take::<S>(factors.add(len), i, left));
                let y = (take::<S>(x, i, left) - mean).fma(factor, take::<S>(factors.add(2 * len), i, left));
                put(y, out, i, left);
                i += S::N;
            }
        })
    }
}
