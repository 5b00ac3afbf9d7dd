//! Mapped memory that several buffers share.
//!
//! Whoever goes through hundreds of megabytes of weights waits for their addresses, too: with huge pages they arrive up to a
//! quarter sooner. The system gives a huge page only where one lies inside of a mapping as a whole, and most weights are smaller
//! than one or end in the middle of one. So buffers are cut from regions, one behind the other, and a region takes no memory
//! where nobody has written yet. What is given back is not cut again: the system gets its memory at once, its addresses when
//! the whole region is gone.

use memmap2::{MmapOptions, MmapRaw};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What regions are a multiple of, and start at.
const HUGE: usize = 2 << 20;
/// Addresses of a shared region. Buffers of more than half of it have one of their own.
const REGION: usize = 64 << 20;
/// What cuts start at: whole pages, however large the system makes them.
const PAGES: usize = 64 << 10;

/// Part of a region that nobody else has.
pub(super) struct Cut {
    region: Arc<Region>,
    start: usize,
    len: usize,
}

struct Region {
    map: MmapRaw,
    /// The first byte that is not cut yet, from the start of the map.
    free: AtomicUsize,
    /// Where cuts end.
    end: usize,
}

impl Region {
    /// `None` when the memory cannot be had.
    fn new(len: usize) -> Option<Region> {
        let map = MmapRaw::from(MmapOptions::new().len(len.checked_add(HUGE)?).map_anon().ok()?);
        #[cfg(target_os = "linux")]
        // It is only advice: small pages work too.
        let _ = map.advise(memmap2::Advice::HugePage);
        let first = map.as_ptr().addr().wrapping_neg() % HUGE;
        Some(Region { map, free: AtomicUsize::new(first), end: first + len })
    }

    fn cut(self: &Arc<Region>, len: usize) -> Option<Cut> {
        let start = self.free.fetch_add(len.next_multiple_of(PAGES), Ordering::Relaxed);
        (start.checked_add(len)? <= self.end).then(|| Cut { region: self.clone(), start, len })
    }
}

impl Cut {
    /// `None` when the memory cannot be had.
    pub(super) fn zeroed(len: usize) -> Option<Cut> {
        static SHARED: Mutex<Option<Arc<Region>>> = Mutex::new(None);
        // Elsewhere memory is taken when it is mapped. A lock that is held may be of a thread that a fork has left behind.
        let shared = (cfg!(target_os = "linux") && len <= REGION / 2).then(|| SHARED.try_lock().ok()).flatten();
        let Some(mut shared) = shared else { return Arc::new(Region::new(len)?).cut(len) };
        if let Some(cut) = shared.as_ref().and_then(|region| region.cut(len)) {
            return Some(cut);
        }
        let region = Arc::new(Region::new(REGION)?);
        let cut = region.cut(len);
        *shared = Some(region);
        cut
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: inside of the map, which lives as long as the cut; nobody else has this part, and it began as zeros.
        unsafe { std::slice::from_raw_parts(self.region.map.as_ptr().add(self.start), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.region.map.as_mut_ptr().add(self.start), self.len) }
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        // SAFETY: whole pages that nobody else has, and nobody reads again.
        unsafe {
            let (start, len) = (self.start, self.len.next_multiple_of(PAGES).min(self.region.map.len() - self.start));
            let _ = self.region.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_zeros_of_their_own_and_start_at_pages() {
        let sizes = [300 << 10, (5 << 20) + 1, 40 << 20, 1 << 20, 31 << 20, 31 << 20];
        let mut cuts = sizes.map(|len| Cut::zeroed(len).unwrap());
        for (i, cut) in cuts.iter_mut().enumerate() {
            assert!(cut.bytes().len() == sizes[i] && cut.bytes().iter().all(|b| *b == 0));
            assert_eq!(cut.bytes().as_ptr().addr() % PAGES, 0);
            cut.bytes_mut().fill(i as u8 + 1);
        }
        for (i, cut) in cuts.iter().enumerate() {
            assert!(cut.bytes().iter().all(|b| *b == i as u8 + 1), "{i}");
        }
    }

    #[test]
    fn what_is_given_back_leaves_its_neighbours_alone() {
        let region = Arc::new(Region::new(REGION).unwrap());
        let mut cuts = [300 << 10, 3 << 20, 300 << 10].map(|len| Some(region.cut(len).unwrap()));
        cuts.iter_mut().flatten().for_each(|cut| cut.bytes_mut().fill(7));
        cuts[1] = None;
        assert!(cuts.iter().flatten().all(|cut| cut.bytes().iter().all(|b| *b == 7)));
    }

    #[test]
    fn a_region_that_is_full_has_no_cut() {
        let region = Arc::new(Region::new(HUGE).unwrap());
        assert!(region.cut(HUGE + 1).is_none());
        assert!(region.cut(1).is_none());
    }

    #[test]
    fn more_than_there_is_cannot_be_had() {
        assert!(Cut::zeroed(usize::MAX).is_none() && Cut::zeroed(usize::MAX / 2).is_none());
    }
}
