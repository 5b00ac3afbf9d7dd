//! Sums and means of rows of an embedding table. Which rows make a bag is only known while running, and is checked then.

use super::types::{indices, is_index};
use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::{Error, Result};
use carafe_kernels::movement::{EmbeddingBag, Indices};
use carafe_ops::embedding::{
    BagReduction, EmbeddingBagOffsets, EmbeddingBagOffsetsSum, EmbeddingBagPacked, EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
};
use carafe_plan::Layout;
use carafe_tensor::ElementType;
use std::ops::Range;

/// What tells bags apart.
#[derive(Clone, Copy, Debug)]
enum Bags {
    /// Where each begins.
    Offsets,
    /// The bag of each index.
    Segments,
    /// So many indices each.
    Equal(usize),
}

#[derive(Debug)]
struct BagStep {
    kernel: EmbeddingBag,
    bags: Bags,
    count: usize,
    rows: usize,
    index: ElementType,
    /// Places among the reads.
    default: Option<usize>,
    weights: Option<usize>,
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    // What bags are, whether they are averaged, and the optional inputs: the default row and the weights.
    let (bags, mean, default, weights) = if let Some(op) = op.get::<EmbeddingBagOffsets>() {
        (Bags::Offsets, op.reduction == BagReduction::Mean, Some(3), 4)
    } else if op.is::<EmbeddingBagOffsetsSum>() {
        (Bags::Offsets, false, Some(3), 4)
    } else if let Some(op) = op.get::<EmbeddingBagPacked>() {
        (Bags::Equal(site.inputs[1].shape[1]), op.reduction == BagReduction::Mean, None, 2)
    } else if op.is::<EmbeddingBagPackedSum>() {
        (Bags::Equal(site.inputs[1].shape[1]), false, None, 2)
    } else if op.is::<EmbeddingSegmentsSum>() {
        (Bags::Segments, false, Some(4), 5)
    } else {
        return Ok(None);
    };
    let (table, list) = (&site.inputs[0], &site.inputs[1]);
    if !table.is_f32() || !is_index(list.ty) {
        return Ok(None);
    }
    let mut reads = vec![(0, Layout::PLAIN), (1, Layout::PLAIN)];
    if !matches!(bags, Bags::Equal(_)) {
        reads.push((2, Layout::PLAIN));
    }
    let mut optional = |input: usize| {
        (input < site.inputs.len()).then(|| {
            reads.push((input, Layout::PLAIN));
            reads.len() - 1
        })
    };
    let (default, weights) = (default.and_then(&mut optional), optional(weights));
    let width = table.shape[1..].iter().product();
    let kernel = EmbeddingBag::new(table.shape[0], width, mean);
    let (count, rows) = (site.outputs[0].shape[0], table.shape[0]);
    let step = BagStep { kernel, bags, count, rows, index: list.ty, default, weights };
    Ok(Some(Built::step(step, reads, Layout::PLAIN)))
}

impl Step<Cpu> for BagStep {
    fn kernel(&self) -> String {
        "embedding_bag".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let list = indices(io, 1, self.index);
        let n = list.len();
        match self.bags {
            Bags::Equal(size) => self.sum(io, list, |b| b * size..(b + 1) * size),
            Bags::Offsets => {
                let offsets = indices(io, 2, self.index);
                check_offsets(offsets, n)?;
                let end = |b: usize| if b + 1 < self.count { at(offsets, b + 1) as usize } else { n };
                self.sum(io, list, |b| at(offsets, b) as usize..end(b))
            }
            Bags::Segments => {
                let ids = indices(io, 2, self.index);
                check_segments(ids)?;
                self.sum(io, list, |b| first(ids, b)..first(ids, b + 1))
            }
        }
    }
}

impl BagStep {
    fn sum(&self, io: &mut Io<'_>, list: Indices<'_>, bag: impl Fn(usize) -> Range<usize> + Sync) -> Result<()> {
        let default = self.default.map(|i| at(indices(io, i, self.index), 0)).filter(|&d| d != -1);
        // A default nobody needs is not looked at.
        let default = default.filter(|_| (0..self.count).any(|b| bag(b).is_empty()));
        let outside = |index: i64| Error::invalid(format!("index {index} is outside of a table of {} rows", self.rows));
        let default = match default {
            Some(d) => Some(usize::try_from(d).map_err(|_| outside(d))?),
            None => None,
        };
        let (exec, table) = (io.exec, io.input::<f32>(0));
        let weights = self.weights.map(|i| io.input::<f32>(i));
        let out = io.output::<f32>(0);
        self.kernel.run(exec, table, list, bag, default, weights, out).map_err(|bad| outside(bad.index))
    }
}

fn at(list: Indices<'_>, i: usize) -> i64 {
    match list {
        Indices::I32(list) => list[i].into(),
        Indices::I64(list) => list[i],
    }
}

// Where a segment begins among rising ids.
fn first(ids: Indices<'_>, segment: usize) -> usize {
    match ids {
        Indices::I32(list) => list.partition_point(|&id| i64::from(id) < segment as i64),
        Indices::I64(list) => list.partition_point(|&id| id < segment as i64),
    }
}

fn check_offsets(offsets: Indices<'_>, n: usize) -> Result<()> {
    let mut before = 0;
    for i in 0..offsets.len() {
        let offset = at(offsets, i);
        if !(0..n as i64).contains(&offset) {
            return Err(Error::invalid(format!("offset {offset} is outside of {n} indices")));
        }
        if offset < before {
            return Err(Error::invalid(format!("offsets must not fall, found {before} before {offset}")));
        }
        before = offset;
    }
    Ok(())
}

fn check_segments(ids: Indices<'_>) -> Result<()> {
    let mut before = i64::MIN;
    for i in 0..ids.len() {
        let id = at(ids, i);
        if id < 0 {
            return Err(Error::invalid(format!("segment ids must not be negative, found {id}")));
        }
        if id < before {
            return Err(Error::invalid(format!("segment ids must rise, found {before} before {id}")));
        }
        before = id;
    }
    Ok(())
}
