//! Proposal of Faster R-CNN in its spellings: a layer of C++ forks, Python layers of py-faster-rcnn and SSH, and SimplerNMS.
//! They differ in names and defaults alone. The list of boxes has a fixed length, as the IR has it.

use super::cx::LayerCx;
use super::numbers::{dim, list, part};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Attr, Result};
use carafe_ops::detection::Proposal;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Proposal", 0, |n| proposal(n, &FASTER)),
    rule("SSH.layers.proposal_layer.ProposalLayer", 0, |n| proposal(n, &SSH)),
    rule("SimplerNMS", 0, |n| proposal(n, &SIMPLER)),
    rule("rpn.proposal_layer.ProposalLayer", 0, |n| proposal(n, &FASTER)),
];

/// One spelling.
struct Spelling {
    overlap: &'static str,
    least: &'static str,
    pre_nms_topn: u32,
    post_nms_topn: u32,
    nms_thresh: f32,
}

const FASTER: Spelling =
    Spelling { overlap: "nms_thresh", least: "min_size", pre_nms_topn: 6000, post_nms_topn: 300, nms_thresh: 0.7 };
const SSH: Spelling = Spelling { pre_nms_topn: 1000, post_nms_topn: 1000, nms_thresh: 1.0, ..FASTER };
const SIMPLER: Spelling = Spelling { overlap: "iou_threshold", least: "min_bbox_size", ..FASTER };

fn proposal(n: &mut NodeCx<'_>, spelling: &Spelling) -> Result<Outputs> {
    let [scores, deltas, info] = n.bottoms_of()?;
    // Some say height, width, two scales and the size the image had before.
    let long = dim(n, info, 1) == Some(6);
    let info = n.reshape(info, &[-1])?;
    let info = if long { part(n, info, &[0], &[0], &[4], &[1])? } else { info };
    n.ignore(&["cls_threshold", "max_num_proposals"]);
    let numbers = |n: &NodeCx<'_>, names: [&str; 2], default: &[f32]| -> Result<Vec<f32>> {
        let (plural, single) = (list(n, names[0])?, list(n, names[1])?);
        let given = if plural.is_empty() { single } else { plural };
        Ok(if given.is_empty() { default.to_vec() } else { given })
    };
    let op = Proposal {
        base_size: whole(n, "base_size", 16)?,
        pre_nms_topn: whole(n, "pre_nms_topn", spelling.pre_nms_topn)?,
        post_nms_topn: whole(n, "post_nms_topn", spelling.post_nms_topn)?,
        nms_thresh: n.attr(spelling.overlap, spelling.nms_thresh)?,
        feat_stride: whole(n, "feat_stride", 16)?,
        min_size: whole(n, spelling.least, 16)?,
        ratio: numbers(n, ["ratios", "ratio"], &[0.5, 1.0, 2.0])?,
        scale: numbers(n, ["scales", "scale"], &[8.0, 16.0, 32.0])?,
        clip_before_nms: true,
        clip_after_nms: false,
        normalize: false,
        box_size_scale: 1.0,
        box_coordinate_scale: 1.0,
        framework: String::new(),
    };
    let mut both = n.emit_all(op, &[scores, deltas, info])?;
    both.truncate(n.n_outputs().max(1));
    Ok(both.into())
}

// A size that Python may have written as a float.
fn whole(n: &NodeCx<'_>, name: &str, default: u32) -> Result<u32> {
    match n.attr_value(name).cloned() {
        None => Ok(default),
        Some(value) => {
            let number = f64::read(&value).ok().filter(|v| (0.0..=1e9).contains(v));
            let number = number.ok_or_else(|| n.fail(format!("`{name}` must be a size, found {value}")))?;
            Ok(number as u32)
        }
    }
}
