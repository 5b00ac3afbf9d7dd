//! Planned memory for kernels that know only `CarafeKernel::execute`: they ask for their inputs and outputs one by one, and get
//! them where they lie. What they make elsewhere is copied there.

use crate::convert::{Arena, fact_code, static_shape, tensor_head, tensor_of, type_code, type_of};
use crate::crossing::{Crossing, ask, put, with, writable};
use crate::foreign::foreign_tensor;
use crate::kernel_import::Maker;
use crate::tables::*;
use carafe_device::{Form, Forms, KernelIo, Layout};
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::ffi::c_void;

/// What is behind the crossing object.
struct Behind<'a, 'm> {
    name: &'a str,
    /// The kernel, as messages name it.
    kernel: String,
    maker: &'a Maker,
    forms: &'a Forms,
    inputs: &'a [&'m [u8]],
    outputs: &'a mut [&'m mut [u8]],
    filled: Vec<Filled>,
    arena: Arena,
}

#[derive(Clone, Copy, PartialEq)]
enum Filled {
    No,
    Set,
    /// Its memory is in the author's hands.
    Open,
}

static FNS: CarafeEvalFns = CarafeEvalFns {
    size: size_of::<CarafeEvalFns>(),
    n_inputs,
    input,
    n_outputs,
    output_fact,
    output,
    set_output,
    give_output,
    forward,
    keep_input,
    name,
    variable,
    assign,
};

/// Runs `execute` with a context over the memory; `node` is the name of the node.
pub(crate) fn in_planned_memory(
    io: &mut KernelIo<'_, '_>,
    node: &str,
    kernel: &str,
    maker: &Maker,
    execute: impl FnOnce(*mut CarafeEval) -> Result<()>,
) -> Result<()> {
    let library = maker.library().map_or(String::new(), |l| format!(" of `{}`", l.name()));
    let behind = Behind {
        name: node,
        kernel: format!("kernel `{kernel}`{library}"),
        maker,
        forms: io.forms,
        inputs: io.inputs,
        filled: vec![Filled::No; io.outputs.len()],
        outputs: &mut *io.outputs,
        arena: Arena::default(),
    };
    let crossing = Crossing::new(CarafeEval { fns: &FNS }, behind);
    execute(crossing.pointer())?;
    let behind = crossing.into_inner();
    match behind.filled.iter().position(|f| *f == Filled::No) {
        Some(i) => Err(maker.blame(Error::invalid(format!("{} gave no output {i}", behind.kernel)))),
        None => Ok(()),
    }
}

impl Behind<'_, '_> {
    fn checked_input(&self, input: usize) -> Result<&Form> {
        let n = self.forms.inputs.len();
        self.forms.inputs.get(input).ok_or_else(|| Error::usage(format!("input {input} was asked for, there are {n}")))
    }
    /// The form of an output that may be set now.
    fn free_output(&self, output: usize) -> Result<&Form> {
        let n = self.forms.outputs.len();
        let form = self.forms.outputs.get(output);
        let form = form.ok_or_else(|| Error::usage(format!("output {output} was set, there are {n}")))?;
        match self.filled[output] {
            Filled::Open => Err(Error::usage(format!(
                "output {output} has its memory already; it is made once and filled where it lies"
            ))),
            Filled::No | Filled::Set => Ok(form),
        }
    }
    /// Refuses what is not in the form that was promised.
    fn check(&self, output: usize, ty: ElementType, shape: &[usize]) -> Result<()> {
        let form = self.free_output(output)?;
        let fits = match form.layout {
            Layout::Plain => form.dims == shape,
            _ => carafe_tensor::elements(shape) == carafe_tensor::elements(&form.dims),
        };
        if ty == form.ty && fits {
            return Ok(());
        }
        let promised = match form.layout {
            Layout::Plain => format!("{}[{}]", form.ty, PartialShape::of(&form.dims)),
            _ => format!("{}blocks {:?}", form.ty, form.dims),
        };
        let kernel = &self.kernel;
        Err(Error::invalid(format!("{kernel} gave output {output} as {ty}{shape:?}, promised {promised}")))
    }
    fn copy(&mut self, output: usize, t: &Tensor) -> Result<()> {
        self.check(output, t.element_type(), t.shape())?;
        self.outputs[output].copy_from_slice(t.bytes());
        self.filled[output] = Filled::Set;
        Ok(())
    }
    fn tensor_of_input(&self, input: usize) -> Result<Tensor> {
        let form = self.checked_input(input)?;
        Ok(Tensor::from_bytes(form.ty, &form.dims, self.inputs[input])?)
    }
}

/// # Safety
/// `cx` must be null or the pointer of a live context.
unsafe fn at(cx: *mut CarafeEval, f: impl FnOnce(&mut Behind<'_, '_>) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe { with::<CarafeEval, Behind<'_, '_>>(cx, "the context of a kernel", f) }
}

unsafe extern "C" fn n_inputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: the kernel passes on the pointer it was given, as the contract says; so in every function below.
    unsafe { ask(cx, "the context of a kernel", 0, |b: &mut Behind<'_, '_>| b.inputs.len()) }
}

unsafe extern "C" fn input(cx: *mut CarafeEval, input: usize, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives places to write to, here and below.
    unsafe {
        at(cx, |b| {
            let form = b.checked_input(input)?;
            let (data, bytes) = (b.inputs[input].as_ptr().cast(), b.inputs[input].len());
            let (rank, shape) = (form.dims.len() as u32, form.dims.as_ptr());
            put(out, CarafeTensor { element_type: type_code(form.ty), rank, shape, data, bytes }, "a tensor")
        })
    }
}

unsafe extern "C" fn n_outputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: as in `n_inputs`.
    unsafe { ask(cx, "the context of a kernel", 0, |b: &mut Behind<'_, '_>| b.outputs.len()) }
}

unsafe extern "C" fn output_fact(cx: *mut CarafeEval, output: usize, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe {
        at(cx, |b| {
            let n = b.forms.outputs.len();
            let form = b.forms.outputs.get(output);
            let form = form.ok_or_else(|| Error::usage(format!("output {output} was asked for, there are {n}")))?;
            let shape = PartialShape::of(&form.plain);
            put(out, fact_code(form.ty, &shape, &mut b.arena), "a fact")
        })
    }
}

unsafe extern "C" fn output(
    cx: *mut CarafeEval,
    output: usize,
    element_type: u32,
    rank: u32,
    shape: *const usize,
    data: *mut *mut c_void,
) -> CarafeStatus {
    // SAFETY: as in `input`; the contract gives `rank` dimensions.
    unsafe {
        at(cx, |b| {
            writable(data, "the memory of an output")?;
            b.check(output, type_of(element_type)?, static_shape(rank, shape)?)?;
            // The contract promises zeros.
            b.outputs[output].fill(0);
            b.filled[output] = Filled::Open;
            put(data, b.outputs[output].as_mut_ptr().cast(), "the memory of an output")
        })
    }
}

unsafe extern "C" fn set_output(cx: *mut CarafeEval, output: usize, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives a whole tensor, and null is refused.
    unsafe {
        at(cx, |b| {
            let t = t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            let (ty, shape) = tensor_head(t)?;
            b.check(output, ty, shape)?;
            b.copy(output, &tensor_of(t)?)
        })
    }
}

unsafe extern "C" fn give_output(
    cx: *mut CarafeEval,
    output: usize,
    t: *const CarafeTensor,
    owner: *mut c_void,
    release: CarafeRelease,
) -> CarafeStatus {
    let mut given = None;
    // SAFETY: as in `set_output`; the contract keeps the memory until `release(owner)`.
    let status = unsafe {
        at(cx, |b| {
            let t = t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            let (ty, shape) = tensor_head(t)?;
            b.check(output, ty, shape)?;
            let tensor = foreign_tensor(t, owner, release, b.maker.library())?;
            b.copy(output, &tensor)?;
            given = Some(tensor);
            Ok(())
        })
    };
    // What was given goes back to its maker, who may use the context.
    drop(given);
    status
}

unsafe extern "C" fn forward(cx: *mut CarafeEval, output: usize, input: usize) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    unsafe {
        at(cx, |b| {
            let form = b.checked_input(input)?;
            b.check(output, form.ty, &form.dims)?;
            b.outputs[output].copy_from_slice(b.inputs[input]);
            b.filled[output] = Filled::Set;
            Ok(())
        })
    }
}

unsafe extern "C" fn keep_input(cx: *mut CarafeEval, input: usize, owner: *mut *mut c_void) -> CarafeStatus {
    // SAFETY: as in `input`; `drop_owner` takes the box back.
    unsafe {
        at(cx, |b| {
            writable(owner, "the owner of an input")?;
            let kept: Box<Tensor> = Box::new(b.tensor_of_input(input)?);
            put(owner, Box::into_raw(kept).cast(), "the owner of an input")
        })
    }
}

unsafe extern "C" fn name(cx: *mut CarafeEval, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.name), "a name")) }
}

unsafe extern "C" fn variable(cx: *mut CarafeEval, _id: CarafeStr, _out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe { at(cx, |_| Err(Error::not_found("kernels have no variables"))) }
}

unsafe extern "C" fn assign(cx: *mut CarafeEval, _id: CarafeStr, _t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe { at(cx, |_| Err(Error::unsupported("kernels have no variables"))) }
}
