//! Convolutions, forward and backward, on one to three spatial axes.

mod backward;
mod forward;
pub(crate) mod unfold;
pub mod window;

opset! {
    conv::{Convolution},
    convolution_backprop_data::{ConvolutionBackpropData},
    group_convolution::{GroupConvolution},
    group_convolution_backprop_data::{GroupConvolutionBackpropData},
}
