//! Whether the tile instructions of AMX run here.
//!
//! What the processor says is not enough. The system must save the registers and let the process use them (Linux asks for a
//! request, `arch_prctl`). Some virtual machines say that there is AMX and trap when it is used; others hide the leaves of
//! `cpuid` that describe the tiles, and it works. So a few instructions are tried, and their result is compared. Meanwhile a
//! handler of this file takes an invalid instruction, if it is one of these, and lets the trial go on behind them; any other is
//! left to the handler that was there before. The handler is there for the few microseconds of the trial, which a process
//! makes once. It is set by system calls, as the standard library has no word for it.

/// Whether tiles of f16 can be multiplied besides those of bf16 and bytes, or why none can.
#[cfg(target_os = "linux")]
pub(crate) fn probe() -> Result<bool, &'static str> {
    linux::probe()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn probe() -> Result<bool, &'static str> {
    Err("tile registers are asked for on Linux alone")
}

#[cfg(target_os = "linux")]
pub(crate) mod linux {
    use crate::gemm::amx::Config;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::arch::{asm, naked_asm};
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    /// Bits of leaf 7: bf16, tiles, 8-bit integers.
    const FEATURES: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    /// The bit of its first sub-leaf for f16.
    const HALVES: u32 = 1 << 21;
    /// Bits of the register that says what the system saves: configuration and data of tiles.
    const SAVED: u64 = 1 << 17 | 1 << 18;

    pub(super) fn probe() -> Result<bool, &'static str> {
        if __cpuid(0).eax < 7 || __cpuid_count(7, 0).edx & FEATURES != FEATURES {
            return Err("the processor has no AMX for bf16 and bytes");
        }
        let xsave = __cpuid(1).ecx & 1 << 27 != 0;
        // SAFETY: `xgetbv` is there where the system uses `xsave`.
        if !xsave || unsafe { saved() } & SAVED != SAVED {
            return Err("the system does not save tile registers");
        }
        const REQUEST: usize = 0x1023;
        const TILE_DATA: usize = 18;
        // SAFETY: asks for a permission; touches no memory.
        if unsafe { system(ARCH_PRCTL, [REQUEST, TILE_DATA, 0, 0]) } != 0 {
            return Err("the system denies tile registers");
        }
        if !trial(multiply) {
            return Err("tile instructions do not work, though they are announced");
        }
        let halves = __cpuid_count(7, 0).eax >= 1 && __cpuid_count(7, 1).eax & HALVES != 0;
        Ok(halves && trial(multiply_halves))
    }

    unsafe fn saved() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: the caller promises that the instruction is there.
        unsafe {
            asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    const SIGACTION: usize = 13;
    const SIGPROCMASK: usize = 14;
    const ARCH_PRCTL: usize = 158;
    const INVALID_INSTRUCTION: usize = 4;
    /// Bytes of a set of signals.
    const SET: usize = 8;
    const UNBLOCK: usize = 1;
    const SET_MASK: usize = 2;

    /// A system call.
    ///
    /// # Safety
    /// The arguments are right for it.
    unsafe fn system(number: usize, arguments: [usize; 4]) -> isize {
        let result;
        // SAFETY: the caller's promise; a call changes no other registers.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") arguments[0],
                in("rsi") arguments[1],
                in("rdx") arguments[2],
                in("r10") arguments[3],
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        result
    }

    /// Gets a signal, what is known about it, and the registers of the thread.
    type Handler = unsafe extern "C" fn(i32, *mut u8, *mut u8);

    /// What the system is told of a handler.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Action {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }

    impl Action {
        pub(crate) const NONE: Action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
        /// With the context as an argument, and with a function to return through.
        const FLAGS: u64 = 4 | 0x0400_0000;

        pub(crate) fn new(handler: Handler) -> Action {
            let back = back as *const () as usize;
            Action { handler: handler as *const () as usize, flags: Action::FLAGS, restorer: back, mask: 0 }
        }

        pub(crate) fn current() -> Option<Action> {
            let mut action = Action::NONE;
            let to = std::ptr::from_mut(&mut action) as usize;
            // SAFETY: the system writes an action.
            (unsafe { system(SIGACTION, [INVALID_INSTRUCTION, 0, to, SET]) } == 0).then_some(action)
        }

        /// # Safety
        /// The handler may be called at any time, on any thread.
        pub(crate) unsafe fn set(&self) -> bool {
            let from = std::ptr::from_ref(self) as usize;
            // SAFETY: the caller's promise; the system reads an action.
            unsafe { system(SIGACTION, [INVALID_INSTRUCTION, from, 0, SET]) == 0 }
        }
    }

    /// First address of the trial and the one behind it.
    static TRIED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    /// What to do with invalid instructions of others.
    static BEFORE: AtomicPtr<Action> = AtomicPtr::new(std::ptr::null_mut());

    /// The address of the instruction in the context of a signal: behind flags, link and stack (40 bytes) it is the 17th register.
    const INSTRUCTION: usize = 40 + 16 * 8;

    unsafe extern "C" fn skip(_signal: i32, _about: *mut u8, context: *mut u8) {
        // SAFETY: the system hands over a context; `BEFORE` lives as long as this is a handler.
        unsafe {
            let instruction = context.add(INSTRUCTION).cast::<usize>();
            let [start, end] = [0, 1].map(|i| TRIED[i].load(Ordering::SeqCst));
            if (start..end).contains(&*instruction) {
                *instruction = end;
            } else if let Some(before) = BEFORE.load(Ordering::SeqCst).as_ref() {
                // It is met once more, now by its own handler.
                before.set();
            }
        }
    }

    /// Where a handler returns to.
    #[unsafe(naked)]
    unsafe extern "C" fn back() {
        naked_asm!("mov eax, 15", "syscall")
    }

    /// Tries the instructions; for one caller at a time. False when they trap, when their result is wrong, and when no handler
    /// can be set.
    fn trial(multiply: unsafe fn() -> bool) -> bool {
        let Some(mut before) = Action::current() else { return false };
        BEFORE.store(&mut before, Ordering::SeqCst);
        let mask = 1u64 << (INVALID_INSTRUCTION - 1);
        let mut masked = 0u64;
        let (unblock, old) = (std::ptr::from_ref(&mask) as usize, std::ptr::from_mut(&mut masked) as usize);
        // SAFETY: the handler serves every thread, and it is taken away before what it uses goes. A signal that is blocked
        // would end the process, so it is let through meanwhile.
        unsafe {
            if system(SIGPROCMASK, [UNBLOCK, unblock, old, SET]) != 0 {
                return false;
            }
            let right = Action::new(skip).set() && multiply();
            before.set();
            system(SIGPROCMASK, [SET_MASK, old, 0, SET]);
            right
        }
    }

    /// Sixteen rows of sixteen cells.
    #[repr(C, align(64))]
    struct Square([u32; 256]);

    /// Multiplies squares of one cell each by two instructions. Gives both products, or nothing when one of them trapped.
    macro_rules! products {
        ($first:literal, $second:literal, $a:expr, $b:expr) => {{
            const CONFIG: Config = Config::new([(16, 16), (16, 16), (16, 16), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]);
            let (a, b) = (Square([$a; 256]), Square([$b; 256]));
            let mut products = [const { Square([0; 256]) }; 2];
            let [one, two] = &mut products;
            let done: usize;
            asm!(
                "lea {done}, [rip+2f]",
                "mov [{tried}], {done}",
                "lea {done}, [rip+3f]",
                "mov [{tried}+8], {done}",
                "xor {done:e}, {done:e}",
                "2:",
                "ldtilecfg [{config}]",
                "tileloadd tmm1, [{a}+{stride}*1]",
                "tileloaddt1 tmm2, [{b}+{stride}*1]",
                "tilezero tmm0",
                $first,
                "tilestored [{one}+{stride}*1], tmm0",
                "tilezero tmm0",
                $second,
                "tilestored [{two}+{stride}*1], tmm0",
                "tilerelease",
                "mov {done:e}, 1",
                "3:",
                done = out(reg) done,
                tried = in(reg) &TRIED,
                config = in(reg) &CONFIG,
                a = in(reg) &a,
                b = in(reg) &b,
                one = in(reg) one,
                two = in(reg) two,
                stride = in(reg) 64usize,
                options(nostack),
            );
            (done == 1).then(|| products.map(|square| square.0))
        }};
    }

    /// # Safety
    /// A handler is set that skips what is invalid.
    pub(crate) unsafe fn multiply() -> bool {
        // Twice -1.5 a cell, and twice -3: bytes c0 bf and 40 c0, where the sign matters in both.
        let (a, b) = (0xbfc0_bfc0, 0xc040_c040);
        // SAFETY: reads and writes squares of 16 rows of 64 bytes. When an instruction traps the rest is skipped.
        let products = unsafe { products!("tdpbf16ps tmm0, tmm1, tmm2", "tdpbusd tmm0, tmm1, tmm2", a, b) };
        // 32 times 4.5, and 32 times 192 * 64 - 191 * 64.
        products == Some([[144f32.to_bits(); 256], [2048; 256]])
    }

    /// # Safety
    /// As for [`multiply`].
    pub(crate) unsafe fn multiply_halves() -> bool {
        // Twice -1.5 a cell, and twice -3; the product is taken either way round.
        let (a, b) = (0xbe00_be00, 0xc200_c200);
        // SAFETY: as above.
        let products = unsafe { products!("tdpfp16ps tmm0, tmm1, tmm2", "tdpfp16ps tmm0, tmm2, tmm1", a, b) };
        products == Some([[144f32.to_bits(); 256]; 2])
    }

    /// For tests that set handlers.
    #[cfg(test)]
    pub(crate) static HANDLERS: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_trial_of_tiles_ends_and_leaves_the_handler_as_it_was() {
            let _one = HANDLERS.lock().unwrap_or_else(|e| e.into_inner());
            let known = crate::isa::Amx::detect();
            let before = Action::current().unwrap();
            let again = trial(multiply);
            assert_eq!(Action::current().unwrap(), before);
            // Where the system has not given the registers the trial traps; where it has, it works again.
            assert!(again == known.is_ok() || known.is_err(), "{known:?} {again}");
        }
    }
}
