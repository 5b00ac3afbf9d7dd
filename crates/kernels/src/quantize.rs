//! From numbers to the steps of a grid and back.

use crate::simd::dispatch;
use crate::{Exec, Quantizer, SharedMut, part_of};

/// Elements below which more threads cost more than they bring.
const ALONE: usize = 16 * 1024;

fn parts(exec: &Exec<'_>, len: usize) -> usize {
    if len < ALONE { 1 } else { exec.threads() * 4 }
}

/// The step of each number, as a byte. The quantizer's steps are bytes.
pub fn quantize(exec: &Exec<'_>, quantizer: &Quantizer, from: &[f32], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "a byte for each number");
    let (len, out) = (from.len(), SharedMut::new(to));
    let parts = parts(exec, len);
    let quantizer = *quantizer;
    exec.each(parts, |part, _| {
        let range = part_of(len, parts, part);
        // SAFETY: parts are disjoint.
        let (from, to) = (&from[range.clone()], unsafe { out.part(range) });
        // SAFETY: the lengths are equal.
        unsafe {
            dispatch!(exec.isa, <'a, S>(from: &'a [f32], to: &'a mut [u8], quantizer: Quantizer) {
                let _ = S::N;
                for (x, y) in from.iter().zip(to) {
                    // Between two whole numbers of a byte's size, so the conversion cannot overflow.
                    *y = (quantizer.rounded(*x).to_int_unchecked::<i32>() + quantizer.zero) as u8;
                }
            })
        }
    });
}

/// The numbers that bytes stand for: `(x - zero) * scale`.
pub fn dequantize(exec: &Exec<'_>, scale: f32, zero: u8, from: &[u8], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "a byte for each number");
    let (len, out) = (from.len(), SharedMut::new(to));
    let parts = parts(exec, len);
    exec.each(parts, |part, _| {
        let range = part_of(len, parts, part);
        // SAFETY: parts are disjoint.
        let (from, to) = (&from[range.clone()], unsafe { out.part(range) });
        // SAFETY: the lengths are equal.
        unsafe {
            dispatch!(exec.isa, <'a, S>(from: &'a [u8], to: &'a mut [f32], scale: f32, zero: u8) {
                let _ = S::N;
                let zero = i32::from(zero);
                for (x, y) in from.iter().zip(to) {
                    *y = (i32::from(*x) - zero) as f32 * scale;
                }
            })
        }
    });
}
