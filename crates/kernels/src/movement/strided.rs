//! The copy between two strided views of the same dims. A copy may run in any order, so axes are sorted by how far they
//! move in the destination, merged where both sides allow it, and what is left in the middle picks the inner loop: rows
//! of bytes that lie together on both sides, or a transpose where one axis is dense on each side.

use super::rows::Rows;
use super::transpose::Transpose;
use super::view::View;
use super::walk::{Axis, MAX_AXES, Walk};
use crate::{Exec, Isa, SharedMut, part_of};

/// A prepared copy of elements from one set of strides to another.
#[derive(Clone, Debug)]
pub struct StridedCopy {
    /// Axes around the inner loop, outermost first.
    outer: Vec<Axis>,
    inner: Inner,
    /// Where the first element lies, in bytes.
    src_start: usize,
    dst_start: usize,
    /// Bytes the slices must at least have.
    src_len: usize,
    dst_len: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Inner {
    Nothing,
    /// Bytes that lie together on both sides.
    Run(usize),
    Rows(Rows),
    Transpose(Transpose),
}

impl StridedCopy {
    /// Strides are in elements; the first element of each side lies at the start of its slice.
    pub fn new(dims: &[usize], src_strides: &[isize], dst_strides: &[isize], elem_size: usize) -> StridedCopy {
        let view = |strides: &[isize]| View { start: 0, dims: dims.to_vec(), strides: strides.to_vec() };
        StridedCopy::between(&view(src_strides), &view(dst_strides), elem_size)
    }

    /// The elements of a view, one after another.
    pub fn of(src: &View, elem_size: usize) -> StridedCopy {
        StridedCopy::between(src, &View::whole(&src.dims), elem_size)
    }

    /// `dst[i] = src[i]` for every index of their common dims. Panics where two elements would go to one place.
    pub fn between(src: &View, dst: &View, elem_size: usize) -> StridedCopy {
        assert!(elem_size > 0, "elements have a size");
        assert_eq!(src.dims, dst.dims, "both sides have the same dims");
        assert!(src.strides.len() == src.dims.len() && dst.strides.len() == src.dims.len(), "a stride an axis");
        if src.dims.contains(&0) {
            let inner = Inner::Nothing;
            return StridedCopy { outer: vec![], inner, src_start: 0, dst_start: 0, src_len: 0, dst_len: 0, bytes: 0 };
        }
        let size = elem_size as i128;
        let (mut from, mut to) = (src.start as i128 * size, dst.start as i128 * size);
        let mut axes: Vec<Axis> = Vec::new();
        let mut elements = 1usize;
        for i in 0..src.dims.len() {
            let n = src.dims[i];
            elements = elements.checked_mul(n).expect("dims fit into memory");
            let (mut s, mut d) = (src.strides[i] as i128 * size, dst.strides[i] as i128 * size);
            if n == 1 {
                continue;
            }
            if d < 0 {
                // Walked from its other end, the destination rises.
                (from, to) = (from + (n as i128 - 1) * s, to + (n as i128 - 1) * d);
                (s, d) = (-s, -d);
            }
            axes.push(Axis { n, src: byte_stride(s), dst: byte_stride(d) });
        }
        let (mut first, mut src_end, mut dst_end) = (from, from + size, to + size);
        for axis in &axes {
            let steps = axis.n as i128 - 1;
            first += (steps * axis.src as i128).min(0);
            src_end += (steps * axis.src as i128).max(0);
            dst_end += steps * axis.dst as i128;
        }
        assert!(first >= 0 && to >= 0, "a view begins before its array");
        let (outer, inner) = plan(axes, elem_size);
        StridedCopy {
            outer,
            inner,
            src_start: in_memory(from),
            dst_start: in_memory(to),
            src_len: in_memory(src_end),
            dst_len: in_memory(dst_end),
            bytes: elements.checked_mul(elem_size).expect("dims fit into memory"),
        }
    }

    /// Axes in another order: output axis `i` is axis `order[i]` of the input.
    pub fn permute(dims: &[usize], order: &[usize], elem_size: usize) -> StridedCopy {
        StridedCopy::of(&View::whole(dims).permuted(order), elem_size)
    }

    /// `(begin, step, len)` of each axis; `begin` and `len` already clipped to it.
    pub fn slice(dims: &[usize], cuts: &[(usize, isize, usize)], elem_size: usize) -> StridedCopy {
        assert_eq!(cuts.len(), dims.len(), "a cut an axis");
        let cut = |view: View, (axis, &(begin, step, len)): (usize, &(usize, isize, usize))| {
            view.sliced(axis, begin, step, len)
        };
        StridedCopy::of(&cuts.iter().enumerate().fold(View::whole(dims), cut), elem_size)
    }

    /// Data axis `i` is axis `axes[i]` of `out`; axes of 1 and those nothing maps to are repeated.
    pub fn broadcast(dims: &[usize], out: &[usize], axes: &[usize], elem_size: usize) -> StridedCopy {
        StridedCopy::of(&View::whole(dims).stretched(out, axes), elem_size)
    }

    /// Every axis `repeats` times behind itself. Where the two differ in length, the shorter gets leading ones.
    pub fn tile(dims: &[usize], repeats: &[usize], elem_size: usize) -> StridedCopy {
        let rank = dims.len().max(repeats.len());
        let at = |list: &[usize], i: usize| (i + list.len()).checked_sub(rank).map_or(1, |k| list[k]);
        let own: Vec<usize> = (0..rank).map(|i| at(dims, i)).collect();
        let out: Vec<usize> = (0..rank).flat_map(|i| [at(repeats, i), own[i]]).collect();
        let axes: Vec<usize> = (0..rank).map(|i| 2 * i + 1).collect();
        StridedCopy::of(&View::whole(&own).stretched(&out, &axes), elem_size)
    }

    /// Bytes that are moved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that the source must at least have.
    pub fn src_len(&self) -> usize {
        self.src_len
    }

    /// Bytes that the destination must at least have.
    pub fn dst_len(&self) -> usize {
        self.dst_len
    }

    /// Whether it moves one block of memory, with nothing left out and nothing reordered.
    pub fn is_plain(&self) -> bool {
        matches!(self.inner, Inner::Run(_) | Inner::Nothing) && self.outer.is_empty()
    }

    pub fn run(&self, exec: &Exec<'_>, src: &[u8], dst: &mut [u8]) {
        self.check(src.len(), dst.len());
        let chunks = chunks_of(exec, self.bytes).min(self.units().max(1));
        let (isa, out) = (exec.isa, SharedMut::new(dst));
        // SAFETY: lengths are checked above, and different parts of a copy write different bytes.
        exec.each(chunks, |c, _| unsafe { self.part(isa, src, &out, c, chunks) });
    }

    /// Panics unless slices of these lengths hold the views.
    pub(super) fn check(&self, src: usize, dst: usize) {
        assert!(src >= self.src_len, "the source has {src} bytes, {} are read", self.src_len);
        assert!(dst >= self.dst_len, "the destination has {dst} bytes, {} are written", self.dst_len);
    }

    /// Things the work can be split into.
    fn units(&self) -> usize {
        let outer: usize = self.outer.iter().map(|axis| axis.n).product();
        match &self.inner {
            Inner::Nothing => 0,
            Inner::Run(bytes) => bytes.div_ceil(64),
            Inner::Rows(rows) => outer * rows.axis.n,
            Inner::Transpose(t) => outer * t.blocks(),
        }
    }

    /// Part `c` of `parts` of the work.
    ///
    /// # Safety
    /// `check` holds for both slices; nobody else touches the bytes of this part of the destination.
    pub(super) unsafe fn part(&self, isa: Isa, src: &[u8], dst: &SharedMut<'_, u8>, c: usize, parts: usize) {
        let mine = part_of(self.units(), parts, c);
        if mine.is_empty() {
            return;
        }
        // SAFETY: the starts lie within the slices, as `check` saw; all addresses below are those of elements of the
        // views, which `between` bounded.
        unsafe {
            let (from, to) = (src.as_ptr().add(self.src_start), dst.as_ptr().add(self.dst_start));
            match &self.inner {
                Inner::Nothing => {}
                Inner::Run(bytes) => {
                    let (begin, end) = (mine.start * 64, (mine.end * 64).min(*bytes));
                    std::ptr::copy_nonoverlapping(from.add(begin), to.add(begin), end - begin);
                }
                Inner::Rows(rows) => {
                    let n = rows.axis.n;
                    let (mut pos, mut left) = (mine.start % n, mine.len());
                    let mut walk = Walk::new(&self.outer, mine.start / n);
                    let line = self.outer.last().copied().unwrap_or(Axis { n: 1, src: 0, dst: 0 });
                    while left > 0 {
                        let (s, d) = (from.offset(walk.src), to.offset(walk.dst));
                        let whole = if pos == 0 { (left / n).min(walk.left_on_line()) } else { 0 };
                        if whole > 0 {
                            rows.plane(isa, s, d, Axis { n: whole, ..line }, n);
                            left -= whole * n;
                            walk.advance(whole);
                        } else {
                            let count = left.min(n - pos);
                            let (s, d) =
                                (s.offset(pos as isize * rows.axis.src), d.offset(pos as isize * rows.axis.dst));
                            rows.plane(isa, s, d, Axis { n: 1, ..line }, count);
                            left -= count;
                            pos = 0;
                            walk.advance(1);
                        }
                    }
                }
                Inner::Transpose(t) => {
                    let blocks = t.blocks();
                    let (mut block, mut left) = (mine.start % blocks, mine.len());
                    let mut walk = Walk::new(&self.outer, mine.start / blocks);
                    while left > 0 {
                        let count = left.min(blocks - block);
                        t.run(isa, from.offset(walk.src), to.offset(walk.dst), block..block + count);
                        left -= count;
                        block = 0;
                        walk.advance(1);
                    }
                }
            }
        }
    }
}

/// Into how many chunks moving so many bytes is cut: one while a fork would cost more than it saves, and otherwise small
/// enough that what a chunk touches stays in a core's cache.
pub(crate) fn chunks_of(exec: &Exec<'_>, bytes: usize) -> usize {
    if bytes < 1 << 16 || exec.threads() == 1 { (bytes >> 20).max(1) } else { (exec.threads() * 4).max(bytes >> 17) }
}

fn byte_stride(stride: i128) -> isize {
    isize::try_from(stride).expect("a stride fits into memory")
}

fn in_memory(bytes: i128) -> usize {
    usize::try_from(bytes).expect("a view fits into memory")
}

// Sorts and merges the axes and picks the inner loop. All destination strides are at least 0.
fn plan(mut axes: Vec<Axis>, elem_size: usize) -> (Vec<Axis>, Inner) {
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.dst));
    // Each axis must step over everything the axes inside of it reach, or elements would share positions.
    let mut reach = elem_size as i128;
    for axis in axes.iter().rev() {
        assert!(axis.dst as i128 >= reach, "elements of the destination overlap");
        reach += (axis.n as i128 - 1) * axis.dst as i128;
    }
    let mut run = elem_size;
    let mut merged: Vec<Axis> = Vec::new();
    for axis in axes.into_iter().rev() {
        if merged.is_empty() && axis.src == run as isize && axis.dst == run as isize {
            run *= axis.n;
            continue;
        }
        match merged.last_mut() {
            Some(inner) if axis.src == inner.src * inner.n as isize && axis.dst == inner.dst * inner.n as isize => {
                inner.n *= axis.n;
            }
            _ => merged.push(axis),
        }
    }
    merged.reverse();
    assert!(merged.len() <= MAX_AXES, "{} axes are too many", merged.len());
    let Some(&last) = merged.last() else {
        return (merged, Inner::Run(run));
    };
    if last.dst == run as isize
        && let Some(across) = merged.iter().position(|axis| axis.src == run as isize)
        && let Some(transpose) = Transpose::new(last, merged[across], run)
    {
        merged.pop();
        merged.remove(across);
        return (merged, Inner::Transpose(transpose));
    }
    merged.pop();
    (merged, Inner::Rows(Rows::new(last, run)))
}
