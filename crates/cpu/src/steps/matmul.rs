//! Matrix products: with constant weights, which are packed once, and of two computed operands.

use super::epilogue::StepEpilogue;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::Result;
use carafe_kernels::{BatchMatMul, Gemm, Operand};
use carafe_ops::linear::MatMul;
use carafe_plan::Layout;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<MatMul>().filter(|_| !site.group) else { return Ok(None) };
    let [a, b] = &site.inputs[..2] else { return Ok(None) };
    if !(a.is_f32() && b.is_f32()) || a.rank() == 0 || b.rank() == 0 {
        return Ok(None);
    }
    if let (false, Some(built)) = (site.reordered(), with_weights(site, op, a, b)?) {
        return Ok(Some(built));
    }
    Ok(of_two(site, op, a, b))
}

#[derive(Debug)]
struct Weighted {
    gemm: Gemm,
    weights: Packed,
    rows: usize,
    epilogue: StepEpilogue,
}

impl Step<Cpu> for Weighted {
    fn kernel(&self) -> String {
        format!("gemm{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.gemm.scratch_floats())
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.epilogue.runs_in_place(read, |epilogue| self.gemm.adds_over(epilogue))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (k, n) = (self.gemm.k(), self.gemm.n());
        let (out, io) = io.take_output(0);
        self.epilogue.with(&io, n, |epilogue| {
            self.gemm.run(io.exec, self.rows, io.input(0), k, self.weights.as_slice(), out, n, epilogue);
        });
        Ok(())
    }
}

// One matrix of weights for all rows of `a`.
fn with_weights(site: &Site<'_>, op: &MatMul, a: &Port, b: &Port) -> Result<Option<Built>> {
    let Some(tensor) = &b.constant else { return Ok(None) };
    let (rank, one) = (b.rank(), |s: &[usize]| s.iter().all(|&n| n == 1));
    let vector = rank == 1;
    if !vector && !one(&b.shape[..rank - 2]) {
        return Ok(None);
    }
    // A batch of one of `b` may be longer than that of `a`; the result has it then, and the same bytes.
    let transposed_a = op.transpose_a && a.rank() > 1;
    if transposed_a && !(a.shape[a.rank() - 1] == 1 || a.shape[a.rank() - 2] == 1) {
        return Ok(None);
    }
    if transposed_a && a.rank() > 2 && !one(&a.shape[..a.rank() - 2]) {
        return Ok(None);
    }
    let (k, n) = match (vector, op.transpose_b) {
        (true, _) => (b.shape[0], 1),
        (false, false) => (b.shape[rank - 2], b.shape[rank - 1]),
        (false, true) => (b.shape[rank - 1], b.shape[rank - 2]),
    };
    if k == 0 || (vector && !site.epilogue.is_empty()) {
        return Ok(None);
    }
    let out = &site.outputs[0];
    let mut reads = vec![(0, Layout::PLAIN)];
    let epilogue = match site.epilogue {
        [] => StepEpilogue::default(),
        _ => match StepEpilogue::of(site, out.rank() - 1, Layout::PLAIN, &mut reads) {
            Some(epilogue) => epilogue,
            None => return Ok(None),
        },
    };
    let gemm = Gemm::new(site.cx.isa, n, k);
    let transposed = op.transpose_b && !vector;
    let weights = site.cx.packed(&format!("gemm|{k}x{n}|{transposed}"), &[tensor], gemm.packed_floats(), |to| {
        gemm.pack(site.cx.packers.exec().as_ref(), &floats_of(tensor)?, transposed, to);
        tensor.release();
        Ok(())
    })?;
    let step = Weighted { gemm, weights, rows: a.len() / k, epilogue };
    Ok(Some(Built::step(step, reads, Layout::PLAIN)))
}

#[derive(Debug)]
struct Batched {
    product: BatchMatMul,
    columns: usize,
    epilogue: StepEpilogue,
}

impl Step<Cpu> for Batched {
    fn kernel(&self) -> String {
        format!("batch_gemm{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.product.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        self.epilogue.with(&io, self.columns, |epilogue| {
            self.product.run(io.exec, io.input(0), io.input(1), out, epilogue);
        });
        Ok(())
    }
}

fn of_two(site: &Site<'_>, op: &MatMul, a: &Port, b: &Port) -> Option<Built> {
    let Places { size, operands: (a, b, c) } = places(site, op, a, b)?;
    let mut reads = vec![(0, Layout::PLAIN), (1, Layout::PLAIN)];
    let epilogue = end_of_two(site, &mut reads)?;
    let product = BatchMatMul::new(site.cx.isa, size, a, b, c, 1.0);
    Some(Built::step(Batched { product, columns: size[1], epilogue }, reads, Layout::PLAIN))
}

/// Where the matrices of a product of two computed operands lie.
pub(super) struct Places {
    /// Rows and columns of the result, and how long a sum is.
    pub(super) size: [usize; 3],
    pub(super) operands: (Operand, Operand, Operand),
}

pub(super) fn places(site: &Site<'_>, op: &MatMul, a: &Port, b: &Port) -> Option<Places> {
    if a.rank() < 2 || b.rank() < 2 {
        return None;
    }
    let (out, out_steps) = site.result();
    let (ra, rank) = (a.rank(), out.len());
    let (m, n) = (out[rank - 2], out[rank - 1]);
    let k = a.shape[if op.transpose_a { ra - 2 } else { ra - 1 }];
    if k == 0 {
        return None;
    }
    let batch = &out[..rank - 2];
    let operand = |port: &Port, steps: &[usize], swapped: bool| {
        let at = port.rank() - 2;
        let offsets = offsets(&port.shape[..at], &steps[..at], batch);
        let (rows, columns) = (steps[at], steps[at + 1]);
        // One of the two must lie densely; a matrix of one row or column does either way.
        if columns == 1 || port.shape[at + 1] == 1 {
            Some(Operand { offsets, stride: rows.max(port.shape[at + 1]), transposed: swapped })
        } else if rows == 1 || port.shape[at] == 1 {
            Some(Operand { offsets, stride: columns.max(port.shape[at]), transposed: !swapped })
        } else {
            None
        }
    };
    let a = operand(a, &site.strides(0), op.transpose_a)?;
    let b = operand(b, &site.strides(1), op.transpose_b)?;
    if out_steps[rank - 1] != 1 && n != 1 {
        return None;
    }
    let c = Operand {
        offsets: offsets(batch, &out_steps[..rank - 2], batch),
        stride: out_steps[rank - 2].max(n),
        transposed: false,
    };
    Some(Places { size: [m, n, k], operands: (a, b, c) })
}

/// What follows a product of two computed operands.
pub(super) fn end_of_two(site: &Site<'_>, reads: &mut Vec<(usize, Layout)>) -> Option<StepEpilogue> {
    match site.epilogue {
        [] => Some(StepEpilogue::default()),
        // What follows counts rows through the whole batch, one after another.
        _ if site.out_order.is_some() => None,
        _ => StepEpilogue::of(site, site.outputs[0].rank() - 1, Layout::PLAIN, reads),
    }
}

/// Where the matrices of an operand start, for each of the output's; a dimension of 1 is repeated.
fn offsets(own: &[usize], steps: &[usize], batch: &[usize]) -> Vec<usize> {
    let count: usize = batch.iter().product();
    let ahead = batch.len() - own.len();
    let position = |mut flat: usize| {
        let mut at = 0;
        for axis in (0..batch.len()).rev() {
            let i = flat % batch[axis];
            flat /= batch[axis];
            if axis >= ahead && own[axis - ahead] != 1 {
                at += i * steps[axis - ahead];
            }
        }
        at
    };
    (0..count).map(position).collect()
}
