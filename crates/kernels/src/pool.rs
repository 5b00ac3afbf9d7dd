//! Threads for kernels. A job is a number of chunks; each thread owns a range of them and takes from its own first, then
//! from those of others, so a thread that is held up by somebody else's work never keeps the caller waiting. Idle threads
//! spin for a while before they sleep: a fork and join costs well under a microsecond while they do.
//!
//! A job may be given up between two chunks. It then unwinds, as if a chunk had panicked, but without a word: whoever waits for
//! the results of the chunks must not go on.
//!
//! The child of a fork has none of these threads. The first job there starts others, and leaves what the parent's may hold alone.

use crate::forks::{self, forks};
use crate::{flush_denormals, keep_denormals, part_of};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a pool behaves.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The caller counts as one of them.
    pub threads: usize,
    /// How long an idle thread waits before it sleeps.
    pub spin: Duration,
    /// Processor of each thread but the caller's; empty for none.
    pub pin_to: Vec<usize>,
    /// Whether its threads take denormal numbers as zero; that of the caller is left as it is.
    pub flush_denormals: bool,
}

/// What unwinds out of a job that was given up because its flag was set.
#[derive(Clone, Copy, Debug)]
pub struct Stopped;

impl Stopped {
    /// Unwinds with this, past the panic hook.
    pub(crate) fn unwind() -> ! {
        resume_unwind(Box::new(Stopped))
    }
}

impl PoolOptions {
    pub fn threads(threads: usize) -> PoolOptions {
        PoolOptions {
            threads: threads.clamp(1, MAX_THREADS),
            spin: Duration::from_micros(200),
            pin_to: vec![],
            flush_denormals: false,
        }
    }
}

/// A set of threads that work on one job at a time.
pub struct Pool {
    options: PoolOptions,
    crew: Crew,
}

/// The threads of one process.
struct Crew {
    forks: u64,
    inner: Arc<Inner>,
    handles: Vec<JoinHandle<()>>,
    /// Held while a job runs; a second caller waits for the first.
    busy: Mutex<()>,
    /// Those of a forked child.
    next: OnceLock<Box<Crew>>,
}

const MAX_THREADS: usize = 1024;
/// State word: number of the job, then whether it may still be entered, then how many are inside.
const OPEN: u64 = 1 << 15;
const INSIDE: u64 = OPEN - 1;
const EPOCH: u32 = 16;

struct Inner {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// Next chunk of each thread's own range.
    next: Vec<Padded>,
    chunks: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    asleep: AtomicUsize,
    door: Mutex<()>,
    bell: Condvar,
    spin: Duration,
}

#[repr(align(128))]
struct Padded(AtomicUsize);

/// What is done for each chunk: `work(chunk, thread)`.
pub(crate) type Work<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// A closure with its lifetime forgotten; alive while its job is open or somebody is inside.
#[derive(Clone, Copy)]
struct Job {
    work: *const Work<'static>,
    /// Null for a job that cannot be given up; lives as long as the closure.
    stop: *const AtomicBool,
}

// SAFETY: `job` is written by the caller only while nobody is inside and the job is closed, and read only by threads that
// entered an open job; the state word orders the two.
unsafe impl Sync for Inner {}
// SAFETY: the raw pointer in `job` is only followed as described above.
unsafe impl Send for Inner {}

thread_local! {
    /// Which thread of a job this is, while it is inside one; a job within a job runs in line.
    static INSIDE_JOB: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Pool {
    pub fn new(options: PoolOptions) -> Pool {
        forks::watch();
        let options = PoolOptions { threads: options.threads.clamp(1, MAX_THREADS), ..options };
        Pool { crew: Crew::start(&options), options }
    }

    /// How many threads share a job, the caller's included.
    pub fn threads(&self) -> usize {
        self.options.threads
    }

    // The threads of this process.
    fn crew(&self) -> &Crew {
        let now = forks();
        let mut crew = &self.crew;
        while crew.forks != now {
            crew = crew.next.get_or_init(|| Box::new(Crew::start(&self.options)));
        }
        crew
    }

    /// Calls `work(chunk, thread)` once for each chunk and returns when all are done. Within a job it runs in line. A panic
    /// of a chunk is passed on after the others ended.
    pub fn run(&self, chunks: usize, work: impl Fn(usize, usize) + Sync) {
        self.run_until(None, chunks, &work);
    }

    /// The same, given up when `stop` is set: no chunk begins after that, and [`Stopped`] unwinds to the caller. A flag that is
    /// set during the last chunks may come too late; then all of them are done and it returns.
    pub(crate) fn run_until(&self, stop: Option<&AtomicBool>, chunks: usize, work: &Work<'_>) {
        if chunks == 0 {
            return;
        }
        let within = INSIDE_JOB.get();
        let crew = self.crew();
        if crew.handles.is_empty() || chunks == 1 || within.is_some() {
            for chunk in 0..chunks {
                if stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                    Stopped::unwind();
                }
                work(chunk, within.unwrap_or(0));
            }
            return;
        }
        let _busy = crew.busy.lock().unwrap_or_else(|e| e.into_inner());
        crew.share(stop, chunks, work);
    }
}

impl Crew {
    fn start(options: &PoolOptions) -> Crew {
        let threads = options.threads;
        let inner = Arc::new(Inner {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: (0..threads).map(|_| Padded(AtomicUsize::new(0))).collect(),
            chunks: AtomicUsize::new(0),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            door: Mutex::new(()),
            bell: Condvar::new(),
            spin: options.spin,
        });
        let start = |thread: usize| {
            let inner = inner.clone();
            let cpu = options.pin_to.get(thread - 1).copied();
            let name = format!("carafe-cpu-{thread}");
            let flush = options.flush_denormals;
            std::thread::Builder::new().name(name).spawn(move || {
                // A thread begins with the treatment of the one that started it.
                let _denormals = if flush { flush_denormals() } else { keep_denormals() };
                if let Some(cpu) = cpu {
                    pin(cpu);
                }
                inner.serve(thread)
            })
        };
        // A thread that cannot be started is done without: its chunks are taken by the others.
        let handles = (1..threads).filter_map(|t| start(t).ok()).collect();
        Crew { forks: forks(), inner, handles, busy: Mutex::new(()), next: OnceLock::new() }
    }

    fn share(&self, stop: Option<&AtomicBool>, chunks: usize, work: &Work<'_>) {
        let inner = &*self.inner;
        for (t, next) in inner.next.iter().enumerate() {
            next.0.store(part_of(chunks, inner.next.len(), t).start, Ordering::Relaxed);
        }
        inner.chunks.store(chunks, Ordering::Relaxed);
        // SAFETY: the last job is closed and empty (`Closing` saw to it), so nobody reads this now. The pointer is followed while
        // the job is open only, and `work` lives longer.
        unsafe {
            let stop = stop.map_or(std::ptr::null(), |s| s as *const AtomicBool);
            let work = std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work);
            *inner.job.get() = Some(Job { work, stop });
        };
        let epoch = inner.state.load(Ordering::Relaxed) >> EPOCH;
        inner.state.store((epoch + 1) << EPOCH | OPEN, Ordering::SeqCst);
        if inner.asleep.load(Ordering::SeqCst) > 0 {
            let _door = inner.door.lock().unwrap_or_else(|e| e.into_inner());
            inner.bell.notify_all();
        }
        let closing = Closing(inner);
        inner.work(0, inner.next.len());
        drop(closing);
        let panic = inner.panic.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Closes the job when it goes and waits for those inside.
struct Closing<'a>(&'a Inner);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0u32;
        while self.0.state.load(Ordering::Acquire) & INSIDE != 0 {
            spins += 1;
            // Somebody else has the processor: give it ours, or nobody gets on.
            if spins > 20_000 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Inner {
    // Takes chunks until none are left: own ones first, then those of the next thread, and so on.
    fn work(&self, thread: usize, threads: usize) {
        // SAFETY: called by the caller of an open job, or by a thread that entered it.
        let Some(job) = (unsafe { *self.job.get() }) else { return };
        let chunks = self.chunks.load(Ordering::Relaxed);
        INSIDE_JOB.set(Some(thread));
        let result = catch_unwind(AssertUnwindSafe(|| {
            for k in 0..threads {
                let owner = (thread + k) % threads;
                let end = part_of(chunks, threads, owner).end;
                loop {
                    let chunk = self.next[owner].0.fetch_add(1, Ordering::Relaxed);
                    if chunk >= end {
                        break;
                    }
                    // SAFETY: null, or a flag that lives as long as the closure.
                    if unsafe { job.stop.as_ref() }.is_some_and(|s| s.load(Ordering::Relaxed)) {
                        Stopped::unwind();
                    }
                    // SAFETY: the closure lives while we are inside, see `Job`.
                    unsafe { (*job.work)(chunk, thread) };
                }
            }
        }));
        INSIDE_JOB.set(None);
        if let Err(panic) = result {
            self.panic.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(panic);
        }
    }

    // What a thread of the pool does all its life.
    fn serve(&self, thread: usize) {
        let (mut seen, mut idle, mut turns) = (0, Instant::now(), 0u32);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let state = self.state.load(Ordering::Acquire);
            if state >> EPOCH != seen && state & OPEN != 0 {
                let entered = self.state.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
                if entered.is_ok() {
                    seen = state >> EPOCH;
                    self.work(thread, self.next.len());
                    self.state.fetch_sub(1, Ordering::Release);
                    idle = Instant::now();
                }
                continue;
            }
            turns = turns.wrapping_add(1);
            if turns % 64 != 0 || idle.elapsed() < self.spin {
                std::hint::spin_loop();
                continue;
            }
            self.sleep(seen);
            idle = Instant::now();
        }
    }

    fn sleep(&self, seen: u64) {
        let mut door = self.door.lock().unwrap_or_else(|e| e.into_inner());
        self.asleep.fetch_add(1, Ordering::SeqCst);
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if (state >> EPOCH != seen && state & OPEN != 0) || self.stop.load(Ordering::SeqCst) {
                break;
            }
            door = self.bell.wait(door).unwrap_or_else(|e| e.into_inner());
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.forks != forks() {
            // They belong to the parent; here they are not even there to be detached.
            self.handles.drain(..).for_each(std::mem::forget);
            return;
        }
        self.inner.stop.store(true, Ordering::SeqCst);
        {
            let _door = self.inner.door.lock().unwrap_or_else(|e| e.into_inner());
            self.inner.bell.notify_all();
        }
        for handle in self.handles.drain(..) {
            // A thread of the pool catches what its chunks throw; there is nothing more to learn from it.
            let _ = handle.join();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.options.threads)
    }
}

#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    // The C library's set of processors: 1024 bits.
    let mut set = [0u64; 16];
    if let Some(word) = set.get_mut(cpu / 64) {
        *word = 1 << (cpu % 64);
        unsafe extern "C" {
            fn sched_setaffinity(pid: i32, size: usize, mask: *const u64) -> i32;
        }
        // SAFETY: the mask is as long as is said; the call only reads it. A refusal leaves the thread unpinned.
        unsafe { sched_setaffinity(0, size_of_val(&set), set.as_ptr()) };
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_cpu: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_one(to: &AtomicUsize) {
        to.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn every_chunk_runs_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(PoolOptions::threads(threads));
            for chunks in [0, 1, 2, 7, 1000] {
                let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(chunks, |c, t| {
                    assert!(t < threads);
                    counts[c].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(PoolOptions::threads(3));
        let caught = catch_unwind(AssertUnwindSafe(|| pool.run(9, |c, _| assert_ne!(c, 5))));
        assert!(caught.is_err());
        let done = AtomicUsize::new(0);
        pool.run(9, |_, _| add_one(&done));
        assert_eq!(done.into_inner(), 9);
    }

    #[test]
    fn panics_of_several_chunks_on_several_threads_are_one() {
        let pool = Pool::new(PoolOptions::threads(4));
        for _ in 0..50 {
            let caught = catch_unwind(AssertUnwindSafe(|| pool.run(64, |c, _| assert!(c % 3 != 0, "chunk"))));
            assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "chunk");
        }
        let done = AtomicUsize::new(0);
        pool.run(64, |_, _| add_one(&done));
        assert_eq!(done.into_inner(), 64);
    }

    #[test]
    fn no_chunk_begins_once_the_flag_is_set() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
            let job = || {
                pool.run_until(Some(&stop), 10_000, &|_, _| {
                    add_one(&done);
                    stop.store(true, Ordering::Relaxed);
                })
            };
            let payload = catch_unwind(AssertUnwindSafe(job)).unwrap_err();
            assert!(payload.is::<Stopped>());
            // Each thread may be in one chunk when the flag is set.
            assert!((1..=threads).contains(&done.load(Ordering::Relaxed)), "{done:?}");
            stop.store(false, Ordering::Relaxed);
            let done = AtomicUsize::new(0);
            pool.run_until(Some(&stop), 100, &|_, _| add_one(&done));
            assert_eq!(done.into_inner(), 100);
        }
    }

    #[test]
    fn a_flag_set_in_the_last_chunk_comes_too_late() {
        let (pool, stop) = (Pool::new(PoolOptions::threads(1)), AtomicBool::new(false));
        pool.run_until(Some(&stop), 3, &|c, _| stop.store(c == 2, Ordering::Relaxed));
    }

    #[test]
    fn threads_treat_denormals_as_the_pool_says() {
        for flush in [false, true] {
            let pool = Pool::new(PoolOptions { flush_denormals: flush, ..PoolOptions::threads(3) });
            let barrier = std::sync::Barrier::new(3);
            pool.run(3, |_, thread| {
                barrier.wait();
                let flushes = crate::flushes_denormals();
                assert_eq!(flushes, flush && thread > 0 && cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
            });
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_child_of_a_fork_has_threads_of_its_own() {
        unsafe extern "C" {
            fn fork() -> i32;
            fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
            fn _exit(code: i32) -> !;
        }
        let pool = Pool::new(PoolOptions::threads(3));
        // As if another thread ran a job when the process forks.
        let busy = pool.crew().busy.lock().unwrap();
        // SAFETY: the child works on its own pool and ends without running what the parent would.
        let child = unsafe { fork() };
        if child == 0 {
            let (meeting, done) = (std::sync::Barrier::new(3), AtomicUsize::new(0));
            // Only three threads can leave the meeting.
            pool.run(3, |_, _| {
                meeting.wait();
                add_one(&done);
            });
            // SAFETY: ends the process.
            unsafe { _exit(if done.into_inner() == 3 { 7 } else { 1 }) };
        }
        drop(busy);
        let mut status = 0;
        // SAFETY: the status is written by the call.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        assert_eq!(status >> 8, 7);
        let done = AtomicUsize::new(0);
        pool.run(9, |_, _| add_one(&done));
        assert_eq!(done.into_inner(), 9);
    }

    #[test]
    fn a_job_within_a_job_runs_in_line() {
        let pool = Pool::new(PoolOptions::threads(2));
        let done = AtomicUsize::new(0);
        pool.run(4, |_, _| pool.run(4, |_, _| add_one(&done)));
        assert_eq!(done.into_inner(), 16);
    }

    #[test]
    fn callers_from_many_threads_take_turns() {
        let pool = Pool::new(PoolOptions { spin: Duration::ZERO, ..PoolOptions::threads(2) });
        let done = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..500).for_each(|_| pool.run(3, |_, _| add_one(&done))));
            }
        });
        assert_eq!(done.into_inner(), 4 * 500 * 3);
    }
}
