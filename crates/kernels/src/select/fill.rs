//! Outputs that are mostly made up: marked positions and sequences.

use super::Number;
use crate::movement::indices::{Index, with_indices};
use crate::movement::{Indices, StridedCopy, chunks_of, product};
use crate::{Exec, SharedMut, part_of};

/// A new axis of length `depth` that holds one value at the index and another elsewhere. An index outside of the depth
/// marks nothing.
#[derive(Clone, Debug)]
pub struct OneHot {
    outer: usize,
    depth: usize,
    inner: usize,
    size: usize,
    background: StridedCopy,
}

impl OneHot {
    /// The new axis stands before axis `axis` of the indices.
    pub fn new(indices: &[usize], axis: usize, depth: usize, elem_size: usize) -> OneHot {
        let (outer, inner) = (product(&indices[..axis]), product(&indices[axis..]));
        let background = StridedCopy::broadcast(&[], &[outer, depth, inner], &[], elem_size);
        OneHot { outer, depth, inner, size: elem_size, background }
    }

    /// `on` and `off` are one element each. With `from_end` negative indices count from the end of the new axis.
    pub fn run(&self, exec: &Exec<'_>, indices: Indices<'_>, on: &[u8], off: &[u8], from_end: bool, out: &mut [u8]) {
        let OneHot { outer, depth, inner, size, .. } = *self;
        assert_eq!(indices.len(), product(&[outer, inner]), "number of indices");
        assert!(on.len() == size && off.len() == size, "values of one element");
        assert_eq!(out.len(), product(&[outer, depth, inner, size]), "bytes of the output");
        if out.is_empty() {
            return;
        }
        self.background.run(exec, off, out);
        let chunks = chunks_of(exec, indices.len() * 16).min(indices.len());
        let out = SharedMut::new(out);
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            for at in part_of(list.len(), chunks, c) {
                let index = list[at];
                if let Some(position) = index.in_axis(depth).filter(|_| from_end || index.signed() >= 0) {
                    let to = ((at / inner * depth + position) * inner + at % inner) * size;
                    // SAFETY: every index marks an element of its own.
                    unsafe { out.part(to..to + size) }.copy_from_slice(on);
                }
            }
        }));
    }
}

/// `start, start + step, ...`, each computed from its number, so no error adds up.
pub fn range<T: Number>(exec: &Exec<'_>, start: T, step: T, out: &mut [T]) {
    (T::compiled().range)(exec, start, step, out);
}

pub(super) fn range_any<T: Number>(exec: &Exec<'_>, start: T, step: T, out: &mut [T]) {
    let (len, chunks) = (out.len(), chunks_of(exec, size_of_val(out)));
    let out = SharedMut::new(out);
    exec.each(chunks, |c, _| {
        let mine = part_of(len, chunks, c);
        // SAFETY: chunks have different parts.
        let part = unsafe { out.part(mine.clone()) };
        part.iter_mut().zip(mine).for_each(|(x, number)| *x = T::in_sequence(start, number, step));
    });
}
