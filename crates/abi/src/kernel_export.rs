//! A kernel of this side as a table for the other.

use crate::convert::{attrs_of, fact_of, tensor_of, type_code};
use crate::crossing::{put, writable};
use crate::host::{end, tell};
use crate::kernel_io::run_in;
use crate::op_export::{eval_outputs_to, from_host};
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{items, text};
use carafe_device::{ChosenKernel, Config, EpilogueOp, Function, Kernel, Layout, Operand, PortLayout, Site};
use carafe_graph::{Error, Fact, NodeId, Registry, Result, infer_op};
use std::ffi::{CString, c_void};
use std::sync::{Arc, RwLock};

/// The operations that are registered now.
pub(crate) type Operations = Arc<RwLock<Arc<Registry>>>;

/// A table that lives until the process ends.
pub(crate) fn kernel_table(kernel: Arc<dyn Kernel>) -> CarafeKernel {
    let device = kernel.device().to_string();
    std::mem::ManuallyDrop::new(KernelTable::new(&device, kernel, Operations::default())).table
}

/// What is behind a table.
struct Exported {
    kernel: Arc<dyn Kernel>,
    operations: Operations,
}

impl Exported {
    /// The site with what its operation infers for outputs that the other side leaves open though it knows the inputs.
    ///
    /// # Safety
    /// The site must be whole.
    unsafe fn site(&self, site: *const CarafeSite) -> Result<Site> {
        // SAFETY: passed on from the caller.
        let mut site = unsafe { site_of(site)? };
        let known = |facts: &[Fact]| facts.iter().all(|f| f.shape.is_static() && !f.ty.is_dynamic());
        if known(&site.outputs) || !known(&site.inputs) {
            return Ok(site);
        }
        let registry = self.operations.read().unwrap_or_else(|e| e.into_inner()).clone();
        let Some(factory) = registry.find(&site.op_type, &site.opset) else { return Ok(site) };
        let inputs: Vec<&Fact> = site.inputs[..site.own_inputs()].iter().collect();
        let outputs = infer_op(&site.name, NodeId(u32::MAX), &*factory.create(&site.attrs)?, &inputs, true)?;
        site.outputs = outputs;
        Ok(site)
    }
}

/// The table of a kernel, with all that it points to.
pub(crate) struct KernelTable {
    pub(crate) table: CarafeKernel,
    _texts: [CString; 4],
}

// SAFETY: what the table points to is the kernel, which any thread may use, and texts that nobody changes.
unsafe impl Send for KernelTable {}
// SAFETY: as above.
unsafe impl Sync for KernelTable {}

impl KernelTable {
    /// `device` is the name that the device has for itself.
    pub(crate) fn new(device: &str, kernel: Arc<dyn Kernel>, operations: Operations) -> KernelTable {
        let (has_opset, fuses) = (kernel.opset().is_some(), kernel.fuses());
        let texts = [device, kernel.op(), kernel.opset().unwrap_or(""), kernel.name()]
            .map(|s| CString::new(s.replace('\0', " ")).unwrap_or_default());
        let table = CarafeKernel {
            size: size_of::<CarafeKernel>(),
            abi: CARAFE_ABI_MAJOR,
            reserved: 0,
            device: texts[0].as_ptr(),
            op: texts[1].as_ptr(),
            opset: if has_opset { texts[2].as_ptr() } else { std::ptr::null() },
            name: texts[3].as_ptr(),
            user: Box::into_raw(Box::new(Exported { kernel, operations })).cast(),
            configs: Some(configs),
            init: Some(init),
            execute: Some(execute),
            release: Some(release),
            run: Some(run),
            fuses: fuses.into(),
            reserved2: 0,
        };
        KernelTable { table, _texts: texts }
    }
}

impl Drop for KernelTable {
    fn drop(&mut self) {
        // SAFETY: `new` made the box, and this is its only handle.
        drop(unsafe { Box::from_raw(self.table.user.cast::<Exported>()) });
    }
}

/// Whether a site from an older or newer side has a field.
macro_rules! has {
    ($site:expr, $field:ident) => {
        $site.size >= std::mem::offset_of!(CarafeSite, $field) + size_of::<usize>()
    };
}

/// # Safety
/// The site must be whole.
unsafe fn site_of(site: *const CarafeSite) -> Result<Site> {
    // SAFETY: passed on from the caller; so below.
    unsafe {
        let s = &*site;
        let facts = |p, n| -> Result<Vec<Fact>> { items(p, n, "facts")?.iter().map(|f| fact_of(f)).collect() };
        let mut known = Site {
            name: text(s.name, "the name of a node")?.to_string(),
            op_type: text(s.op_type, "the type of a node")?.to_string(),
            opset: text(s.opset, "the opset of a node")?.to_string(),
            attrs: attrs_of(s.attrs)?,
            inputs: facts(s.inputs, s.n_inputs)?,
            outputs: facts(s.outputs, s.n_outputs)?,
            ..Site::default()
        };
        if !has!(s, needs) {
            return Ok(known);
        }
        if !s.constants.is_null() {
            for (fact, constant) in known.inputs.iter_mut().zip(items(s.constants, s.n_inputs, "constants")?) {
                if let Some(t) = constant.as_ref() {
                    *fact = Fact::of(&tensor_of(t)?);
                }
            }
        }
        known.layouts = items(s.layouts, s.n_layouts, "layouts")?.iter().filter_map(kind_of).collect();
        if !s.input_layouts.is_null() {
            let kinds = items(s.input_layouts, s.n_inputs, "layouts of inputs")?;
            known.input_layouts = kinds.iter().map(|k| kind_of(k).unwrap_or_default()).collect();
        }
        known.epilogue = epilogue_of(items(s.epilogue, s.n_epilogue, "operations of an epilogue")?)?;
        Ok(known)
    }
}

// A kind that this side does not know is none it can ask for.
fn kind_of(kind: &CarafeLayoutKind) -> Option<Layout> {
    match kind.kind {
        CARAFE_LAYOUT_PLAIN => Some(Layout::Plain),
        CARAFE_LAYOUT_CHANNELS_LAST => Some(Layout::ChannelsLast),
        CARAFE_LAYOUT_BLOCKED => Some(Layout::BlockedBy(kind.block as usize)),
        _ => None,
    }
}

/// What a newer side has more is left out, with all that follows.
///
/// # Safety
/// The lists of the operations must be there.
unsafe fn epilogue_of(ops: &[CarafeEpilogueOp]) -> Result<Vec<EpilogueOp>> {
    let mut known = vec![];
    for op in ops {
        let Some(function) = Function::of_code(op.function) else { break };
        // SAFETY: passed on from the caller.
        let (numbers, operands) = unsafe {
            let operands = items(op.operands, op.n_operands as usize, "operands")?;
            (items(op.numbers, op.n_numbers, "numbers")?.to_vec(), operands)
        };
        let operand = |&o: &i64| match usize::try_from(o) {
            Ok(input) => Operand::Input(input),
            Err(_) => Operand::Result((-1 - o) as usize),
        };
        known.push(EpilogueOp { function, numbers, operands: operands.iter().map(operand).collect() });
    }
    Ok(known)
}

/// Blocks of the layouts of a configuration; `None` for plain ones and where a shape is open.
fn blocks_of(ports: &[PortLayout], facts: &[Fact]) -> Vec<Option<carafe_device::Blocked>> {
    let blocks = |(port, fact): (&PortLayout, &Fact)| match &port.layout {
        Layout::Plain => None,
        Layout::Other(blocked) => Some(blocked.clone()),
        layout => Some(layout.blocked(&fact.shape.to_static()?)),
    };
    ports.iter().zip(facts).map(blocks).collect()
}

fn layout_codes(ports: &[PortLayout], blocks: &[Option<carafe_device::Blocked>]) -> Vec<CarafeLayout> {
    let code = |(port, blocked): (&PortLayout, &Option<carafe_device::Blocked>)| {
        let (rank, blocks, order) = match blocked {
            Some(b) => (b.blocks.len() as u32, b.blocks.as_ptr(), b.order.as_ptr()),
            None => (0, std::ptr::null(), std::ptr::null()),
        };
        CarafeLayout {
            element_type: type_code(port.ty),
            rank,
            blocks,
            order,
            in_place: port.in_place.map_or(-1, |i| i as i32),
            constant: port.constant.into(),
        }
    };
    ports.iter().zip(blocks).map(code).collect()
}

/// # Safety
/// The site must be whole; `offer` and `sink` are those of the call to `configs`.
unsafe fn offer_config(
    config: &Config,
    known: &Site,
    site: &CarafeSite,
    offer: CarafeConfigSink,
    sink: *mut c_void,
) -> Result<()> {
    let blocks = [blocks_of(&config.inputs, &known.inputs), blocks_of(&config.outputs, &known.outputs)];
    let inputs = layout_codes(&config.inputs, &blocks[0]);
    let outputs = layout_codes(&config.outputs, &blocks[1]);
    let (n_inputs, n_outputs) = (inputs.len(), outputs.len());
    let code = CarafeConfig { inputs: inputs.as_ptr(), n_inputs, outputs: outputs.as_ptr(), n_outputs };
    // SAFETY: the sink goes back as it came.
    from_host(unsafe { offer(sink, &code) })?;
    let needs = CarafeNeeds {
        size: size_of::<CarafeNeeds>(),
        epilogue: config.epilogue,
        workspace: config.workspace,
        scratch: config.scratch,
    };
    let asks = config.epilogue + config.workspace + config.scratch > 0;
    match site.needs.filter(|_| asks && has!(site, needs)) {
        // SAFETY: as above.
        Some(tell_needs) => from_host(unsafe { tell_needs(sink, &needs) }),
        None if config.epilogue > 0 => Err(Error::usage("an epilogue was taken that was not offered")),
        // `run` makes the memory that the device does not give.
        None => Ok(()),
    }
}

unsafe extern "C" fn configs(
    user: *mut c_void,
    site: *const CarafeSite,
    offer: CarafeConfigSink,
    sink: *mut c_void,
) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: `user` is the kernel, which lives as long as its table; the contract passes a whole site.
            let (exported, known) = unsafe {
                let exported = &*user.cast::<Exported>();
                (exported, exported.site(site)?)
            };
            let list = exported.kernel.configs(&known)?;
            for config in &list {
                // SAFETY: the contract passes a whole site, and the sink goes back as it came.
                unsafe { offer_config(config, &known, &*site, offer, sink)? };
            }
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn init(
    user: *mut c_void,
    site: *const CarafeSite,
    config: usize,
    out: *mut *mut c_void,
) -> CarafeStatus {
    guard_into(
        || {
            writable(out, "a kernel")?;
            // SAFETY: as in `configs`; the contract gives a place to write to.
            unsafe {
                let exported = &*user.cast::<Exported>();
                let chosen = ChosenKernel::of(&*exported.kernel, &exported.site(site)?, config)?;
                put(out, Box::into_raw(Box::new(chosen)).cast(), "a kernel")
            }
        },
        tell,
    )
}

unsafe extern "C" fn execute(kernel: *mut c_void, cx: *mut CarafeEval) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: `init` made the kernel; the contract passes a live context.
            let (kernel, fns) = unsafe { (&*kernel.cast::<ChosenKernel>(), &*(*cx).fns) };
            let mut inputs = Vec::new();
            // SAFETY: the context is live; so below.
            for i in 0..unsafe { (fns.n_inputs)(cx) } {
                let mut code = CarafeAttr::EMPTY.tensor;
                // SAFETY: as above.
                inputs.push(unsafe {
                    from_host((fns.input)(cx, i, &mut code))?;
                    tensor_of(&code)?
                });
            }
            let mut facts = Vec::new();
            // SAFETY: as above.
            for i in 0..unsafe { (fns.n_outputs)(cx) } {
                let mut code = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
                // SAFETY: as above.
                facts.push(unsafe {
                    from_host((fns.output_fact)(cx, i, &mut code))?;
                    fact_of(&code)?
                });
            }
            let outputs = kernel.execute_formed(&inputs, &facts)?;
            // SAFETY: as above.
            unsafe { eval_outputs_to(cx, outputs) }
        },
        tell,
    )
}

unsafe extern "C" fn run(kernel: *const c_void, io: *const CarafeKernelIo) -> CarafeStatus {
    // SAFETY: `init` made the kernel; the contract passes live memory.
    unsafe { run_in(&*kernel.cast::<ChosenKernel>(), io) }
}

unsafe extern "C" fn release(kernel: *mut c_void) {
    // SAFETY: `init` made the box, and the contract releases it once.
    end("the end of a kernel", || drop(unsafe { Box::from_raw(kernel.cast::<ChosenKernel>()) }));
}
