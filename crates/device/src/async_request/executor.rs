//! A queue of tasks and the threads that work on it. Threads start with the first tasks. Dropping an executor lets the
//! queued tasks run and joins the threads, except on a thread of any executor: two executors that drop each other from
//! their own threads would wait for ever, so there the threads are left to end by themselves.
//!
//! The child of a fork has none of the threads. It begins with a queue of its own: what was queued is run by the parent.

use super::lock;
use carafe_graph::{Error, Result, panic_text};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Something to run once.
pub type Task = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Number of the executor this thread works for; 0 on all other threads.
    static WORKS_FOR: Cell<u64> = const { Cell::new(0) };
}

/// A named pool of threads with one queue; with one thread, tasks run in the order they came.
pub struct Executor {
    queue: Queue,
}

/// The place to put tasks. It does not keep the threads alive: what is put in after the executor has gone runs at once,
/// on the thread that puts it in.
#[derive(Clone)]
pub(super) struct Queue(Arc<Shared>);

struct Shared {
    name: String,
    number: u64,
    most_threads: usize,
    crew: Crew,
}

/// Threads and tasks of one process.
struct Crew {
    process: u32,
    pool: Mutex<Pool>,
    wake: Condvar,
    /// Those of a forked child.
    next: OnceLock<Box<Crew>>,
}

impl Crew {
    fn new() -> Crew {
        Crew { process: std::process::id(), pool: Mutex::default(), wake: Condvar::new(), next: OnceLock::new() }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Threads and tasks belong to the parent.
            let pool = self.pool.get_mut().unwrap_or_else(|e| e.into_inner());
            std::mem::forget(std::mem::take(pool));
        }
    }
}

impl Shared {
    // The threads and tasks of this process.
    fn crew(&self) -> &Crew {
        let process = std::process::id();
        let mut crew = &self.crew;
        while crew.process != process {
            crew = crew.next.get_or_init(|| Box::new(Crew::new()));
        }
        crew
    }
}

#[derive(Default)]
struct Pool {
    tasks: VecDeque<Task>,
    threads: Vec<JoinHandle<()>>,
    /// Threads that wait for a task; one that was woken still counts until it has run.
    idle: usize,
    closing: bool,
}

impl Executor {
    /// With at most so many threads.
    pub fn new(name: &str, threads: usize) -> Executor {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let shared = Shared {
            name: name.to_string(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            most_threads: threads.max(1),
            crew: Crew::new(),
        };
        Executor { queue: Queue(Arc::new(shared)) }
    }

    /// Its name, which its threads have too.
    pub fn name(&self) -> &str {
        &self.queue.0.name
    }

    /// Most threads it will have.
    pub fn most_threads(&self) -> usize {
        self.queue.0.most_threads
    }

    /// Queues a task. Where no thread can be had it runs at once, on the calling thread.
    pub fn submit(&self, task: Task) {
        self.queue.submit(task);
    }

    pub(super) fn queue(&self) -> Queue {
        self.queue.clone()
    }
}

impl Queue {
    /// Sees to it that there is a thread, so that `submit` need not run the task itself.
    pub(super) fn start(&self) -> Result<()> {
        let mut pool = lock(&self.0.crew().pool);
        if pool.threads.is_empty() && !pool.closing {
            let failed = |e| Error::io(format!("cannot start a thread for `{}`", self.0.name), &e);
            pool.threads.push(self.spawn().map_err(failed)?);
        }
        Ok(())
    }

    pub(super) fn submit(&self, task: Task) {
        let crew = self.0.crew();
        let mut pool = lock(&crew.pool);
        if pool.idle <= pool.tasks.len() && pool.threads.len() < self.0.most_threads && !pool.closing {
            // When it fails, those that are there will come to the task.
            pool.threads.extend(self.spawn());
        }
        if pool.threads.is_empty() {
            drop(pool);
            return task();
        }
        pool.tasks.push_back(task);
        drop(pool);
        crew.wake.notify_one();
    }

    /// Whether the calling thread is one of the executor's own.
    pub(super) fn is_current(&self) -> bool {
        WORKS_FOR.get() == self.0.number
    }

    fn spawn(&self) -> std::io::Result<JoinHandle<()>> {
        let shared = self.0.clone();
        std::thread::Builder::new().name(self.0.name.clone()).spawn(move || work(&shared))
    }
}

/// Whether the calling thread belongs to any executor.
pub(super) fn on_an_executor() -> bool {
    WORKS_FOR.get() != 0
}

fn work(shared: &Shared) {
    WORKS_FOR.set(shared.number);
    let crew = shared.crew();
    let mut pool = lock(&crew.pool);
    loop {
        if let Some(task) = pool.tasks.pop_front() {
            drop(pool);
            // Whoever submits cares about panics of his own; here only the thread must live on.
            let _ = catch_unwind(AssertUnwindSafe(task)).map_err(panic_text);
            pool = lock(&crew.pool);
        } else if pool.closing {
            return;
        } else {
            pool.idle += 1;
            pool = crew.wake.wait(pool).unwrap_or_else(|e| e.into_inner());
            pool.idle -= 1;
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let crew = self.queue.0.crew();
        let mut pool = lock(&crew.pool);
        pool.closing = true;
        let threads = std::mem::take(&mut pool.threads);
        drop(pool);
        crew.wake.notify_all();
        if on_an_executor() {
            return;
        }
        for thread in threads {
            // It ends without a panic: tasks are caught.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("name", &self.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    fn submit(executor: &Executor, task: impl FnOnce() + Send + 'static) {
        executor.submit(Box::new(task));
    }

    #[test]
    fn one_thread_keeps_the_order() {
        let (send, receive) = mpsc::channel();
        let executor = Executor::new("one", 1);
        for i in 0..100 {
            let send = send.clone();
            submit(&executor, move || send.send(i).unwrap());
        }
        drop((executor, send));
        assert_eq!(receive.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn tasks_meet_on_several_threads() {
        let executor = Executor::new("three", 3);
        let meeting = Arc::new(std::sync::Barrier::new(3));
        for _ in 0..3 {
            let meeting = meeting.clone();
            submit(&executor, move || {
                meeting.wait();
            });
        }
    }

    #[test]
    fn dropping_runs_what_is_queued() {
        let done = Arc::new(AtomicUsize::new(0));
        let executor = Executor::new("queued", 2);
        for _ in 0..50 {
            let done = done.clone();
            submit(&executor, move || {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        drop(executor);
        assert_eq!(done.load(Ordering::Relaxed), 50);
    }

    #[test]
    fn a_panic_does_not_end_the_thread() {
        let (send, receive) = mpsc::channel();
        let executor = Executor::new("panics", 1);
        submit(&executor, || std::panic::resume_unwind(Box::new("quiet")));
        submit(&executor, move || send.send(()).unwrap());
        assert!(receive.recv().is_ok());
    }

    #[test]
    fn executors_may_drop_each_other_from_their_own_threads() {
        for _ in 0..100 {
            let (a, b) = (Arc::new(Executor::new("a", 1)), Arc::new(Executor::new("b", 1)));
            let (send, receive) = mpsc::channel();
            for (on, held) in [(&a, [a.clone(), b.clone()]), (&b, [b.clone(), a.clone()])] {
                let send = send.clone();
                submit(on, move || {
                    drop(held);
                    send.send(()).unwrap();
                });
            }
            drop((a, b, send));
            assert_eq!(receive.iter().count(), 2);
        }
    }
}
