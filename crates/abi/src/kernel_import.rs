//! A kernel behind a table, as a kernel of this side.

use crate::convert::{Arena, attrs_code, fact_code, type_of};
use crate::crossing;
use crate::eval_export::EvalBridge;
use crate::host::tell;
use crate::library::Library;
use crate::op_export::from_host;
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{c_text, items, opt_c_text};
use carafe_device::{Blocked, Config, Kernel, PortLayout, PreparedKernel, Site};
use carafe_graph::{Error, EvalCx, EvalEnv, Fact, OpInfo, Result};
use carafe_tensor::{PartialShape, Tensor};
use std::ffi::c_void;
use std::sync::Arc;

/// Where a kernel comes from.
#[derive(Clone)]
pub(crate) enum Maker {
    /// A library that this side opened; it stays mapped as long as the kernel.
    Library(Arc<Library>),
    /// The engine, which gave it to a device in a library; it lives until the process ends.
    Engine,
}

impl Maker {
    fn call(&self, what: &'static str, f: impl FnOnce() -> CarafeStatus) -> Result<()> {
        match self {
            Maker::Library(library) => library.call(what, f),
            Maker::Engine => from_host(f()),
        }
    }
    fn notify(&self, what: &'static str, f: impl FnOnce()) {
        match self {
            Maker::Library(library) => library.notify(what, f),
            Maker::Engine => f(),
        }
    }
    fn blame(&self, error: Error) -> Error {
        match self {
            Maker::Library(library) => library.blame(error),
            Maker::Engine => error,
        }
    }
    fn library(&self) -> Option<Arc<Library>> {
        match self {
            Maker::Library(library) => Some(library.clone()),
            Maker::Engine => None,
        }
    }
}

struct ForeignKernel {
    device: String,
    op: String,
    opset: Option<String>,
    name: String,
    table: CarafeKernel,
    maker: Maker,
}

// SAFETY: the contract lets the table's functions be called on any thread; `maker` keeps the library mapped.
unsafe impl Send for ForeignKernel {}
// SAFETY: as above.
unsafe impl Sync for ForeignKernel {}

/// # Safety
/// The table must be whole, as `CarafeRegistrarFns::add_kernel` asks, and live as long as its maker says.
pub(crate) unsafe fn import_kernel(table: CarafeKernel, maker: Maker) -> Result<Arc<dyn Kernel>> {
    // SAFETY: the caller promises zero-terminated texts, or null; so below.
    let op = unsafe { c_text(table.op, "the operation of a kernel")? }.to_string();
    if table.configs.is_none() || table.init.is_none() || table.execute.is_none() {
        return Err(Error::invalid(format!("the kernel of `{op}` needs `configs`, `init` and `execute`")));
    }
    // SAFETY: as above.
    let name = unsafe { opt_c_text(table.name, "the name of a kernel")? }.unwrap_or("extension").to_string();
    // SAFETY: as above.
    let opset = unsafe { opt_c_text(table.opset, "the opset of a kernel")? }.map(str::to_string);
    // SAFETY: as above.
    let device = unsafe { opt_c_text(table.device, "the device of a kernel")? }.unwrap_or("CPU").to_string();
    Ok(Arc::new(ForeignKernel { device, op, opset, name, table, maker }))
}

// The site in crossing form; the arena keeps what it points to.
fn site_code(site: &Site, arena: &mut Arena) -> Result<CarafeSite> {
    let inputs: Vec<CarafeFact> = site.inputs.iter().map(|f| fact_code(f.ty, &f.shape, arena)).collect();
    let outputs: Vec<CarafeFact> = site.outputs.iter().map(|f| fact_code(f.ty, &f.shape, arena)).collect();
    let (n_inputs, n_outputs) = (inputs.len(), outputs.len());
    Ok(CarafeSite {
        size: size_of::<CarafeSite>(),
        name: arena.text(&site.name),
        op_type: arena.text(&site.op_type),
        opset: arena.text(&site.opset),
        attrs: attrs_code(site.attrs.iter(), arena)?,
        inputs: arena.keep(inputs),
        n_inputs,
        outputs: arena.keep(outputs),
        n_outputs,
    })
}

unsafe extern "C" fn offer(sink: *mut c_void, config: *const CarafeConfig) -> CarafeStatus {
    let take = || {
        // SAFETY: `configs` passes on the sink it was given, which is this list; null is refused.
        let (list, config) = unsafe { (crossing::sink::<Vec<Config>>(sink)?, config.as_ref()) };
        let config = config.ok_or_else(|| Error::usage("a null pointer for a configuration"))?;
        // SAFETY: the contract gives lists as the configuration says.
        list.push(unsafe {
            Config {
                inputs: layouts(config.inputs, config.n_inputs, "inputs")?,
                outputs: layouts(config.outputs, config.n_outputs, "outputs")?,
            }
        });
        Ok(())
    };
    guard_into(take, tell)
}

/// # Safety
/// The list and what it points to must be there.
unsafe fn layouts(p: *const CarafeLayout, n: usize, what: &str) -> Result<Vec<PortLayout>> {
    // SAFETY: passed on from the caller; so below.
    let list = unsafe { items(p, n, what)? };
    list.iter()
        .map(|l| {
            let blocked = match l.rank {
                0 => None,
                // SAFETY: as above.
                rank => Some(unsafe {
                    Blocked {
                        blocks: items(l.blocks, rank as usize, "blocks")?.to_vec(),
                        order: items(l.order, rank as usize, "order")?.to_vec(),
                    }
                }),
            };
            Ok(PortLayout {
                ty: type_of(l.element_type)?,
                blocked,
                in_place: usize::try_from(l.in_place).ok(),
                constant: l.constant != 0,
            })
        })
        .collect()
}

impl Kernel for ForeignKernel {
    fn device(&self) -> &str {
        &self.device
    }
    fn op(&self) -> &str {
        &self.op
    }
    fn opset(&self) -> Option<&str> {
        self.opset.as_deref()
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn library(&self) -> Option<&str> {
        match &self.maker {
            Maker::Library(library) => Some(library.name()),
            Maker::Engine => None,
        }
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        let Some(configs) = self.table.configs else { return Ok(vec![]) };
        let mut arena = Arena::default();
        let code = site_code(site, &mut arena)?;
        let mut list: Vec<Config> = Vec::new();
        let sink = (&raw mut list).cast();
        // SAFETY: the table is whole; site and list live until the call returns.
        self.maker.call("configs", || unsafe { configs(self.table.user, &code, offer, sink) })?;
        let (inputs, outputs) = (site.inputs.len(), site.outputs.len());
        if let Some(c) = list.iter().find(|c| c.inputs.len() != inputs || c.outputs.len() != outputs) {
            return Err(Error::invalid(format!(
                "kernel `{}` offers {} inputs and {} outputs for a node with {inputs} and {outputs}",
                self.name,
                c.inputs.len(),
                c.outputs.len()
            )))
            .map_err(|e| self.maker.blame(e));
        }
        Ok(list)
    }
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        let Some(init) = self.table.init else { return Err(Error::invalid("the kernel has no `init`")) };
        let mut arena = Arena::default();
        let code = site_code(site, &mut arena)?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the table is whole; the site lives until the call returns.
        self.maker.call("init", || unsafe { init(self.table.user, &code, config, &mut pointer) })?;
        Ok(Box::new(Prepared { pointer, table: self.table, maker: self.maker.clone() }))
    }
}

struct Prepared {
    pointer: *mut c_void,
    table: CarafeKernel,
    maker: Maker,
}

// SAFETY: the contract lets a kernel be run and released by any thread, one at a time.
unsafe impl Send for Prepared {}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(release) = self.table.release {
            // SAFETY: `init` made it, and this is its only handle.
            self.maker.notify("release", || unsafe { release(self.pointer) });
        }
    }
}

static INFO: OpInfo = OpInfo { name: "Kernel", xml_name: "Kernel", opset: "carafe", ..OpInfo::PLAIN };

impl PreparedKernel for Prepared {
    fn execute(&mut self, inputs: &[Tensor], outputs: &[Fact]) -> Result<Vec<Tensor>> {
        let Some(execute) = self.table.execute else { return Err(Error::invalid("the kernel has no `execute`")) };
        // Shapes stay open: a blocked output has more elements than its plain shape.
        let open: Vec<Fact> = outputs.iter().map(|f| Fact::new(f.ty, PartialShape::dynamic())).collect();
        let mut env = EvalEnv::default();
        let mut cx = EvalCx::new("", &INFO, inputs.to_vec(), &open, &mut env);
        let bridge = EvalBridge::new(&mut cx, self.maker.library()).show(outputs);
        // SAFETY: `init` made the kernel; the bridge lives until the call returns.
        self.maker.call("execute", || unsafe { execute(self.pointer, bridge.pointer()) })?;
        bridge.finish().and_then(|()| cx.finish()).map_err(|e| self.maker.blame(e))
    }
}
