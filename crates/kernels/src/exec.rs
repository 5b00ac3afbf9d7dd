//! What a kernel gets to work with besides its data: threads, instructions, and scratch memory of each thread.

use crate::{Buffer, Isa, Pool, Stopped};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Passed to every kernel.
#[derive(Clone, Copy, Debug)]
pub struct Exec<'a> {
    pub pool: &'a Pool,
    pub isa: Isa,
    pub scratch: &'a Scratch,
    /// Who asks for the end of the work.
    pub(crate) stop: Stop<'a>,
}

/// A flag that gives up work when it is set, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stop<'a>(Option<&'a AtomicBool>);

impl Stop<'_> {
    /// Unwinds with [`Stopped`] when the flag is set. For long loops inside of a chunk.
    #[inline]
    pub(crate) fn check(self) {
        if self.0.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            Stopped::unwind();
        }
    }
}

impl<'a> Exec<'a> {
    pub fn new(pool: &'a Pool, isa: Isa, scratch: &'a Scratch) -> Exec<'a> {
        Exec { pool, isa, scratch, stop: Stop::default() }
    }
    /// The same, for work that is given up when `stop` is set: kernels then unwind with [`Stopped`], soon and without a word of
    /// the panic hook, and leave their outputs half done. In a program whose panics abort the flag is not looked at.
    pub fn until(self, stop: &'a AtomicBool) -> Exec<'a> {
        Exec { stop: Stop(cfg!(panic = "unwind").then_some(stop)), ..self }
    }
    /// The same with other scratch.
    pub fn with_scratch(self, scratch: &'a Scratch) -> Exec<'a> {
        Exec { scratch, ..self }
    }
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }
    /// Runs `work(chunk, thread)` for every chunk; chunks next to each other tend to stay on one thread, the same for each
    /// call with as many chunks, so data stays in its cache. Unwinds before the next chunk when the work is given up.
    pub fn each(&self, chunks: usize, work: impl Fn(usize, usize) + Sync) {
        self.pool.run_until(self.stop.0, chunks, &work);
    }
}

/// One buffer a thread, as large as the largest kernel of a plan asked for.
#[derive(Debug)]
pub struct Scratch {
    buffers: Vec<Mutex<Buffer>>,
    floats: usize,
}

impl Scratch {
    /// `None` when the memory cannot be had.
    pub fn new(threads: usize, floats: usize) -> Option<Scratch> {
        let buffers = (0..threads.max(1)).map(|_| Some(Mutex::new(Buffer::floats(floats)?))).collect::<Option<_>>()?;
        Some(Scratch { buffers, floats })
    }
    /// How many threads have some.
    pub fn threads(&self) -> usize {
        self.buffers.len()
    }
    /// Floats of one thread.
    pub fn floats(&self) -> usize {
        self.floats
    }
    /// The memory of a thread. Its content is whatever the last kernel left there.
    pub fn of(&self, thread: usize) -> ScratchGuard<'_> {
        ScratchGuard(self.buffers[thread].lock().unwrap_or_else(|e| e.into_inner()))
    }
}

/// A thread's scratch while a kernel uses it.
#[derive(Debug)]
pub struct ScratchGuard<'a>(MutexGuard<'a, Buffer>);

impl std::ops::Deref for ScratchGuard<'_> {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        self.0.as_floats()
    }
}

impl std::ops::DerefMut for ScratchGuard<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.0.as_floats_mut()
    }
}
