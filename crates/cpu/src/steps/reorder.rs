//! Puts a value into another order of dimensions.

use super::{Cpu, Io, Step};
use carafe_graph::Result;
use carafe_kernels::movement::{StridedCopy, View};
use carafe_plan::{Layout, Operand, Parts, RowStrides, Rows};
use carafe_tensor::ElementType;
use std::sync::Arc;

/// A copy of elements that lie elsewhere in the result.
#[derive(Debug)]
pub(crate) struct Copy {
    name: &'static str,
    copy: StridedCopy,
    /// What is copied, and where it goes.
    from: View,
    to: View,
    elem_size: usize,
}

impl Copy {
    /// The elements of a view, one after another.
    pub(crate) fn new(name: &'static str, from: View, elem_size: usize) -> Copy {
        let to = View::whole(&from.dims);
        Copy { name, copy: StridedCopy::between(&from, &to, elem_size), from, to, elem_size }
    }
    /// Dimension `order[i]` of the input becomes dimension `i` of the output.
    pub(crate) fn permute(name: &'static str, dims: &[usize], order: &[usize], ty: ElementType) -> Copy {
        Copy::new(name, View::whole(dims).permuted(order), ty.bits() / 8)
    }
}

impl Step<Cpu> for Copy {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        let view = if operand == Operand::Read(0) { &self.from } else { &self.to };
        view.spread(row, 2 * row).is_some()
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let spread = |view: &View, rows: Option<Rows>| match rows {
            Some(rows) => view.spread(rows.len, rows.stride),
            None => Some(view.clone()),
        };
        let from = spread(&self.from, strides.reads.first().copied().flatten())?;
        let to = spread(&self.to, strides.writes.first().copied().flatten())?;
        let copy = StridedCopy::between(&from, &to, self.elem_size);
        Some(Arc::new(Copy { name: self.name, copy, from, to, elem_size: self.elem_size }))
    }
    fn parts(&self) -> Option<Parts> {
        self.as_part()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.copy.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
    }
}

impl Copy {
    // A range of each row of the input, when it is no more.
    fn as_part(&self) -> Option<Parts> {
        let (mut axes, from) = (vec![], &self.from);
        for (&n, &stride) in from.dims.iter().zip(&from.strides).rev().filter(|(n, _)| **n != 1) {
            match axes.last_mut() {
                Some((len, step)) if *step * *len as isize == stride => *len *= n,
                _ => axes.push((n, stride)),
            }
        }
        let (start, elem_size) = (from.start, self.elem_size);
        let (outer, whole, len) = match axes[..] {
            [] => (1, start + 1, 1),
            [(len, 1)] => (1, start + len, len),
            [(len, 1), (outer, pitch)] if usize::try_from(pitch).is_ok_and(|p| start + len <= p) => {
                (outer, pitch as usize, len)
            }
            _ => return None,
        };
        let of_rows = from.dims.last() == Some(&len) && outer > 1;
        Some(Parts { outer, whole, ranges: vec![(start, len)], of_rows, elem_size, joins: false })
    }
}

/// Dimensions as they lie in the first layout, and their order in the second.
fn permutation(shape: &[usize], from: Layout, to: Layout) -> (Vec<usize>, Vec<usize>) {
    let rank = shape.len();
    let order = to.order(rank).into_iter().map(|axis| from.axis(axis, rank)).collect();
    (from.dims(shape), order)
}

/// A step that copies a value of this shape from one layout to another.
pub(crate) fn step(shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Cpu>> {
    if from.is_blocked() || to.is_blocked() {
        return Arc::new(Blocks::new(shape, ty.bits() / 8, from, to));
    }
    let (dims, order) = permutation(shape, from, to);
    Arc::new(Copy::permute("reorder", &dims, &order, ty))
}

/// A change of layout where channels lie in blocks, on one side or both.
#[derive(Debug)]
struct Blocks {
    copies: Vec<StridedCopy>,
    /// Padding of each picture of the result: first byte of the last block, its bytes, and bytes from one to the next.
    padded: Option<(usize, usize, usize)>,
    name: String,
}

impl Blocks {
    fn new(shape: &[usize], elem_size: usize, from: Layout, to: Layout) -> Blocks {
        let channels = shape[1];
        // Ranges of channels in which both sides have one stride: whole blocks of one side at once, else each block.
        let (a, b) = (block_of(from), block_of(to));
        let mut cuts: Vec<usize> = match (a, b) {
            (Some(a), Some(b)) if a != b => {
                (0..channels).filter(|c| c.is_multiple_of(a) || c.is_multiple_of(b)).collect()
            }
            (Some(n), _) | (None, Some(n)) => vec![0, channels / n * n],
            (None, None) => vec![0],
        };
        cuts.push(channels);
        let whole = a.is_none() || b.is_none() || a == b;
        let mut copies = vec![];
        for range in cuts.windows(2).map(|c| c[0]..c[1]).filter(|r| !r.is_empty()) {
            let block = if whole { a.or(b).filter(|n| range.len().is_multiple_of(*n)) } else { None };
            let (from, to) = (channels_of(from, shape, &range, block), channels_of(to, shape, &range, block));
            copies.push(StridedCopy::between(&from, &to, elem_size));
        }
        let padded = b.filter(|n| !channels.is_multiple_of(*n)).map(|n| {
            let block = shape[2..].iter().product::<usize>() * n * elem_size;
            (channels / n * block, block, channels.div_ceil(n) * block)
        });
        Blocks { copies, padded, name: format!("reorder[{} {}]", from.name(), to.name()) }
    }
}

fn block_of(layout: Layout) -> Option<usize> {
    let size = usize::from(layout.blocks[1].size);
    debug_assert!(layout == Layout::channel_blocks(layout.blocks[1].size) || !layout.is_blocked());
    (size > 0).then_some(size)
}

// Channels of a value as batch, channel, rest; channels in blocks as two axes.
fn channels_of(layout: Layout, shape: &[usize], range: &std::ops::Range<usize>, block: Option<usize>) -> View {
    let rank = shape.len();
    let view = View::whole(&layout.dims(shape));
    let Some(own) = block_of(layout) else {
        let order: Vec<usize> = (0..rank).map(|a| layout.axis(a, rank)).collect();
        let view = view.permuted(&order).sliced(1, range.start, 1, range.len());
        return match block {
            Some(n) => view.split(1, &[range.len() / n, n]),
            None => view,
        };
    };
    let order: Vec<usize> = [0, 1, rank].into_iter().chain(2..rank).collect();
    let view = view.permuted(&order).sliced(1, range.start / own, 1, range.len().div_ceil(own));
    if block.is_some() {
        return view;
    }
    // Within one block.
    let view = view.sliced(2, range.start % own, 1, range.len());
    let first = View { start: view.start, dims: drop_axis(&view.dims, 1), strides: drop_axis(&view.strides, 1) };
    debug_assert_eq!(view.dims[1], 1);
    first
}

fn drop_axis<T: Clone>(list: &[T], axis: usize) -> Vec<T> {
    list.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, x)| x.clone()).collect()
}

impl Step<Cpu> for Blocks {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        if let Some((first, len, step)) = self.padded {
            io.outputs[0].chunks_exact_mut(step).for_each(|picture| picture[first..first + len].fill(0));
        }
        for copy in &self.copies {
            copy.run(io.exec, io.inputs[0], io.outputs[0]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};
    use carafe_tensor::Tensor;

    #[test]
    fn every_pair_of_layouts_is_as_packing_says() {
        let (plain, last) = (Layout::PLAIN, Layout::CHANNELS_LAST);
        let layouts = [plain, last, Layout::channel_blocks(4), Layout::channel_blocks(8), Layout::channel_blocks(3)];
        let pool = std::sync::Arc::new(Pool::new(PoolOptions::threads(2)));
        let scratch = Scratch::new(2, 0).unwrap();
        let lent = crate::threads::lent(&pool);
        for channels in [1, 3, 8, 12, 13, 24] {
            let shape = [2, channels, 3, 5];
            let n: usize = shape.iter().product();
            let x = Tensor::from_vec(&shape, (1..=n).map(|i| i as f32).collect()).unwrap();
            for from in layouts {
                for to in layouts.into_iter().filter(|to| *to != from) {
                    let mut y = vec![7f32; to.elements(&shape)];
                    let source = from.pack(&x).unwrap();
                    super::step(&shape, ElementType::F32, from, to)
                        .run(&mut Io {
                            exec: &Exec::new(&pool, Isa::best(), &scratch),
                            inputs: &[source.bytes()],
                            outputs: &mut [bytemuck::cast_slice_mut(&mut y)],
                            workspace: &mut [],
                            in_place: None,
                            lent: &lent,
                        })
                        .unwrap();
                    let wanted = to.pack(&x).unwrap();
                    assert_eq!(y, wanted.as_slice::<f32>().unwrap(), "{channels} {} {}", from.name(), to.name());
                }
            }
        }
    }
}
