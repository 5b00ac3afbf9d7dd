//! Streams of the CPU: groups of threads, each with its scratch.

use crate::properties::Settings;
use carafe_device::Parallel;
use carafe_kernels::{self as kernels, Pool, PoolOptions, Scratch, keep_denormals};
use carafe_plan::Streams;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is known of the processors.
pub(crate) struct Machine;

impl Machine {
    /// Processors this process may use; limits of control groups and affinity count.
    pub(crate) fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
    pub(crate) fn name() -> String {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
        let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        format!("{model} ({} processors, {})", Machine::processors(), carafe_kernels::Isa::best().name())
    }
}

/// The threads of one inference and their scratch memory.
pub(crate) struct Stream {
    pub(crate) pool: Arc<Pool>,
    /// The same threads as extensions borrow them.
    pub(crate) lent: Arc<dyn Parallel>,
    scratch: Mutex<Arc<Scratch>>,
}

impl Stream {
    /// Scratch of at least so many bytes for each thread; `None` without memory for it. It grows with the plans that run here.
    pub(crate) fn scratch(&self, bytes: usize) -> Option<Arc<Scratch>> {
        let mut scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        let floats = bytes.div_ceil(size_of::<f32>());
        if scratch.floats() < floats {
            *scratch = Arc::new(Scratch::new(self.pool.threads(), floats)?);
        }
        Some(scratch.clone())
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?})", self.pool)
    }
}

struct Lent(Arc<Pool>);

/// Threads as extensions borrow them.
pub(crate) fn lent(pool: &Arc<Pool>) -> Arc<dyn Parallel> {
    Arc::new(Lent(pool.clone()))
}

impl Parallel for Lent {
    fn threads(&self) -> usize {
        self.0.threads()
    }
    // All parts run, also when the inference is cancelled: the code that called counts on them.
    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(parts, |part, _| {
            let _denormals = keep_denormals();
            body(part)
        });
    }
}

/// What an inference needs, as far as it decides how many should run beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Planned memory of a request, and packed weights.
    pub(crate) arena: usize,
    pub(crate) packed: usize,
}

/// Weights beyond so many times the planned memory are most of what an inference reads.
const HEAVY: usize = 5;

/// Streams for so many threads: as many as have room in the last cache together. Inferences whose images leave it wait for memory,
/// and more of them at once only evict each other's. Smaller models rather have a stream a thread, which waits for no other.
pub(crate) fn streams_with_room(threads: usize, needs: Needs, machine: &kernels::Machine) -> usize {
    let Needs { arena, packed } = needs;
    if packed > HEAVY * arena {
        return threads;
    }
    let room = machine.share(threads);
    (1..=threads).rev().find(|s| threads.is_multiple_of(*s) && s * arena <= room).unwrap_or(1)
}

/// Streams as the settings say.
pub(crate) fn streams(settings: &Settings) -> Arc<Streams<Arc<Stream>>> {
    let each = settings.threads_each;
    let stream = |i: usize| {
        let pin_to = if settings.pinned { (i * each + 1..(i + 1) * each).collect() } else { vec![] };
        let spin = Duration::from_micros(settings.spin_us);
        let flush_denormals = settings.flush_denormals;
        let options = PoolOptions { spin, pin_to, flush_denormals, ..PoolOptions::threads(each) };
        let pool = Arc::new(Pool::new(options));
        let lent = lent(&pool);
        // A kernel that wants none may still ask for its part.
        let scratch = Scratch::new(each, 0).unwrap_or_else(|| unreachable!("nothing is always to be had"));
        Arc::new(Stream { pool, lent, scratch: Mutex::new(Arc::new(scratch)) })
    };
    Streams::new((0..settings.streams.max(1)).map(stream).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: kernels::Machine = kernels::Machine { l2: 1 << 20, l3: 32 << 20, sharing: 8, fma_per_cycle: 2 };

    fn streams_of(threads: usize, arena: usize) -> usize {
        streams_with_room(threads, Needs { arena, packed: 1 << 20 }, &MACHINE)
    }

    #[test]
    fn inferences_that_fit_the_cache_together_have_a_stream_each() {
        assert_eq!((streams_of(8, 4 << 20), streams_of(2, 4 << 20)), (8, 2));
    }

    #[test]
    fn inferences_that_do_not_share_threads() {
        assert_eq!([5, 10, 20, 100].map(|arena| streams_of(8, arena << 20)), [4, 2, 1, 1]);
        // Two threads have a quarter of the cache.
        assert_eq!(streams_of(2, 5 << 20), 1);
    }

    #[test]
    fn a_model_of_open_shapes_has_a_stream_for_each_thread() {
        assert_eq!(streams_of(8, 0), 8);
    }

    #[test]
    fn weights_that_outweigh_all_else_are_read_by_every_stream_anyway() {
        assert_eq!(streams_with_room(8, Needs { arena: 20 << 20, packed: 200 << 20 }, &MACHINE), 8);
    }
}
