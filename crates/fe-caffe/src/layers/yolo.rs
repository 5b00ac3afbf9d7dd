//! RegionYolo and ReorgYolo (Reorg in some forks), the heads of YOLO. The axes that RegionYolo flattens stand in `flatten_param`.

use super::cx::LayerCx;
use super::numbers::list;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::detection::{RegionYolo, ReorgYolo};

pub(crate) const RULES: &[StaticRule] =
    &[rule("RegionYolo", 0, region_yolo), rule("Reorg", 0, reorg), rule("ReorgYolo", 0, reorg_yolo)];

fn region_yolo(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let op = RegionYolo {
        anchors: list(n, "anchors")?,
        axis: n.attr("axis", 1)?,
        coords: n.attr("coords", 4)?,
        classes: n.attr("classes", 20)?,
        end_axis: n.attr("end_axis", -1)?,
        num: n.attr("num", 1)?,
        do_softmax: n.attr("do_softmax", true)?,
        mask: list(n, "mask")?.into_iter().map(|v| v as i64).collect(),
    };
    Ok(n.emit(op, &[x])?.into())
}

fn reorg(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    if n.attr("reverse", false)? {
        return Err(n.unsupported("the way back (`reverse`) is not supported"));
    }
    let op = ReorgYolo { stride: n.required("stride")? };
    Ok(n.emit(op, &[x])?.into())
}

fn reorg_yolo(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let op = ReorgYolo { stride: n.attr("stride", 1)? };
    Ok(n.emit(op, &[x])?.into())
}
