//! Memory and threads of a kernel while it runs.

use crate::kernel::{Config, Site};
use crate::kernel_layout::Layout;
use carafe_graph::{Error, Fact, Result};
use carafe_tensor::{Element, ElementType};
use std::sync::Mutex;

/// How the elements of one port lie in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Element type.
    pub ty: ElementType,
    /// Order of the elements.
    pub layout: Layout,
    /// Dimensions in memory: those of a blocked layout are its blocks.
    pub dims: Vec<usize>,
    /// Shape as the model says.
    pub plain: Vec<usize>,
}

/// The forms of all ports of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forms {
    /// Of the inputs of the configuration.
    pub inputs: Vec<Form>,
    /// Of its outputs.
    pub outputs: Vec<Form>,
}

impl Forms {
    /// What a configuration means at a site; `None` where a shape is not known.
    pub fn of(config: &Config, site: &Site) -> Option<Forms> {
        let form = |(port, fact): (&crate::PortLayout, &Fact)| {
            let plain = fact.shape.to_static()?;
            let dims = port.layout.dims(&plain);
            Some(Form { ty: port.ty, layout: port.layout.clone(), dims, plain })
        };
        let inputs = config.inputs.iter().zip(&site.inputs).map(form).collect::<Option<_>>()?;
        Some(Forms { inputs, outputs: config.outputs.iter().zip(&site.outputs).map(form).collect::<Option<_>>()? })
    }
}

/// Threads that share the loop of a kernel, each with its scratch.
pub trait KernelThreads: Sync {
    /// How many there are.
    fn threads(&self) -> usize;
    /// Calls `body(part, scratch)` once for each part from 0 on and returns when all are done.
    fn each(&self, parts: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync));
}

/// What a kernel reads and writes. Slices lie in the memory that the device planned: in tensors of the user, in its arena.
pub struct KernelIo<'a, 'm> {
    /// Inputs of the configuration, in their forms.
    pub inputs: &'a [&'m [u8]],
    /// Outputs of the configuration, to be filled; they hold anything before.
    pub outputs: &'a mut [&'m mut [u8]],
    /// Bytes that the configuration asked for; they hold anything before.
    pub workspace: &'a mut [u8],
    /// The input whose bytes stand in output 0 before it is written; its own slice is empty. Only where the configuration
    /// allows it.
    pub in_place: Option<usize>,
    /// Types and dimensions of inputs and outputs.
    pub forms: &'a Forms,
    /// Threads of this inference.
    pub threads: &'a dyn KernelThreads,
}

impl std::fmt::Debug for KernelIo<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KernelIo({} inputs, {} outputs)", self.inputs.len(), self.outputs.len())
    }
}

impl<'m> KernelIo<'_, 'm> {
    /// An input as elements. Empty where the output has its memory.
    pub fn input<T: Element>(&self, i: usize) -> Result<&'m [T]> {
        let bytes = self.inputs.get(i).ok_or_else(|| no_port("input", i, self.inputs.len()))?;
        // What lies in the output is empty here, at no address to speak of.
        if bytes.is_empty() { Ok(&[]) } else { bytemuck::try_cast_slice(bytes).map_err(|_| wrong_type("input", i)) }
    }
    /// An output as elements.
    pub fn output<T: Element>(&mut self, i: usize) -> Result<&mut [T]> {
        let n = self.outputs.len();
        let bytes = self.outputs.get_mut(i).ok_or_else(|| no_port("output", i, n))?;
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        bytemuck::try_cast_slice_mut(bytes).map_err(|_| wrong_type("output", i))
    }
    /// Output 0 is a function of each element of an input, on all threads, in place or not.
    pub fn map<T: Element>(&mut self, input: usize, f: impl Fn(T) -> T + Sync) -> Result<()> {
        let threads = self.threads;
        let from = if self.in_place == Some(input) { None } else { Some(self.input::<T>(input)?) };
        let to = self.output::<T>(0)?;
        if from.is_some_and(|from| from.len() != to.len()) {
            return Err(Error::invalid("input and output of an elementwise kernel differ in length"));
        }
        let part = to.len().div_ceil(threads.threads().max(1)).max(MIN_PART);
        each_chunk(threads, to, part, |i, to, _| match from {
            Some(from) => to.iter_mut().zip(&from[i * part..]).for_each(|(y, x)| *y = f(*x)),
            None => to.iter_mut().for_each(|y| *y = f(*y)),
        });
        Ok(())
    }
    /// Calls `body(part, scratch)` once for each part from 0 on, on all threads, and returns when all are done.
    pub fn each(&self, parts: usize, body: impl Fn(usize, &mut [u8]) + Sync) {
        self.threads.each(parts, &body);
    }
}

/// Elements below which a part is not worth a thread.
const MIN_PART: usize = 4096;

/// Calls `body(i, chunk, scratch)` for each chunk of so many elements, on all threads.
pub fn each_chunk<T: Send>(
    threads: &dyn KernelThreads,
    slice: &mut [T],
    len: usize,
    body: impl Fn(usize, &mut [T], &mut [u8]) + Sync,
) {
    let parts = slice.len().div_ceil(len.max(1));
    let chunks = Mutex::new(slice.chunks_mut(len.max(1)).enumerate());
    threads.each(parts, &|_, scratch| {
        let next = chunks.lock().unwrap_or_else(|e| e.into_inner()).next();
        if let Some((i, chunk)) = next {
            body(i, chunk, scratch);
        }
    });
}

fn no_port(what: &str, i: usize, n: usize) -> Error {
    Error::usage(format!("{what} {i} was asked for, there are {n}"))
}

fn wrong_type(what: &str, i: usize) -> Error {
    Error::usage(format!("{what} {i} is no list of elements of this type"))
}

/// The threads that are lent to this thread, or this thread alone; scratch is made for each part.
pub(crate) struct LentThreads {
    pub(crate) scratch: usize,
}

impl KernelThreads for LentThreads {
    fn threads(&self) -> usize {
        crate::parallel().map_or(1, |p| p.threads())
    }
    fn each(&self, parts: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let part = |i: usize| body(i, &mut vec![0; self.scratch]);
        match crate::parallel() {
            Some(threads) => threads.run(parts, &part),
            None => (0..parts).for_each(part),
        }
    }
}
