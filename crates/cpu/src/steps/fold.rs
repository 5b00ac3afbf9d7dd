//! Col2Im: columns of an unfolded image added back into it.

use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::Result;
use carafe_kernels::Fold;
use carafe_ops::movement::Col2Im;
use carafe_plan::Layout;

#[derive(Debug)]
struct FoldStep {
    kernel: Fold,
}

impl Step<Cpu> for FoldStep {
    fn kernel(&self) -> String {
        "col2im".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        self.kernel.run(io.exec, io.input(0), out);
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let op = if site.group || !site.epilogue.is_empty() { None } else { site.op.get::<Col2Im>() };
    Ok(op.and_then(|op| folded(site, op)))
}

fn folded(site: &Site<'_>, op: &Col2Im) -> Option<Built> {
    let (data, out) = (&site.inputs[0], &site.outputs[0].shape);
    let (lead, size) = out.split_at(out.len().checked_sub(2)?);
    if !data.is_f32() {
        return None;
    }
    let pair = |list: &[i64]| match *list {
        [a, b] => Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?]),
        _ => None,
    };
    let (stride, dilation) = (pair(&op.strides)?, pair(&op.dilations)?);
    let (pad_begin, pad_end) = (pair(&op.pads_begin)?, pair(&op.pads_end)?);
    let (kernel, size) = (pair(&site.inputs[2].ints()?)?, [size[0], size[1]]);
    let mut positions = [0; 2];
    for i in 0..2 {
        let reach = kernel[i].checked_sub(1)?.checked_mul(dilation[i])?.checked_add(1)?;
        let padded = size[i].checked_add(pad_begin[i])?.checked_add(pad_end[i])?;
        positions[i] = padded.checked_sub(reach)? / stride[i] + 1;
    }
    let kernel = Fold { planes: lead.iter().product(), size, kernel, positions, stride, dilation, pad_begin };
    // The operation lets columns be missing or left over while sizes are unknown; it says what happens then.
    let needed =
        [kernel.planes].iter().chain(&kernel.kernel).chain(&positions).try_fold(1usize, |n, x| n.checked_mul(*x));
    if needed != Some(data.len()) {
        return None;
    }
    Some(Built::step(FoldStep { kernel }, vec![(0, Layout::PLAIN)], Layout::PLAIN))
}
