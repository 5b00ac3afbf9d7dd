//! Asks kernels of extensions for a node, judges what they offer, and runs the one that was chosen between plain tensors.

use crate::kernel::{Config, Kernel, PortLayout, PreparedKernel, Site};
use crate::kernel_io::{Form, Forms, KernelIo, LentThreads};
use crate::kernel_layout::Layout;
use carafe_graph::{Error, Fact, Result, panic_text};
use carafe_tensor::{ElementType, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A kernel that runs a node. All streams share it.
#[derive(Clone)]
pub struct ChosenKernel {
    name: String,
    /// The library it came from.
    library: Option<String>,
    config: Config,
    /// `None` where shapes were open when it was asked.
    forms: Option<Forms>,
    prepared: Arc<dyn PreparedKernel>,
}

impl std::fmt::Debug for ChosenKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {:?}", self.shown(), self.config)
    }
}

/// What came of asking.
pub(crate) struct Asked {
    /// `None` when no kernel takes the node.
    pub(crate) chosen: Option<ChosenKernel>,
    /// Why the first kernel that should take it could not, whoever takes it instead.
    pub(crate) trouble: Option<String>,
}

/// Asks one after another.
pub(crate) fn ask(kernels: &[Arc<dyn Kernel>], site: &Site) -> Asked {
    let mut asked = Asked { chosen: None, trouble: None };
    for kernel in kernels {
        match prepare(kernel, site) {
            Ok(None) => {}
            Ok(chosen) => {
                asked.chosen = chosen;
                break;
            }
            Err(trouble) => {
                kernel.report(site, &trouble);
                asked.trouble.get_or_insert(format!("kernel `{}` cannot run it: {trouble}", kernel.name()));
            }
        }
    }
    asked
}

fn prepare(kernel: &Arc<dyn Kernel>, site: &Site) -> Result<Option<ChosenKernel>, String> {
    let alone;
    let site = if kernel.fuses() || site.epilogue.is_empty() {
        site
    } else {
        alone = site.without_epilogue();
        &alone
    };
    let configs = guarded("configs", || kernel.configs(site))?;
    let mut invalid = vec![];
    for (i, config) in configs.iter().enumerate() {
        match judge(config, site) {
            Judged::Serves => {
                let prepared = guarded("init", || kernel.init(site, i))?;
                return Ok(Some(ChosenKernel::new(&**kernel, site, config, prepared)));
            }
            Judged::NotHere => {}
            Judged::Invalid(why) => invalid.push(format!("configuration {i}: {why}")),
        }
    }
    if invalid.is_empty() { Ok(None) } else { Err(format!("it offers no usable layout; {}", invalid.join("; "))) }
}

fn guarded<T>(what: &str, call: impl FnOnce() -> Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|e| format!("`{what}` failed: {e}")),
        Err(payload) => Err(format!("`{what}` panicked: {}", panic_text(payload))),
    }
}

enum Judged {
    Serves,
    /// It asks for what this node does not have: a shape that is known, a constant.
    NotHere,
    Invalid(String),
}

fn judge(config: &Config, site: &Site) -> Judged {
    if config.epilogue > site.epilogue.len() {
        let (taken, offered) = (config.epilogue, site.epilogue.len());
        return Judged::Invalid(format!("{taken} operations of the epilogue, of {offered}"));
    }
    let counts = [config.inputs.len(), config.outputs.len()];
    let read = site.inputs_with(config.epilogue);
    if counts != [read, site.outputs.len()] {
        let [inputs, outputs] = counts;
        let wanted = format!("{read} and {}", site.outputs.len());
        return Judged::Invalid(format!("{inputs} inputs and {outputs} outputs for a node with {wanted}"));
    }
    let mut all = Judged::Serves;
    let inputs = config.inputs.iter().zip(&site.inputs).enumerate().map(|(i, port)| (format!("input {i}"), port));
    let outputs = config.outputs.iter().zip(&site.outputs).enumerate().map(|(i, port)| (format!("output {i}"), port));
    for (what, (layout, fact)) in inputs.chain(outputs) {
        match judge_port(layout, fact, counts[0]) {
            Judged::Serves => {}
            Judged::NotHere => all = Judged::NotHere,
            Judged::Invalid(why) => return Judged::Invalid(format!("{what}: {why}")),
        }
    }
    all
}

fn judge_port(layout: &PortLayout, fact: &Fact, inputs: usize) -> Judged {
    let number = |ty: ElementType| ty.is_float() || ty.is_integer() || ty == ElementType::Boolean;
    if layout.ty.is_dynamic()
        || (layout.ty != fact.ty && !(number(layout.ty) && (number(fact.ty) || fact.ty.is_dynamic())))
    {
        return Judged::Invalid(format!("{} for a value of {}", layout.ty, fact.ty));
    }
    if let Some(i) = layout.in_place.filter(|i| *i >= inputs) {
        return Judged::Invalid(format!("in place of input {i}, of {inputs}"));
    }
    if matches!(&layout.layout, Layout::Other(b) if b.blocks.len() != b.order.len()) {
        return Judged::Invalid(format!("{} are not of one length", layout.layout));
    }
    if layout.layout != Layout::Plain {
        match fact.shape.to_static() {
            Some(shape) if !layout.layout.blocked(&shape).fits(&shape) => {
                return Judged::Invalid(format!("{} do not hold {shape:?}", layout.layout));
            }
            Some(_) => {}
            None => return Judged::NotHere,
        }
    }
    if layout.constant && fact.tensor().is_none() { Judged::NotHere } else { Judged::Serves }
}

// Whether all that a kernel touches is bytes of known length.
fn holds_bytes(forms: &Forms) -> bool {
    forms.inputs.iter().chain(&forms.outputs).all(|form| form.ty != ElementType::String)
}

impl ChosenKernel {
    fn new(kernel: &dyn Kernel, site: &Site, config: &Config, prepared: Box<dyn PreparedKernel>) -> ChosenKernel {
        ChosenKernel {
            name: kernel.name().to_string(),
            library: kernel.library().map(str::to_string),
            config: config.clone(),
            forms: Forms::of(config, site),
            prepared: Arc::from(prepared),
        }
    }
    /// The kernel for a configuration that it offers for the site, for whoever judges offers himself.
    pub fn of(kernel: &dyn Kernel, site: &Site, config: usize) -> Result<ChosenKernel> {
        let configs = kernel.configs(site)?;
        let offered = configs.get(config);
        let offered = offered.ok_or_else(|| Error::usage(format!("configuration {config} was not offered")))?;
        Ok(ChosenKernel::new(kernel, site, offered, kernel.init(site, config)?))
    }

    /// Shown in reports.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The forms and memory it asked for.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Types and dimensions of its ports; `None` where shapes were open when it was asked.
    pub fn forms(&self) -> Option<&Forms> {
        self.forms.as_ref()
    }
    /// Runs it in planned memory.
    pub fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        self.prepared.execute(io)
    }

    /// Runs on plain tensors; results are plain and of the types and shapes in `facts`.
    pub(crate) fn execute_tensors(&self, inputs: &[Tensor], facts: &[Fact]) -> Result<Vec<Tensor>> {
        let mut formed = Vec::with_capacity(inputs.len());
        for (t, port) in inputs.iter().zip(&self.config.inputs) {
            let t = if t.element_type() == port.ty { t.clone() } else { t.cast(port.ty)? };
            formed.push(port.layout.pack(&t)?);
        }
        let outputs = self.execute_formed(&formed, facts)?;
        if outputs.len() != facts.len() {
            let (found, wanted) = (outputs.len(), facts.len());
            return Err(Error::invalid(format!("{} gave {found} outputs, promised {wanted}", self.shown())));
        }
        let plain = |(i, output): (usize, Tensor)| self.plain(i, output, &facts[i]);
        outputs.into_iter().enumerate().map(plain).collect()
    }

    /// Runs on tensors in the forms of the configuration; results are in them too. `facts` says what else is known of them.
    pub fn execute_formed(&self, inputs: &[Tensor], facts: &[Fact]) -> Result<Vec<Tensor>> {
        match self.forms.as_ref().filter(|forms| holds_bytes(forms)) {
            Some(forms) => self.fill(forms, inputs),
            None => {
                let typed = |(fact, port): (&Fact, &PortLayout)| Fact { ty: port.ty, ..fact.clone() };
                let wanted: Vec<Fact> = facts.iter().zip(&self.config.outputs).map(typed).collect();
                self.prepared.make(inputs, &wanted)
            }
        }
    }

    fn fill(&self, forms: &Forms, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let zeros = |form: &Form| Ok(Tensor::zeros(form.ty, &form.dims)?);
        let mut outputs = forms.outputs.iter().map(zeros).collect::<Result<Vec<Tensor>>>()?;
        let inputs = inputs.iter().map(|t| Ok(t.aligned_bytes()?)).collect::<Result<Vec<&[u8]>>>()?;
        let mut memory: Vec<&mut [u8]> = outputs.iter_mut().map(Tensor::bytes_mut).collect();
        let mut workspace = Tensor::zeros(ElementType::U8, &[self.config.workspace])?;
        self.prepared.execute(&mut KernelIo {
            inputs: &inputs,
            outputs: &mut memory,
            workspace: workspace.bytes_mut(),
            in_place: None,
            forms,
            threads: &LentThreads { scratch: self.config.scratch },
        })?;
        Ok(outputs)
    }

    fn shown(&self) -> String {
        let library = self.library.as_ref().map_or(String::new(), |l| format!(" of `{l}`"));
        format!("kernel `{}`{library}", self.name)
    }

    // An output in the form that was promised, as a plain tensor.
    fn plain(&self, i: usize, output: Tensor, fact: &Fact) -> Result<Tensor> {
        let port = &self.config.outputs[i];
        let shape = fact.shape.to_static();
        let dims = shape.as_ref().map(|s| port.layout.dims(s));
        let fits = match (&port.layout, &dims) {
            (Layout::Plain, dims) => dims.as_ref().is_none_or(|d| d == output.shape()),
            (_, dims) => dims.as_ref().is_some_and(|d| carafe_tensor::elements(d) == Some(output.len())),
        };
        if output.element_type() != port.ty || !fits {
            let form = match (&port.layout, &dims) {
                (Layout::Plain, _) | (_, None) => format!("[{}]", fact.shape),
                (_, Some(dims)) => format!("blocks {dims:?}"),
            };
            let found = format!("{}{:?}", output.element_type(), output.shape());
            let (kernel, ty) = (self.shown(), port.ty);
            return Err(Error::invalid(format!("{kernel} gave output {i} as {found}, promised {ty}{form}")));
        }
        let plain = match shape {
            Some(shape) => port.layout.unpack(&output, &shape)?,
            None => output,
        };
        Ok(if fact.ty.is_dynamic() || plain.element_type() == fact.ty { plain } else { plain.cast(fact.ty)? })
    }
}
