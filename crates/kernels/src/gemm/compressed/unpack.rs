//! From compressed panels to floats: a block for tiles, or vectors in registers.

use super::{Codes, Form};
use crate::Isa;
use crate::simd::{Kernel, Simd, run};
use std::ops::Range;

/// Ways from codes to floats, as constants of functions.
pub(super) const BYTES: usize = 0;
/// Integers of four bits.
pub(super) const INTEGERS: usize = 1;
/// Looked up in a table.
pub(super) const TABLE: usize = 2;

/// The way for a form, and its table.
pub(super) fn way(form: &Form) -> (usize, [f32; 16]) {
    // What four bits with a sign count.
    const SIGNED: [f32; 16] = [0., 1., 2., 3., 4., 5., 6., 7., -8., -7., -6., -5., -4., -3., -2., -1.];
    match form.compression.codes {
        Codes::I8 => (BYTES, SIGNED),
        Codes::I4 => (INTEGERS, SIGNED),
        Codes::Table(table) => (TABLE, table),
    }
}

/// A pair of vectors of codes as floats.
///
/// # Safety
/// `2 * S::N` codes can be read.
#[inline(always)]
pub(super) unsafe fn pair<S: Simd, const WAY: usize>(from: *const u8, table: &[f32; 16]) -> [S; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        if const { WAY == BYTES } {
            let from = from.cast::<i8>();
            return [S::from_int(S::load_i8(from)), S::from_int(S::load_i8(from.add(S::N)))];
        }
        // The sign of the byte is that of its upper half.
        let both = S::load_i8(from.cast());
        let upper = S::int_shr::<4>(both);
        if const { WAY == TABLE } {
            return [S::lookup(table, both), S::lookup(table, upper)];
        }
        // One half is looked up and the other converted, by other units of the processor.
        let low = match const { S::FAST_LOOKUP } {
            true => S::lookup(table, both),
            false => S::from_int(S::int_shr::<28>(S::int_shl::<28>(both))),
        };
        [low, S::from_int(upper)]
    }
}

struct Block<'a> {
    form: &'a Form,
    table: [f32; 16],
    packed: *const u8,
    rows: Range<usize>,
    width: usize,
    to: *mut f32,
}

/// Decompresses rows of a panel into rows of `width` floats.
///
/// # Safety
/// `packed` is a panel of the form, which has the rows, and its width is at least `width`.
pub(super) unsafe fn block(
    isa: Isa,
    form: &Form,
    packed: *const u8,
    rows: &Range<usize>,
    width: usize,
    to: &mut [f32],
) {
    assert!(to.len() >= rows.len() * width, "{} floats for {} rows of {width}", to.len(), rows.len());
    let (way, table) = way(form);
    let job = Block { form, table, packed, rows: rows.clone(), width, to: to.as_mut_ptr() };
    // SAFETY: room was checked above, the rest is the caller's promise.
    unsafe {
        match way {
            BYTES => run::<Unpack<BYTES>>(isa, &job),
            INTEGERS => run::<Unpack<INTEGERS>>(isa, &job),
            _ => run::<Unpack<TABLE>>(isa, &job),
        }
    }
}

struct Unpack<const WAY: usize>;

impl<const WAY: usize> Kernel for Unpack<WAY> {
    type Args<'a> = &'a Block<'a>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(job: &Block<'_>) {
        let (form, group) = (job.form, job.form.compression.group);
        let mut row = job.rows.start;
        while row < job.rows.end {
            let g = row / group;
            let end = job.rows.end.min((g + 1) * group);
            for first in (0..job.width).step_by(2 * S::N) {
                // SAFETY: inside the panel and the rows that the caller promises.
                unsafe {
                    let head = job.packed.add(g * form.group_bytes());
                    let [scale, zero] = factors::<S>(form, head, first);
                    let mut codes = head.add(form.head() + (row - g * group) * form.row());
                    codes = codes.add(first * form.compression.codes.bits() / 8);
                    let mut to = job.to.add((row - job.rows.start) * job.width + first);
                    let left = job.width - first;
                    for _ in row..end {
                        let [a, b] = pair::<S, WAY>(codes, &job.table);
                        let (a, b) = ((a - zero[0]) * scale[0], (b - zero[1]) * scale[1]);
                        if left >= 2 * S::N {
                            a.store(to);
                            b.store(to.add(S::N));
                        } else {
                            a.store_partial(to, left.min(S::N));
                            b.store_partial(to.wrapping_add(S::N), left.saturating_sub(S::N));
                        }
                        codes = codes.add(form.row());
                        to = to.wrapping_add(job.width);
                    }
                }
            }
            row = end;
        }
    }
}

/// Scales and zero points of a pair of vectors of columns, from the head of a group.
///
/// # Safety
/// `head` is one of the form, which has the columns.
#[inline(always)]
pub(super) unsafe fn factors<S: Simd>(form: &Form, head: *const u8, first: usize) -> [[S; 2]; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let scale = S::load_many::<2>(head.cast::<f32>().add(first));
        let mut zero = [S::splat(0.0); 2];
        if form.compression.zeros {
            let at = head.add(4 * form.width + first).cast::<i8>();
            zero = [S::from_int(S::load_i8(at)), S::from_int(S::load_i8(at.add(S::N)))];
        }
        [scale, zero]
    }
}
