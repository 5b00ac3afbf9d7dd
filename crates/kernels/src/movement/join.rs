//! Concatenation and its inverse. All parts are cut along the same outer axes, so a chunk works on one region of the joined
//! array, whoever its parts belong to.

use super::strided::{StridedCopy, chunks_of};
use super::view::View;
use crate::{Exec, SharedMut};

/// Arrays behind each other along an axis.
#[derive(Clone, Debug)]
pub struct Concat {
    parts: Vec<StridedCopy>,
    bytes: usize,
}

impl Concat {
    /// The inputs have the dims `dims`, except that input `i` has `lengths[i]` on `axis`.
    pub fn new(dims: &[usize], axis: usize, lengths: &[usize], elem_size: usize) -> Concat {
        let parts: Vec<_> = positions(dims, axis, lengths)
            .map(|(position, own)| StridedCopy::between(&View::whole(&own), &position, elem_size))
            .collect();
        Concat { bytes: parts.iter().map(StridedCopy::bytes).sum(), parts }
    }

    /// Of arrays of rows: `outer` rows of the output lie `pitch` elements apart, and each piece fills a range of all of them.
    /// What no piece fills is left as it is. Panics when pieces overlap.
    pub fn of_rows(outer: usize, pieces: &[RowPiece], pitch: usize, elem_size: usize) -> Concat {
        let mut positions: Vec<(usize, usize)> = pieces.iter().map(|p| (p.start, p.start + p.len)).collect();
        positions.sort_unstable();
        let apart = positions.windows(2).all(|w| w[0].1 <= w[1].0) && positions.last().is_none_or(|p| p.1 <= pitch);
        assert!(apart, "pieces {pieces:?} of rows of {pitch} overlap");
        let parts: Vec<_> = pieces.iter().map(|p| p.copy(outer, pitch, elem_size, true)).collect();
        Concat { bytes: parts.iter().map(StridedCopy::bytes).sum(), parts }
    }

    /// The copy of one input into its place in the output.
    pub fn part(&self, i: usize) -> &StridedCopy {
        &self.parts[i]
    }

    /// `input(i)` gives the bytes of input `i`.
    pub fn run<'a>(&self, exec: &Exec<'_>, input: impl Fn(usize) -> &'a [u8] + Sync, out: &mut [u8]) {
        self.parts.iter().enumerate().for_each(|(i, part)| part.check(input(i).len(), out.len()));
        let (isa, out) = (exec.isa, SharedMut::new(out));
        let chunks = chunks_of(exec, self.bytes);
        exec.each(chunks, |c, _| {
            for (i, part) in self.parts.iter().enumerate() {
                let src = input(i);
                part.check(src.len(), out.len());
                // SAFETY: checked above; parts lie behind each other in the output, and so do the shares of a part.
                unsafe { part.part(isa, src, &out, c, chunks) };
            }
        });
    }
}

/// A range of elements in each row of a larger array, and an array of rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPiece {
    /// The range in a row of the larger array.
    pub start: usize,
    pub len: usize,
    /// Elements from row to row of its own.
    pub pitch: usize,
}

impl RowPiece {
    fn copy(&self, outer: usize, pitch: usize, elem_size: usize, into: bool) -> StridedCopy {
        let view = |start: usize, pitch: usize| View {
            start,
            dims: vec![outer, self.len],
            strides: vec![isize::try_from(pitch).expect("rows fit into memory"), 1],
        };
        let (own, position) = (view(0, self.pitch), view(self.start, pitch));
        if into {
            StridedCopy::between(&own, &position, elem_size)
        } else {
            StridedCopy::between(&position, &own, elem_size)
        }
    }
}

/// An array cut into pieces along an axis.
#[derive(Clone, Debug)]
pub struct Split {
    parts: Vec<StridedCopy>,
    bytes: usize,
}

/// Outputs whose shares a job writes.
const AT_ONCE: usize = 16;

impl Split {
    /// Output `i` has `lengths[i]` on `axis`; together they are as long as the input.
    pub fn new(dims: &[usize], axis: usize, lengths: &[usize], elem_size: usize) -> Split {
        assert_eq!(lengths.iter().sum::<usize>(), dims[axis], "pieces {lengths:?} of {dims:?}");
        let parts: Vec<_> =
            positions(dims, axis, lengths).map(|(position, _)| StridedCopy::of(&position, elem_size)).collect();
        Split { bytes: parts.iter().map(StridedCopy::bytes).sum(), parts }
    }

    /// Of an array of `outer` rows that lie `pitch` elements apart: each piece is a range of all of them.
    pub fn of_rows(outer: usize, pieces: &[RowPiece], pitch: usize, elem_size: usize) -> Split {
        let parts: Vec<_> = pieces.iter().map(|p| p.copy(outer, pitch, elem_size, false)).collect();
        Split { bytes: parts.iter().map(StridedCopy::bytes).sum(), parts }
    }

    /// The copy of one piece.
    pub fn part(&self, i: usize) -> &StridedCopy {
        &self.parts[i]
    }

    pub fn run(&self, exec: &Exec<'_>, src: &[u8], outputs: &mut [&mut [u8]]) {
        assert_eq!(outputs.len(), self.parts.len(), "an output a piece");
        let isa = exec.isa;
        for (parts, outputs) in self.parts.chunks(AT_ONCE).zip(outputs.chunks_mut(AT_ONCE)) {
            let mut shared: [Option<SharedMut<'_, u8>>; AT_ONCE] = [None; AT_ONCE];
            for ((part, output), shared) in parts.iter().zip(outputs.iter_mut()).zip(&mut shared) {
                part.check(src.len(), output.len());
                *shared = Some(SharedMut::new(output));
            }
            let chunks = chunks_of(exec, self.bytes);
            exec.each(chunks, |c, _| {
                for (part, output) in parts.iter().zip(shared.iter().flatten()) {
                    // SAFETY: checked above; every piece has an output of its own, and its shares differ.
                    unsafe { part.part(isa, src, output, c, chunks) };
                }
            });
        }
    }
}

// For each length, its place in the joined array and the dims of the piece.
fn positions(dims: &[usize], axis: usize, lengths: &[usize]) -> impl Iterator<Item = (View, Vec<usize>)> {
    let mut joined = dims.to_vec();
    joined[axis] = lengths.iter().sum();
    let whole = View::whole(&joined);
    let mut begin = 0;
    lengths.iter().map(move |&n| {
        let position = whole.sliced(axis, begin, 1, n);
        begin += n;
        (position.clone(), position.dims)
    })
}
