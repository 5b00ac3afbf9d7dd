//! Stand-in.
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
}
