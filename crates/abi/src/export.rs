//! The library's side of an extension: what `export_extension!` calls. A panic stops here and becomes a status.

use crate::convert::{Arena, attrs_code};
use crate::host::{adopt, end, tell};
use crate::kernel_export::kernel_table;
use crate::op_export::{c_leak, from_host, op_table};
use crate::pass_export::{Matcher, ModelPass, matcher_table, model_pass_table};
use crate::replacement::{Replacer, replacement_table};
use crate::rule_export::rule_table;
use crate::status::guard_into;
use crate::tables::*;
use carafe_device::Kernel;
use carafe_frontend::{Mapping, Rule};
use carafe_graph::{Error, OpNew, Phase};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The value of the `carafe_abi` symbol.
pub const ABI: CarafeAbi = CarafeAbi {
    magic: CARAFE_ABI_MAGIC,
    major: CARAFE_ABI_MAJOR,
    minor: CARAFE_ABI_MINOR,
    pointer: size_of::<usize>() as u32,
};

/// Takes what a library brings, in the manner of a builder.
#[derive(Debug)]
pub struct Registration {
    registrar: *mut CarafeRegistrar,
    failed: Option<Error>,
}

/// Runs the body of a library's `create_extensions`.
///
/// # Safety
/// Both pointers must be those that `create_extensions` was called with.
pub unsafe fn create_extensions(
    host: *const CarafeHost,
    registrar: *mut CarafeRegistrar,
    fill: impl FnOnce(&mut Registration),
) -> CarafeStatus {
    if host.is_null() || registrar.is_null() {
        return CARAFE_USAGE;
    }
    // SAFETY: passed on from the caller.
    unsafe { adopt(host) };
    quiet_panics();
    guard_into(
        || {
            let mut r = Registration { registrar, failed: None };
            fill(&mut r);
            r.failed.map_or(Ok(()), Err)
        },
        tell,
    )
}

// The text of a panic goes into the error; it need not be printed as well. This library has a hook of its own.
pub(crate) fn quiet_panics() {
    if crate::host::is_library() {
        std::panic::set_hook(Box::new(|_| {}));
    }
}

impl Registration {
    fn call(&mut self, f: impl FnOnce(&CarafeRegistrarFns, *mut CarafeRegistrar) -> CarafeStatus) -> &mut Registration {
        // SAFETY: the registrar is live until `create_extensions` returns.
        let fns = unsafe { &*(*self.registrar).fns };
        let result = from_host(f(fns, self.registrar));
        if let Err(e) = result {
            self.failed.get_or_insert(e);
        }
        self
    }
    pub fn describe(&mut self, name: &str, version: &str) -> &mut Registration {
        // SAFETY: the registrar is live, the texts are copied; so for every call below.
        self.call(|f, r| unsafe { (f.describe)(r, CarafeStr::of(name), CarafeStr::of(version)) })
    }
    pub fn op<T: OpNew>(&mut self) -> &mut Registration {
        crate::rule_export::remember_op(carafe_graph::OpFactory::of::<T>());
        let table = op_table::<T>();
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_op)(r, &table) })
    }
    pub fn rule(&mut self, rule: Rule) -> &mut Registration {
        let table = rule_table(rule);
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_rule)(r, &table) })
    }
    pub fn mapping(&mut self, m: Mapping) -> &mut Registration {
        let mut arena = Arena::default();
        let values = match attrs_code(m.attr_values.iter(), &mut arena) {
            Ok(v) => v,
            Err(e) => {
                self.failed.get_or_insert(e);
                return self;
            }
        };
        let pairs: Vec<CarafePair> =
            m.attr_names.iter().map(|(a, b)| CarafePair { first: c_leak(a), second: c_leak(b) }).collect();
        let from_inputs: Vec<CarafeInputAttr> =
            m.input_attrs.iter().map(|(a, i)| CarafeInputAttr { attr: c_leak(a), input: *i }).collect();
        let names = |list: &[String]| list.iter().map(|n| c_leak(n)).collect::<Vec<*const c_char>>();
        let (ins, outs) = (names(&m.input_names), names(&m.output_names));
        let opt = |s: &Option<String>| s.as_deref().map_or(std::ptr::null(), c_leak);
        let table = CarafeMapping {
            size: size_of::<CarafeMapping>(),
            abi: CARAFE_ABI_MAJOR,
            reserved: 0,
            framework: opt(&m.framework),
            domain: opt(&m.domain),
            op_type: opt(&m.op_type),
            op: c_leak(&m.op),
            attr_names: pairs.as_ptr(),
            n_attr_names: pairs.len(),
            attr_values: values,
            input_attrs: from_inputs.as_ptr(),
            n_input_attrs: from_inputs.len(),
            input_names: ins.as_ptr(),
            n_input_names: ins.len(),
            output_names: outs.as_ptr(),
            n_output_names: outs.len(),
        };
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_mapping)(r, &table) })
    }
    /// A rewrite of whole models.
    pub fn model_pass(&mut self, phase: Phase, pass: impl ModelPass) -> &mut Registration {
        let table = model_pass_table(phase, pass);
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_pass)(r, &table) })
    }
    /// A rewrite that looks at one node at a time.
    pub fn matcher(&mut self, phase: Phase, matcher: impl Matcher) -> &mut Registration {
        let table = matcher_table(phase, matcher);
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_pass)(r, &table) })
    }
    /// Puts something in place of what an entry of a replacement file names.
    pub fn replacement(&mut self, replacer: impl Replacer) -> &mut Registration {
        let table = replacement_table(replacer);
        self.call(|f, r| match f.size >= size_of::<CarafeRegistrarFns>() {
            // SAFETY: as in `describe`; the table of functions reaches this one.
            true => unsafe { (f.add_replacement)(r, &table) },
            false => {
                tell("this engine is too old for replacements; they came with ABI 1.1");
                CARAFE_UNSUPPORTED
            }
        })
    }
    pub fn kernel(&mut self, kernel: impl Kernel + 'static) -> &mut Registration {
        let table = kernel_table(Arc::new(kernel));
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_kernel)(r, &table) })
    }
    /// OpenCL source with its `<CustomLayer>` description, for `GPU` or `VPU`.
    pub fn cl_kernel(&mut self, device: &str, xml: &str, source: &str) -> &mut Registration {
        let table = CarafeClKernel {
            size: size_of::<CarafeClKernel>(),
            abi: CARAFE_ABI_MAJOR,
            reserved: 0,
            device: c_leak(device),
            xml: c_leak(xml),
            source: c_leak(source),
        };
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_cl_kernel)(r, &table) })
    }
    pub fn progress(&mut self, hear: impl Fn(f32, u32, u32) + Send + Sync + 'static) -> &mut Registration {
        unsafe extern "C" fn call<F: Fn(f32, u32, u32)>(user: *mut c_void, part: f32, total: u32, done: u32) {
            // SAFETY: `user` is the closure, which is never freed.
            end("a progress callback", || unsafe { (*user.cast::<F>())(part, total, done) });
        }
        fn pointer<F: Fn(f32, u32, u32)>(_: &F) -> unsafe extern "C" fn(*mut c_void, f32, u32, u32) {
            call::<F>
        }
        let call = pointer(&hear);
        let table = CarafeProgress {
            size: size_of::<CarafeProgress>(),
            abi: CARAFE_ABI_MAJOR,
            reserved: 0,
            user: Box::into_raw(Box::new(hear)).cast(),
            progress: Some(call),
        };
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_progress)(r, &table) })
    }
    /// Hears of events: kind, category, action, label, value.
    pub fn telemetry(
        &mut self,
        hear: impl Fn(&str, &str, &str, &str, i64) + Send + Sync + 'static,
    ) -> &mut Registration {
        type Hear = Box<dyn Fn(&str, &str, &str, &str, i64) + Send + Sync>;
        unsafe extern "C" fn call(
            user: *mut c_void,
            kind: CarafeStr,
            category: CarafeStr,
            action: CarafeStr,
            label: CarafeStr,
            value: i64,
        ) {
            // SAFETY: `user` is the closure, which is never freed; the contract gives texts.
            end("a telemetry callback", || unsafe {
                let [k, c, a, l] =
                    [kind, category, action, label].map(|s| crate::text::text(s, "an event").unwrap_or_default());
                (*user.cast::<Hear>())(k, c, a, l, value);
            });
        }
        let hear: Hear = Box::new(hear);
        let table = CarafeTelemetry {
            size: size_of::<CarafeTelemetry>(),
            abi: CARAFE_ABI_MAJOR,
            reserved: 0,
            user: Box::into_raw(Box::new(hear)).cast(),
            send: Some(call),
        };
        // SAFETY: as in `describe`.
        self.call(|f, r| unsafe { (f.add_telemetry)(r, &table) })
    }
}
