//! Non-maximum suppression. The results have as many rows as are asked for; those behind the last kept box are zeros.

use carafe_fe_tensorflow::ops::common::nms::{Suppression, suppress};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] =
    &[rule("NON_MAX_SUPPRESSION_V4", 1, |n| boxes(n, false)), rule("NON_MAX_SUPPRESSION_V5", 1, |n| boxes(n, true))];

fn boxes(n: &mut NodeCx<'_>, soft: bool) -> Result<Outputs> {
    let suppression = Suppression {
        boxes: n.input(0)?,
        scores: n.input(1)?,
        max_output: n.input(2)?,
        iou_threshold: n.input(3)?,
        score_threshold: n.input(4)?,
        soft_sigma: if soft { Some(n.input(5)?) } else { None },
    };
    let kept = suppress(n, &suppression, true)?;
    Ok(match soft {
        true => vec![kept.indices, kept.scores, kept.count].into(),
        false => vec![kept.indices, kept.count].into(),
    })
}
