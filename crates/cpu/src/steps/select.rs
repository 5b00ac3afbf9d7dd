//! Choosing, accumulating and marking along an axis.

use super::strided_views::size_of;
use super::types::{indices, is_index, is_number, with_type};
use super::{Built, Cpu, Io, Site, Step, Work, floats};
use carafe_graph::{Error, Result, normalize_axis};
use carafe_kernels::movement::{Indices, IndicesMut};
use carafe_kernels::select as kernels;
use carafe_ops::indexing::OneHot;
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::movement::ReverseSequence;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_ops::search::{CumSum, TopK};
use carafe_plan::Layout;
use carafe_tensor::ElementType;
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    Ok(if let Some(op) = op.get::<TopK>() {
        top_k(site, op.axis, op.mode, op.sort)
    } else if let Some(op) = op.get::<CumSum>() {
        cum_sum(site, op)
    } else if let Some(op) = op.get::<OneHot>() {
        one_hot(site, op.axis, op.negative_indices_mode == NegativeIndices::Normalize)
    } else if let Some(op) = op.get::<ReverseSequence>() {
        reverse_sequence(site, op)
    } else {
        None
    })
}

#[derive(Debug)]
struct Best {
    kernel: kernels::TopK,
    ty: ElementType,
    index: ElementType,
}

impl Step<Cpu> for Best {
    fn kernel(&self) -> String {
        "top_k".into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(with_type!(self.ty, T => self.kernel.scratch_floats::<T>()))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let exec = io.exec;
        with_type!(self.ty, T => {
            let data = io.input::<T>(0);
            let [values, positions] = &mut *io.outputs else { return Ok(()) };
            let positions = match self.index {
                ElementType::I64 => IndicesMut::I64(bytemuck::cast_slice_mut(positions)),
                _ => IndicesMut::I32(bytemuck::cast_slice_mut(positions)),
            };
            self.kernel.run::<T>(exec, data, bytemuck::cast_slice_mut(values), positions);
        });
        Ok(())
    }
}

fn top_k(site: &Site<'_>, axis: i64, mode: TopKMode, sort: TopKSort) -> Option<Built> {
    let (data, layout) = (&site.inputs[0], site.layout(0));
    let axis = normalize_axis(axis, data.rank()).ok()?;
    let (n, k, index) = (data.shape[axis], site.outputs[0].shape[axis], site.outputs[1].ty);
    if !is_number(data.ty) || !is_index(index) || k > n || u32::try_from(n).is_err() {
        return None;
    }
    let sort = match sort {
        TopKSort::Index => kernels::Sort::Index,
        TopKSort::Value | TopKSort::None => kernels::Sort::Value,
    };
    let dims = layout.dims(&data.shape);
    let kernel = kernels::TopK::new(&dims, layout.axis(axis, data.rank()), k, mode == TopKMode::Max, sort);
    let step = Best { kernel, ty: data.ty, index };
    let work = Work::Step(Arc::new(step));
    Some(Built::new(work, [(0, layout)], [layout; 2]))
}

#[derive(Debug)]
struct Sums {
    kernel: kernels::CumSum,
    ty: ElementType,
}

impl Step<Cpu> for Sums {
    fn kernel(&self) -> String {
        "cum_sum".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        with_type!(self.ty, T => self.kernel.run::<T>(io.exec, io.input(0), io.output(0)));
        Ok(())
    }
}

fn cum_sum(site: &Site<'_>, op: &CumSum) -> Option<Built> {
    let (data, layout) = (&site.inputs[0], site.layout(0));
    let axis = match site.inputs.get(1) {
        Some(axis) => *axis.ints()?.first()?,
        None => 0,
    };
    let axis = layout.axis(normalize_axis(axis, data.rank()).ok()?, data.rank());
    if !is_number(data.ty) {
        return None;
    }
    let kernel = kernels::CumSum::new(&layout.dims(&data.shape), axis, op.exclusive, op.reverse);
    Some(Built::step(Sums { kernel, ty: data.ty }, vec![(0, layout)], layout))
}

#[derive(Debug)]
struct Marks {
    kernel: kernels::OneHot,
    index: ElementType,
    from_end: bool,
}

impl Step<Cpu> for Marks {
    fn kernel(&self) -> String {
        "one_hot".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let list = indices(io, 0, self.index);
        self.kernel.run(io.exec, list, io.inputs[1], io.inputs[2], self.from_end, io.outputs[0]);
        Ok(())
    }
}

fn one_hot(site: &Site<'_>, axis: i64, from_end: bool) -> Option<Built> {
    let (list, out) = (&site.inputs[0], &site.outputs[0]);
    let axis = normalize_axis(axis, out.rank()).ok()?;
    if !is_index(list.ty) {
        return None;
    }
    let kernel = kernels::OneHot::new(&list.shape, axis, out.shape[axis], size_of(out));
    let reads = [0, 2, 3].map(|i| (i, Layout::PLAIN)).to_vec();
    Some(Built::step(Marks { kernel, index: list.ty, from_end }, reads, Layout::PLAIN))
}

/// Data as `[outer, a, middle, b, inner]`, where `a` and `b` are the batch and the sequence in either order.
#[derive(Debug)]
struct Reversed {
    dims: [usize; 4],
    batch_first: bool,
    /// Bytes of what lies behind both axes.
    row: usize,
    lengths: ElementType,
}

impl Step<Cpu> for Reversed {
    fn kernel(&self) -> String {
        "reverse_sequence".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [outer, a, middle, b] = self.dims;
        let n = if self.batch_first { b } else { a };
        let list = indices(io, 1, self.lengths);
        let length = |batch: usize| match list {
            Indices::I32(list) => i64::from(list[batch]),
            Indices::I64(list) => list[batch],
        };
        if let Some(l) = (0..list.len()).map(length).find(|l| !(0..=n as i64).contains(l)) {
            return Err(Error::invalid(format!("a sequence length is {l}, the axis has {n}")));
        }
        let turned = |batch: usize, i: usize| {
            let len = length(batch) as usize;
            if i < len { len - 1 - i } else { i }
        };
        let (data, row) = (io.inputs[0], self.row);
        let mut rows = io.outputs[0].chunks_exact_mut(row);
        for o in 0..outer {
            for i in 0..a {
                for m in 0..middle {
                    for j in 0..b {
                        let (i, j) = if self.batch_first { (i, turned(i, j)) } else { (turned(j, i), j) };
                        let from = (((o * a + i) * middle + m) * b + j) * row;
                        if let Some(to) = rows.next() {
                            to.copy_from_slice(&data[from..from + row]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn reverse_sequence(site: &Site<'_>, op: &ReverseSequence) -> Option<Built> {
    let (data, lengths, layout) = (&site.inputs[0], &site.inputs[1], site.layout(0));
    let position = |axis: i64| Some(layout.axis(normalize_axis(axis, data.rank()).ok()?, data.rank()));
    let (batch, seq) = (position(op.batch_axis)?, position(op.seq_axis)?);
    if batch == seq || !is_index(lengths.ty) {
        return None;
    }
    let dims = layout.dims(&data.shape);
    let (first, last) = (batch.min(seq), batch.max(seq));
    let product = |range: std::ops::Range<usize>| dims[range].iter().product::<usize>();
    let step = Reversed {
        dims: [product(0..first), dims[first], product(first + 1..last), dims[last]],
        batch_first: batch < seq,
        row: product(last + 1..dims.len()) * size_of(data),
        lengths: lengths.ty,
    };
    Some(Built::step(step, vec![(0, layout), (1, Layout::PLAIN)], layout))
}
