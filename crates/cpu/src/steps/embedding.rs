//! Sums of rows of embedding tables.

use super::types::{indices, is_index};
use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::Result;
use carafe_kernels::{EmbeddingTerm, embedding_sum};
use carafe_ops::carafe::EmbeddingSum;
use carafe_plan::Layout;
use carafe_tensor::ElementType;

/// Most terms of a sum.
const MOST: usize = 8;

#[derive(Debug)]
struct SumStep {
    /// Each term's rows among the reads, and its ids with their type.
    terms: Vec<(usize, Option<(usize, ElementType)>)>,
    width: usize,
}

impl Step<Cpu> for SumStep {
    fn kernel(&self) -> String {
        "embedding_sum".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let mut terms = [EmbeddingTerm::default(); MOST];
        for (term, (rows, ids)) in terms.iter_mut().zip(&self.terms) {
            let ids = ids.map(|(ids, ty)| indices(&io, ids, ty));
            *term = EmbeddingTerm { table: io.input(*rows), ids };
        }
        embedding_sum(io.exec, self.width, &terms[..self.terms.len()], out);
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<EmbeddingSum>().filter(|_| !site.group && site.epilogue.is_empty()) else {
        return Ok(None);
    };
    Ok(sum(site, op))
}

fn sum(site: &Site<'_>, op: &EmbeddingSum) -> Option<Built> {
    let (&width, lead) = site.outputs[0].shape.split_last()?;
    let mut terms = vec![];
    for (rows, ids) in op.terms() {
        let port = &site.inputs[rows];
        let (&own, rest) = port.shape.split_last()?;
        let positions = ids.map_or(rest, |ids| &site.inputs[ids].shape);
        let known = ids.is_none_or(|ids| is_index(site.inputs[ids].ty));
        if !port.is_f32() || own != width || !known || !starts_over(positions, lead) {
            return None;
        }
        terms.push((rows, ids.map(|ids| (ids, site.inputs[ids].ty))));
    }
    let reads = (0..site.inputs.len()).map(|i| (i, Layout::PLAIN));
    (terms.len() <= MOST).then(|| Built::step(SumStep { terms, width }, reads, Layout::PLAIN))
}

// Whether a list of this shape, read over and over, gives all positions: it repeats along the first axes alone.
fn starts_over(shape: &[usize], lead: &[usize]) -> bool {
    let own = &shape[shape.iter().take_while(|&&n| n == 1).count()..];
    own.len() <= lead.len() && own == &lead[lead.len() - own.len()..]
}
