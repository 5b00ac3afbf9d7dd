//! How the processor treats numbers below the smallest normal one. Arithmetic with them takes a hundred cycles and more on
//! many processors, and next to nobody's result depends on them, so inferences flush them to zero. The setting belongs to a
//! thread; a guard changes it and brings back what was there.

use std::marker::PhantomData;

/// Brings back the earlier treatment of this thread when it goes.
#[derive(Debug)]
#[must_use = "the earlier treatment comes back when this goes"]
pub struct DenormalsGuard {
    before: u64,
    /// The setting is one of the thread, so the guard stays on it.
    here: PhantomData<*const ()>,
}

/// Reads and writes denormal numbers as zero on this thread until the guard goes. Does nothing where the processor has no such
/// setting that we know of.
pub fn flush_denormals() -> DenormalsGuard {
    set(control::FLUSH)
}

/// Computes with denormal numbers as IEEE 754 has them on this thread until the guard goes.
pub fn keep_denormals() -> DenormalsGuard {
    set(0)
}

/// Whether this thread flushes.
pub fn flushes_denormals() -> bool {
    control::read() & control::FLUSH != 0
}

fn set(wanted: u64) -> DenormalsGuard {
    let before = control::read() & control::FLUSH;
    change(wanted);
    DenormalsGuard { before, here: PhantomData }
}

// Only our bits: rounding and exceptions belong to the program.
fn change(wanted: u64) {
    let now = control::read();
    let new = now & !control::FLUSH | wanted;
    if new != now {
        control::write(new);
    }
}

impl Drop for DenormalsGuard {
    fn drop(&mut self) {
        change(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    /// Results are flushed (bit 15), operands are taken as zero (bit 6).
    pub(super) const FLUSH: u64 = 1 << 15 | 1 << 6;

    pub(super) fn read() -> u64 {
        let mut word = 0u32;
        // SAFETY: stores the 32 bits of MXCSR to a word of ours; every x86-64 has it.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags)) };
        u64::from(word)
    }

    pub(super) fn write(word: u64) {
        // The second bit came a little later than the register; processors with SSE3 have it.
        if !is_x86_feature_detected!("sse3") {
            return;
        }
        let word = word as u32;
        // SAFETY: only the two bits above differ from what was read there, and both exist. The compiler computes what it knows
        // beforehand without them; that such numbers then differ is what whoever asks for flushing accepts.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags, readonly)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    /// Operands and results are flushed (bit 24).
    pub(super) const FLUSH: u64 = 1 << 24;

    pub(super) fn read() -> u64 {
        let word: u64;
        // SAFETY: reads the floating-point control register, which every AArch64 has.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: u64) {
        // SAFETY: only the bit above differs from what was read there.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) const FLUSH: u64 = 0;
    pub(super) fn read() -> u64 {
        0
    }
    pub(super) fn write(_word: u64) {}
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn doubled() -> f32 {
        black_box(1e-40f32) * black_box(2.0)
    }

    #[test]
    fn flushing_takes_denormals_as_zero_until_the_guard_goes() {
        assert!(doubled() > 0.0);
        let guard = flush_denormals();
        assert!(flushes_denormals());
        assert_eq!(doubled(), 0.0);
        assert_eq!(black_box(1e-30f32) * black_box(1e-10), 0.0);
        drop(guard);
        assert!(doubled() > 0.0 && !flushes_denormals());
    }

    #[test]
    fn keeping_inside_of_flushing_computes_them_and_flushes_again_afterwards() {
        let _flush = flush_denormals();
        {
            let _keep = keep_denormals();
            assert!(doubled() > 0.0);
        }
        assert_eq!(doubled(), 0.0);
    }

    #[test]
    fn other_threads_are_left_alone() {
        let _flush = keep_denormals();
        std::thread::scope(|s| {
            s.spawn(|| {
                let _flush = flush_denormals();
                assert_eq!(doubled(), 0.0);
            });
        });
        assert!(doubled() > 0.0);
    }
}
