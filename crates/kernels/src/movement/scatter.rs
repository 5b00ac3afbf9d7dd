//! Scatters of whole slices: the data with some rows replaced, or joined with updates. Updates count in row-major order, so
//! the last one stays where several meet. Where updates are replaced threads own ranges of the output, and each looks at all
//! updates for its own; where they are joined, each row has a list of its updates first.

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

/// Elements of a row that are held in double width while its updates are joined.
const JOINED: usize = 256;

/// No tuple.
const NOBODY: u32 = u32::MAX;

impl ScatterNd {
    /// The last axis of the indices holds the tuples.
    pub fn new(data: &[usize], indices: &[usize], elem_size: usize) -> ScatterNd {
        let (&tuple, positions) = indices.split_last().expect("indices have an axis of tuples");
        ScatterNd { tuples: Tuples::new(data, tuple, elem_size), n_tuples: product(positions), elem_size }
    }

    /// Numbers of workspace that [`ScatterNd::run_joined`] needs: the first tuple of each row, and for each tuple the next
    /// one. `None` where there are more tuples than it can number.
    pub fn workspace_words(&self) -> Option<usize> {
        let numbered = self.n_tuples < NOBODY as usize;
        numbered.then(|| product(&self.tuples.dims).saturating_add(self.n_tuples))
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
    #[expect(clippy::too_many_arguments, reason = "the operation's own, and where it notes down")]
    pub fn run_joined<T: Number>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        indices: Indices<'_>,
        updates: &[T],
        how: Reduction,
        workspace: &mut [u32],
        out: &mut [T],
    ) -> Result<(), BadIndex> {
        (T::compiled().scatter)(self, exec, data, indices, updates, how, workspace, out)
    }

    #[expect(clippy::too_many_arguments, reason = "the operation's own, and where it notes down")]
    pub(crate) fn run_joined_any<T: Number>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        indices: Indices<'_>,
        updates: &[T],
        how: Reduction,
        workspace: &mut [u32],
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
        if updates.is_empty() {
            copy_all(exec, bytes(data), bytemuck::cast_slice_mut(out));
            return Ok(());
        }
        let words = self.workspace_words().expect("tuples that can be numbered");
        assert!(workspace.len() >= words, "workspace of {} numbers, {words} are needed", workspace.len());
        let inner = self.tuples.row / size_of::<T>();
        let (first, next) = workspace[..words].split_at_mut(data.len() / inner);
        self.list(exec, indices, first, next);
        let lists = Lists { first, next };
        lists.join(exec, data, updates, how, inner, out);
        Ok(())
    }

    // For each row the first tuple that points to it, and for each tuple the next one of its row.
    fn list(&self, exec: &Exec<'_>, indices: Indices<'_>, first: &mut [u32], next: &mut [u32]) {
        let rows = first.len();
        // Every chunk walks all tuples, so there are few of them.
        let chunks = if rows.max(self.n_tuples) < 1 << 14 { 1 } else { exec.threads().min(rows) };
        let (first, next) = (SharedMut::new(first), SharedMut::new(next));
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            let mine = part_of(rows, chunks, c);
            // SAFETY: rows of different chunks differ.
            let first = unsafe { first.part(mine.clone()) };
            first.fill(NOBODY);
            for t in (0..self.n_tuples).rev() {
                let row = self.tuples.position(list, t).expect("checked at the door");
                if mine.contains(&row) {
                    // SAFETY: a tuple has one row, and that is this chunk's.
                    let after = unsafe { next.part(t..t + 1) };
                    after[0] = first[row - mine.start];
                    first[row - mine.start] = t as u32;
                }
            }
        }));
    }

    fn door(&self, indices: Indices<'_>, updates: usize, out: usize) -> Result<(), BadIndex> {
        assert_eq!(out, self.tuples.plane(), "bytes of the output");
        assert_eq!(updates, product(&[self.n_tuples, self.tuples.row]), "bytes of the updates");
        assert_eq!(indices.len(), product(&[self.n_tuples, self.tuples.dims.len()]), "number of indices");
        with_indices!(indices, list => self.tuples.check(list, self.n_tuples))
    }
}

/// Which updates each row gets, in order.
struct Lists<'a> {
    first: &'a [u32],
    next: &'a [u32],
}

impl Lists<'_> {
    fn join<T: Number>(&self, exec: &Exec<'_>, data: &[T], updates: &[T], how: Reduction, inner: usize, out: &mut [T]) {
        // Cut without regard to rows, of which there may be few and long ones.
        let (total, chunks) = (data.len(), chunks_of(exec, size_of_val(data)));
        let out = SharedMut::new(out);
        exec.each(chunks, |c, _| {
            let mine = part_of(total, chunks, c);
            if mine.is_empty() {
                return;
            }
            // SAFETY: ranges of different chunks differ.
            let target = unsafe { out.part(mine.clone()) };
            target.copy_from_slice(&data[mine.clone()]);
            for row in mine.start / inner..=(mine.end - 1) / inner {
                let t = self.first[row];
                if t == NOBODY {
                    continue;
                }
                // The part of the row that is this chunk's.
                let columns = mine.start.max(row * inner) - row * inner..mine.end.min((row + 1) * inner) - row * inner;
                let to = &mut target[row * inner + columns.start - mine.start..][..columns.len()];
                self.join_row_by(how, t, inner, columns.start, updates, to);
            }
        });
    }

    // One loop for each reduction, within what is compiled once for a type.
    fn join_row_by<T: Number>(&self, how: Reduction, t: u32, inner: usize, column: usize, updates: &[T], to: &mut [T]) {
        macro_rules! joined {
            ($($kind:ident)*) => {
                match how {
                    $(Reduction::$kind => {
                        self.join_row(t, inner, column, updates, to, |w, u| join::<T>(Reduction::$kind, w, u))
                    })*
                    Reduction::None | Reduction::Mean => {}
                }
            };
        }
        joined!(Sum Sub Prod Min Max Or And Xor);
    }

    // Joins columns from `column` on of the updates from `t` on.
    #[inline(always)]
    fn join_row<T: Number>(
        &self,
        t: u32,
        inner: usize,
        column: usize,
        updates: &[T],
        to: &mut [T],
        join: impl Fn(T::Wide, T::Wide) -> T::Wide,
    ) {
        if self.next[t as usize] == NOBODY {
            let from = &updates[t as usize * inner + column..][..to.len()];
            for i in 0..to.len() {
                to[i] = T::narrow(join(to[i].wide(), from[i].wide()));
            }
            return;
        }
        if let [x] = to {
            let (mut t, mut w) = (t, x.wide());
            while t != NOBODY {
                w = join(w, updates[t as usize * inner + column].wide());
                t = self.next[t as usize];
            }
            *x = T::narrow(w);
            return;
        }
        let mut wide = [T::ZERO; JOINED];
        for (piece, to) in to.chunks_mut(JOINED).enumerate() {
            let wide = &mut wide[..to.len()];
            for i in 0..to.len() {
                wide[i] = to[i].wide();
            }
            let mut t = t;
            while t != NOBODY {
                let from = &updates[t as usize * inner + column + piece * JOINED..][..wide.len()];
                for i in 0..from.len() {
                    wide[i] = join(wide[i], from[i].wide());
                }
                t = self.next[t as usize];
            }
            for i in 0..to.len() {
                to[i] = T::narrow(wide[i]);
            }
        }
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

/// The value `w` at a position with the update `u`.
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
