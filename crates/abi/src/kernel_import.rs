//! A kernel behind a table, as a kernel of this side. One that has `run` is shared by all streams and works in planned memory;
//! of one that has only `execute` each stream uses an instance of its own.

use crate::convert::{Arena, attrs_code, fact_code, tensor_code, type_of};
use crate::crossing;
use crate::eval_export::EvalBridge;
use crate::host::tell;
use crate::kernel_eval::in_planned_memory;
use crate::kernel_io::with_table;
use crate::library::Library;
use crate::op_export::from_host;
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{c_text, items, opt_c_text};
use carafe_device::{Blocked, Config, Kernel, KernelIo, Layout, Operand, PortLayout, PreparedKernel, Site};
use carafe_graph::{Error, EvalCx, EvalEnv, Fact, OpInfo, Result};
use carafe_tensor::{PartialShape, Tensor};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Where a kernel comes from.
#[derive(Clone)]
pub(crate) enum Maker {
    /// A library that this side opened; it stays mapped as long as the kernel.
    Library(Arc<Library>),
    /// The engine, which gave it to a device in a library; it lives until the process ends.
    Engine,
}

impl Maker {
    pub(crate) fn call(&self, what: &'static str, f: impl FnOnce() -> CarafeStatus) -> Result<()> {
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
    pub(crate) fn blame(&self, error: Error) -> Error {
        match self {
            Maker::Library(library) => library.blame(error),
            Maker::Engine => error,
        }
    }
    pub(crate) fn library(&self) -> Option<Arc<Library>> {
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
    if table.configs.is_none() || table.init.is_none() || (table.execute.is_none() && table.run.is_none()) {
        return Err(Error::invalid(format!("the kernel of `{op}` needs `configs`, `init` and `run` or `execute`")));
    }
    // SAFETY: as above.
    let name = unsafe { opt_c_text(table.name, "the name of a kernel")? }.unwrap_or("extension").to_string();
    // SAFETY: as above.
    let opset = unsafe { opt_c_text(table.opset, "the opset of a kernel")? }.map(str::to_string);
    // SAFETY: as above.
    let device = unsafe { opt_c_text(table.device, "the device of a kernel")? }.unwrap_or("CPU").to_string();
    Ok(Arc::new(ForeignKernel { device, op, opset, name, table, maker }))
}

fn kind_code(layout: &Layout) -> CarafeLayoutKind {
    let (kind, block) = match layout {
        Layout::Plain => (CARAFE_LAYOUT_PLAIN, 0),
        Layout::ChannelsLast => (CARAFE_LAYOUT_CHANNELS_LAST, 0),
        Layout::BlockedBy(n) => (CARAFE_LAYOUT_BLOCKED, *n as u32),
        Layout::Other(_) => (CARAFE_LAYOUT_OTHER, 0),
    };
    CarafeLayoutKind { kind, block }
}

// The site in crossing form; the arena keeps what it points to.
fn site_code(site: &Site, arena: &mut Arena) -> Result<CarafeSite> {
    let inputs: Vec<CarafeFact> = site.inputs.iter().map(|f| fact_code(f.ty, &f.shape, arena)).collect();
    let outputs: Vec<CarafeFact> = site.outputs.iter().map(|f| fact_code(f.ty, &f.shape, arena)).collect();
    let (n_inputs, n_outputs) = (inputs.len(), outputs.len());
    let constant = |fact: &Fact, arena: &mut Arena| match fact.tensor() {
        Some(t) => {
            let kept = arena.keep(vec![t.clone()]);
            // SAFETY: the arena keeps the tensor.
            let code = tensor_code(unsafe { &*kept }, arena);
            arena.keep(vec![code])
        }
        None => std::ptr::null(),
    };
    let constants: Vec<Pointer> = site.inputs.iter().map(|f| Pointer(constant(f, arena))).collect();
    let layouts: Vec<CarafeLayoutKind> = site.layouts.iter().map(kind_code).collect();
    let input_layouts: Vec<CarafeLayoutKind> = site.input_layouts.iter().map(kind_code).collect();
    let mut epilogue = vec![];
    for op in &site.epilogue {
        let operand = |o: &Operand| match *o {
            Operand::Result(k) => -1 - k as i64,
            Operand::Input(i) => i as i64,
        };
        let operands: Vec<i64> = op.operands.iter().map(operand).collect();
        epilogue.push(CarafeEpilogueOp {
            function: op.function as u32,
            n_operands: operands.len() as u32,
            n_numbers: op.numbers.len(),
            numbers: arena.keep(op.numbers.clone()),
            operands: arena.keep(operands),
        });
    }
    let whole = |list: &[CarafeLayoutKind]| list.len() == n_inputs;
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
        constants: arena.keep(constants).cast(),
        n_layouts: layouts.len(),
        layouts: arena.keep(layouts),
        input_layouts: if whole(&input_layouts) { arena.keep(input_layouts) } else { std::ptr::null() },
        n_epilogue: epilogue.len(),
        epilogue: arena.keep(epilogue),
        needs: Some(needs),
    })
}

/// A pointer in a list that an arena keeps.
#[repr(transparent)]
struct Pointer(*const CarafeTensor);
// SAFETY: a number by itself; who reads through it is asked on the thread that made it.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}
// SAFETY: plain numbers and pointers; sending the list of them sends no access by itself.
unsafe impl Send for CarafeTensor {}
// SAFETY: as above.
unsafe impl Sync for CarafeTensor {}
// SAFETY: as above.
unsafe impl Send for CarafeEpilogueOp {}
// SAFETY: as above.
unsafe impl Sync for CarafeEpilogueOp {}

/// What a kernel offers for a site.
struct Offers<'a> {
    site: &'a Site,
    /// Whether it writes where it is told to; one that does not cannot work in place.
    runs: bool,
    list: Vec<Config>,
}

unsafe extern "C" fn offer(sink: *mut c_void, config: *const CarafeConfig) -> CarafeStatus {
    let take = || {
        // SAFETY: `configs` passes on the sink it was given, which is this list; null is refused.
        let (offers, config) = unsafe { (crossing::sink::<Offers<'_>>(sink)?, config.as_ref()) };
        let config = config.ok_or_else(|| Error::usage("a null pointer for a configuration"))?;
        // SAFETY: the contract gives lists as the configuration says.
        let (inputs, mut outputs) = unsafe {
            let inputs = layouts(config.inputs, config.n_inputs, &offers.site.inputs, "inputs")?;
            (inputs, layouts(config.outputs, config.n_outputs, &offers.site.outputs, "outputs")?)
        };
        if !offers.runs {
            outputs.iter_mut().for_each(|port| port.in_place = None);
        }
        offers.list.push(Config::new(inputs, outputs));
        Ok(())
    };
    guard_into(take, tell)
}

unsafe extern "C" fn needs(sink: *mut c_void, needs: *const CarafeNeeds) -> CarafeStatus {
    let take = || {
        // SAFETY: as in `offer`.
        let (offers, needs) = unsafe { (crossing::sink::<Offers<'_>>(sink)?, needs.as_ref()) };
        let needs = needs.ok_or_else(|| Error::usage("a null pointer for the needs of a configuration"))?;
        if needs.size < size_of::<CarafeNeeds>() {
            return Err(Error::usage(format!(
                "needs of {} bytes, at least {} are",
                needs.size,
                size_of::<CarafeNeeds>()
            )));
        }
        let config = offers.list.last_mut();
        let config = config.ok_or_else(|| Error::usage("needs before the configuration that has them was offered"))?;
        (config.epilogue, config.workspace, config.scratch) = (needs.epilogue, needs.workspace, needs.scratch);
        Ok(())
    };
    guard_into(take, tell)
}

/// # Safety
/// The list and what it points to must be there.
unsafe fn layouts(p: *const CarafeLayout, n: usize, facts: &[Fact], what: &str) -> Result<Vec<PortLayout>> {
    // SAFETY: passed on from the caller; so below.
    let list = unsafe { items(p, n, what)? };
    let port = |(i, l): (usize, &CarafeLayout)| {
        let layout = match l.rank {
            0 => Layout::Plain,
            // SAFETY: as above.
            rank => unsafe {
                let blocks = items(l.blocks, rank as usize, "blocks")?.to_vec();
                let blocked = Blocked { blocks, order: items(l.order, rank as usize, "order")?.to_vec() };
                match facts.get(i).and_then(|f| f.shape.to_static()) {
                    Some(shape) => Layout::of(blocked, &shape),
                    None => Layout::Other(blocked),
                }
            },
        };
        let in_place = usize::try_from(l.in_place).ok();
        Ok(PortLayout { ty: type_of(l.element_type)?, layout, in_place, constant: l.constant != 0 })
    };
    list.iter().enumerate().map(port).collect()
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
    fn fuses(&self) -> bool {
        self.table.fuses != 0 && self.table.run.is_some()
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        let Some(configs) = self.table.configs else { return Ok(vec![]) };
        let mut arena = Arena::default();
        let code = site_code(site, &mut arena)?;
        let mut offers = Offers { site, runs: self.table.run.is_some(), list: vec![] };
        let sink = (&raw mut offers).cast();
        // SAFETY: the table is whole; site and list live until the call returns.
        self.maker.call("configs", || unsafe { configs(self.table.user, &code, offer, sink) })?;
        let (own, all, outputs) = (site.own_inputs(), site.inputs.len(), site.outputs.len());
        let fits = |c: &&Config| (own..=all).contains(&c.inputs.len()) && c.outputs.len() == outputs;
        if let Some(c) = offers.list.iter().find(|c| !fits(c)) {
            return Err(Error::invalid(format!(
                "kernel `{}` offers {} inputs and {} outputs for a node with {own} and {outputs}",
                self.name,
                c.inputs.len(),
                c.outputs.len()
            )))
            .map_err(|e| self.maker.blame(e));
        }
        Ok(offers.list)
    }
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        let node =
            Node { table: self.table, maker: self.maker.clone(), name: self.name.clone(), site: site.clone(), config };
        let first = node.instance()?;
        let (shared, idle) = if self.table.run.is_some() { (Some(first), vec![]) } else { (None, vec![first]) };
        Ok(Box::new(Prepared { shared, idle: Mutex::new(idle), node }))
    }
}

/// What `init` was asked, to be asked again for further streams.
struct Node {
    table: CarafeKernel,
    maker: Maker,
    name: String,
    site: Site,
    config: usize,
}

impl Node {
    fn instance(&self) -> Result<Instance> {
        let Some(init) = self.table.init else { return Err(Error::invalid("the kernel has no `init`")) };
        let mut arena = Arena::default();
        let code = site_code(&self.site, &mut arena)?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the table is whole; the site lives until the call returns.
        self.maker.call("init", || unsafe { init(self.table.user, &code, self.config, &mut pointer) })?;
        Ok(Instance { pointer, release: self.table.release, maker: self.maker.clone() })
    }
}

/// What `init` made.
struct Instance {
    pointer: *mut c_void,
    release: Option<unsafe extern "C" fn(kernel: *mut c_void)>,
    maker: Maker,
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `init` made it, and this is its only handle.
            self.maker.notify("release", || unsafe { release(self.pointer) });
        }
    }
}

struct Prepared {
    /// Runs on all streams at once.
    shared: Option<Instance>,
    /// Instances that one thread at a time may use, while nobody does.
    idle: Mutex<Vec<Instance>>,
    node: Node,
}

// SAFETY: the contract lets `run` be called by several threads at once, and everything else by any thread, one at a time;
// `idle` hands an instance to one thread.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

static INFO: OpInfo = OpInfo { name: "Kernel", xml_name: "Kernel", opset: "carafe", ..OpInfo::PLAIN };

impl Prepared {
    // Lets `execute` run on an instance that nobody else has meanwhile.
    fn alone(&self, cx: *mut CarafeEval) -> Result<()> {
        let Some(execute) = self.node.table.execute else {
            return Err(Error::unsupported(
                "the kernel has no `execute`, which is for results whose shapes only a run knows",
            ));
        };
        let idle = || self.idle.lock().unwrap_or_else(|e| e.into_inner());
        let waiting = idle().pop();
        let instance = waiting.map_or_else(|| self.node.instance(), Ok)?;
        // SAFETY: `init` made the kernel, and this thread alone has it; the context lives until the call returns.
        let done = self.node.maker.call("execute", || unsafe { execute(instance.pointer, cx) });
        idle().push(instance);
        done
    }
}

impl PreparedKernel for Prepared {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        let (Some(shared), Some(run)) = (&self.shared, self.node.table.run) else {
            let (name, maker) = (&self.node.name, &self.node.maker);
            return in_planned_memory(io, &self.node.site.name, name, maker, |cx| self.alone(cx));
        };
        // SAFETY: `init` made the kernel, which several threads may run; the memory is lent for the call.
        with_table(io, |io| self.node.maker.call("run", || unsafe { run(shared.pointer, io) }))
    }
    fn make(&self, inputs: &[Tensor], outputs: &[Fact]) -> Result<Vec<Tensor>> {
        // Shapes stay open: a blocked output has more elements than its plain shape.
        let open: Vec<Fact> = outputs.iter().map(|f| Fact::new(f.ty, PartialShape::dynamic())).collect();
        let mut env = EvalEnv::default();
        let mut cx = EvalCx::new(&self.node.site.name, &INFO, inputs.to_vec(), &open, &mut env);
        let bridge = EvalBridge::new(&mut cx, self.node.maker.library()).show(outputs);
        self.alone(bridge.pointer())?;
        bridge.finish().and_then(|()| cx.finish()).map_err(|e| self.node.maker.blame(e))
    }
}
