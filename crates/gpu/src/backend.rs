//! An OpenCL device as a backend of plans: its builders, what they fuse, its memory and queues.

use crate::launch::Launches;
use crate::machine::{ALIGNMENT, Machine};
use crate::memory::{GpuMemory, Io};
use crate::programs::{KernelCode, Source};
use crate::steps::{self, elementwise, movement};
use crate::streams::Stream;
use crate::weights::Weights;
use carafe_graph::{Op, Result, normalize_axis};
use carafe_opencl::Buffer;
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_plan::elementwise::Elt;
use carafe_plan::{
    Backend, Built, Form, Fusing, Grid, Known, Layout, MemoryKind, Parts, Port, RowStrides, Site, Step,
    TransposedReads, model_precision,
};
use carafe_tensor::{ElementType, Tensor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How models of one compilation are built and run.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) machine: Arc<Machine>,
    pub(crate) weights: Arc<Weights>,
    /// Whether floats lie as f16 in the device's memory.
    pub(crate) half: bool,
    /// Whether plans are only looked at: nothing is built and nothing uploaded.
    pub(crate) dry: bool,
    /// Where built programs are kept.
    pub(crate) folder: Option<PathBuf>,
    /// Whether the launches of a plan are recorded as one command.
    pub(crate) records: bool,
}

/// What builders share while a plan is made.
#[derive(Debug)]
pub(crate) struct BuildCx {
    pub(crate) machine: Arc<Machine>,
    pub(crate) weights: Arc<Weights>,
    /// Whether floats lie as f16 in the device's memory.
    pub(crate) half: bool,
    dry: bool,
    folder: Option<PathBuf>,
}

impl BuildCx {
    /// A kernel of a file of `kernels/`, with these macros. Programs are the fewer, the more sizes are arguments.
    pub(crate) fn kernel(&self, source: &Source, name: &str, macros: &[(&str, String)]) -> Result<Arc<KernelCode>> {
        self.generated(source.0, source.text(), name, macros)
    }

    /// A kernel of source that was made up; `what` names it in errors.
    pub(crate) fn generated(
        &self,
        what: &str,
        source: &str,
        name: &str,
        macros: &[(&str, String)],
    ) -> Result<Arc<KernelCode>> {
        if self.dry {
            return Ok(Arc::new(KernelCode::dry(name)));
        }
        let mut defined = String::new();
        let own = [("HALF_DATA", self.half), ("HAS_DOUBLE", self.has_double())];
        own.iter().filter(|(_, is)| *is).for_each(|(name, _)| defined += &format!("#define {name} 1\n"));
        macros.iter().for_each(|(name, value)| defined += &format!("#define {name} {value}\n"));
        self.machine.programs.kernel(what, &defined, source, name, self.folder.as_deref())
    }

    /// A kernel of a user's source, built as it stands. A missing one is an error here, not when it first runs.
    pub(crate) fn custom(&self, source: &str, options: &str, name: &str) -> Result<Arc<KernelCode>> {
        if self.dry {
            return Ok(Arc::new(KernelCode::dry(name)));
        }
        let program = self.machine.programs.program(source, options, self.folder.as_deref())?;
        let code = KernelCode::of(program, name);
        code.create().map_err(|e| {
            let why = format!("the source has no kernel `{name}`, which `entry` of <Kernel> names ({e})");
            carafe_graph::Error::invalid(why)
        })?;
        Ok(Arc::new(code))
    }

    /// Constants on the device in the form that a kernel wants: `form` says all that it depends on besides the constants.
    pub(crate) fn packed(
        &self,
        form: &str,
        constants: &[&Tensor],
        bytes: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<Buffer>> {
        if self.dry { Ok(self.machine.nothing.clone()) } else { self.weights.get(form, constants, bytes) }
    }

    /// The type in which values of a type lie on the device.
    pub(crate) fn stored(&self, ty: ElementType) -> ElementType {
        if self.half && ty == ElementType::F32 { ElementType::F16 } else { ty }
    }
    /// The form in which a value lies on the device.
    pub(crate) fn form(&self, port: &Port, layout: Layout) -> Form {
        match self.stored(port.ty) {
            ty if ty == port.ty => layout.into(),
            ty => Form::typed(layout, ty),
        }
    }
    /// Where what is built and measured is kept; nowhere while nothing is to run.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|_| !self.dry)
    }
    /// Items of a group for work that is the same everywhere.
    pub(crate) fn group(&self) -> usize {
        self.machine.group()
    }
    /// Whether the device computes in f64.
    pub(crate) fn has_double(&self) -> bool {
        self.machine.info().has("cl_khr_fp64")
    }
}

/// A stream while a plan runs on it.
#[derive(Debug)]
pub(crate) struct GpuExec {
    pub(crate) stream: Arc<Stream>,
    pub(crate) weights: Arc<Weights>,
    pub(crate) records: bool,
}

impl Fusing for Gpu {
    fn epilogue_axis(&self, op: &dyn Op, rank: usize) -> Option<usize> {
        normalize_axis(op.info().channel?, rank).ok()
    }
    fn reads_transposed(&self, op: &dyn Op, ty: ElementType) -> Option<TransposedReads> {
        let (inputs, columns) = match () {
            _ if op.is::<ScaledDotProductAttention>() => (3, false),
            _ if op.is::<MatMul>() => (2, true),
            _ => return None,
        };
        (ty == ElementType::F32).then_some(TransposedReads { inputs, columns })
    }
    fn fuses(&self, function: &Elt, ty: ElementType) -> bool {
        elementwise::fuses(function, ty)
    }
    fn precision(&self, _op: &dyn Op, inputs: &[Known<'_>], outputs: &[Known<'_>]) -> ElementType {
        match model_precision(inputs, outputs) {
            ElementType::F32 if self.half => ElementType::F16,
            ty => ty,
        }
    }
}

impl Backend for Gpu {
    const MAX_OPERANDS: usize = 32;
    const MEMORY: MemoryKind = MemoryKind::Arena { alignment: ALIGNMENT };
    const PLANS_BY_VALUE: bool = true;

    type BuildCx = BuildCx;
    type Memory = GpuMemory;
    type Stream = Arc<Stream>;
    type Exec = GpuExec;
    type Io<'a> = Io<'a>;

    fn build_cx(&self) -> BuildCx {
        BuildCx {
            machine: self.machine.clone(),
            weights: self.weights.clone(),
            half: self.half,
            dry: self.dry,
            folder: self.folder.clone(),
        }
    }
    fn build(&self, site: &Site<'_, Gpu>) -> Result<Option<Built<Gpu>>> {
        steps::build(site)
    }
    fn reorder(&self, shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Gpu>> {
        movement::reorder(&self.build_cx(), shape, ty, from, to)
    }
    fn convert(&self, len: usize, from: ElementType, to: ElementType, _: Option<Grid>) -> Result<Arc<dyn Step<Gpu>>> {
        Ok(Arc::new(elementwise::convert(&self.build_cx(), len, from, to)?))
    }
    fn move_parts(&self, parts: Parts, _strides: &RowStrides) -> Arc<dyn Step<Gpu>> {
        movement::parts_step(&self.build_cx(), parts)
    }
    fn enter(&self, stream: &Arc<Stream>, _scratch: usize, _cancel: Option<Arc<AtomicBool>>) -> Result<GpuExec> {
        Ok(GpuExec { stream: stream.clone(), weights: self.weights.clone(), records: self.records })
    }
    fn on_host<R>(&self, _stream: &Arc<Stream>, work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// A step that could not be built; running it tells why. For places that cannot answer with an error.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) carafe_graph::Error);

impl Step<Gpu> for Failed {
    fn kernel(&self) -> String {
        "failed".into()
    }
    fn run(&self, _io: &mut Io<'_>) -> Result<()> {
        Err(self.0.clone())
    }
}

/// A step, or one that tells why there is none.
pub(crate) fn or_failed(step: Result<Launches>) -> Arc<dyn Step<Gpu>> {
    match step {
        Ok(step) => Arc::new(step),
        Err(e) => Arc::new(Failed(e)),
    }
}
