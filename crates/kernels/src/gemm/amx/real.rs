//! The tile registers of the processor, one instruction a function. The compiler knows neither the registers nor the
//! instructions, so they stand in assembly; it never touches the registers itself, and keeps the order of such blocks. Callers
//! hold an `Isa::Amx`, or a table that was handed out for one.

use super::{BYTES, Chunk, Config, HALF_PAIR, PAIR, Unit};
use crate::gemm::leave_avx512;
use crate::gemm::task::Target;
use std::arch::asm;
use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static CHUNK: Cell<*const Chunk> = const { Cell::new(std::ptr::null()) };
}

/// The processor's.
pub(super) struct Amx;

impl Unit for Amx {
    #[inline(always)]
    unsafe fn configure(config: &Config) {
        // SAFETY: reads 64 bytes; the rest is the caller's promise, as in all of these.
        unsafe { asm!("ldtilecfg [{0}]", in(reg) config, options(readonly, nostack, preserves_flags)) }
    }
    #[inline(always)]
    unsafe fn release() {
        // SAFETY: no memory.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
    }
    #[inline(always)]
    unsafe fn zero<const T: usize>() {
        // SAFETY: no memory.
        unsafe { asm!("tilezero tmm{t}", t = const T, options(nomem, nostack, preserves_flags)) }
    }
    #[inline(always)]
    unsafe fn load<const T: usize>(from: *const f32, stride: usize) {
        // SAFETY: reads the rows of the tile, `stride` floats apart.
        unsafe {
            asm!(
                "tileloadd tmm{t}, [{from}+{stride}*1]",
                t = const T,
                from = in(reg) from,
                stride = in(reg) 4 * stride,
                options(readonly, nostack, preserves_flags),
            );
        }
    }
    #[inline(always)]
    unsafe fn stream<const T: usize>(from: *const f32, stride: usize) {
        // SAFETY: as `load`.
        unsafe {
            asm!(
                "tileloaddt1 tmm{t}, [{from}+{stride}*1]",
                t = const T,
                from = in(reg) from,
                stride = in(reg) 4 * stride,
                options(readonly, nostack, preserves_flags),
            );
        }
    }
    #[inline(always)]
    unsafe fn multiply<const OP: usize, const C: usize, const A: usize, const B: usize>() {
        const { assert!(OP == PAIR || OP == BYTES || OP == HALF_PAIR) };
        // SAFETY: no memory. Of bytes the first factor is unsigned, the second signed.
        unsafe {
            if const { OP == PAIR } {
                asm!(
                    "tdpbf16ps tmm{c}, tmm{a}, tmm{b}",
                    c = const C, a = const A, b = const B,
                    options(nomem, nostack, preserves_flags),
                );
            } else if const { OP == HALF_PAIR } {
                asm!(
                    "tdpfp16ps tmm{c}, tmm{a}, tmm{b}",
                    c = const C, a = const A, b = const B,
                    options(nomem, nostack, preserves_flags),
                );
            } else {
                asm!(
                    "tdpbusd tmm{c}, tmm{a}, tmm{b}",
                    c = const C, a = const A, b = const B,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    }
    #[inline(always)]
    unsafe fn store<const T: usize>(to: *mut f32, stride: usize) {
        // SAFETY: writes the rows of the tile, `stride` floats apart.
        unsafe {
            asm!(
                "tilestored [{to}+{stride}*1], tmm{t}",
                t = const T,
                to = in(reg) to,
                stride = in(reg) 4 * stride,
                options(nostack, preserves_flags),
            );
        }
    }
    #[inline(always)]
    fn ask(at: *const f32) {
        // SAFETY: it is a hint, for any address.
        unsafe { asm!("prefetcht1 [{0}]", in(reg) at, options(readonly, nostack, preserves_flags)) }
    }
    #[inline(always)]
    unsafe fn leave(target: &Target, sums: *mut f32, rows: usize) {
        // SAFETY: AMX comes with AVX-512; the rest is the caller's promise.
        unsafe { leave_avx512::leave(target, sums, rows) }
    }
    #[inline(always)]
    fn chunk() -> &'static LocalKey<Cell<*const Chunk>> {
        &CHUNK
    }
}
