//! Rotary embedding, with data in whatever order of axes they lie.

use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::Result;
use carafe_kernels::{Rope, RopeForm, RopeParams};
use carafe_ops::carafe::RotaryEmbedding;
use carafe_plan::Layout;
use carafe_tensor::strides;

#[derive(Debug)]
struct RopeStep {
    kernel: Rope,
}

impl Step<Cpu> for RopeStep {
    fn kernel(&self) -> String {
        "rope".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        self.kernel.run(io.exec, io.input(0), io.input(1), io.input(2), out);
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<RotaryEmbedding>().filter(|_| !site.group && site.epilogue.is_empty()) else {
        return Ok(None);
    };
    Ok(rope(site, op))
}

// The last of so many axes before the row, with as many of size 1 in front as are missing.
fn three(list: &[usize], fill: usize) -> Option<[usize; 3]> {
    let lead = &list[..list.len().checked_sub(1)?];
    let mut all = [fill; 3];
    all.get_mut(3usize.checked_sub(lead.len())?..)?.copy_from_slice(lead);
    Some(all)
}

fn rope(site: &Site<'_>, op: &RotaryEmbedding) -> Option<Built> {
    let [x, cos, sin] = &site.inputs[..] else { return None };
    let (out, out_steps) = site.result();
    if !site.inputs.iter().all(|p| p.is_f32()) || out != x.shape || cos.shape != sin.shape {
        return None;
    }
    let (sizes, rows) = (three(&x.shape, 1)?, three(&cos.shape, 1)?);
    let (from, to) = (three(&site.strides(0), 0)?, three(&out_steps, 0)?);
    let whole_rows = site.strides(0).last() == Some(&1) && out_steps.last() == Some(&1);
    let table = three(&strides(&cos.shape), 0)?;
    let table: Vec<usize> = (0..3).map(|a| if rows[a] == 1 { 0 } else { table[a] }).collect();
    // The axis along which the tables repeat counts as heads.
    let heads = (0..3).filter(|&a| rows[a] == 1).max_by_key(|&a| sizes[a])?;
    let others: Vec<usize> = (0..3).filter(|&a| a != heads).collect();
    let (batch, len) = (others[0], others[1]);
    let head_size = *x.shape.last()?;
    let rotated = op.rotated;
    let width = *cos.shape.last()?;
    if !whole_rows || rotated > head_size || (width != rotated && width != rotated / 2) {
        return None;
    }
    let order = |s: [usize; 3]| [s[batch], s[heads], s[len]];
    let kernel = Rope::new(RopeParams {
        batch: sizes[batch],
        heads: sizes[heads],
        len: sizes[len],
        head_size,
        rotated,
        form: if op.interleaved { RopeForm::Interleaved } else { RopeForm::Half },
        x: order(from),
        out: order(to),
        table: [table[batch], table[len]],
        full_table: width == rotated,
    });
    let reads = (0..3).map(|i| (i, Layout::PLAIN));
    Some(Built::step(RopeStep { kernel }, reads, Layout::PLAIN))
}
