//! Streams: queues of the device, each busy with one inference at a time. A request takes a free one for the length of an
//! inference, so more requests than streams wait in line.

use crate::error::told;
use crate::machine::Machine;
use carafe_graph::Result;
use carafe_opencl::Queue;
use carafe_plan::cancelled;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A queue of one inference at a time.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) queue: Queue,
}

/// How often a request that waits for a stream looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// All streams of a compiled model.
#[derive(Debug)]
pub(crate) struct Streams {
    free: Mutex<Vec<Arc<Stream>>>,
    freed: Condvar,
}

/// A stream while an inference has it.
#[derive(Debug)]
pub(crate) struct Lease {
    stream: Arc<Stream>,
    home: Arc<Streams>,
}

impl Streams {
    pub(crate) fn new(machine: &Machine, count: usize, profiled: bool) -> Result<Arc<Streams>> {
        let stream = |_| Ok(Arc::new(Stream { queue: Queue::new(&machine.context, profiled).map_err(told)? }));
        let free = (0..count.max(1)).map(stream).collect::<Result<_>>()?;
        Ok(Arc::new(Streams { free: Mutex::new(free), freed: Condvar::new() }))
    }
    /// Waits for a free stream, or for the request to be cancelled.
    pub(crate) fn lease(self: &Arc<Self>, cancel: &AtomicBool) -> Result<Lease> {
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(stream) = free.pop() {
                return Ok(Lease { stream, home: self.clone() });
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(cancelled());
            }
            // Nobody rings when a request is cancelled, so it looks now and then.
            free = self.freed.wait_timeout(free, LOOK).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

impl Lease {
    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.home.free.lock().unwrap_or_else(|e| e.into_inner()).push(self.stream.clone());
        self.home.freed.notify_one();
    }
}
