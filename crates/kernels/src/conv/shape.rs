//! What a convolution is, without its numbers.

use std::ops::Range;

/// Sizes are depth, height, width; 1 where there is no such axis. Padding may differ at the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    pub batch: usize,
    pub in_spatial: [usize; 3],
    pub in_channels: usize,
    pub out_channels: usize,
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    pub pad_begin: [usize; 3],
    pub pad_end: [usize; 3],
    pub groups: usize,
}

impl ConvShape {
    pub fn out_spatial(&self) -> [usize; 3] {
        std::array::from_fn(|i| {
            let extent = (self.kernel[i] - 1) * self.dilation[i] + 1;
            let padded = self.in_spatial[i] + self.pad_begin[i] + self.pad_end[i];
            if padded < extent { 0 } else { (padded - extent) / self.stride[i] + 1 }
        })
    }
    /// Pixels of the whole input, batch included.
    pub fn in_pixels(&self) -> usize {
        self.batch * self.in_spatial.iter().product::<usize>()
    }
    /// Pixels of the whole output, batch included.
    pub fn out_pixels(&self) -> usize {
        self.batch * self.out_spatial().iter().product::<usize>()
    }
    /// Taps of the filter.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Floats of the weights.
    pub fn weights(&self) -> usize {
        self.out_channels * (self.in_channels / self.groups) * self.taps()
    }
    /// The same convolution without the taps that meet nothing but padding, and which taps are left on each axis: those of wide
    /// dilation over a small image. `None` when all are needed.
    pub fn trimmed(&self) -> Option<(ConvShape, [Range<usize>; 3])> {
        let (mut shape, mut kept) = (*self, self.kernel.map(|k| 0..k));
        for (i, out) in self.out_spatial().into_iter().enumerate() {
            let (size, pad, dilation, stride) =
                (self.in_spatial[i], self.pad_begin[i], self.dilation[i], self.stride[i]);
            // Where the tap lies for an output is where that begins plus `tap * dilation`, with the padding counted in.
            let meets = |tap: usize| {
                let first = pad.saturating_sub(tap * dilation).div_ceil(stride);
                first < out && first * stride + tap * dilation < pad + size
            };
            let start = (0..self.kernel[i]).find(|&t| meets(t))?;
            let end = (start..self.kernel[i]).rfind(|&t| meets(t))? + 1;
            // Without the first taps the window begins later; it must not begin inside of the image.
            let Some(begin) = pad.checked_sub(start * dilation) else { continue };
            kept[i] = start..end;
            (shape.kernel[i], shape.pad_begin[i]) = (end - start, begin);
            let reach = (out - 1) * stride + (end - start - 1) * dilation + 1;
            shape.pad_end[i] = reach.saturating_sub(size + begin);
        }
        let less = shape.taps() < self.taps() && shape.out_spatial() == self.out_spatial();
        less.then_some((shape, kept))
    }
    /// Whether output pixels are products of input pixels, one by one.
    pub fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.pad_begin == [0; 3] && self.pad_end == [0; 3]
    }
    pub(crate) fn check(&self) {
        let positive = |a: &[usize; 3]| a.iter().all(|x| *x > 0);
        assert!(
            positive(&self.kernel) && positive(&self.stride) && positive(&self.dilation) && self.groups > 0,
            "a convolution without extent: {self:?}"
        );
        assert!(
            self.in_channels.is_multiple_of(self.groups) && self.out_channels.is_multiple_of(self.groups),
            "{} groups of {} and {} channels",
            self.groups,
            self.in_channels,
            self.out_channels
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atrous(size: usize, rate: usize) -> ConvShape {
        ConvShape {
            batch: 1,
            in_spatial: [1, size, size],
            in_channels: 8,
            out_channels: 8,
            kernel: [1, 3, 3],
            stride: [1; 3],
            dilation: [1, rate, rate],
            pad_begin: [0, rate, rate],
            pad_end: [0, rate, rate],
            groups: 1,
        }
    }

    #[test]
    fn taps_that_meet_padding_alone_are_cut_off() {
        assert_eq!(atrous(14, 13).trimmed(), None);
        let (shape, kept) = atrous(14, 14).trimmed().unwrap();
        assert_eq!(kept, [0..1, 1..2, 1..2]);
        assert!(shape.is_pointwise() && shape.out_spatial() == [1, 14, 14]);
    }

    #[test]
    fn one_end_may_be_cut_off_alone() {
        // Windows of three taps, 4 apart, that begin 4 before an image of 3: the first tap never meets it.
        let shape = ConvShape { kernel: [1, 1, 3], pad_begin: [0, 0, 4], pad_end: [0, 0, 4], ..atrous(3, 4) };
        let shape = ConvShape { in_spatial: [1, 3, 3], ..shape };
        let (_, kept) = shape.trimmed().unwrap();
        assert_eq!(kept[2], 1..2);
        let late = ConvShape { pad_end: [0, 0, 8], ..shape };
        let (less, kept) = late.trimmed().unwrap();
        assert_eq!((kept[2].clone(), less.out_spatial()), (0..2, late.out_spatial()));
    }
}
