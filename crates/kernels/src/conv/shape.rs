//! What a convolution is, without its numbers.

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
