//! Planned memory of a running kernel as a table for the other side, and such a table as memory of this side. Neither copies,
//! and neither takes memory where a kernel has no more ports than most.

use crate::calls::{current, enter_part};
use crate::convert::type_code;
use crate::host::tell;
use crate::op_export::from_host;
use crate::status::{guard_into, set_text, take_text};
use crate::tables::*;
use carafe_device::{ChosenKernel, Form, KernelIo, KernelThreads};
use carafe_graph::{Error, Result};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

/// Ports for which no memory is taken.
const USUAL: usize = 16;

/// So many items on the stack, or on the heap where they are more.
fn with_items<T, R>(
    n: usize,
    mut item: impl FnMut(usize) -> T,
    filler: impl Fn() -> T,
    f: impl FnOnce(&mut [T]) -> R,
) -> R {
    if n > USUAL {
        return f(&mut (0..n).map(item).collect::<Vec<T>>());
    }
    let mut items: [T; USUAL] = std::array::from_fn(|i| if i < n { item(i) } else { filler() });
    f(&mut items[..n])
}

/// The table with what its functions need. `table` stands first, so that a pointer to it is one to the whole.
#[repr(C)]
struct Lent<'a> {
    table: CarafeKernelIo,
    threads: &'a dyn KernelThreads,
}

/// Lends the memory to the other side.
pub(crate) fn with_table(
    io: &mut KernelIo<'_, '_>,
    call: impl FnOnce(*const CarafeKernelIo) -> Result<()>,
) -> Result<()> {
    let (forms, in_place, given) = (io.forms, io.in_place, io.inputs);
    let known = (forms.inputs.len(), forms.outputs.len()) == (given.len(), io.outputs.len());
    if !known {
        return Err(Error::invalid("a kernel is run with other ports than it asked for"));
    }
    let buffer = |form: &Form, bytes: &mut [u8]| CarafeOutput {
        element_type: type_code(form.ty),
        rank: form.dims.len() as u32,
        shape: form.dims.as_ptr(),
        data: bytes.as_mut_ptr().cast(),
        bytes: bytes.len(),
    };
    let no_buffer =
        || CarafeOutput { element_type: 0, rank: 0, shape: std::ptr::null(), data: std::ptr::null_mut(), bytes: 0 };
    let n_outputs = io.outputs.len();
    let outputs = &mut *io.outputs;
    with_items(
        n_outputs,
        |i| buffer(&forms.outputs[i], outputs[i]),
        no_buffer,
        |outputs| {
            let input = |i: usize| {
                let form = &forms.inputs[i];
                // What lies in the output is given with its address.
                let (data, bytes) = match in_place == Some(i) {
                    true => (outputs[0].data.cast_const(), outputs[0].bytes),
                    false => (given[i].as_ptr().cast(), given[i].len()),
                };
                CarafeTensor {
                    element_type: type_code(form.ty),
                    rank: form.dims.len() as u32,
                    shape: form.dims.as_ptr(),
                    data,
                    bytes,
                }
            };
            with_items(
                given.len(),
                input,
                || CarafeAttr::EMPTY.tensor,
                |inputs| {
                    let lent = Lent {
                        table: CarafeKernelIo {
                            size: size_of::<CarafeKernelIo>(),
                            inputs: inputs.as_ptr(),
                            n_inputs: inputs.len(),
                            outputs: outputs.as_ptr(),
                            n_outputs: outputs.len(),
                            workspace: io.workspace.as_mut_ptr().cast(),
                            workspace_bytes: io.workspace.len(),
                            threads: io.threads.threads(),
                            each: Some(each),
                        },
                        threads: io.threads,
                    };
                    call((&raw const lent).cast())
                },
            )
        },
    )
}

/// What the other side wants handed to the parts of its loop.
struct User(*mut c_void);
// SAFETY: the contract lets `body` be called with `user` by several threads at once.
unsafe impl Sync for User {}

impl User {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

unsafe extern "C" fn each(
    io: *const CarafeKernelIo,
    parts: usize,
    body: CarafePart,
    user: *mut c_void,
) -> CarafeStatus {
    let (Some(body), false) = (body, io.is_null()) else {
        set_text("`each`: a null pointer for the memory of a kernel or for the body of a loop");
        return CARAFE_USAGE;
    };
    // SAFETY: the kernel passes on the pointer it was given, which is one to the whole.
    let lent = unsafe { &*io.cast::<Lent<'_>>() };
    let (library, user) = (current(), User(user));
    let failed: Mutex<Option<(CarafeStatus, String)>> = Mutex::new(None);
    lent.threads.each(parts, &|part, scratch| {
        let failed = || failed.lock().unwrap_or_else(|e| e.into_inner());
        if failed().is_some() {
            return;
        }
        set_text("");
        let (data, bytes) = (scratch.as_mut_ptr().cast(), scratch.len());
        // SAFETY: the contract lets `body` be called with `user` by several threads at once.
        let call = || unsafe { body(user.get(), part, data, bytes) };
        let failure = match enter_part(library, "a part of a loop", call) {
            (CARAFE_OK, None) => return,
            (CARAFE_OK, Some(misuse)) => (CARAFE_USAGE, misuse.to_string()),
            (status, _) => (status, take_text()),
        };
        failed().get_or_insert(failure);
    });
    match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        None => CARAFE_OK,
        Some((status, text)) => {
            set_text(&text);
            status
        }
    }
}

/// The threads of the other side.
struct Threads {
    io: *const CarafeKernelIo,
    /// Bytes that the kernel asked for.
    scratch: usize,
}

// SAFETY: `each` is called by the thread that was lent the memory; others only run parts.
unsafe impl Sync for Threads {}

impl KernelThreads for Threads {
    fn threads(&self) -> usize {
        // SAFETY: the table is lent for the call.
        unsafe { (*self.io).threads.max(1) }
    }
    fn each(&self, parts: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        struct Job<'a> {
            body: &'a (dyn Fn(usize, &mut [u8]) + Sync),
            scratch: usize,
            panic: Mutex<Option<Box<dyn std::any::Any + Send>>>,
        }
        unsafe extern "C" fn part(user: *mut c_void, part: usize, scratch: *mut c_void, bytes: usize) -> CarafeStatus {
            // SAFETY: `user` is the job, borrowed until `each` returns.
            let job = unsafe { &*user.cast::<Job<'_>>() };
            let run = || match bytes >= job.scratch {
                // SAFETY: the contract lends so many bytes to this part alone.
                true if bytes > 0 => (job.body)(part, unsafe { std::slice::from_raw_parts_mut(scratch.cast(), bytes) }),
                // A device that gives no scratch.
                _ => (job.body)(part, &mut vec![0; job.scratch]),
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(()) => CARAFE_OK,
                Err(panic) => {
                    job.panic.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(panic);
                    CARAFE_PANIC
                }
            }
        }
        // SAFETY: the table is lent for the call.
        let Some(each) = (unsafe { (*self.io).each }) else {
            return (0..parts).for_each(|i| body(i, &mut vec![0; self.scratch]));
        };
        let job = Job { body, scratch: self.scratch, panic: Mutex::new(None) };
        // SAFETY: the job lives until the call returns, and may be used by several threads at once.
        let status = unsafe { each(self.io, parts, Some(part), (&raw const job).cast_mut().cast()) };
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(panic);
        }
        if let Err(e) = from_host(status) {
            panic!("{e}");
        }
    }
}

/// Runs a kernel of this side in memory that the other side lends.
///
/// # Safety
/// The table must be live and as `CarafeKernel::run` promises.
pub(crate) unsafe fn run_in(kernel: &ChosenKernel, io: *const CarafeKernelIo) -> CarafeStatus {
    let run = || {
        // SAFETY: passed on from the caller; null is refused.
        let table = unsafe { io.as_ref() }.ok_or_else(|| Error::usage("a null pointer for the memory of a kernel"))?;
        let forms = kernel.forms().ok_or_else(|| Error::usage("the kernel was made for open shapes"))?;
        let counts = (table.n_inputs, table.n_outputs);
        if table.size < size_of::<CarafeKernelIo>() || counts != (forms.inputs.len(), forms.outputs.len()) {
            return Err(Error::usage("a kernel is run with other ports than it asked for"));
        }
        // SAFETY: the caller promises the lists; an empty one may be null.
        let input = |i: usize| unsafe { &*table.inputs.add(i) };
        // SAFETY: as above.
        let output = |i: usize| unsafe { &*table.outputs.add(i) };
        let size = |form: &Form| form.ty.byte_len(form.dims.iter().product()).unwrap_or(usize::MAX);
        let fits = (0..counts.0).all(|i| input(i).bytes >= size(&forms.inputs[i]))
            && (0..counts.1).all(|i| output(i).bytes >= size(&forms.outputs[i]));
        if !fits {
            return Err(Error::usage("a kernel is run with less memory than its forms take"));
        }
        let shared = |i: usize| input(i).bytes > 0 && counts.1 > 0 && input(i).data == output(0).data.cast_const();
        let in_place = (0..counts.0).find(|&i| shared(i));
        let slice = |i: usize| match in_place == Some(i) || input(i).bytes == 0 {
            true => &[][..],
            // SAFETY: the contract lends so many bytes, which nobody writes meanwhile.
            false => unsafe { std::slice::from_raw_parts(input(i).data.cast::<u8>(), input(i).bytes) },
        };
        let slice_mut = |i: usize| match output(i).bytes {
            0 => &mut [][..],
            // SAFETY: the contract lends so many bytes to this call alone.
            n => unsafe { std::slice::from_raw_parts_mut(output(i).data.cast::<u8>(), n) },
        };
        let (asked, mut own) = (kernel.config(), vec![]);
        let workspace = match table.workspace_bytes {
            n if n < asked.workspace => {
                own.resize(asked.workspace.div_ceil(size_of::<u128>()), 0u128);
                let bytes = own.len() * size_of::<u128>();
                // SAFETY: the bytes of the list, which this call alone has.
                unsafe { std::slice::from_raw_parts_mut(own.as_mut_ptr().cast::<u8>(), bytes) }
            }
            0 => &mut [][..],
            // SAFETY: as for outputs.
            n => unsafe { std::slice::from_raw_parts_mut(table.workspace.cast::<u8>(), n) },
        };
        let threads = Threads { io, scratch: asked.scratch };
        with_items(
            counts.1,
            slice_mut,
            || &mut [][..],
            |outputs| {
                with_items(
                    counts.0,
                    slice,
                    || &[][..],
                    |inputs| {
                        kernel.execute(&mut KernelIo { inputs, outputs, workspace, in_place, forms, threads: &threads })
                    },
                )
            },
        )
    };
    guard_into(run, tell)
}
