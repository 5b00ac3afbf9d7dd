//! Activation functions: of one element, or of one axis (the softmaxes).

pub(crate) mod along_axis;

opset! {
    clamp::{Clamp}, elu::{Elu}, gelu::{Gelu, GeluV2}, h_sigmoid::{HSigmoid}, h_swish::{HSwish},
    hard_sigmoid::{HardSigmoid}, log_softmax::{LogSoftmax}, mish::{Mish}, prelu::{PRelu}, relu::{Relu}, selu::{Selu},
    sigmoid::{Sigmoid}, soft_plus::{SoftPlus}, soft_sign::{SoftSign}, softmax::{Softmax, SoftmaxV1}, swish::{Swish},
}
