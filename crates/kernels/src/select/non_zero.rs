//! Places of the elements that are not zero, as coordinates in row-major order. Counted first, so that the caller can make
//! room, then written.

use super::Number;
use crate::movement::indices::Index;
use crate::movement::{IndicesMut, product};
use crate::{Exec, SharedMut, part_of};

/// Coordinates of elements that are not zero.
#[derive(Clone, Debug)]
pub struct NonZero {
    dims: Vec<usize>,
}

/// How many elements of each part are not zero.
#[derive(Clone, Debug)]
pub struct NonZeroCounts {
    /// Counts of the parts before, and with the last entry of all.
    before: [usize; MAX_PARTS + 1],
    parts: usize,
}

const MAX_PARTS: usize = 64;
/// Elements a part is worth.
const PART: usize = 1 << 14;

impl NonZeroCounts {
    pub fn total(&self) -> usize {
        self.before[self.parts]
    }
}

impl NonZero {
    /// A scalar counts as one element of a vector.
    pub fn new(dims: &[usize]) -> NonZero {
        NonZero { dims: if dims.is_empty() { vec![1] } else { dims.to_vec() } }
    }

    /// Coordinates of each position.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    pub fn count<T: Number>(&self, exec: &Exec<'_>, data: &[T]) -> NonZeroCounts {
        (T::compiled().count_non_zero)(self, exec, data)
    }

    pub(super) fn count_any<T: Number>(&self, exec: &Exec<'_>, data: &[T]) -> NonZeroCounts {
        assert_eq!(data.len(), product(&self.dims), "elements of the data");
        let most = if exec.threads() == 1 { 1 } else { MAX_PARTS };
        let parts = (data.len() / PART).clamp(1, most);
        let mut before = [0; MAX_PARTS + 1];
        let counts = SharedMut::new(&mut before);
        exec.each(parts, |c, _| {
            let mine = &data[part_of(data.len(), parts, c)];
            let count = mine.chunks(128).map(|b| b.iter().map(|x| u8::from(!x.is_zero())).sum::<u8>() as usize).sum();
            // SAFETY: an entry a part.
            unsafe { counts.part(c + 1..c + 2)[0] = count };
        });
        (0..parts).for_each(|c| before[c + 1] += before[c]);
        NonZeroCounts { before, parts }
    }

    /// Writes `[rank, total]` coordinates of the data that was counted.
    pub fn fill<T: Number>(&self, exec: &Exec<'_>, data: &[T], counts: &NonZeroCounts, out: IndicesMut<'_>) {
        (T::compiled().fill_non_zero)(self, exec, data, counts, out);
    }

    pub(super) fn fill_any<T: Number>(&self, exec: &Exec<'_>, data: &[T], counts: &NonZeroCounts, out: IndicesMut<'_>) {
        assert_eq!(data.len(), product(&self.dims), "elements of the data");
        assert_eq!(out.len(), self.rank() * counts.total(), "coordinates");
        match out {
            IndicesMut::I32(list) => self.write(exec, data, counts, SharedMut::new(list)),
            IndicesMut::I64(list) => self.write(exec, data, counts, SharedMut::new(list)),
        }
    }

    fn write<T: Number, I: Index>(&self, exec: &Exec<'_>, data: &[T], counts: &NonZeroCounts, out: SharedMut<'_, I>) {
        let (parts, total) = (counts.parts, counts.total());
        let line = self.dims.last().copied().unwrap_or(1);
        exec.each(parts, |c, _| {
            let mine = part_of(data.len(), parts, c);
            let (mut column, end) = (counts.before[c], counts.before[c + 1]);
            let mut at = mine.start;
            // Along a line only the last coordinate moves.
            while at < mine.end && column < end {
                let (first, stop) = (at % line, mine.end.min(at - at % line + line));
                let begin = column;
                for (i, x) in data[at..stop].iter().enumerate() {
                    if !x.is_zero() {
                        assert!(column < end, "the data changed since it was counted");
                        let to = (self.dims.len() - 1) * total + column;
                        // SAFETY: columns of different parts differ.
                        unsafe { out.part(to..to + 1)[0] = I::of(first + i) };
                        column += 1;
                    }
                }
                let mut left = at / line;
                for axis in (0..self.dims.len() - 1).rev() {
                    let coordinate = I::of(left % self.dims[axis]);
                    // SAFETY: as above.
                    unsafe { out.part(axis * total + begin..axis * total + column) }.fill(coordinate);
                    left /= self.dims[axis];
                }
                at = stop;
            }
        });
    }
}
