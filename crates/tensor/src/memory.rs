//! Asks for memory before it is taken. A vector that cannot be allocated ends the process, and so does the kernel when pages
//! that it promised are not there, so whoever is about to take much asks here first and gets an error instead.

use crate::TensorError;

/// Less than this is never refused here: asking would take longer than it is worth.
const WORTH_ASKING: usize = 1 << 20;
/// From here on the memory of the machine is looked at too, which reads a file of the system.
const WORTH_COUNTING: usize = 256 << 20;

/// An error unless this much more memory can be had, of this process's address space and of the machine.
pub fn ensure_memory(bytes: usize) -> Result<(), TensorError> {
    ensure_pages(bytes)?;
    ensure_address_space(bytes)
}

/// An error unless the machine has this much memory to give.
pub(crate) fn ensure_pages(bytes: usize) -> Result<(), TensorError> {
    let missing = bytes >= WORTH_COUNTING && available_memory().is_some_and(|there| bytes as u64 > there);
    if missing { Err(TensorError::OutOfMemory { bytes }) } else { Ok(()) }
}

/// An error unless the allocator could give this much now; whether the machine has it in pages is not looked at. For bounds
/// that are generous.
pub fn ensure_address_space(bytes: usize) -> Result<(), TensorError> {
    if bytes < WORTH_ASKING {
        return Ok(());
    }
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| TensorError::OutOfMemory { bytes })
}

/// A vector of all items, or an error where memory for it is missing.
pub fn try_collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, TensorError> {
    let bytes = items.len().saturating_mul(size_of::<T>());
    let mut all = Vec::new();
    ensure_memory(bytes)?;
    all.try_reserve_exact(items.len()).map_err(|_| TensorError::OutOfMemory { bytes })?;
    all.extend(items);
    Ok(all)
}

/// Bytes that the machine, or the control group that the process runs in, can still give; `None` where nobody says.
pub fn available_memory() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let read = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let group = read("memory.max").zip(read("memory.current")).and_then(|(most, now)| of_group(&most, &now));
    machine.into_iter().chain(group).min()
}

/// What can be had without and with swapping, by the lines of /proc/meminfo.
fn of_machine(text: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(field("MemAvailable")?.saturating_add(field("SwapFree").unwrap_or(0)))
}

/// Pages of files count towards `current` and are given back when needed, so this errs on the side of too little by them.
fn of_group(most: &str, now: &str) -> Option<u64> {
    // `max` stands for no limit.
    let most = most.trim().parse::<u64>().ok()?;
    Some(most.saturating_sub(now.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_any_machine_has_is_an_error() {
        let bytes = 1 << 60;
        assert_eq!(ensure_memory(bytes), Err(TensorError::OutOfMemory { bytes }));
        assert_eq!(ensure_memory(usize::MAX), Err(TensorError::OutOfMemory { bytes: usize::MAX }));
    }

    #[test]
    fn ordinary_sizes_are_granted() {
        for bytes in [0, 1, WORTH_ASKING, 3 * WORTH_ASKING] {
            assert_eq!(ensure_memory(bytes), Ok(()));
        }
    }

    #[test]
    fn the_lines_of_the_system_are_understood() {
        let text = "MemTotal:       100 kB\nMemAvailable:     40 kB\nSwapFree:  2 kB\n";
        assert_eq!(of_machine(text), Some(42 * 1024));
        assert_eq!(of_machine("MemTotal: 1 kB"), None);
        assert_eq!(of_group("100\n", "30\n"), Some(70));
        assert_eq!(of_group("max\n", "30\n"), None);
        assert_eq!(of_group("100", "130"), Some(0));
    }

    #[test]
    fn collecting_keeps_order_and_refuses_what_is_too_much() {
        assert_eq!(try_collect((0..4).map(|i| i * i)).unwrap(), [0, 1, 4, 9]);
        assert!(try_collect((0..usize::MAX).map(|i| i as u64)).is_err());
    }
}
