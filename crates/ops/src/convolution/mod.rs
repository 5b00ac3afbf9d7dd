//! Convolutions, forward and backward, on one to three spatial axes.

mod backward;
mod forward;
pub(crate) mod unfold;
pub mod window;

opset! {
    binary_convolution::{BinaryConvolution},
    conv::{Convolution},
    convolution_backprop_data::{ConvolutionBackpropData},
    deformable_convolution::{DeformableConvolution, DeformableConvolutionV1},
    group_convolution::{GroupConvolution},
    group_convolution_backprop_data::{GroupConvolutionBackpropData},
}
