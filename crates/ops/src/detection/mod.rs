//! Finding boxes: anchors and priors, decoding and suppression, and pooling over regions of interest.

mod boxes;
mod expect;
mod nms_core;

opset! {
    non_max_suppression::{
        NonMaxSuppression, NonMaxSuppressionV1, NonMaxSuppressionV3, NonMaxSuppressionV4, NonMaxSuppressionV5,
    },
}
