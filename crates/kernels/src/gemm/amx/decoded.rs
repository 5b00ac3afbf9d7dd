//! Tests of `real.rs` on machines without AMX: its instructions trap there, and a handler decodes their bytes and carries them
//! out on the registers of the twin. So what the assembler made of the text is tested, with its operands and addresses. Where
//! the processor has AMX the same tests run on it.

use super::tests::{KINDS, convolution, product};
use super::twin::Twin;
use super::{BYTES, Config, HALF_PAIR, PAIR};
use crate::isa::Amx;
use crate::simd::amx::linux::{self, Action};
use crate::{ConvShape, Isa};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Registers in the context of a signal, by their numbers in instructions.
const PLACES: [usize; 16] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
const REGISTERS: usize = 40;

/// Instructions that were carried out.
static DONE: AtomicUsize = AtomicUsize::new(0);

/// A memory operand: where it starts, and the index register, which is a stride here.
struct Memory {
    start: usize,
    stride: usize,
}

/// Carries out the instruction at `at` and gives its length; `None` when it is another.
unsafe fn carry_out(at: *const u8, register: impl Fn(usize) -> usize) -> Option<usize> {
    // SAFETY: an instruction was met there, and none that begins so is shorter.
    let byte = |i: usize| -> usize { unsafe { (*at.add(i)).into() } };
    let (first, second) = (byte(1), byte(2));
    // VEX of three bytes, map 0f38, narrow (128), not W; all of tmm0 to tmm7, so that R is not extended.
    if byte(0) != 0xc4 || first & 0x9f != 0x82 || second & 0x84 != 0 {
        return None;
    }
    let (extend_index, extend_base) = (8 * usize::from(first & 0x40 == 0), 8 * usize::from(first & 0x20 == 0));
    let (other, prefix) = (!(second >> 3) & 15, second & 3);
    let (opcode, modrm) = (byte(3), byte(4));
    let (mode, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    let mut length = 5;
    let memory = (mode != 3).then(|| {
        let (mut base, mut stride) = (rm + extend_base, 0);
        if rm == 4 {
            let sib = byte(5);
            length = 6;
            base = (sib & 7) + extend_base;
            let index = (sib >> 3 & 7) + extend_index;
            stride = if index == 4 { 0 } else { register(index) << (sib >> 6) };
        }
        let displacement = match mode {
            0 => {
                assert!(base & 7 != 5, "an address without a register");
                0
            }
            1 => byte(length) as u8 as i8 as isize,
            _ => (0..4).fold(0u32, |x, i| x | (byte(length + i) as u32) << (8 * i)) as i32 as isize,
        };
        length += [0, 1, 4][mode];
        Memory { start: register(base).wrapping_add_signed(displacement), stride }
    });
    // SAFETY: memory is what the instruction would have read or written.
    Twin::with(|r| unsafe {
        match (opcode, prefix, memory) {
            (0x49, 0, Some(m)) if reg == 0 => r.configure(&*(m.start as *const Config)),
            (0x49, 0, None) if modrm == 0xc0 => r.release(),
            (0x49, 3, None) if rm == 0 => r.zero(reg),
            // Both kinds of loads.
            (0x4b, 3 | 1, Some(m)) if rm == 4 => r.load(reg, m.start as *const u8, m.stride),
            (0x4b, 2, Some(m)) if rm == 4 => r.store(reg, m.start as *mut u8, m.stride),
            (0x5c, 2, None) => r.multiply(PAIR, [reg, rm, other]),
            (0x5c, 3, None) => r.multiply(HALF_PAIR, [reg, rm, other]),
            (0x5e, 1, None) => r.multiply(BYTES, [reg, rm, other]),
            _ => return None,
        }
        Some(length)
    })
}

unsafe extern "C" fn handle(_signal: i32, _about: *mut u8, context: *mut u8) {
    // SAFETY: the system hands over a context, whose last register of these is the address of the instruction.
    unsafe {
        let registers = context.add(REGISTERS).cast::<usize>();
        let instruction = registers.add(16);
        match carry_out(*instruction as *const u8, |i| *registers.add(PLACES[i])) {
            Some(length) => {
                *instruction += length;
                DONE.fetch_add(1, Ordering::Relaxed);
            }
            // What else is invalid ends the process, as it would have.
            None => drop(Action::NONE.set()),
        }
    }
}

/// Runs a test with the level of real tiles, for one test at a time. Not at all without AVX-512, which the level includes.
fn with_tiles(test: impl FnOnce(Isa)) {
    let _one = linux::HANDLERS.lock().unwrap_or_else(|e| e.into_inner());
    if let Ok(token) = Amx::detect() {
        return test(Isa::Amx(token));
    }
    let vectors = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vnni");
    if !vectors || !Isa::available().any(|isa| isa.avx512().is_some()) {
        return;
    }
    let before = Action::current().unwrap();
    let done = DONE.load(Ordering::Relaxed);
    // SAFETY: the handler serves every thread.
    assert!(unsafe { Action::new(handle).set() });
    test(Isa::Amx(Amx::unproven()));
    // SAFETY: it was there before.
    assert!(unsafe { before.set() });
    assert!(DONE.load(Ordering::Relaxed) > done, "no instruction was met");
}

#[test]
fn the_instructions_of_products_do_what_the_twin_does() {
    with_tiles(|isa| {
        for numbers in KINDS {
            for size in [[5, 16, 3], [16, 32, 16], [17, 17, 20], [32, 40, 40], [33, 70, 72], [47, 33, 19]] {
                assert_eq!(product(isa, numbers, size), product(Isa::TileTwin, numbers, size), "{numbers:?} {size:?}");
            }
        }
    });
}

#[test]
fn the_instructions_of_convolutions_do_what_the_twin_does() {
    with_tiles(|isa| {
        let shape = ConvShape {
            batch: 1,
            in_spatial: [1, 9, 11],
            in_channels: 12,
            out_channels: 40,
            kernel: [1, 3, 3],
            stride: [1; 3],
            dilation: [1; 3],
            pad_begin: [0, 1, 1],
            pad_end: [0, 1, 1],
            groups: 1,
        };
        // Rows that are joined, pairs of them, sums with an end for each tap, and wide rows.
        let wide = ConvShape { in_spatial: [1, 3, 40], stride: [1, 2, 1], ..shape };
        let ending = ConvShape { in_channels: 2 * 68, out_channels: 34, dilation: [1, 2, 2], groups: 2, ..shape };
        for numbers in KINDS {
            for shape in [shape, wide, ending] {
                let found = convolution(isa, numbers, shape);
                assert_eq!(found, convolution(Isa::TileTwin, numbers, shape), "{numbers:?} {shape:?}");
            }
        }
    });
}

#[test]
fn the_trial_expects_what_tiles_give() {
    with_tiles(|isa| {
        // SAFETY: what is invalid is carried out here.
        assert!(unsafe { linux::multiply() });
        // SAFETY: the same, or the instruction is there.
        assert!(!isa.has_tiles_of_halves() || unsafe { linux::multiply_halves() });
    });
}
