//! Rotary embeddings.

use super::{Built, Port, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::carafe::RotaryEmbedding;
use carafe_plan::Layout;
use carafe_tensor::{ElementType, strides};

/// Axes before the last that the kernel counts.
const AXES: usize = 4;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<RotaryEmbedding>() else { return Ok(None) };
    if site.group || !site.epilogue.is_empty() || site.inputs.iter().any(|p| p.ty != ElementType::F32) {
        return Ok(None);
    }
    let (cx, out) = (site.cx, &site.outputs[0]);
    let width = out.shape[out.rank() - 1];
    if out.rank() > AXES + 1 || out.len() == 0 {
        return Ok(None);
    }
    let mut sizes = [1; AXES];
    sizes[AXES + 1 - out.rank()..].copy_from_slice(&out.shape[..out.rank() - 1]);
    let row = |port: &Port| {
        let (own, steps) = (port.rank() - 1, strides(&port.shape));
        let at = |axis: usize| axis.checked_sub(AXES - own).filter(|&a| port.shape[a] != 1).map_or(0, |a| steps[a]);
        numbers(std::array::from_fn(at))
    };
    let macros = [
        ("INTERLEAVED", usize::from(op.interleaved).to_string()),
        ("FULL_COS", is_full(op, &site.inputs[1])),
        ("FULL_SIN", is_full(op, &site.inputs[2])),
    ];
    let kernel = cx.kernel(&Source("rope.cl"), "rope", &macros)?;
    let mut args = vec![Arg::Read(0), Arg::Read(1), Arg::Read(2), Arg::Write(0)];
    args.extend([out.len().into(), width.into(), op.rotated.into(), numbers(sizes)]);
    args.extend(site.inputs[..3].iter().map(row));
    let reads = (0..3).map(|i| (i, cx.form(&site.inputs[i], Layout::PLAIN)));
    let launch = Launch::flat(&kernel, args, out.len(), cx.group());
    Ok(Some(Launches::new("rope", vec![launch]).built(reads, [cx.form(out, Layout::PLAIN)])))
}

// Whether a table has a number for each number that is turned.
fn is_full(op: &RotaryEmbedding, table: &Port) -> String {
    usize::from(table.shape.last() == Some(&op.rotated)).to_string()
}

fn numbers(numbers: [usize; AXES]) -> Arg {
    Arg::Value(numbers.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect())
}
