//! Streams of a device: queues.

use crate::error::told;
use crate::machine::Machine;
use carafe_graph::Result;
use carafe_opencl::Queue;
use carafe_plan::Streams;
use std::sync::Arc;

/// A queue of one inference at a time.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) queue: Queue,
}

/// So many queues of a device.
pub(crate) fn streams(machine: &Machine, count: usize, profiled: bool) -> Result<Arc<Streams<Arc<Stream>>>> {
    let stream = |_| Ok(Arc::new(Stream { queue: Queue::new(&machine.context, profiled).map_err(told)? }));
    Ok(Streams::new((0..count.max(1)).map(stream).collect::<Result<_>>()?))
}
