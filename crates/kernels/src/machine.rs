//! What methods are chosen by besides sizes: the caches of the processor, and how much it multiplies in the time that bytes
//! take to arrive. Read once, from the system or from the processor itself; nothing is measured, so that the same machine always
//! chooses the same.

use std::sync::OnceLock;

/// Facts of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of the second-level cache that one core has.
    pub l2: usize,
    /// Bytes of the last cache, as cores share it.
    pub l3: usize,
    /// Processors that share it.
    pub sharing: usize,
    /// Multiply-adds of 16 floats that a core begins in a cycle, for the widest instructions it has.
    pub fma_per_cycle: usize,
}

impl Machine {
    /// The machine this runs on.
    pub fn here() -> &'static Machine {
        static HERE: OnceLock<Machine> = OnceLock::new();
        HERE.get_or_init(|| {
            let Caches { l2, l3, sharing } = caches();
            Machine { l2, l3, sharing, fma_per_cycle: fma_per_cycle() }
        })
    }

    /// Bytes of the last cache that so many threads may count as theirs.
    pub fn share(&self, threads: usize) -> usize {
        let sharing = self.sharing.max(1);
        self.l3 / sharing * threads.min(sharing)
    }

    /// Bytes that arrive at a thread in the time of one multiply-add of 16 floats, when `all` bytes are gone through of which the
    /// thread reads `own`. The rates are those of a core of a server: 32 bytes a cycle out of its own cache, 9 out of the shared
    /// one, 6 out of memory. The shared one counts by half: it holds what comes before and after, too.
    pub fn arrival(&self, own: usize, all: usize) -> f64 {
        let rate = if own <= self.l2 / 2 {
            32.0
        } else if all <= self.l3 / 2 {
            9.0
        } else {
            6.0
        };
        rate / self.fma_per_cycle as f64
    }
}

// Second-level and last cache, and how many processors share the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Caches {
    l2: usize,
    l3: usize,
    sharing: usize,
}

impl Caches {
    // A cache of a level from the second on. The larger one counts where a level has two.
    fn add(&mut self, level: usize, size: usize, sharing: usize) {
        if level == 2 {
            self.l2 = size.max(self.l2);
        } else if size > self.l3 {
            (self.l3, self.sharing) = (size, sharing);
        }
    }
}

// As the system says, else as the processor does, else what is usual.
fn caches() -> Caches {
    let found = of_system("/sys/devices/system/cpu/cpu0/cache").or_else(of_processor);
    let found = found.unwrap_or(Caches { l2: 1 << 20, l3: 16 << 20, sharing: 8 });
    // A machine without a third level has its second for all.
    match found.l3 < found.l2 {
        true => Caches { l3: found.l2, sharing: 1, ..found },
        false => found,
    }
}

fn of_system(folder: &str) -> Option<Caches> {
    let mut found = Caches::default();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let text = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if let (Ok(level @ 2..=4), Some(size)) = (text("level").trim().parse::<usize>(), bytes_of(text("size").trim()))
        {
            found.add(level, size, count_of(text("shared_cpu_list").trim()));
        }
    }
    (found.l2 > 0).then_some(found)
}

/// Numbers in a list like `0-3,8`; one for what is none.
fn count_of(list: &str) -> usize {
    let of = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        (last.trim().parse::<usize>().ok()? + 1).checked_sub(first.trim().parse().ok()?)
    };
    list.split(',').filter_map(of).sum::<usize>().max(1)
}

/// `1024K`, `32M` or plain bytes.
fn bytes_of(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let scale = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(scale)
}

#[cfg(target_arch = "x86_64")]
fn of_processor() -> Option<Caches> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // Both leaves describe a cache in each sub-leaf, alike.
    let leaf = if vendor() == Vendor::Amd { 0x8000_001d } else { 4 };
    if __cpuid(leaf & 0x8000_0000).eax < leaf {
        return None;
    }
    let mut found = Caches::default();
    for sub in 0..16 {
        let c = __cpuid_count(leaf, sub);
        if c.eax & 31 == 0 {
            break;
        }
        let (level, ways, parts, line) = (c.eax >> 5 & 7, c.ebx >> 22, c.ebx >> 12 & 0x3ff, c.ebx & 0xfff);
        let bytes = (ways as usize + 1) * (parts as usize + 1) * (line as usize + 1) * (c.ecx as usize + 1);
        if level >= 2 {
            found.add(level as usize, bytes, (c.eax >> 14 & 0xfff) as usize + 1);
        }
    }
    (found.l2 > 0).then_some(found)
}

#[cfg(not(target_arch = "x86_64"))]
fn of_processor() -> Option<Caches> {
    None
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Tests ask on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Intel,
    Amd,
    Other,
}

#[cfg(target_arch = "x86_64")]
fn vendor() -> Vendor {
    let c = std::arch::x86_64::__cpuid(0);
    match [c.ebx, c.edx, c.ecx].map(u32::to_le_bytes).concat().as_slice() {
        b"GenuineIntel" => Vendor::Intel,
        b"AuthenticAMD" | b"HygonGenuine" => Vendor::Amd,
        _ => Vendor::Other,
    }
}

/// Whether a product of two pairs of bf16 takes as long as one of floats: so it is where AMD has the instruction.
pub(crate) fn multiplies_pairs_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return vendor() == Vendor::Amd;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
fn fma_per_cycle() -> usize {
    let eax = std::arch::x86_64::__cpuid(1).eax;
    let family = (eax >> 8 & 15) + if eax >> 8 & 15 == 15 { eax >> 20 & 255 } else { 0 };
    fma_of(vendor(), family, crate::Isa::best().avx512().is_some())
}

#[cfg(not(target_arch = "x86_64"))]
fn fma_per_cycle() -> usize {
    1
}

/// Two units of 8 floats are one of 16. Servers of Intel have two of 16; AMD has them from family 26 (Zen 5) on, and does the
/// wide instructions in halves before.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn fma_of(vendor: Vendor, family: u32, wide: bool) -> usize {
    match vendor {
        Vendor::Intel if wide => 2,
        Vendor::Amd if wide && family >= 26 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_system_writes_them() {
        assert_eq!(["1024K", "32M", "512", "1G"].map(|t| bytes_of(t).unwrap()), [1 << 20, 32 << 20, 512, 1 << 30]);
        assert_eq!((bytes_of("many"), bytes_of(""), bytes_of("4X")), (None, None, None));
    }

    #[test]
    fn the_caches_of_this_machine_are_found() {
        let here = Machine::here();
        assert!(here.l2 >= 128 << 10 && here.l3 >= here.l2, "{here:?}");
        assert!((1..=2).contains(&here.fma_per_cycle));
    }

    #[test]
    fn a_folder_of_the_system_is_read() {
        let folder = std::env::temp_dir().join(format!("carafe-caches-{}", std::process::id()));
        for (i, (level, size)) in [("1", "32K"), ("1", "48K"), ("2", "2048K"), ("3", "107520K")].iter().enumerate() {
            let cache = folder.join(format!("index{i}"));
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            std::fs::write(cache.join("size"), format!("{size}\n")).unwrap();
            std::fs::write(cache.join("shared_cpu_list"), if *level == "3" { "0-3,8-11,16\n" } else { "0\n" }).unwrap();
        }
        let found = of_system(folder.to_str().unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Some(Caches { l2: 2 << 20, l3: 105 << 20, sharing: 9 }));
        assert_eq!(of_system("/nowhere/at/all"), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_processor_tells_its_caches_itself() {
        // A virtual machine may hide the leaf.
        if let Some(Caches { l2, l3, sharing }) = of_processor() {
            assert!(l2 >= 128 << 10 && (l3 == 0 || l3 >= l2 && sharing > 0), "{l2} {l3} {sharing}");
        }
    }

    #[test]
    fn what_fits_a_nearer_cache_arrives_sooner() {
        let m = Machine { l2: 1 << 20, l3: 32 << 20, sharing: 8, fma_per_cycle: 1 };
        let rates = [100 << 10, 4 << 20, 64 << 20].map(|bytes| m.arrival(bytes, bytes));
        assert!(rates[0] > rates[1] && rates[1] > rates[2]);
        assert_eq!(Machine { fma_per_cycle: 2, ..m }.arrival(64 << 20, 64 << 20), rates[2] / 2.0);
    }

    #[test]
    fn threads_have_their_part_of_the_last_cache() {
        let m = Machine { l2: 1 << 20, l3: 32 << 20, sharing: 8, fma_per_cycle: 1 };
        assert_eq!([1, 2, 8, 16].map(|threads| m.share(threads) >> 20), [4, 8, 32, 32]);
        assert_eq!(["0", "0-3,8", "5-5,7", "", "x"].map(count_of), [1, 5, 2, 1, 1]);
    }

    #[test]
    fn wide_units_are_known_by_maker_and_family() {
        assert_eq!(fma_of(Vendor::Intel, 6, true), 2);
        assert_eq!(fma_of(Vendor::Intel, 6, false), 1);
        assert_eq!([25, 26].map(|f| fma_of(Vendor::Amd, f, true)), [1, 2]);
        assert_eq!(fma_of(Vendor::Other, 7, true), 1);
    }
}
