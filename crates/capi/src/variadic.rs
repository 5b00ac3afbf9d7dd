//! Functions with `...`. Rust cannot define them, so each is a few instructions that store the registers of arguments and call
//! an ordinary function with the address of that block and of the arguments on the stack. Every argument of these functions
//! is an integer or a pointer, so the arguments are one row of words: those of the registers, then those of the stack.

use std::ffi::c_void;

/// How many words come in registers.
#[cfg(target_arch = "x86_64")]
const REGISTERS: usize = 6;
#[cfg(not(target_arch = "x86_64"))]
const REGISTERS: usize = 8;

/// The arguments of a call, one word after the other.
#[derive(Debug)]
pub struct Words {
    registers: *const usize,
    stack: *const usize,
    next: usize,
}

impl Words {
    /// For the functions that [`variadic`] makes alone.
    pub(crate) fn new(registers: *const usize, stack: *const usize) -> Words {
        Words { registers, stack, next: 0 }
    }

    /// The next argument. Only as many are there as the caller passed: fixed ones, and those that a count announces.
    pub(crate) fn next(&mut self) -> usize {
        let at = self.next;
        self.next += 1;
        // SAFETY: both pointers come from the entry code: `registers` to a block of that many words, `stack` to the first
        // argument that came on the stack. The caller of the API promises the arguments that are asked for.
        unsafe { if at < REGISTERS { self.registers.add(at).read() } else { self.stack.add(at - REGISTERS).read() } }
    }

    /// The next argument as a pointer.
    pub(crate) fn pointer(&mut self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.next())
    }
}

/// Exports `$name` as a variadic function whose arguments go to `$body`, a function from [`Words`] to a status.
#[cfg(all(target_arch = "x86_64", not(windows)))]
macro_rules! variadic {
    ($name:ident, $entry:ident, $body:path) => {
        extern "C" fn $entry(registers: *const usize, stack: *const usize) -> $crate::status::Status {
            $crate::status::guard(|| $body(&mut $crate::variadic::Words::new(registers, stack)))
        }
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> $crate::status::Status {
            // 48 bytes of registers and 8 that bring the stack back to a multiple of 16; above them lies the return address,
            // then the arguments of the stack.
            ::core::arch::naked_asm!(
                "sub rsp, 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rdi, rsp",
                "lea rsi, [rsp + 64]",
                "call {entry}",
                "add rsp, 56",
                "ret",
                entry = sym $entry,
            )
        }
    };
}

/// As above; on Linux for AArch64 variadic arguments lie where others would.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
macro_rules! variadic {
    ($name:ident, $entry:ident, $body:path) => {
        extern "C" fn $entry(registers: *const usize, stack: *const usize) -> $crate::status::Status {
            $crate::status::guard(|| $body(&mut $crate::variadic::Words::new(registers, stack)))
        }
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> $crate::status::Status {
            ::core::arch::naked_asm!(
                "sub sp, sp, #80",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "stp x6, x7, [sp, #48]",
                "str x30, [sp, #64]",
                "mov x0, sp",
                "add x1, sp, #80",
                "bl {entry}",
                "ldr x30, [sp, #64]",
                "add sp, sp, #80",
                "ret",
                entry = sym $entry,
            )
        }
    };
}

/// Elsewhere such a function names the one to use instead.
#[cfg(not(any(all(target_arch = "x86_64", not(windows)), all(target_arch = "aarch64", target_os = "linux"))))]
macro_rules! variadic {
    ($name:ident, $entry:ident, $body:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $crate::status::Status {
            let _: fn(&mut $crate::variadic::Words) -> $crate::status::Outcome<()> = $body;
            $crate::status::guard(|| {
                let text = concat!(
                    stringify!($name),
                    " takes no variable arguments on this system; use its form with an array"
                );
                Err($crate::status::Failure::new(-16, text))
            })
        }
    };
}

pub(crate) use variadic;
