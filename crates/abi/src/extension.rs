//! What an extension brings, whether it came out of a library or was made in the program itself. `Core` treats both alike.

use carafe_device::{ClKernel, Kernel};
use carafe_frontend::{Mapping, Rule};
use carafe_graph::{OpFactory, OpNew, PhasedPass, Replacement};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Hears of progress: part done (0 to 1), steps in all, steps done.
pub type Progress = dyn Fn(f32, u32, u32) + Send + Sync;

/// Hears of events: kind (`event`, `error`, `stack_trace`), category, action, label, value.
pub type Telemetry = dyn Fn(&str, &str, &str, &str, i64) + Send + Sync;

/// Everything one extension adds.
#[derive(Clone, Default)]
pub struct Extension {
    pub name: String,
    pub version: String,
    /// The library it came from.
    pub path: Option<PathBuf>,
    pub ops: Vec<OpFactory>,
    pub rules: Vec<Rule>,
    pub mappings: Vec<Mapping>,
    pub passes: Vec<PhasedPass>,
    pub replacements: Vec<Arc<dyn Replacement>>,
    pub kernels: Vec<Arc<dyn Kernel>>,
    pub cl_kernels: Vec<ClKernel>,
    pub progress: Vec<Arc<Progress>>,
    pub telemetry: Vec<Arc<Telemetry>>,
}

impl Extension {
    pub fn new(name: impl Into<String>) -> Extension {
        Extension { name: name.into(), ..Extension::default() }
    }
    #[must_use]
    pub fn op<T: OpNew>(mut self) -> Extension {
        self.ops.push(OpFactory::of::<T>());
        self
    }
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Extension {
        self.rules.push(rule);
        self
    }
    #[must_use]
    pub fn mapping(mut self, mapping: Mapping) -> Extension {
        self.mappings.push(mapping);
        self
    }
    #[must_use]
    pub fn pass(mut self, pass: PhasedPass) -> Extension {
        self.passes.push(pass);
        self
    }
    #[must_use]
    pub fn replacement(mut self, replacement: Arc<dyn Replacement>) -> Extension {
        self.replacements.push(replacement);
        self
    }
    #[must_use]
    pub fn kernel(mut self, kernel: Arc<dyn Kernel>) -> Extension {
        self.kernels.push(kernel);
        self
    }
    /// An OpenCL kernel for `GPU` or `VPU`: its description, as in a kernel file, and the source that the description names.
    #[must_use]
    pub fn cl_kernel(mut self, device: &str, xml: &str, source: &str) -> Extension {
        self.cl_kernels.push(ClKernel { device: device.into(), xml: xml.into(), source: source.into() });
        self
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("path", &self.path)
            .field("ops", &self.ops)
            .field("rules", &self.rules)
            .field("mappings", &self.mappings)
            .field("passes", &self.passes)
            .field("replacements", &self.replacements.iter().map(|r| r.id()).collect::<Vec<_>>())
            .field("kernels", &self.kernels.len())
            .field("cl_kernels", &self.cl_kernels.len())
            .finish_non_exhaustive()
    }
}
