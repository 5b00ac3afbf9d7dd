//! Whether memory that a library names is there. A table that is smaller than it says, or a list that is shorter, reaches
//! into what happens to lie behind it; where that is nothing at all, asking the system first makes an error of what would
//! be a segmentation fault. What is mapped but not the library's cannot be told from what is. A library believes the engine.

use carafe_graph::{Error, Result};

/// Refuses `n` bytes at `p` that cannot be read.
pub(crate) fn readable<T>(p: *const T, n: usize, what: &str) -> Result<()> {
    if n == 0 || system::readable(p.cast(), n) {
        return Ok(());
    }
    Err(Error::invalid(format!("{what}: {n} bytes at {p:p} are not all there")))
}

#[cfg(all(target_os = "linux", feature = "engine"))]
mod system {
    use std::ffi::c_void;

    /// The least size of a page on any machine.
    const PAGE: usize = 4096;

    // The system copies a byte of each page to us, and says so when it cannot. Where it does not let us ask, memory is
    // believed to be there.
    pub(super) fn readable(p: *const c_void, n: usize) -> bool {
        let Some(last) = p.addr().checked_add(n - 1) else { return false };
        let mut at = p.addr();
        loop {
            if !byte(p.with_addr(at)) {
                return false;
            }
            match (at & !(PAGE - 1)).checked_add(PAGE) {
                Some(next) if next <= last => at = next,
                _ => return true,
            }
        }
    }

    fn byte(p: *const c_void) -> bool {
        let mut copy = 0u8;
        let to = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: 1 };
        let from = libc::iovec { iov_base: p.cast_mut(), iov_len: 1 };
        // SAFETY: one byte is written to `copy`; the other address is looked at by the system, not by us.
        let done = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
        done == 1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
    }
}

#[cfg(not(all(target_os = "linux", feature = "engine")))]
mod system {
    pub(super) fn readable(_: *const std::ffi::c_void, _: usize) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux", feature = "engine"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mapped_is_not_readable() {
        let here = [1u8; 10_000];
        assert!(readable(here.as_ptr(), here.len(), "here").is_ok());
        let text = readable(std::ptr::without_provenance::<u8>(64), 8, "a list").unwrap_err().to_string();
        assert!(text.contains("a list: 8 bytes at 0x40 are not all there"), "{text}");
        assert!(readable(here.as_ptr(), usize::MAX, "all").is_err());
    }
}
