//! Columns of an unfolded image added back into it. Each row of the image collects what belongs to it, so rows are shared out
//! and no two threads meet.

use crate::simd::dispatch;
use crate::{Exec, SharedMut, part_of};
use std::ops::Range;

/// `[planes, kernel, kernel, positions, positions]` columns to `[planes, height, width]`. Pairs are of the vertical axis and
/// the horizontal one.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    pub planes: usize,
    pub size: [usize; 2],
    pub kernel: [usize; 2],
    /// Positions of the kernel on each axis.
    pub positions: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    pub pad_begin: [usize; 2],
}

impl Fold {
    pub fn run(&self, exec: &Exec<'_>, columns: &[f32], image: &mut [f32]) {
        let [height, width] = self.size;
        let rows = self.planes * height;
        if rows * width == 0 {
            return;
        }
        assert!(self.stride.iter().all(|s| *s > 0), "steps of nothing: {self:?}");
        let of_plane: usize = self.kernel.iter().chain(&self.positions).product();
        assert!(columns.len() >= self.planes * of_plane, "{} numbers for {self:?}", columns.len());
        assert!(image.len() >= rows * width, "{} numbers for an image of {self:?}", image.len());
        let chunks = if columns.len() < 4 << 10 { 1 } else { (8 * exec.threads()).min(rows) };
        let (image, isa, this) = (SharedMut::new(image), exec.isa, self);
        exec.each(chunks, |chunk, _| {
            let mine = part_of(rows, chunks, chunk);
            // SAFETY: each row is written by one chunk.
            let to = unsafe { image.part(mine.start * width..mine.end * width) };
            // SAFETY: the body is safe code; its level is there.
            unsafe {
                dispatch!(isa, <'a, _S> (this: &'a Fold, columns: &'a [f32], mine: Range<usize>, to: &'a mut [f32]) {
                    this.rows(columns, mine, to)
                })
            }
        });
    }

    #[inline(always)]
    fn rows(&self, columns: &[f32], rows: Range<usize>, to: &mut [f32]) {
        let [height, width] = self.size;
        let [down, across] = self.positions;
        for (row, to) in rows.zip(to.chunks_exact_mut(width)) {
            let (plane, y) = (row / height, row % height);
            to.fill(0.0);
            for ky in 0..self.kernel[0] {
                // The position whose kernel row `ky` is this one.
                let Some(at) = (y + self.pad_begin[0]).checked_sub(ky * self.dilation[0]) else { break };
                let position = at / self.stride[0];
                if at % self.stride[0] != 0 || position >= down {
                    continue;
                }
                for kx in 0..self.kernel[1] {
                    let line = (((plane * self.kernel[0] + ky) * self.kernel[1] + kx) * down + position) * across;
                    self.add(&columns[line..line + across], kx * self.dilation[1], to);
                }
            }
        }
    }

    /// Adds the numbers of one kernel element along a row; `ahead` is how far it lies behind the position.
    #[inline(always)]
    fn add(&self, from: &[f32], ahead: usize, to: &mut [f32]) {
        let (stride, pad) = (self.stride[1], self.pad_begin[1]);
        let first = pad.saturating_sub(ahead).div_ceil(stride);
        let start = first * stride + ahead - pad.min(first * stride + ahead);
        if first >= from.len() || start >= to.len() {
            return;
        }
        let (from, to) = (&from[first..], &mut to[start..]);
        if stride == 1 {
            to.iter_mut().zip(from).for_each(|(y, x)| *y += x);
        } else {
            to.iter_mut().step_by(stride).zip(from).for_each(|(y, x)| *y += x);
        }
    }
}
