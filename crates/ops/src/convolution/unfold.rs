//! Windows laid out as columns of a matrix, which turns a convolution into a matrix product, and the way back. Shapes of
//! one or two spatial axes are seen as three, with ones in front.

use super::window::Axis;
use carafe_tensor::Number;
use std::ops::Range;

/// An image, the windows on it, and where they stand.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Size of the image.
    pub image: [usize; 3],
    /// Number of windows.
    pub windows: [usize; 3],
    pub axes: [Axis; 3],
}

/// A run of windows along the last axis whose element `k` lies inside the image.
struct Run {
    /// First column, counted from the start of the block.
    column: usize,
    /// Image position below the first column.
    image: usize,
    len: usize,
}

impl Grid {
    /// All lists hold one entry for each spatial axis, three at most.
    pub(crate) fn new(image: &[usize], windows: &[usize], axes: &[Axis]) -> Grid {
        let mut grid = Grid { image: [1; 3], windows: [1; 3], axes: [Axis::UNIT; 3] };
        let lead = 3 - axes.len();
        grid.image[lead..].copy_from_slice(image);
        grid.windows[lead..].copy_from_slice(windows);
        grid.axes[lead..].copy_from_slice(axes);
        grid
    }
    /// Elements of the image.
    pub(crate) fn image_len(&self) -> usize {
        self.image.iter().product()
    }
    /// Number of windows in all.
    pub(crate) fn n_windows(&self) -> usize {
        self.windows.iter().product()
    }
    /// Elements of a window.
    pub(crate) fn kernel_len(&self) -> usize {
        self.axes.iter().map(|a| a.kernel as usize).product()
    }
    /// Position of element `k` of window `w` on an axis; `None` in the padding.
    #[inline]
    pub(crate) fn position(&self, axis: usize, w: usize, k: usize) -> Option<usize> {
        let a = &self.axes[axis];
        let at = w as i64 * a.stride + k as i64 * a.dilation - a.pad_begin;
        (at >= 0 && at < self.image[axis] as i64).then_some(at as usize)
    }

    /// Elements of window `w` on an axis that lie inside the image.
    pub(crate) fn inside(&self, axis: usize, w: usize) -> Range<usize> {
        let a = &self.axes[axis];
        let begin = w as i64 * a.stride - a.pad_begin;
        let first_at_least = |position: i64| {
            let distance = position.saturating_sub(begin).max(0) as u64;
            distance.div_ceil(a.dilation as u64).min(a.kernel as u64) as usize
        };
        first_at_least(0)..first_at_least(self.image[axis] as i64)
    }

    /// Visits the runs of windows `start..end` for kernel element `k`; what no run covers lies in the padding.
    fn runs(&self, k: [usize; 3], start: usize, end: usize, mut visit: impl FnMut(Run)) {
        let [_, rows, width] = self.windows;
        let a = &self.axes[2];
        let shift = k[2] as i64 * a.dilation - a.pad_begin;
        // Windows low..high of a row have this element inside the image.
        let low = (-shift).max(0) as u64;
        let low = low.div_ceil(a.stride as u64).min(width as u64) as usize;
        let high = (self.image[2] as i64 - shift).max(0) as u64;
        let high = high.div_ceil(a.stride as u64).min(width as u64) as usize;
        let mut at = start;
        while at < end {
            let (row, x) = (at / width, at % width);
            let len = (width - x).min(end - at);
            let (from, to) = (low.max(x), high.min(x + len));
            let line = (self.position(0, row / rows, k[0]), self.position(1, row % rows, k[1]));
            if let (true, (Some(z), Some(y))) = (from < to, line) {
                let first = (from as i64 * a.stride + shift) as usize;
                let image = (z * self.image[1] + y) * self.image[2] + first;
                visit(Run { column: at - start + from - x, image, len: to - from });
            }
            at += len;
        }
    }

    /// All kernel elements in row-major order.
    fn kernel(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [d, h, w] = self.axes.map(|a| a.kernel as usize);
        (0..d * h * w).map(move |i| [i / (h * w), i / w % h, i % w])
    }

    /// Fills `columns` (one row for each channel and kernel element, one column for each of the windows `start..end`)
    /// from the images of all channels, with `pad` outside of the image.
    pub(crate) fn unfold<T: Number>(&self, images: &[T], columns: &mut [T], start: usize, end: usize, pad: T) {
        if self.image_len() == 0 {
            return columns.fill(pad);
        }
        let (width, stride) = (end - start, self.axes[2].stride as usize);
        let mut rows = columns.chunks_exact_mut(width);
        for image in images.chunks_exact(self.image_len()) {
            for (k, row) in self.kernel().zip(&mut rows) {
                row.fill(pad);
                self.runs(k, start, end, |run| {
                    let out = &mut row[run.column..run.column + run.len];
                    if stride == 1 {
                        out.copy_from_slice(&image[run.image..run.image + run.len]);
                    } else {
                        for (y, &x) in out.iter_mut().zip(image[run.image..].iter().step_by(stride)) {
                            *y = x;
                        }
                    }
                });
            }
        }
    }

    /// Adds what [`Self::unfold`] would read back to where it would have read it.
    pub(crate) fn fold<S: Number>(&self, columns: &[S], images: &mut [S], start: usize, end: usize) {
        if self.image_len() == 0 {
            return;
        }
        let (width, stride) = (end - start, self.axes[2].stride as usize);
        let mut rows = columns.chunks_exact(width);
        for image in images.chunks_exact_mut(self.image_len()) {
            for (k, row) in self.kernel().zip(&mut rows) {
                self.runs(k, start, end, |run| {
                    let values = &row[run.column..run.column + run.len];
                    for (y, &x) in image[run.image..].iter_mut().step_by(stride).zip(values) {
                        *y = S::wrapping_add(*y, x);
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kernel: i64, stride: i64, dilation: i64, pads: [i64; 2], n: usize, windows: usize) -> Grid {
        let axis = Axis { kernel, stride, dilation, pad_begin: pads[0], pad_end: pads[1] };
        Grid::new(&[n], &[windows], &[axis])
    }

    #[test]
    fn columns_hold_the_windows() {
        let g = line(2, 2, 1, [1, 1], 4, 3);
        let mut columns = vec![0; 6];
        g.unfold(&[1, 2, 3, 4], &mut columns, 0, 3, -1);
        assert_eq!(columns, [-1, 2, 4, 1, 3, -1]);
    }

    #[test]
    fn a_negative_pad_crops() {
        let g = line(2, 1, 1, [-1, 0], 4, 2);
        let mut columns = vec![0; 4];
        g.unfold(&[1, 2, 3, 4], &mut columns, 0, 2, 0);
        assert_eq!(columns, [2, 3, 3, 4]);
    }

    #[test]
    fn elements_inside_skip_the_pads() {
        let g = line(3, 2, 2, [3, 3], 4, 3);
        assert_eq!([g.inside(2, 0), g.inside(2, 1), g.inside(2, 2)], [2..3, 1..3, 0..2]);
        assert_eq!(line(2, 3, 1, [1, 1], 5, 3).inside(2, 2), 0..0);
    }

    #[test]
    fn blocks_cut_rows_anywhere() {
        let axis = Axis { kernel: 2, pad_begin: 1, pad_end: 1, ..Axis::UNIT };
        let g = Grid::new(&[2, 3], &[3, 4], &[axis, axis]);
        let image = [1, 2, 3, 4, 5, 6];
        let mut whole = vec![0; 4 * 12];
        g.unfold(&image, &mut whole, 0, 12, 0);
        for (start, end) in [(0, 5), (5, 7), (7, 12)] {
            let mut part = vec![0; 4 * (end - start)];
            g.unfold(&image, &mut part, start, end, 0);
            for k in 0..4 {
                assert_eq!(part[k * (end - start)..][..end - start], whole[k * 12 + start..k * 12 + end]);
            }
        }
    }

    #[test]
    fn folding_counts_how_often_an_element_is_read() {
        let g = line(3, 2, 1, [1, 1], 5, 3);
        let mut image = vec![0; 5];
        g.fold(&[1; 9], &mut image, 0, 3);
        assert_eq!(image, [1, 2, 1, 2, 1]);
    }
}
