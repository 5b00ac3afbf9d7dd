//! Scatter of single elements along an axis. Positions that differ elsewhere never meet, so they are shared out among the
//! threads, and updates along the axis keep their order.

use super::indices::{BadIndex, Index, Indices, check_all, with_indices};
use super::scatter::{Reduction, copy_all, join};
use super::view::{product, strides_of};
use crate::select::Number;
use crate::{Exec, SharedMut, part_of};

/// `out[i][indices[i][j]] = updates[i][j]` for axis 1, and so on for other axes.
#[derive(Clone, Debug)]
pub struct ScatterElements {
    elements: usize,
    n: usize,
    m: usize,
    /// Elements between neighbours along the axis.
    step: usize,
    /// Offset in the data of each position of the indices before and behind the axis.
    outer: Offsets,
    inner: Offsets,
    elem_size: usize,
}

/// Updates of one chunk, at least.
const CHUNK: usize = 1 << 14;

impl ScatterElements {
    /// Except on `axis`, indices may be shorter than the data.
    pub fn new(data: &[usize], indices: &[usize], axis: usize, elem_size: usize) -> ScatterElements {
        assert_eq!(data.len(), indices.len(), "data and indices have as many axes");
        let fits = (0..data.len()).all(|a| a == axis || indices[a] <= data[a]);
        assert!(fits || indices.contains(&0), "indices {indices:?} reach beyond data {data:?}");
        let strides = strides_of(data);
        ScatterElements {
            elements: product(data),
            n: data[axis],
            m: indices[axis],
            step: strides[axis] as usize,
            outer: Offsets::new(&data[..axis], &indices[..axis], &strides[..axis]),
            inner: Offsets::new(&data[axis + 1..], &indices[axis + 1..], &strides[axis + 1..]),
            elem_size,
        }
    }

    /// Floats of scratch a thread needs for [`ScatterElements::run_joined`].
    pub fn scratch_floats(&self) -> usize {
        // A value of double width and a count for each element along the axis.
        3 * self.n.next_multiple_of(2)
    }

    /// Replaces elements of any type.
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

    /// Replaces elements of what `out` holds already. After an error it is as it was.
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
        match self.elem_size {
            1 => self.replace::<u8>(exec, indices, updates, out),
            2 => self.replace::<u16>(exec, indices, updates, out),
            4 => self.replace::<u32>(exec, indices, updates, out),
            8 => self.replace::<u64>(exec, indices, updates, out),
            16 => self.replace::<u128>(exec, indices, updates, out),
            size => panic!("elements of {size} bytes"),
        }
    }

    fn replace<E: bytemuck::Pod>(&self, exec: &Exec<'_>, indices: Indices<'_>, updates: &[u8], out: &mut [u8]) {
        let size = size_of::<E>();
        let out = SharedMut::new(out);
        with_indices!(indices, list => self.each_lane(exec, list.len(), |o, lanes, _| {
            for row in 0..self.m {
                let first = (o * self.m + row) * self.inner.len;
                for k in lanes.clone() {
                    let i = list[first + k].in_axis(self.n).expect("checked at the door");
                    let to = (self.outer.at(o) + i * self.step + self.inner.at(k)) * size;
                    assert!(to + size <= out.len());
                    let from = &updates[(first + k) * size..(first + k + 1) * size];
                    // SAFETY: within the output, and no other chunk has this lane.
                    unsafe { out.as_ptr().add(to).cast::<E>().write_unaligned(from.as_ptr().cast::<E>().read_unaligned()) };
                }
            }
        }));
    }

    /// Joins numbers with what is there, or, without `keep_initial`, with each other alone. Floats are joined in double
    /// precision and rounded once.
    pub fn run_joined<T: Number>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        indices: Indices<'_>,
        updates: &[T],
        how: Reduction,
        keep_initial: bool,
        out: &mut [T],
    ) -> Result<(), BadIndex> {
        (T::compiled().scatter_elements)(self, exec, data, indices, updates, how, keep_initial, out)
    }

    pub(crate) fn run_joined_any<T: Number>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        indices: Indices<'_>,
        updates: &[T],
        how: Reduction,
        keep_initial: bool,
        out: &mut [T],
    ) -> Result<(), BadIndex> {
        let bytes = bytemuck::cast_slice::<T, u8>;
        if how == Reduction::None {
            return self.run(exec, bytes(data), indices, bytes(updates), bytemuck::cast_slice_mut(out));
        }
        assert_eq!(self.elem_size, size_of::<T>(), "size of an element");
        assert_eq!(data.len(), out.len(), "elements of the data");
        self.door(indices, size_of_val(updates), size_of_val(out))?;
        copy_all(exec, bytes(data), bytemuck::cast_slice_mut(out));
        let out = SharedMut::new(out);
        with_indices!(indices, list => self.each_lane(exec, list.len(), |o, lanes, thread| {
            let mut scratch = exec.scratch.of(thread);
            let (wide, counts) = scratch.split_at_mut(2 * self.n);
            let wide: &mut [T::Wide] = &mut bytemuck::cast_slice_mut(wide)[..self.n];
            let counts: &mut [u32] = &mut bytemuck::cast_slice_mut(counts)[..self.n];
            for k in lanes {
                let base = self.outer.at(o) + self.inner.at(k);
                let update = |row: usize| (o * self.m + row) * self.inner.len + k;
                let position = |row: usize| list[update(row)].in_axis(self.n).expect("checked at the door");
                assert!(self.n == 0 || base + (self.n - 1) * self.step < out.len());
                // SAFETY: elements of this lane, which no other chunk has, within the output.
                let at = |i: usize| unsafe { &mut *out.as_ptr().add(base + i * self.step) };
                (0..self.n).for_each(|i| wide[i] = at(i).wide());
                if how == Reduction::Mean {
                    counts.fill(0);
                }
                if !keep_initial {
                    (0..self.m).for_each(|row| wide[position(row)] = neutral::<T>(how));
                }
                for row in 0..self.m {
                    let i = position(row);
                    wide[i] = join::<T>(how, wide[i], updates[update(row)].wide());
                    if how == Reduction::Mean {
                        counts[i] += 1;
                    }
                }
                if how == Reduction::Mean {
                    for (w, &n) in wide.iter_mut().zip(counts.iter()).filter(|(_, n)| **n > 0) {
                        *w = T::divided(*w, n as i64 + i64::from(keep_initial));
                    }
                }
                (0..self.n).for_each(|i| *at(i) = T::narrow(wide[i]));
            }
        }));
        Ok(())
    }

    // Calls `work(outer position, inner positions, thread)` so that every pair of positions is seen once.
    fn each_lane(&self, exec: &Exec<'_>, updates: usize, work: impl Fn(usize, std::ops::Range<usize>, usize) + Sync) {
        if updates == 0 {
            return;
        }
        let wanted = if exec.threads() == 1 { 1 } else { (updates / CHUNK).clamp(1, 4 * exec.threads()) };
        let by_outer = wanted.min(self.outer.len);
        let by_inner = (wanted / by_outer).clamp(1, self.inner.len);
        exec.each(by_outer * by_inner, |c, thread| {
            for o in part_of(self.outer.len, by_outer, c / by_inner) {
                work(o, part_of(self.inner.len, by_inner, c % by_inner), thread);
            }
        });
    }

    fn door(&self, indices: Indices<'_>, updates: usize, out: usize) -> Result<(), BadIndex> {
        assert_eq!(out, product(&[self.elements, self.elem_size]), "bytes of the output");
        assert_eq!(indices.len(), product(&[self.outer.len, self.m, self.inner.len]), "number of indices");
        assert_eq!(updates, product(&[indices.len(), self.elem_size]), "bytes of the updates");
        with_indices!(indices, list => check_all(list, self.n, self.n))
    }
}

fn neutral<T: Number>(how: Reduction) -> T::Wide {
    match how {
        Reduction::Prod => T::ONE,
        Reduction::Min | Reduction::And => {
            if how == Reduction::And {
                T::ONE
            } else {
                T::HIGHEST
            }
        }
        Reduction::Max => T::LOWEST,
        _ => T::ZERO,
    }
}

/// Where the positions of some axes of the indices lie in the data.
#[derive(Clone, Debug)]
struct Offsets {
    len: usize,
    /// Elements between positions, where they are evenly spaced.
    step: usize,
    list: Vec<usize>,
}

impl Offsets {
    fn new(data: &[usize], indices: &[usize], strides: &[isize]) -> Offsets {
        let len = product(indices);
        // Evenly spaced when every axis but the first is taken whole.
        if data.iter().zip(indices).skip(1).all(|(d, i)| d == i) {
            return Offsets { len, step: strides.last().map_or(0, |&s| s as usize), list: vec![] };
        }
        let offset = |mut flat: usize| {
            let mut offset = 0;
            for axis in (0..indices.len()).rev() {
                offset += flat % indices[axis] * strides[axis] as usize;
                flat /= indices[axis];
            }
            offset
        };
        Offsets { len, step: 0, list: (0..len).map(offset).collect() }
    }

    #[inline(always)]
    fn at(&self, position: usize) -> usize {
        self.list.get(position).copied().unwrap_or(position * self.step)
    }
}
