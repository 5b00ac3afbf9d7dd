//! Streams of a device: queues.

use crate::error::told;
use crate::machine::Machine;
use carafe_graph::Result;
use carafe_opencl::{Queue, Read};
use carafe_plan::Streams;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue of one inference at a time.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) queue: Queue,
    /// Whether anything was enqueued that nobody waited for.
    busy: AtomicBool,
}

impl Stream {
    /// Whether something may be under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }
    /// Says that something was enqueued.
    pub(crate) fn set_busy(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }
    /// Copies ranges of buffers to the host and waits for all that was enqueued; does nothing when nothing was.
    pub(crate) fn settle(&self, reads: &mut [Read<'_>]) -> Result<()> {
        if self.busy.load(Ordering::Relaxed) || !reads.is_empty() {
            self.queue.read(reads).map_err(told)?;
            self.busy.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// So many queues of a device.
pub(crate) fn streams(machine: &Machine, count: usize, profiled: bool) -> Result<Arc<Streams<Arc<Stream>>>> {
    let stream = |_| {
        let queue = Queue::new(&machine.context, profiled).map_err(told)?;
        Ok(Arc::new(Stream { queue, busy: AtomicBool::new(false) }))
    };
    Ok(Streams::new((0..count.max(1)).map(stream).collect::<Result<_>>()?))
}
