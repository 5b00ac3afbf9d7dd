//! Pads and rolls: boxes of the output, each a strided copy of its own. What is new along an axis is a box that repeats,
//! mirrors or fills; cropping only makes the boxes smaller.

use super::strided::{StridedCopy, chunks_of};
use super::view::{View, product};
use crate::{Exec, SharedMut};

/// What new elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// The pad value.
    Constant,
    /// The nearest element.
    Edge,
    /// Mirrored without repeating the border.
    Reflect,
    /// Mirrored with the border repeated.
    Symmetric,
}

/// Adds elements before and after each axis; negative amounts crop.
#[derive(Clone, Debug)]
pub struct Pad {
    boxes: Boxes,
    elem_size: usize,
}

impl Pad {
    /// Panics where a mirror is narrower than what it should show, or an axis is cropped to less than nothing.
    pub fn new(dims: &[usize], begins: &[i64], ends: &[i64], mode: PadMode, elem_size: usize) -> Pad {
        assert!(begins.len() == dims.len() && ends.len() == dims.len(), "pads for every axis");
        assert!(elem_size <= ZEROS.len(), "elements of {elem_size} bytes");
        let cuts: Vec<Vec<Cut>> =
            (0..dims.len()).map(|a| cuts(dims[a] as i128, begins[a] as i128, ends[a] as i128, mode)).collect();
        Pad { boxes: Boxes::new(dims, &cuts, elem_size), elem_size }
    }

    /// `value` is one element, zeros when it is left out; only constant padding reads it.
    pub fn run(&self, exec: &Exec<'_>, src: &[u8], value: Option<&[u8]>, dst: &mut [u8]) {
        let value = value.unwrap_or(&ZEROS[..self.elem_size]);
        assert_eq!(value.len(), self.elem_size, "a pad value of one element");
        self.boxes.run(exec, src, value, dst);
    }
}

const ZEROS: [u8; 16] = [0; 16];

/// Shifts along axes; what leaves at one end enters at the other.
#[derive(Clone, Debug)]
pub struct Roll(Boxes);

impl Roll {
    /// A shift an axis, in either direction and of any length.
    pub fn new(dims: &[usize], shifts: &[i64], elem_size: usize) -> Roll {
        assert_eq!(shifts.len(), dims.len(), "a shift an axis");
        let cut = |(&n, &shift): (&usize, &i64)| {
            let by = if n == 0 { 0 } else { shift.rem_euclid(n as i64) as usize };
            vec![Cut::taken(by, 0, 1, n - by), Cut::taken(0, n - by, 1, by)]
        };
        let cuts: Vec<Vec<Cut>> = dims.iter().zip(shifts).map(cut).collect();
        Roll(Boxes::new(dims, &cuts, elem_size))
    }

    pub fn run(&self, exec: &Exec<'_>, src: &[u8], dst: &mut [u8]) {
        self.0.run(exec, src, &[], dst);
    }
}

/// A stretch of an output axis.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: usize,
    len: usize,
    /// First element and step in the source axis; `None` for the pad value.
    from: Option<(usize, isize)>,
}

impl Cut {
    fn taken(at: usize, begin: usize, step: isize, len: usize) -> Cut {
        Cut { at, len, from: Some((begin, step)) }
    }
}

// The output axis has elements for c = -begin .. n + end; c in 0..n is data.
fn cuts(n: i128, begin: i128, end: i128, mode: PadMode) -> Vec<Cut> {
    assert!(n + begin + end >= 0, "an axis of {n} cannot be cropped by {begin} and {end}");
    // The stretch of c from `low` to `high`, brought into the output.
    let stretch = |low: i128, high: i128| {
        let (low, high) = (low.max(-begin), high.min(n + end));
        (low, (high - low).max(0))
    };
    // `source(c)` gives the element and the step for rising c.
    let cut = |(low, len): (i128, i128), source: &dyn Fn(i128) -> (i128, isize)| {
        let at = (low + begin) as usize;
        if len == 0 {
            return Cut { at: 0, len: 0, from: Some((0, 1)) };
        }
        let (first, step) = source(low);
        let last = first + (len - 1) * step as i128;
        assert!(
            (0..n).contains(&first) && (0..n).contains(&last),
            "an axis of {n} is too short for pads {begin}, {end}"
        );
        Cut::taken(at, first as usize, step, len as usize)
    };
    let (before, inside, after) = (stretch(i128::MIN / 4, 0), stretch(0, n), stretch(n, i128::MAX / 4));
    let inside = cut(inside, &|c| (c, 1));
    let (before, after) = match mode {
        PadMode::Constant => {
            let fill = |(low, len): (i128, i128)| Cut { at: (low + begin) as usize, len: len as usize, from: None };
            (fill(before), fill(after))
        }
        PadMode::Edge => (cut(before, &|_| (0, 0)), cut(after, &|_| (n - 1, 0))),
        PadMode::Reflect => (cut(before, &|c| (-c, -1)), cut(after, &|c| (2 * (n - 1) - c, -1))),
        PadMode::Symmetric => (cut(before, &|c| (-1 - c, -1)), cut(after, &|c| (2 * n - 1 - c, -1))),
    };
    vec![before, inside, after]
}

/// Copies into boxes that do not overlap, from the data or from one element.
#[derive(Clone, Debug)]
struct Boxes {
    from_data: Vec<StridedCopy>,
    from_value: Vec<StridedCopy>,
    bytes: usize,
    out_bytes: usize,
}

impl Boxes {
    /// `cuts` cover each output axis.
    fn new(dims: &[usize], cuts: &[Vec<Cut>], elem_size: usize) -> Boxes {
        let out: Vec<usize> = cuts.iter().map(|axis| axis.iter().map(|cut| cut.len).sum()).collect();
        let mut boxes = Boxes { from_data: vec![], from_value: vec![], bytes: 0, out_bytes: 0 };
        boxes.add(View::whole(dims), View::whole(&out), cuts, 0, elem_size);
        boxes.bytes = product(&out).saturating_mul(elem_size);
        boxes.out_bytes = boxes.bytes;
        boxes
    }

    // Axes before `axis` are cut already. A box of the pad value spans the rest of the axes whole.
    fn add(&mut self, src: View, dst: View, cuts: &[Vec<Cut>], axis: usize, elem_size: usize) {
        if axis == cuts.len() {
            self.from_data.push(StridedCopy::between(&src, &dst, elem_size));
            return;
        }
        for cut in cuts[axis].iter().filter(|cut| cut.len > 0) {
            let position = dst.sliced(axis, cut.at, 1, cut.len);
            match cut.from {
                Some((begin, step)) => {
                    self.add(src.sliced(axis, begin, step, cut.len), position, cuts, axis + 1, elem_size)
                }
                None => {
                    let value = View { start: 0, strides: vec![0; position.rank()], dims: position.dims.clone() };
                    self.from_value.push(StridedCopy::between(&value, &position, elem_size));
                }
            }
        }
    }

    fn run(&self, exec: &Exec<'_>, src: &[u8], value: &[u8], dst: &mut [u8]) {
        assert!(dst.len() >= self.out_bytes, "the output has {} bytes, {} are written", dst.len(), self.out_bytes);
        let each = || {
            let data = self.from_data.iter().map(|copy| (copy, src));
            data.chain(self.from_value.iter().map(|copy| (copy, value)))
        };
        each().for_each(|(copy, from)| copy.check(from.len(), dst.len()));
        let (isa, out, chunks) = (exec.isa, SharedMut::new(dst), chunks_of(exec, self.bytes));
        exec.each(chunks, |c, _| {
            for (copy, from) in each() {
                // SAFETY: checked above; boxes do not overlap, and neither do the shares of one.
                unsafe { copy.part(isa, from, &out, c, chunks) };
            }
        });
    }
}
