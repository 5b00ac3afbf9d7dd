//! Scaling by statistics of the data.

mod moments;

opset! {
    batch_norm_inference::{BatchNormInference, BatchNormInferenceV1},
    grn::{Grn},
    group_normalization::{GroupNormalization},
    lrn::{Lrn},
    mvn::{Mvn, MvnV2},
    normalize_l2::{NormalizeL2},
}
