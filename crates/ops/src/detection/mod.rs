//! Finding boxes: anchors and priors, decoding and suppression, and pooling over regions of interest.

mod boxes;
mod class_rows;
mod expect;
mod nms_core;
mod roi_grid;
mod rotated_boxes;
mod rpn;
pub use class_rows::SortResult;
pub use roi_grid::PoolMode;

opset! {
    deformable_psroi_pooling::{DeformablePSROIPooling},
    detection_output::{DetectionOutput, DetectionOutputV1},
    experimental_detectron_detection_output::{ExperimentalDetectronDetectionOutput},
    experimental_detectron_generate_proposals_single_image::{ExperimentalDetectronGenerateProposalsSingleImage},
    experimental_detectron_prior_grid_generator::{ExperimentalDetectronPriorGridGenerator},
    experimental_detectron_roi_feature_extractor::{ExperimentalDetectronROIFeatureExtractor},
    experimental_detectron_topk_rois::{ExperimentalDetectronTopKROIs},
    generate_proposals::{GenerateProposals},
    matrix_nms::{MatrixNms},
    multiclass_nms::{MulticlassNms, MulticlassNmsV8},
    nms_rotated::{NMSRotated},
    non_max_suppression::{
        NonMaxSuppression, NonMaxSuppressionV1, NonMaxSuppressionV3, NonMaxSuppressionV4, NonMaxSuppressionV5,
    },
    prior_box::{PriorBox, PriorBoxV1},
    prior_box_clustered::{PriorBoxClustered},
    proposal::{Proposal, ProposalV1},
    psroi_pooling::{PSROIPooling},
    region_yolo::{RegionYolo},
    reorg_yolo::{ReorgYolo},
    roi_align::{ROIAlign, ROIAlignV3},
    roi_align_rotated::{ROIAlignRotated},
    roi_pooling::{ROIPooling},
}
