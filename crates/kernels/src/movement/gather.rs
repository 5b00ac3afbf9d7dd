//! Gathers: rows of the data in an order that indices give. A row is whatever lies behind the indexed axes.

use super::indices::{BadIndex, Index, Indices, check_all, with_indices};
use super::rows::copy_any;
use super::strided::chunks_of;
use super::view::product;
use crate::simd::dispatch;
use crate::{Exec, Isa, SharedMut, part_of};

/// Slices along an axis. An index outside of the axis gives zeros.
#[derive(Clone, Debug)]
pub struct Gather {
    batch: usize,
    outer: usize,
    n: usize,
    n_indices: usize,
    /// Bytes of a row.
    row: usize,
}

impl Gather {
    /// The first `batch_dims` axes are common to data and indices. The output has the dims
    /// `data[..axis] + indices[batch_dims..] + data[axis + 1..]`.
    pub fn new(data: &[usize], indices: &[usize], axis: usize, batch_dims: usize, elem_size: usize) -> Gather {
        assert!(batch_dims <= axis && batch_dims <= indices.len(), "{batch_dims} batch axes before axis {axis}");
        assert_eq!(data[..batch_dims], indices[..batch_dims], "batch axes agree");
        Gather {
            batch: product(&data[..batch_dims]),
            outer: product(&data[batch_dims..axis]),
            n: data[axis],
            n_indices: product(&indices[batch_dims..]),
            row: product(&data[axis + 1..]).saturating_mul(elem_size),
        }
    }

    /// Bytes of the output.
    pub fn out_len(&self) -> usize {
        product(&[self.batch, self.outer, self.n_indices, self.row])
    }

    pub fn run(&self, exec: &Exec<'_>, data: &[u8], indices: Indices<'_>, out: &mut [u8]) {
        let Gather { batch, outer, n, n_indices, row } = *self;
        assert_eq!(data.len(), product(&[batch, outer, n, row]), "bytes of the data");
        assert_eq!(indices.len(), product(&[batch, n_indices]), "number of indices");
        assert_eq!(out.len(), self.out_len(), "bytes of the output");
        if out.is_empty() {
            return;
        }
        let rows = batch * outer * n_indices;
        let chunks = chunks_of(exec, out.len()).min(rows);
        let (isa, out) = (exec.isa, SharedMut::new(out));
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            let mine = part_of(rows, chunks, c);
            let (mut at, end) = (mine.start, mine.end);
            // A block is what one index list gives for one outer position.
            while at < end {
                let (block, first) = (at / n_indices, at % n_indices);
                let count = (n_indices - first).min(end - at);
                let list = &list[block / outer * n_indices + first..][..count];
                let source = &data[block * n * row..(block + 1) * n * row];
                // SAFETY: rows of different chunks differ.
                let target = unsafe { out.part(at * row..(at + count) * row) };
                let position = |i: usize| list[i].in_axis(n).map(|k| k * row);
                // SAFETY: positions are those of rows of the source, and the target has as many rows as the list.
                unsafe { rows_at(isa, source, target, row, count, position) };
                at += count;
            }
        }));
    }
}

/// Copies `count` rows; `position(i)` is where row `i` begins in the source, `None` for zeros.
///
/// # Safety
/// Places leave room for a row in the source; the target has `count` rows.
unsafe fn rows_at<P: Fn(usize) -> Option<usize>>(
    isa: Isa,
    src: &[u8],
    dst: &mut [u8],
    row: usize,
    count: usize,
    position: P,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        dispatch!(isa, plain <'a, _S, P: Fn(usize) -> Option<usize>>(src: &'a [u8], dst: &'a mut [u8], row: usize, count: usize, position: P) {
            rows_at_any(src, dst, row, count, position)
        })
    }
}

#[inline(always)]
unsafe fn rows_at_any(src: &[u8], dst: &mut [u8], row: usize, count: usize, position: impl Fn(usize) -> Option<usize>) {
    // SAFETY: passed on from the caller.
    unsafe {
        match row {
            1 => elements_at::<u8>(src, dst, count, position),
            2 => elements_at::<u16>(src, dst, count, position),
            4 => elements_at::<u32>(src, dst, count, position),
            8 => elements_at::<u64>(src, dst, count, position),
            _ => {
                let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
                for i in 0..count {
                    let to = to.add(i * row);
                    match position(i) {
                        Some(at) => copy_any(from.add(at), to, row),
                        None => to.write_bytes(0, row),
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn elements_at<T: bytemuck::Pod>(
    src: &[u8],
    dst: &mut [u8],
    count: usize,
    position: impl Fn(usize) -> Option<usize>,
) {
    let (from, to) = (src.as_ptr(), dst.as_mut_ptr().cast::<T>());
    for i in 0..count {
        // SAFETY: the caller's promise, for rows of one element.
        unsafe {
            let x = position(i).map_or(T::zeroed(), |at| from.add(at).cast::<T>().read_unaligned());
            to.add(i).write_unaligned(x);
        }
    }
}

/// `out[i][j] = data[i][indices[i][j]]` for axis 1, and so on for other axes; the output has the dims of the indices.
#[derive(Clone, Debug)]
pub struct GatherElements {
    outer: usize,
    n: usize,
    m: usize,
    inner: usize,
    size: usize,
}

impl GatherElements {
    /// Data and indices agree on all axes but `axis`.
    pub fn new(data: &[usize], indices: &[usize], axis: usize, elem_size: usize) -> GatherElements {
        assert!(data[..axis] == indices[..axis] && data[axis + 1..] == indices[axis + 1..], "{data:?} and {indices:?}");
        GatherElements {
            outer: product(&data[..axis]),
            n: data[axis],
            m: indices[axis],
            inner: product(&data[axis + 1..]),
            size: elem_size,
        }
    }

    pub fn run(&self, exec: &Exec<'_>, data: &[u8], indices: Indices<'_>, out: &mut [u8]) -> Result<(), BadIndex> {
        let GatherElements { outer, n, m, inner, size } = *self;
        assert_eq!(data.len(), product(&[outer, n, inner, size]), "bytes of the data");
        assert_eq!(indices.len(), product(&[outer, m, inner]), "number of indices");
        assert_eq!(out.len(), indices.len() * size, "bytes of the output");
        with_indices!(indices, list => check_all(list, n, n))?;
        if out.is_empty() {
            return Ok(());
        }
        // Along the last axis a line is all that one row of the data gives; otherwise it is one step of the axis.
        let (lines, width, per_row) = if inner == 1 { (outer, m, 1) } else { (outer * m, inner, m) };
        let chunks = chunks_of(exec, out.len()).min(lines);
        let (isa, out) = (exec.isa, SharedMut::new(out));
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            for line in part_of(lines, chunks, c) {
                let list = &list[line * width..(line + 1) * width];
                let source = &data[line / per_row * n * inner * size..][..n * inner * size];
                let column = |k: usize| if inner == 1 { 0 } else { k };
                let position = |k: usize| list[k].in_axis(n).map(|i| (i * inner + column(k)) * size);
                // SAFETY: lines of different chunks differ; positions are those of elements of the source.
                unsafe {
                    let target = out.part(line * width * size..(line + 1) * width * size);
                    rows_at(isa, source, target, size, width, position);
                }
            }
        }));
        Ok(())
    }
}

/// Slices by index tuples, the last axis of the indices.
#[derive(Clone, Debug)]
pub struct GatherNd {
    batch: usize,
    per_batch: usize,
    tuple: Tuples,
}

impl GatherNd {
    /// The first `batch_dims` axes are common to data and indices.
    pub fn new(data: &[usize], indices: &[usize], batch_dims: usize, elem_size: usize) -> GatherNd {
        let (&tuple, positions) = indices.split_last().expect("indices have an axis of tuples");
        assert_eq!(data[..batch_dims], positions[..batch_dims], "batch axes agree");
        GatherNd {
            batch: product(&data[..batch_dims]),
            per_batch: product(&positions[batch_dims..]),
            tuple: Tuples::new(&data[batch_dims..], tuple, elem_size),
        }
    }

    pub fn run(&self, exec: &Exec<'_>, data: &[u8], indices: Indices<'_>, out: &mut [u8]) -> Result<(), BadIndex> {
        let (row, plane) = (self.tuple.row, self.tuple.plane());
        let rows = product(&[self.batch, self.per_batch]);
        assert_eq!(data.len(), product(&[self.batch, plane]), "bytes of the data");
        assert_eq!(indices.len(), product(&[rows, self.tuple.dims.len()]), "number of indices");
        assert_eq!(out.len(), product(&[rows, row]), "bytes of the output");
        with_indices!(indices, list => self.tuple.check(list, rows))?;
        if out.is_empty() {
            return Ok(());
        }
        let chunks = chunks_of(exec, out.len()).min(rows);
        let (isa, out) = (exec.isa, SharedMut::new(out));
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            let mine = part_of(rows, chunks, c);
            let position = |i: usize| {
                let r = mine.start + i;
                Some(r / self.per_batch * plane + self.tuple.start(list, r)?)
            };
            // SAFETY: rows of different chunks differ; positions are those of rows of the data.
            unsafe {
                let target = out.part(mine.start * row..mine.end * row);
                rows_at(isa, data, target, row, mine.len(), position);
            }
        }));
        Ok(())
    }
}

/// Index tuples into leading axes; what they point to is a row.
#[derive(Clone, Debug)]
pub(super) struct Tuples {
    /// Indexed axes.
    pub(super) dims: Vec<usize>,
    /// Bytes of a row.
    pub(super) row: usize,
}

impl Tuples {
    pub(super) fn new(dims: &[usize], tuple: usize, elem_size: usize) -> Tuples {
        assert!(tuple <= dims.len(), "a tuple of {tuple} is longer than {} axes", dims.len());
        Tuples { dims: dims[..tuple].to_vec(), row: product(&dims[tuple..]).saturating_mul(elem_size) }
    }

    /// Bytes of all rows.
    pub(super) fn plane(&self) -> usize {
        product(&[product(&self.dims), self.row])
    }

    /// The number of the row of tuple `t`; `None` where it lies outside.
    #[inline(always)]
    pub(super) fn position<I: Index>(&self, list: &[I], t: usize) -> Option<usize> {
        let width = self.dims.len();
        let tuple = &list[t * width..(t + 1) * width];
        let mut position = 0;
        for (index, &n) in tuple.iter().zip(&self.dims) {
            position = position * n + index.in_axis(n)?;
        }
        Some(position)
    }

    /// Where that row begins, in bytes.
    #[inline(always)]
    pub(super) fn start<I: Index>(&self, list: &[I], t: usize) -> Option<usize> {
        Some(self.position(list, t)? * self.row)
    }

    pub(super) fn check<I: Index>(&self, list: &[I], n_tuples: usize) -> Result<(), BadIndex> {
        let width = self.dims.len();
        if let [n] = self.dims[..] {
            return check_all(list, n, n);
        }
        for tuple in list.chunks_exact(width.max(1)).take(n_tuples) {
            for (index, &n) in tuple.iter().zip(&self.dims) {
                index.in_axis(n).ok_or(BadIndex { index: index.signed(), n })?;
            }
        }
        Ok(())
    }
}
