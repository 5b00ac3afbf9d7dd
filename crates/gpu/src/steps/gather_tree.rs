//! GatherTree: the sequences of a beam search.

use super::{Built, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::indexing::GatherTree;
use carafe_plan::Layout;
use carafe_tensor::ElementType;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || !site.op.is::<GatherTree>() {
        return Ok(None);
    }
    let (ids, cx) = (&site.inputs[0], site.cx);
    let [time, batch, beams] = ids.shape[..] else { return Ok(None) };
    let known = matches!(ids.ty, ElementType::F32 | ElementType::I32 | ElementType::I64);
    let Some(number) = types::stored(ids.ty).filter(|_| known && !ids.shape.contains(&0)) else { return Ok(None) };
    let kernel = cx.kernel(&Source("gather_tree.cl"), "gather_tree", &[("N", number.into())])?;
    let mut args: Vec<Arg> = (0..4).map(Arg::Read).collect();
    args.push(Arg::Write(0));
    args.extend([batch * beams, time, beams].map(Arg::from));
    args.extend([Arg::Faults, Arg::Step]);
    let step = Launches::new("gather_tree", vec![Launch::flat(&kernel, args, batch * beams, cx.group())]);
    // Tokens are whole numbers, which halves would round.
    Ok(Some(step.built((0..4).map(|i| (i, Layout::PLAIN.into())), [Layout::PLAIN.into()])))
}
