//! A kernel of this side as a table for the other.

use crate::convert::{attrs_of, fact_of, tensor_of, type_code};
use crate::crossing::{place, put};
use crate::host::{end, tell};
use crate::op_export::{c_leak, eval_outputs_to, from_host};
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{items, text};
use carafe_device::{Kernel, PortLayout, PreparedKernel, Site};
use carafe_graph::{Fact, Result};
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) fn kernel_table(kernel: Arc<dyn Kernel>) -> CarafeKernel {
    CarafeKernel {
        size: size_of::<CarafeKernel>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        device: c_leak(kernel.device()),
        op: c_leak(kernel.op()),
        opset: kernel.opset().map_or(std::ptr::null(), c_leak),
        name: c_leak(kernel.name()),
        user: Box::into_raw(Box::new(kernel)).cast(),
        configs: Some(configs),
        init: Some(init),
        execute: Some(execute),
        release: Some(release),
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
            // SAFETY: `user` is the kernel, which is never freed; the contract passes a whole site.
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
