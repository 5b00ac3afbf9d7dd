//! Rows of equal length, each dense on both sides, at constant distances. The length picks the loop once, outside of it.

use super::walk::Axis;
use crate::Isa;
use crate::simd::dispatch;

/// A line of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) axis: Axis,
    /// Bytes of a row.
    run: usize,
}

impl Rows {
    pub(super) fn new(axis: Axis, run: usize) -> Rows {
        Rows { axis, run }
    }

    /// `line.n` lines of `n` rows each.
    ///
    /// # Safety
    /// All those rows lie within what the pointers may reach, and nobody else writes the destination.
    pub(super) unsafe fn plane(&self, isa: Isa, src: *const u8, dst: *mut u8, line: Axis, n: usize) {
        let (run, axis) = (self.run, self.axis);
        // SAFETY: passed on from the caller.
        unsafe {
            dispatch!(isa, <_S>(run: usize, src: *const u8, dst: *mut u8, line: Axis, axis: Axis, n: usize) {
                plane(run, src, dst, line, axis, n)
            })
        }
    }
}

#[inline(always)]
unsafe fn plane(run: usize, src: *const u8, dst: *mut u8, line: Axis, row: Axis, n: usize) {
    // SAFETY: passed on from the caller; the copies match the run length.
    unsafe {
        match run {
            1 => elements::<u8>(src, dst, line, row, n),
            2 => elements::<u16>(src, dst, line, row, n),
            4 => elements::<u32>(src, dst, line, row, n),
            8 => elements::<u64>(src, dst, line, row, n),
            16 => elements::<u128>(src, dst, line, row, n),
            12 => each(src, dst, line, row, n, |s, d| copy_const::<12>(s, d)),
            3..=15 => each(src, dst, line, row, n, |s, d| copy_small(s, d, run)),
            32 => each(src, dst, line, row, n, |s, d| copy_const::<32>(s, d)),
            64 => each(src, dst, line, row, n, |s, d| copy_const::<64>(s, d)),
            128 => each(src, dst, line, row, n, |s, d| copy_const::<128>(s, d)),
            256 => each(src, dst, line, row, n, |s, d| copy_const::<256>(s, d)),
            17..=31 => each(src, dst, line, row, n, |s, d| ends::<16>(s, d, run)),
            33..=63 => each(src, dst, line, row, n, |s, d| ends::<32>(s, d, run)),
            65..=2047 => each(src, dst, line, row, n, |s, d| copy_long(s, d, run)),
            _ => each(src, dst, line, row, n, |s, d| std::ptr::copy_nonoverlapping(s, d, run)),
        }
    }
}

#[inline(always)]
unsafe fn each(src: *const u8, dst: *mut u8, line: Axis, row: Axis, n: usize, copy: impl Fn(*const u8, *mut u8)) {
    for k in 0..line.n as isize {
        // SAFETY: an address of a row, by the promise of `plane`; so are those below.
        let (mut s, mut d) = unsafe { (src.offset(k * line.src), dst.offset(k * line.dst)) };
        for _ in 0..n {
            copy(s, d);
            // The step behind the last row may leave the slice; it is not followed.
            (s, d) = (s.wrapping_offset(row.src), d.wrapping_offset(row.dst));
        }
    }
}

/// Rows of one element: repeated, backwards, or at any distance.
#[inline(always)]
unsafe fn elements<T: Copy>(src: *const u8, dst: *mut u8, line: Axis, row: Axis, n: usize) {
    let size = size_of::<T>() as isize;
    for k in 0..line.n as isize {
        // SAFETY: addresses of elements, by the promise of `plane`.
        unsafe {
            let (s, d) = (src.offset(k * line.src), dst.offset(k * line.dst));
            let get = |i: isize| s.offset(i * row.src).cast::<T>().read_unaligned();
            // Distances known to the compiler become vectors.
            if row.dst == size && row.src == 0 {
                let x = get(0);
                for i in 0..n as isize {
                    d.offset(i * size).cast::<T>().write_unaligned(x);
                }
            } else if row.dst == size && row.src == -size {
                for i in 0..n as isize {
                    let x = s.offset(-i * size).cast::<T>().read_unaligned();
                    d.offset(i * size).cast::<T>().write_unaligned(x);
                }
            } else if row.dst == size && row.src == 2 * size {
                for i in 0..n as isize {
                    let x = s.offset(i * 2 * size).cast::<T>().read_unaligned();
                    d.offset(i * size).cast::<T>().write_unaligned(x);
                }
            } else {
                for i in 0..n as isize {
                    d.offset(i * row.dst).cast::<T>().write_unaligned(get(i));
                }
            }
        }
    }
}

/// Copies `n` bytes of any number.
///
/// # Safety
/// Both sides have `n` bytes.
#[inline(always)]
pub(super) unsafe fn copy_any(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: each branch copies exactly the bytes `0..n`.
    unsafe {
        match n {
            0..=16 => copy_small(src, dst, n),
            17..=32 => ends::<16>(src, dst, n),
            33..=2047 => copy_long(src, dst, n),
            _ => std::ptr::copy_nonoverlapping(src, dst, n),
        }
    }
}

#[inline(always)]
unsafe fn copy_const<const N: usize>(src: *const u8, dst: *mut u8) {
    // SAFETY: the caller has N bytes on both sides.
    unsafe { dst.cast::<[u8; N]>().write(src.cast::<[u8; N]>().read()) }
}

/// The first and the last N bytes of `n`, which is N to 2N: together all of them.
#[inline(always)]
unsafe fn ends<const N: usize>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller has n bytes, and n is at least N.
    unsafe {
        let (a, b) = (src.cast::<[u8; N]>().read(), src.add(n - N).cast::<[u8; N]>().read());
        dst.cast::<[u8; N]>().write(a);
        dst.add(n - N).cast::<[u8; N]>().write(b);
    }
}

#[inline(always)]
unsafe fn copy_small(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: each branch copies the bytes `0..n`, and no others.
    unsafe {
        match n {
            8..=16 => ends::<8>(src, dst, n),
            4..=7 => ends::<4>(src, dst, n),
            2..=3 => ends::<2>(src, dst, n),
            1 => *dst = *src,
            _ => {}
        }
    }
}

/// At least 32 bytes, in vectors of 32, the last of which may overlap the one before.
#[inline(always)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller has n bytes; the loops stay below it, and n is at least 32.
    unsafe {
        let mut i = 0;
        while i + 128 <= n {
            copy_const::<128>(src.add(i), dst.add(i));
            i += 128;
        }
        while i + 32 <= n {
            copy_const::<32>(src.add(i), dst.add(i));
            i += 32;
        }
        if i < n {
            copy_const::<32>(src.add(n - 32), dst.add(n - 32));
        }
    }
}
