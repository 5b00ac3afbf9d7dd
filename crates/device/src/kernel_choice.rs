//! Asks kernels of extensions for a node, judges the layouts they offer, and runs the one that was chosen between plain tensors.

use crate::kernel::{Config, Kernel, PortLayout, PreparedKernel, Site};
use carafe_graph::{Error, Fact, Result, panic_text};
use carafe_tensor::{ElementType, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// A kernel that runs a node.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    /// The library it came from.
    library: Option<String>,
    config: Config,
    prepared: Arc<Mutex<Box<dyn PreparedKernel>>>,
}

/// What came of asking.
pub(crate) struct Asked {
    /// `None` when no kernel takes the node.
    pub(crate) chosen: Option<Chosen>,
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

fn prepare(kernel: &Arc<dyn Kernel>, site: &Site) -> Result<Option<Chosen>, String> {
    let configs = guarded("configs", || kernel.configs(site))?;
    let mut invalid = vec![];
    for (i, config) in configs.iter().enumerate() {
        match judge(config, site) {
            Judged::Serves => {
                let prepared = Arc::new(Mutex::new(guarded("init", || kernel.init(site, i))?));
                let (name, library) = (kernel.name().to_string(), kernel.library().map(str::to_string));
                return Ok(Some(Chosen { name, library, config: config.clone(), prepared }));
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
    let counts = [config.inputs.len(), config.outputs.len()];
    if counts != [site.inputs.len(), site.outputs.len()] {
        let [inputs, outputs] = counts;
        let wanted = format!("{} and {}", site.inputs.len(), site.outputs.len());
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
    if let Some(b) = &layout.blocked {
        let shown = || format!("blocks {:?} in order {:?}", b.blocks, b.order);
        if b.blocks.len() != b.order.len() {
            return Judged::Invalid(format!("{} are not of one length", shown()));
        }
        match fact.shape.to_static() {
            Some(shape) if !b.fits(&shape) => return Judged::Invalid(format!("{} do not hold {shape:?}", shown())),
            Some(_) => {}
            None => return Judged::NotHere,
        }
    }
    if layout.constant && fact.tensor().is_none() { Judged::NotHere } else { Judged::Serves }
}

impl Chosen {
    /// Runs on plain tensors; results are plain and of the types and shapes in `facts`.
    pub(crate) fn execute(&self, inputs: &[Tensor], facts: &[Fact]) -> Result<Vec<Tensor>> {
        let mut formed = Vec::with_capacity(inputs.len());
        for (t, layout) in inputs.iter().zip(&self.config.inputs) {
            let t = if t.element_type() == layout.ty { t.clone() } else { t.cast(layout.ty)? };
            formed.push(match &layout.blocked {
                Some(b) => b.pack(&t)?,
                None => t,
            });
        }
        let typed = |(fact, layout): (&Fact, &PortLayout)| Fact { ty: layout.ty, ..fact.clone() };
        let wanted: Vec<Fact> = facts.iter().zip(&self.config.outputs).map(typed).collect();
        let outputs = {
            let mut kernel = self.prepared.lock().unwrap_or_else(|e| e.into_inner());
            kernel.execute(&formed, &wanted)?
        };
        if outputs.len() != facts.len() {
            let (found, wanted) = (outputs.len(), facts.len());
            return Err(Error::invalid(format!("{} gave {found} outputs, promised {wanted}", self.shown())));
        }
        let plain = |(i, output): (usize, Tensor)| self.plain(i, output, &facts[i]);
        outputs.into_iter().enumerate().map(plain).collect()
    }

    fn shown(&self) -> String {
        let library = self.library.as_ref().map_or(String::new(), |l| format!(" of `{l}`"));
        format!("kernel `{}`{library}", self.name)
    }

    // An output in the form that was promised, as a plain tensor.
    fn plain(&self, i: usize, output: Tensor, fact: &Fact) -> Result<Tensor> {
        let layout = &self.config.outputs[i];
        let shape = fact.shape.to_static();
        let fits = match &layout.blocked {
            Some(b) => carafe_tensor::elements(&b.blocks) == Some(output.len()),
            None => shape.as_ref().is_none_or(|s| s == output.shape()),
        };
        if output.element_type() != layout.ty || !fits {
            let form = match &layout.blocked {
                Some(b) => format!("blocks {:?}", b.blocks),
                None => format!("[{}]", fact.shape),
            };
            let found = format!("{}{:?}", output.element_type(), output.shape());
            let (kernel, ty) = (self.shown(), layout.ty);
            return Err(Error::invalid(format!("{kernel} gave output {i} as {found}, promised {ty}{form}")));
        }
        let plain = match (&layout.blocked, shape) {
            (Some(b), Some(shape)) => b.unpack(&output, &shape)?,
            _ => output,
        };
        Ok(if fact.ty.is_dynamic() || plain.element_type() == fact.ty { plain } else { plain.cast(fact.ty)? })
    }
}
