//! Scatters of whole slices: the data with some rows replaced, or joined with updates. Updates count in row-major order, so
//! the last one stays where several meet; threads own ranges of the output and each looks at all updates for its own.

use super::gather::Tuples;
use super::indices::{BadIndex, Indices, check_all, with_indices};
use super::rows::copy_any;
use super::strided::chunks_of;
use super::view::product;
use crate::select::Number;
use crate::{Exec, SharedMut, part_of};

/// How an update meets the value at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Replaces it.
    None,
    Sum,
    Sub,
    Prod,
    Min,
    Max,
    /// Integers round down.
    Mean,
    /// For booleans, one byte each.
    Or,
    And,
    Xor,
}

/// Updates slices at index tuples.
#[derive(Clone, Debug)]
pub struct ScatterNd {
    tuples: Tuples,
    n_tuples: usize,
    elem_size: usize,
}

/// Elements of the output that a chunk holds in double width while it joins.
const JOINED: usize = 1 << 13;

impl ScatterNd {
    /// The last axis of the indices holds the tuples.
    pub fn new(data: &[usize], indices: &[usize], elem_size: usize) -> ScatterNd {
        let (&tuple, places) = indices.split_last().expect("indices have an axis of tuples");
        ScatterNd { tuples: Tuples::new(data, tuple, elem_size), n_tuples: product(places), elem_size }
    }

    /// Floats of scratch a thread needs for [`ScatterNd::run_joined`].
    pub fn scratch_floats(&self) -> usize {
        2 * JOINED
    }

    /// Replaces slices; any type.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        data: &[u8],
        indices: Indices<'_>,
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), BadIndex> {
        assert_eq!(data.len(), out.len(), "bytes of the data");
        self.door(indices, updates.len(), out.len())?;
        copy_all(exec, data, out);
        self.apply(exec, indices, updates, out);
        Ok(())
    }

    /// Replaces slices of what `out` holds already. After an error it is as it was.
    pub fn run_in_place(
        &self,
        exec: &Exec<'_>,
        indices: Indices<'_>,
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), BadIndex> {
        self.door(indices, updates.len(), out.len())?;
        self.apply(exec, indices, updates, out);
        Ok(())
    }

    fn apply(&self, exec: &Exec<'_>, indices: Indices<'_>, updates: &[u8], out: &mut [u8]) {
        let row = self.tuples.row;
        if updates.is_empty() {
            return;
        }
        // Every chunk walks all tuples, so there are few of them.
        let chunks = if updates.len() < 1 << 16 { 1 } else { exec.threads() };
        let rows = out.len() / row;
        let out = SharedMut::new(out);
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            let mine = part_of(rows, chunks, c);
            let mine = mine.start * row..mine.end * row;
            for t in 0..self.n_tuples {
                let start = self.tuples.start(list, t).expect("checked at the door");
                if mine.contains(&start) {
                    // SAFETY: the row lies in the range this chunk owns.
                    unsafe {
                        let to = out.part(start..start + row);
                        copy_any(updates[t * row..(t + 1) * row].as_ptr(), to.as_mut_ptr(), row);
                    }
                }
            }
        }));
    }

    /// Joins slices of numbers with what is there. Floats are joined in double precision and rounded once.
    pub fn run_joined<T: Number>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        indices: Indices<'_>,
        updates: &[T],
        how: Reduction,
        out: &mut [T],
    ) -> Result<(), BadIndex> {
        let bytes = bytemuck::cast_slice::<T, u8>;
        if how == Reduction::None {
            return self.run(exec, bytes(data), indices, bytes(updates), bytemuck::cast_slice_mut(out));
        }
        assert_eq!(self.elem_size, size_of::<T>(), "size of an element");
        assert!(how != Reduction::Mean, "slices have no mean");
        assert_eq!(data.len(), out.len(), "elements of the data");
        self.door(indices, size_of_val(updates), size_of_val(out))?;
        let inner = self.tuples.row / size_of::<T>();
        let chunks = data.len().div_ceil(JOINED);
        let total = data.len();
        let out = SharedMut::new(out);
        with_indices!(indices, list => exec.each(chunks, |c, thread| {
            let mine = part_of(total, chunks, c);
            // SAFETY: ranges of different chunks differ.
            let target = unsafe { out.part(mine.clone()) };
            let mut scratch = exec.scratch.of(thread);
            let wide: &mut [T::Wide] = bytemuck::cast_slice_mut(&mut scratch[..2 * JOINED]);
            let wide = &mut wide[..mine.len()];
            wide.iter_mut().zip(&data[mine.clone()]).for_each(|(w, x)| *w = x.wide());
            for t in 0..self.n_tuples {
                let start = self.tuples.start(list, t).expect("checked at the door") / size_of::<T>();
                let (low, high) = (start.max(mine.start), (start + inner).min(mine.end));
                if low < high {
                    let from = &updates[t * inner + (low - start)..][..high - low];
                    let to = &mut wide[low - mine.start..high - mine.start];
                    to.iter_mut().zip(from).for_each(|(w, u)| *w = join::<T>(how, *w, u.wide()));
                }
            }
            target.iter_mut().zip(wide.iter()).for_each(|(x, w)| *x = T::narrow(*w));
        }));
        Ok(())
    }

    fn door(&self, indices: Indices<'_>, updates: usize, out: usize) -> Result<(), BadIndex> {
        assert_eq!(out, self.tuples.plane(), "bytes of the output");
        assert_eq!(updates, product(&[self.n_tuples, self.tuples.row]), "bytes of the updates");
        assert_eq!(indices.len(), product(&[self.n_tuples, self.tuples.dims.len()]), "number of indices");
        with_indices!(indices, list => self.tuples.check(list, self.n_tuples))
    }
}

/// Replaces slices along an axis; indices do not count from its end.
#[derive(Clone, Debug)]
pub struct ScatterUpdate {
    outer: usize,
    n: usize,
    n_indices: usize,
    row: usize,
}

impl ScatterUpdate {
    /// Updates have the dims `data[..axis] + [n_indices] + data[axis + 1..]`.
    pub fn new(data: &[usize], n_indices: usize, axis: usize, elem_size: usize) -> ScatterUpdate {
        ScatterUpdate {
            outer: product(&data[..axis]),
            n: data[axis],
            n_indices,
            row: product(&data[axis + 1..]).saturating_mul(elem_size),
        }
    }

    pub fn run(
        &self,
        exec: &Exec<'_>,
        data: &[u8],
        indices: Indices<'_>,
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), BadIndex> {
        assert_eq!(data.len(), out.len(), "bytes of the data");
        self.door(indices, updates.len(), out.len())?;
        copy_all(exec, data, out);
        self.apply(exec, indices, updates, out);
        Ok(())
    }

    fn door(&self, indices: Indices<'_>, updates: usize, out: usize) -> Result<(), BadIndex> {
        let ScatterUpdate { outer, n, n_indices, row } = *self;
        assert_eq!(out, product(&[outer, n, row]), "bytes of the output");
        assert_eq!(indices.len(), n_indices, "number of indices");
        assert_eq!(updates, product(&[outer, n_indices, row]), "bytes of the updates");
        if outer == 0 {
            return Ok(());
        }
        with_indices!(indices, list => check_all(list, n, 0))
    }

    /// Replaces slices of what `out` holds already. After an error it is as it was.
    pub fn run_in_place(
        &self,
        exec: &Exec<'_>,
        indices: Indices<'_>,
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), BadIndex> {
        self.door(indices, updates.len(), out.len())?;
        self.apply(exec, indices, updates, out);
        Ok(())
    }

    fn apply(&self, exec: &Exec<'_>, indices: Indices<'_>, updates: &[u8], out: &mut [u8]) {
        let ScatterUpdate { outer, n, n_indices, row } = *self;
        if updates.is_empty() {
            return;
        }
        // Cut along the outer positions, and along the row where those are few.
        let wanted = chunks_of(exec, updates.len());
        let by_outer = wanted.min(outer);
        let by_row = (wanted / by_outer).clamp(1, row.div_ceil(64));
        let out = SharedMut::new(out);
        with_indices!(indices, list => exec.each(by_outer * by_row, |c, _| {
            let piece = part_of(row, by_row, c % by_row);
            for o in part_of(outer, by_outer, c / by_row) {
                for (i, &index) in list.iter().enumerate() {
                    let to = (o * n + index as usize) * row;
                    let from = &updates[(o * n_indices + i) * row..][piece.clone()];
                    // SAFETY: this chunk alone writes this piece of the rows at this outer position.
                    unsafe {
                        let to = out.part(to + piece.start..to + piece.end);
                        copy_any(from.as_ptr(), to.as_mut_ptr(), from.len());
                    }
                }
            }
        }));
    }
}

/// The data itself, before anything is replaced.
pub(super) fn copy_all(exec: &Exec<'_>, data: &[u8], out: &mut [u8]) {
    let chunks = chunks_of(exec, data.len());
    let out = SharedMut::new(out);
    exec.each(chunks, |c, _| {
        let mine = part_of(data.len(), chunks, c);
        // SAFETY: parts of different chunks differ.
        unsafe { out.part(mine.clone()) }.copy_from_slice(&data[mine]);
    });
}

/// The value `w` at a place with the update `u`.
#[inline(always)]
pub(super) fn join<T: Number>(how: Reduction, w: T::Wide, u: T::Wide) -> T::Wide {
    match how {
        Reduction::None => u,
        Reduction::Sum | Reduction::Mean => T::add(w, u),
        Reduction::Sub => T::sub(w, u),
        Reduction::Prod => T::mul(w, u),
        Reduction::Min if u < w => u,
        Reduction::Max if u > w => u,
        Reduction::Min | Reduction::Max => w,
        Reduction::Or => T::or(w, u),
        Reduction::And => T::and(w, u),
        Reduction::Xor => T::xor(w, u),
    }
}
