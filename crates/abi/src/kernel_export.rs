//! A kernel of this side as a table for the other.

use crate::convert::{attrs_of, fact_of, tensor_of, type_code};
use crate::crossing::{place, put};
use crate::host::{end, tell};
use crate::op_export::{eval_outputs_to, from_host};
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{items, text};
use carafe_device::{Kernel, PortLayout, PreparedKernel, Site};
use carafe_graph::{Fact, Result};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A table that lives until the process ends.
pub(crate) fn kernel_table(kernel: Arc<dyn Kernel>) -> CarafeKernel {
    let device = kernel.device().to_string();
    std::mem::ManuallyDrop::new(KernelTable::new(&device, kernel)).table
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
    pub(crate) fn new(device: &str, kernel: Arc<dyn Kernel>) -> KernelTable {
        let has_opset = kernel.opset().is_some();
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
            user: Box::into_raw(Box::new(kernel)).cast(),
            configs: Some(configs),
            init: Some(init),
            execute: Some(execute),
            release: Some(release),
        };
        KernelTable { table, _texts: texts }
    }
}

impl Drop for KernelTable {
    fn drop(&mut self) {
        // SAFETY: `new` made the box, and this is its only handle.
        drop(unsafe { Box::from_raw(self.table.user.cast::<Arc<dyn Kernel>>()) });
    }
}

/// # Safety
/// The site must be whole.
unsafe fn site_of(site: *const CarafeSite) -> Result<Site> {
    // SAFETY: passed on from the caller; so below.
    unsafe {
        let s = &*site;
        let facts = |p, n| -> Result<Vec<Fact>> { items(p, n, "facts")?.iter().map(|f| fact_of(f)).collect() };
        Ok(Site {
            name: text(s.name, "the name of a node")?.to_string(),
            op_type: text(s.op_type, "the type of a node")?.to_string(),
            opset: text(s.opset, "the opset of a node")?.to_string(),
            attrs: attrs_of(s.attrs)?,
            inputs: facts(s.inputs, s.n_inputs)?,
            outputs: facts(s.outputs, s.n_outputs)?,
        })
    }
}

fn layout_code(l: &PortLayout) -> CarafeLayout {
    let (rank, blocks, order) = match &l.blocked {
        Some(b) => (b.blocks.len() as u32, b.blocks.as_ptr(), b.order.as_ptr()),
        None => (0, std::ptr::null(), std::ptr::null()),
    };
    CarafeLayout {
        element_type: type_code(l.ty),
        rank,
        blocks,
        order,
        in_place: l.in_place.map_or(-1, |i| i as i32),
        constant: l.constant.into(),
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
            let list = unsafe { (*user.cast::<Arc<dyn Kernel>>()).configs(&site_of(site)?)? };
            for c in &list {
                let inputs: Vec<CarafeLayout> = c.inputs.iter().map(layout_code).collect();
                let outputs: Vec<CarafeLayout> = c.outputs.iter().map(layout_code).collect();
                let code = CarafeConfig {
                    inputs: inputs.as_ptr(),
                    n_inputs: inputs.len(),
                    outputs: outputs.as_ptr(),
                    n_outputs: outputs.len(),
                };
                // SAFETY: the sink goes back as it came.
                from_host(unsafe { offer(sink, &code) })?;
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
            place(out, "a kernel")?;
            // SAFETY: as in `configs`; the contract gives a place to write to.
            unsafe {
                let prepared = (*user.cast::<Arc<dyn Kernel>>()).init(&site_of(site)?, config)?;
                put(out, Box::into_raw(Box::new(prepared)).cast(), "a kernel")
            }
        },
        tell,
    )
}

unsafe extern "C" fn execute(kernel: *mut c_void, cx: *mut CarafeEval) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: `init` made the kernel; the contract passes a live context.
            let (kernel, fns) = unsafe { (&mut *kernel.cast::<Box<dyn PreparedKernel>>(), &*(*cx).fns) };
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
            let outputs = kernel.execute(&inputs, &facts)?;
            // SAFETY: as above.
            unsafe { eval_outputs_to(cx, outputs) }
        },
        tell,
    )
}

unsafe extern "C" fn release(kernel: *mut c_void) {
    // SAFETY: `init` made the box, and the contract releases it once.
    end("the end of a kernel", || drop(unsafe { Box::from_raw(kernel.cast::<Box<dyn PreparedKernel>>()) }));
}
