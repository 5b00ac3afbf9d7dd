//! Loads an extension library: opens it, calls `create_extensions`, and takes what it registers. A table that is wrong
//! is an error of the whole library; nothing of it is kept then.

use crate::calls::misuse;
use crate::convert::attrs_of;
use crate::crossing::{Crossing, with};
use crate::extension::Extension;
use crate::host::host;
use crate::kernel_import::{Maker, import_kernel};
use crate::library::{Library, LoadError};
use crate::memory::readable;
use crate::op_import::{User, import_op};
use crate::pass_import::import_pass;
use crate::replacement_import::import_replacement;
use crate::rule_import::import_rule;
use crate::tables::*;
use crate::text::{c_text, items, opt_c_text, text};
use carafe_device::ClKernel;
use carafe_frontend::Mapping;
use carafe_graph::{Error, Result};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;

/// Opens a library and takes what it brings.
pub fn load_extension(path: &Path) -> Result<Extension> {
    let library = Arc::new(Library::open(path).map_err(|e| e.named(path))?);
    extension_of(&library)?.ok_or_else(|| {
        LoadError::NotAnExtension("it exports no `create_extensions`; a device is registered as a plugin".into())
            .named(path)
    })
}

/// As `load_extension`, for a file that may be something else: `None` for a library that is not made for Carafe or brings no
/// extension.
pub fn load_extension_if_one(path: &Path) -> Result<Option<Extension>> {
    match Library::open(path) {
        Ok(library) => extension_of(&Arc::new(library)),
        Err(LoadError::NotAnExtension(_)) => Ok(None),
        Err(e) => Err(e.named(path)),
    }
}

/// What an open library brings; `None` when it brings no extension.
pub(crate) fn extension_of(library: &Arc<Library>) -> Result<Option<Extension>> {
    // SAFETY: in a library with `carafe_abi` the symbol has this type.
    let entry = unsafe { library.function::<CarafeCreateExtensions>("create_extensions\0") };
    let Some(entry) = entry else { return Ok(None) };
    let registrar = Registrar {
        library: library.clone(),
        extension: Extension {
            name: library.name().to_string(),
            path: Some(library.path().to_path_buf()),
            ..Extension::default()
        },
        failed: None,
    };
    // Never freed, so that a library that uses it after the call gets an answer; what it holds is taken out.
    let registrar: &Crossing<CarafeRegistrar, Option<Registrar>> =
        Box::leak(Box::new(Crossing::new(CarafeRegistrar { fns: &FNS }, Some(registrar))));
    // SAFETY: the library is built for this ABI; host and registrar live for ever.
    let called = library.call("create_extensions", || unsafe { entry(host(), registrar.pointer()) });
    let registrar = registrar.turn(WHAT)?.inner.take();
    called?;
    let registrar = registrar.ok_or_else(|| Error::invalid("the registrar is gone"))?;
    // A library that does not look at what `add_op` answers must not seem whole.
    match registrar.failed {
        Some(e) => Err(library.blame(e)),
        None => Ok(Some(registrar.extension)),
    }
}

const WHAT: &str = "the registrar";

struct Registrar {
    library: Arc<Library>,
    extension: Extension,
    failed: Option<Error>,
}

static FNS: CarafeRegistrarFns = CarafeRegistrarFns {
    size: size_of::<CarafeRegistrarFns>(),
    describe,
    add_op,
    add_rule,
    add_mapping,
    add_pass,
    add_kernel,
    add_cl_kernel,
    add_progress,
    add_telemetry,
    add_replacement,
};

/// A copy of a table that may be older (shorter) or newer (longer) than ours; what an older one lacks is zero.
///
/// # Safety
/// A pointer that is not null must reach a table that begins with its size. All-zero bytes must be a value of `T`.
pub(crate) unsafe fn table<T: Copy>(p: *const T, least: usize, what: &str) -> Result<T> {
    if p.is_null() {
        return Err(Error::invalid(format!("{what} is a null pointer")));
    }
    if !p.is_aligned() {
        return Err(Error::invalid(format!("{what} is at a misaligned address")));
    }
    readable(p, 2 * size_of::<usize>(), what)?;
    // SAFETY: the table begins with its size and its ABI number.
    let (size, abi) = unsafe { (*p.cast::<usize>(), *p.cast::<u8>().add(size_of::<usize>()).cast::<u32>()) };
    if size < least || size > 1 << 20 {
        return Err(Error::invalid(format!("{what} says it has {size} bytes, at least {least} are needed")));
    }
    if abi != CARAFE_ABI_MAJOR {
        return Err(Error::unsupported(format!("{what} is for ABI {abi}, this engine speaks {CARAFE_ABI_MAJOR}")));
    }
    readable(p, size.min(size_of::<T>()), what)?;
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: `size` bytes are there, and no more than a `T` are written; the rest is zero, which the caller allows.
    unsafe {
        std::ptr::copy_nonoverlapping(p.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), size.min(size_of::<T>()));
        Ok(copy.assume_init())
    }
}

/// Bytes of a table up to and with a field.
macro_rules! up_to {
    ($t:ty, $field:ident) => {
        std::mem::offset_of!($t, $field) + size_of::<usize>()
    };
}
pub(crate) use up_to;

// Runs one registration; remembers its failure.
fn register(r: *mut CarafeRegistrar, f: impl FnOnce(&mut Registrar) -> Result<()>) -> CarafeStatus {
    // SAFETY: the library passes on the pointer it was given, as the contract says.
    unsafe {
        with::<CarafeRegistrar, Option<Registrar>>(r, WHAT, |r| match r {
            Some(registrar) => f(registrar).inspect_err(|e| {
                registrar.failed.get_or_insert_with(|| e.clone());
            }),
            None => {
                let late = Error::usage("the registrar is used after `create_extensions` returned");
                misuse(late.clone());
                Err(late)
            }
        })
    }
}

unsafe extern "C" fn describe(r: *mut CarafeRegistrar, name: CarafeStr, version: CarafeStr) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives texts.
        r.extension.name = unsafe { text(name, "the name of the extension")? }.to_string();
        // SAFETY: as above.
        r.extension.version = unsafe { text(version, "the version of the extension")? }.to_string();
        Ok(())
    })
}

unsafe extern "C" fn add_op(r: *mut CarafeRegistrar, op: *const CarafeOp) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let op = unsafe { table(op, up_to!(CarafeOp, release), "the table of an operation")? };
        // SAFETY: the contract gives a whole table.
        r.extension.ops.push(unsafe { import_op(op, &r.library)? });
        Ok(())
    })
}

unsafe extern "C" fn add_rule(r: *mut CarafeRegistrar, rule: *const CarafeRule) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let rule = unsafe { table(rule, up_to!(CarafeRule, convert), "the table of a rule")? };
        // SAFETY: the contract gives a whole table.
        r.extension.rules.push(unsafe { import_rule(rule, &r.library)? });
        Ok(())
    })
}

unsafe extern "C" fn add_mapping(r: *mut CarafeRegistrar, mapping: *const CarafeMapping) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let m = unsafe { table(mapping, up_to!(CarafeMapping, op), "the table of a mapping")? };
        // SAFETY: the contract gives texts and lists as the table says.
        let mapping = unsafe {
            let mut mapping = Mapping::new(c_text(m.op, "the target of a mapping")?);
            mapping.framework = opt_c_text(m.framework, "a framework")?.map(str::to_ascii_lowercase);
            mapping.domain = opt_c_text(m.domain, "a domain")?.map(str::to_string);
            mapping.op_type = opt_c_text(m.op_type, "a type")?.map(str::to_string);
            for pair in items(m.attr_names, m.n_attr_names, "names of attributes")? {
                let (ours, theirs) = (c_text(pair.first, "an attribute")?, c_text(pair.second, "an attribute")?);
                mapping.attr_names.push((ours.to_string(), theirs.to_string()));
            }
            mapping.attr_values = attrs_of(m.attr_values)?;
            for a in items(m.input_attrs, m.n_input_attrs, "attributes from inputs")? {
                mapping.input_attrs.push((c_text(a.attr, "an attribute")?.to_string(), a.input));
            }
            for name in items(m.input_names, m.n_input_names, "names of inputs")? {
                mapping.input_names.push(c_text(*name, "the name of an input")?.to_string());
            }
            for name in items(m.output_names, m.n_output_names, "names of outputs")? {
                mapping.output_names.push(c_text(*name, "the name of an output")?.to_string());
            }
            mapping
        };
        r.extension.mappings.push(mapping);
        Ok(())
    })
}

unsafe extern "C" fn add_pass(r: *mut CarafeRegistrar, pass: *const CarafePass) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let pass = unsafe { table(pass, up_to!(CarafePass, run), "the table of a pass")? };
        // SAFETY: the contract gives a whole table.
        r.extension.passes.push(unsafe { import_pass(pass, &r.library)? });
        Ok(())
    })
}

unsafe extern "C" fn add_replacement(r: *mut CarafeRegistrar, replacement: *const CarafeReplacement) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let t = unsafe { table(replacement, up_to!(CarafeReplacement, replace), "the table of a replacement")? };
        // SAFETY: the contract gives a whole table.
        r.extension.replacements.push(unsafe { import_replacement(t, &r.library)? });
        Ok(())
    })
}

unsafe extern "C" fn add_kernel(r: *mut CarafeRegistrar, kernel: *const CarafeKernel) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let kernel = unsafe { table(kernel, up_to!(CarafeKernel, execute), "the table of a kernel")? };
        // SAFETY: the contract gives a whole table.
        r.extension.kernels.push(unsafe { import_kernel(kernel, Maker::Library(r.library.clone()))? });
        Ok(())
    })
}

unsafe extern "C" fn add_cl_kernel(r: *mut CarafeRegistrar, kernel: *const CarafeClKernel) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let kernel = unsafe { table(kernel, up_to!(CarafeClKernel, source), "the table of an OpenCL kernel")? };
        // SAFETY: the contract gives texts.
        let kernel = unsafe {
            ClKernel {
                device: c_text(kernel.device, "the device of an OpenCL kernel")?.to_string(),
                xml: c_text(kernel.xml, "the description of an OpenCL kernel")?.to_string(),
                source: c_text(kernel.source, "the source of an OpenCL kernel")?.to_string(),
            }
        };
        if !["GPU", "VPU"].contains(&kernel.device.as_str()) {
            return Err(Error::invalid(format!("OpenCL kernels are for GPU or VPU, found `{}`", kernel.device)));
        }
        r.extension.cl_kernels.push(kernel);
        Ok(())
    })
}

unsafe extern "C" fn add_progress(r: *mut CarafeRegistrar, progress: *const CarafeProgress) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let p = unsafe { table(progress, up_to!(CarafeProgress, progress), "the table of a progress callback")? };
        let call = p.progress.ok_or_else(|| Error::invalid("a progress callback without a function"))?;
        let user = User::new(p.user, &r.library);
        r.extension.progress.push(Arc::new(move |part, total, done| {
            // SAFETY: the table is whole; `user` keeps the library mapped.
            user.library().notify("progress", || unsafe { call(user.pointer(), part, total, done) });
        }));
        Ok(())
    })
}

unsafe extern "C" fn add_telemetry(r: *mut CarafeRegistrar, telemetry: *const CarafeTelemetry) -> CarafeStatus {
    register(r, |r| {
        // SAFETY: the contract gives a table; zero is good for all its fields.
        let t = unsafe { table(telemetry, up_to!(CarafeTelemetry, send), "the table of a telemetry callback")? };
        let send = t.send.ok_or_else(|| Error::invalid("a telemetry callback without a function"))?;
        let user = User::new(t.user, &r.library);
        r.extension.telemetry.push(Arc::new(move |kind: &str, category: &str, action: &str, label: &str, value| {
            let [kind, category, action, label] = [kind, category, action, label].map(CarafeStr::of);
            // SAFETY: the table is whole; `user` keeps the library mapped.
            let send = || unsafe { send(user.pointer(), kind, category, action, label, value) };
            user.library().notify("telemetry", send);
        }));
        Ok(())
    })
}
