//! Threads that go through many short rounds together. A meeting costs one look at a word of each other thread, far less
//! than a job of its own for each round.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Parts of the rounds of one team. A thread has its own part and does it round after round, so that its data stays in its
/// cache; parts that nobody has begun are done by whoever has time, so no thread needs to come at all.
pub(super) struct Team {
    positions: [Place; Team::MOST],
    broken: AtomicBool,
}

/// One part, on cache lines of its own: rounds that were begun and rounds that are done.
#[repr(align(128))]
struct Place {
    begun: AtomicUsize,
    done: AtomicUsize,
}

impl Team {
    /// Most parts.
    pub(super) const MOST: usize = 32;

    pub(super) fn new() -> Team {
        let position = || Place { begun: AtomicUsize::new(0), done: AtomicUsize::new(0) };
        Team { positions: std::array::from_fn(|_| position()), broken: AtomicBool::new(false) }
    }

    /// Takes part until all rounds are done: `work(round, part)` is called once for each of both by some thread, and a
    /// round begins when all parts of the one before are done.
    pub(super) fn join(&self, rounds: usize, parts: usize, own: usize, work: impl Fn(usize, usize)) {
        let positions = &self.positions[..parts];
        let alarm = Alarm(&self.broken);
        for round in 0..rounds {
            for part in (own..parts).chain(0..own) {
                let Place { begun, done } = &positions[part];
                if begun.compare_exchange(round, round + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    work(round, part);
                    done.store(round + 1, Ordering::Release);
                }
            }
            for position in positions {
                let mut spins = 0u32;
                while position.done.load(Ordering::Acquire) <= round {
                    if self.broken.load(Ordering::Relaxed) {
                        return;
                    }
                    spins += 1;
                    // Somebody else may need the processor to get on.
                    if spins > 20_000 { std::thread::yield_now() } else { std::hint::spin_loop() }
                }
            }
        }
        drop(alarm);
    }
}

/// Lets the others go when a part panics.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn rounds_follow_each_other_and_have_all_parts() {
        for threads in [1, 2, 3] {
            let (team, seen) = (Team::new(), Mutex::new(vec![]));
            std::thread::scope(|s| {
                for own in 0..threads {
                    let (team, seen) = (&team, &seen);
                    s.spawn(move || team.join(50, 3, own, |round, part| seen.lock().unwrap().push((round, part))));
                }
            });
            let mut seen = seen.into_inner().unwrap();
            assert!(seen.iter().map(|s| s.0).is_sorted());
            seen.sort();
            assert!(seen.into_iter().eq((0..50).flat_map(|round| (0..3).map(move |part| (round, part)))));
        }
    }

    #[test]
    fn a_panic_lets_the_others_go() {
        let team = Team::new();
        std::thread::scope(|s| {
            let first = s.spawn(|| team.join(3, 2, 0, |round, part| assert_ne!((round, part), (1, 0))));
            let second = s.spawn(|| team.join(3, 2, 1, |round, part| assert_ne!((round, part), (1, 0))));
            assert!(first.join().is_err() | second.join().is_err());
        });
    }
}
