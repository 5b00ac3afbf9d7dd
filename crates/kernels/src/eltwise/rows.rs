//! Rows of two inputs of any type under one operation. What goes around the innermost loop is compiled once, over bytes: an
//! operation and its types are one loop over dense rows, at each level.

use super::typed::{Element, Numeric};
use super::{Broadcast, pieces};
use crate::simd::{Entry, Kernel, Simd, entry};
use crate::{Exec, SharedMut, part_of};
use std::marker::PhantomData;

/// A function of two numbers.
pub(super) trait Pair<A, U>: Copy + Default + Sync + 'static {
    fn at(self, a: A, b: A) -> U;
}

pub(super) fn check<const N: usize>(shapes: &Broadcast, inputs: [(usize, usize); N], out: usize) {
    for (i, len) in inputs {
        assert!(len >= shapes.input_len(i), "input {i} has {len} elements");
    }
    assert_eq!(out, shapes.len(), "the output");
}

/// The loop of one operation over one pair of types, at one level: all that is compiled for each of them.
pub(super) struct Dense<T, U> {
    row: Entry<Row>,
    types: PhantomData<fn(T) -> U>,
}

/// A dense row of both inputs and the output.
#[derive(Clone, Copy)]
struct Row {
    inputs: [*const u8; 2],
    out: *mut u8,
    n: usize,
}

struct DenseLoop<T, U, P>(PhantomData<fn(T, P) -> U>);

impl<T: Numeric, U: Element, P: Pair<T, U>> Kernel for DenseLoop<T, U, P> {
    type Args<'a> = &'a Row;
    type Out = ();
    // Products and comparisons of eight bytes have instructions in AVX-512 alone.
    const PLAIN: bool = size_of::<T>() < 8;
    #[inline(always)]
    unsafe fn run<S: Simd>(row: &Row) {
        // SAFETY: the row has `n` numbers of these types in each array.
        let (a, b, out) = unsafe {
            (
                std::slice::from_raw_parts(row.inputs[0].cast::<T>(), row.n),
                std::slice::from_raw_parts(row.inputs[1].cast::<T>(), row.n),
                std::slice::from_raw_parts_mut(row.out.cast::<U>(), row.n),
            )
        };
        let pair = P::default();
        // Plain indices, because this is compiled for hundreds of operations, types and levels.
        for i in 0..row.n {
            out[i] = pair.at(a[i], b[i]);
        }
    }
}

/// The loop of an operation at the level of `exec`.
pub(super) fn dense<T: Numeric, U: Element, P: Pair<T, U>>(exec: &Exec<'_>, _: P) -> Dense<T, U> {
    Dense { row: entry::<DenseLoop<T, U, P>, _>(exec.isa), types: PhantomData }
}

impl<T: Numeric, U: Element> Dense<T, U> {
    pub(super) fn run(&self, exec: &Exec<'_>, shapes: &Broadcast, a: &[T], b: &[T], out: &mut [U]) {
        assert_eq!(shapes.inputs(), 2, "two shapes");
        check(shapes, [(0, a.len()), (1, b.len())], out.len());
        let out_len = size_of_val(out);
        // SAFETY: the bytes of the slice; `row` writes whole numbers of `U` there.
        let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), out_len) };
        let pairs = Pairs {
            row: self.row,
            inputs: [a.as_ptr().cast(), b.as_ptr().cast()],
            sizes: [size_of::<T>(), size_of::<U>()],
            steps: [0, 1].map(|i| shapes.inner_steps(i).1),
        };
        pairs.run(exec, shapes, out);
    }
}

/// Two inputs with their types forgotten, whose lengths were checked.
struct Pairs {
    row: Entry<Row>,
    inputs: [*const u8; 2],
    /// Bytes of an input's and of an output's element.
    sizes: [usize; 2],
    /// Elements from column to column: 1, 0 for one number along a row, or more.
    steps: [usize; 2],
}

// SAFETY: it stands for slices that are only read.
unsafe impl Sync for Pairs {}

/// Elements that are laid side by side at once, where they do not lie so.
const BLOCK: usize = 256;

impl Pairs {
    fn run(&self, exec: &Exec<'_>, shapes: &Broadcast, out: &mut [u8]) {
        each_row(exec, shapes, out, self.sizes[1], |at: [usize; 2], out: &mut [u8]| {
            let n = out.len() / self.sizes[1];
            let inputs = [0, 1].map(|i| self.inputs[i].wrapping_add(at[i] * self.sizes[0]));
            // SAFETY: the shapes reach no further than the inputs, as was checked.
            unsafe { self.row(inputs, out.as_mut_ptr(), n) };
        });
    }

    unsafe fn row(&self, mut inputs: [*const u8; 2], mut out: *mut u8, n: usize) {
        if self.steps == [1, 1] || n == 1 {
            // SAFETY: the caller's promise.
            return unsafe { (self.row)(&Row { inputs, out, n }) };
        }
        let mut blocks = [[0u64; BLOCK]; 2];
        let size = self.sizes[0];
        let mut done = 0;
        while done < n {
            let count = (n - done).min(BLOCK);
            let mut row = Row { inputs, out, n: count };
            for i in 0..2 {
                if self.steps[i] != 1 {
                    let block = blocks[i].as_mut_ptr();
                    // One number is spread once for all blocks.
                    if self.steps[i] > 0 || done == 0 {
                        // SAFETY: `count` elements at this distance lie in the input, and as many fit the block.
                        unsafe { gather(size, inputs[i], self.steps[i], block.cast(), count) };
                    }
                    row.inputs[i] = block.cast();
                }
                inputs[i] = inputs[i].wrapping_add(count * self.steps[i] * size);
            }
            // SAFETY: the caller's promise.
            unsafe { (self.row)(&row) };
            out = out.wrapping_add(count * self.sizes[1]);
            done += count;
        }
    }
}

/// Lays `n` elements of `size` bytes side by side that are `step` elements apart.
unsafe fn gather(size: usize, from: *const u8, step: usize, to: *mut u8, n: usize) {
    unsafe fn of<E: Copy>(from: *const E, step: usize, to: *mut E, n: usize) {
        for i in 0..n {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i) = *from.add(i * step) };
        }
    }
    // SAFETY: the caller's promise; numbers are aligned to their size.
    unsafe {
        match size {
            1 => of::<u8>(from, step, to, n),
            2 => of::<u16>(from.cast(), step, to.cast(), n),
            4 => of::<u32>(from.cast(), step, to.cast(), n),
            8 => of::<u64>(from.cast(), step, to.cast(), n),
            _ => unreachable!("numbers of {size} bytes"),
        }
    }
}

/// Calls `f` with where each input begins and the part of the output, for every row of the inner loop. `size` counts what an
/// element has in `out`.
pub(super) fn each_row<const N: usize, U: Send + Sync>(
    exec: &Exec<'_>,
    shapes: &Broadcast,
    out: &mut [U],
    size: usize,
    f: impl Fn([usize; N], &mut [U]) + Sync,
) {
    let (rows, columns) = shapes.inner();
    if out.is_empty() {
        return;
    }
    let shared = SharedMut::new(out);
    // A single long row is cut, many rows are dealt out.
    let total = shapes.outer() * rows;
    let chunks = pieces(exec, shapes.len());
    if total == 1 {
        exec.each(chunks, |chunk, _| {
            let mine = part_of(columns, chunks, chunk);
            let at = std::array::from_fn(|i| mine.start * shapes.inner_steps(i).1);
            // SAFETY: chunks have ranges of their own.
            f(at, unsafe { shared.part(mine.start * size..mine.end * size) });
        });
        return;
    }
    let chunks = chunks.min(total);
    exec.each(chunks, |chunk, _| {
        for row in part_of(total, chunks, chunk) {
            let (outer, row_within) = (row / rows, row % rows);
            let at = std::array::from_fn(|i| shapes.offset(i, outer) + row_within * shapes.inner_steps(i).0);
            // SAFETY: chunks have rows of their own.
            f(at, unsafe { shared.part(row * columns * size..(row + 1) * columns * size) });
        }
    });
}
