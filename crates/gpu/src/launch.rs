//! A step of this device: kernels that are enqueued one after the other. What a builder gives is independent of requests; when a
//! request runs a plan for the first time, each launch becomes a kernel object whose arguments are set for good.

use crate::backend::Gpu;
use crate::error::told;
use crate::memory::Io;
use crate::programs::KernelCode;
use carafe_graph::Result;
use carafe_opencl::{Buffer, Kernel, Recorded};
use carafe_plan::{Built, Form, Parts, Step, Work};
use std::sync::Arc;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// A value that the step reads, by its index among the reads.
    Read(usize),
    /// A value that the step writes, by its index among the writes.
    Write(usize),
    /// A range of the step's workspace: the first byte, a multiple of [`crate::machine::ALIGNMENT`], and bytes.
    Workspace(usize, usize),
    /// A constant, such as packed weights.
    Buffer(Arc<Buffer>),
    /// A whole number.
    Int(i32),
    /// A number.
    Float(f32),
    /// A value of any other type.
    Value(Vec<u8>),
    /// So many bytes of the memory that a group shares.
    Local(usize),
    /// Where `refuse` of `common.cl` tells the host what it met.
    Faults,
    /// The number by which `refuse` names the step.
    Step,
}

impl From<i32> for Arg {
    fn from(n: i32) -> Arg {
        Arg::Int(n)
    }
}

impl From<f32> for Arg {
    fn from(x: f32) -> Arg {
        Arg::Float(x)
    }
}

impl From<usize> for Arg {
    /// Sizes of what is computed fit, see `steps::build`.
    fn from(n: usize) -> Arg {
        Arg::Int(n as i32)
    }
}

impl From<Arc<Buffer>> for Arg {
    fn from(buffer: Arc<Buffer>) -> Arg {
        Arg::Buffer(buffer)
    }
}

/// A kernel over so many items.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Arc<KernelCode>,
    pub(crate) args: Vec<Arg>,
    /// Items along each axis; 1 for axes that are not used.
    pub(crate) global: [usize; 3],
    /// Items of a group; the driver chooses when `None`.
    pub(crate) local: Option<[usize; 3]>,
}

impl Launch {
    /// One item for each of so many, in groups of `group`; the last group may have more than there are.
    pub(crate) fn flat(kernel: &Arc<KernelCode>, args: Vec<Arg>, count: usize, group: usize) -> Launch {
        let global = [count.next_multiple_of(group), 1, 1];
        Launch { kernel: kernel.clone(), args, global, local: Some([group, 1, 1]) }
    }
    /// One item for each of so many along three axes, in groups of at most `most` that are wide along the first; the last groups
    /// may have more than there are.
    pub(crate) fn plane(kernel: &Arc<KernelCode>, args: Vec<Arg>, count: [usize; 3], most: usize) -> Launch {
        let wide = count[0].next_power_of_two().min(64).min(most.max(1));
        let high = (most / wide).max(1).min(count[1].next_power_of_two());
        let global = [count[0].next_multiple_of(wide), count[1].next_multiple_of(high), count[2]];
        Launch { kernel: kernel.clone(), args, global, local: Some([wide, high, 1]) }
    }
}

/// A launch of one request: its kernel has the request's memory for arguments.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) kernel: Kernel,
    pub(crate) global: [usize; 3],
    pub(crate) local: Option<[usize; 3]>,
}

impl Bound {
    /// As a command that can be recorded.
    pub(crate) fn recorded(&self) -> Recorded<'_> {
        Recorded { kernel: &self.kernel, global: self.global, local: self.local }
    }
}

/// The step that most builders give.
#[derive(Clone, Debug)]
pub(crate) struct Launches {
    name: String,
    launches: Vec<Launch>,
    /// Reads that it may write its result over.
    over: Vec<usize>,
    parts: Option<Parts>,
    shows_precision: bool,
}

impl Launches {
    pub(crate) fn new(name: impl Into<String>, launches: Vec<Launch>) -> Launches {
        Launches { name: name.into(), launches, over: vec![], parts: None, shows_precision: true }
    }
    /// It may write its result over these reads: an item reads of them only what it then writes.
    pub(crate) fn over(mut self, reads: Vec<usize>) -> Launches {
        self.over = reads;
        self
    }
    /// It only joins or cuts.
    pub(crate) fn moving(mut self, parts: Parts) -> Launches {
        self.parts = Some(parts);
        self
    }
    /// Its name says what it computes in.
    pub(crate) fn named_as_is(mut self) -> Launches {
        self.shows_precision = false;
        self
    }
    /// The answer of a builder: inputs that it reads, each in a form, and the forms of the outputs.
    pub(crate) fn built(
        self,
        reads: impl IntoIterator<Item = (usize, Form)>,
        outputs: impl IntoIterator<Item = Form>,
    ) -> Built<Gpu> {
        Built::new(Work::Step(Arc::new(self)), reads, outputs)
    }
}

impl Step<Gpu> for Launches {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn shows_precision(&self) -> bool {
        self.shows_precision
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.over.contains(&read)
    }
    fn parts(&self) -> Option<Parts> {
        self.parts.clone()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        if !io.is_bound() {
            let bound = self.launches.iter().map(|launch| bind(launch, io)).collect::<Result<_>>()?;
            io.set_bound(bound);
        }
        io.enqueue()
    }
}

fn bind(launch: &Launch, io: &mut Io<'_>) -> Result<Bound> {
    let mut kernel = launch.kernel.create()?;
    for (i, arg) in launch.args.iter().enumerate() {
        let set = match arg {
            Arg::Read(at) => kernel.set_buffer(i, &io.read(*at)?),
            Arg::Write(at) => kernel.set_buffer(i, &io.write(*at)?),
            Arg::Workspace(start, len) => kernel.set_buffer(i, &io.workspace(*start, *len)?),
            Arg::Buffer(buffer) => kernel.set_buffer(i, buffer),
            Arg::Int(n) => kernel.set_value(i, &n.to_ne_bytes()),
            Arg::Float(x) => kernel.set_value(i, &x.to_ne_bytes()),
            Arg::Value(bytes) => kernel.set_value(i, bytes),
            Arg::Local(bytes) => kernel.set_local(i, *bytes),
            Arg::Faults => kernel.set_buffer(i, &io.faults()?),
            Arg::Step => kernel.set_value(i, &io.number().to_ne_bytes()),
        };
        set.map_err(told)?;
    }
    Ok(Bound { kernel, global: launch.global, local: launch.local })
}
