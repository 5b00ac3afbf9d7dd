//! Offers an `EvalCx` of this side to an operation of the other.

use crate::Library;
use crate::convert::{Arena, fact_code, static_shape, tensor_code, tensor_of, type_of};
use crate::crossing::{Crossing, ask, put, with, writable};
use crate::foreign::foreign_tensor;
use crate::tables::*;
use crate::text::text;
use carafe_graph::{Error, EvalCx, Fact, Result};
use carafe_tensor::Tensor;
use std::ffi::c_void;
use std::sync::Arc;

/// The crossing object.
pub(crate) struct EvalBridge<'a, 'b>(Crossing<CarafeEval, Behind<'a, 'b>>);

/// What is behind it.
struct Behind<'a, 'b> {
    cx: &'a mut EvalCx<'b>,
    arena: Arena,
    outputs: Vec<Output>,
    /// What to tell of outputs where the context does not know it.
    shown: Option<Vec<Fact>>,
    library: Option<Arc<Library>>,
}

enum Output {
    Empty,
    Set(Tensor),
    /// Its memory is in the author's hands.
    Open(Tensor),
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

impl<'a, 'b> EvalBridge<'a, 'b> {
    pub(crate) fn new(cx: &'a mut EvalCx<'b>, library: Option<Arc<Library>>) -> EvalBridge<'a, 'b> {
        let outputs = (0..cx.n_outputs()).map(|_| Output::Empty).collect();
        let behind = Behind { cx, arena: Arena::default(), outputs, shown: None, library };
        EvalBridge(Crossing::new(CarafeEval { fns: &FNS }, behind))
    }
    /// Tells these facts of the outputs instead of those of the context.
    pub(crate) fn show(self, facts: &[Fact]) -> EvalBridge<'a, 'b> {
        let mut behind = self.0.into_inner();
        behind.shown = Some(facts.to_vec());
        EvalBridge(Crossing::new(CarafeEval { fns: &FNS }, behind))
    }
    pub(crate) fn pointer(&self) -> *mut CarafeEval {
        self.0.pointer()
    }
    /// Hands the filled outputs to the real context.
    pub(crate) fn finish(self) -> Result<()> {
        let behind = self.0.into_inner();
        for (output, made) in behind.outputs.into_iter().enumerate() {
            match made {
                Output::Empty => {}
                Output::Set(tensor) | Output::Open(tensor) => behind.cx.set(output, tensor)?,
            }
        }
        Ok(())
    }
}

impl Behind<'_, '_> {
    fn checked_input(&self, input: usize) -> Result<()> {
        let n = self.cx.n_inputs();
        if input < n { Ok(()) } else { Err(Error::usage(format!("input {input} was asked for, there are {n}"))) }
    }
    fn checked_output(&self, output: usize) -> Result<()> {
        let n = self.outputs.len();
        if output < n { Ok(()) } else { Err(Error::usage(format!("output {output} was set, there are {n}"))) }
    }
    /// An output that may be set now: one whose memory was handed out keeps it, as the author may still write there.
    fn free_output(&self, output: usize) -> Result<()> {
        self.checked_output(output)?;
        match self.outputs[output] {
            Output::Open(_) => Err(Error::usage(format!(
                "output {output} has its memory already; it is made once and filled where it lies"
            ))),
            Output::Empty | Output::Set(_) => Ok(()),
        }
    }
}

/// # Safety
/// `cx` must be null or the pointer of a live bridge.
unsafe fn at(cx: *mut CarafeEval, f: impl FnOnce(&mut Behind<'_, '_>) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe { with::<CarafeEval, Behind<'_, '_>>(cx, "the context of an evaluation", f) }
}

unsafe extern "C" fn n_inputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: the operation passes on the pointer it was given, as the contract says; so in every function below.
    unsafe { ask(cx, "the context of an evaluation", 0, |b: &mut Behind<'_, '_>| b.cx.n_inputs()) }
}

unsafe extern "C" fn input(cx: *mut CarafeEval, input: usize, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives places to write to, here and below.
    unsafe {
        at(cx, |b| {
            b.checked_input(input)?;
            put(out, tensor_code(b.cx.input(input), &mut b.arena), "a tensor")
        })
    }
}

unsafe extern "C" fn n_outputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: as in `n_inputs`.
    unsafe { ask(cx, "the context of an evaluation", 0, |b: &mut Behind<'_, '_>| b.outputs.len()) }
}

unsafe extern "C" fn output_fact(cx: *mut CarafeEval, output: usize, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe {
        at(cx, |b| {
            b.checked_output(output)?;
            let fact = b.shown.as_ref().map_or_else(|| b.cx.out_fact(output), |f| &f[output]);
            put(out, fact_code(fact.ty, &fact.shape, &mut b.arena), "a fact")
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
            b.free_output(output)?;
            writable(data, "the memory of an output")?;
            let shape = static_shape(rank, shape)?;
            let mut tensor = Tensor::zeros(type_of(element_type)?, shape)?;
            if tensor.strings().is_ok() {
                return Err(Error::usage("strings are set with set_output"));
            }
            let p = tensor.bytes_mut().as_mut_ptr();
            // The tensor moves into the list, its memory stays: it is the only handle to it.
            b.outputs[output] = Output::Open(tensor);
            put(data, p.cast(), "the memory of an output")
        })
    }
}

unsafe extern "C" fn set_output(cx: *mut CarafeEval, output: usize, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives a whole tensor, and null is refused.
    unsafe {
        at(cx, |b| {
            b.free_output(output)?;
            let t = t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            b.outputs[output] = Output::Set(tensor_of(t)?);
            Ok(())
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
    let mut before = Output::Empty;
    // SAFETY: as in `set_output`; the contract keeps the memory until `release(owner)`.
    let status = unsafe {
        at(cx, |b| {
            b.free_output(output)?;
            let t = t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            let tensor = foreign_tensor(t, owner, release, b.library.clone())?;
            before = std::mem::replace(&mut b.outputs[output], Output::Set(tensor));
            Ok(())
        })
    };
    // What was given before goes back to its maker, who may use the context.
    drop(before);
    status
}

unsafe extern "C" fn forward(cx: *mut CarafeEval, output: usize, input: usize) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    unsafe {
        at(cx, |b| {
            b.free_output(output)?;
            b.checked_input(input)?;
            b.outputs[output] = Output::Set(b.cx.input(input).clone());
            Ok(())
        })
    }
}

unsafe extern "C" fn keep_input(cx: *mut CarafeEval, input: usize, owner: *mut *mut c_void) -> CarafeStatus {
    // SAFETY: as in `input`; `drop_owner` takes the box back.
    unsafe {
        at(cx, |b| {
            b.checked_input(input)?;
            writable(owner, "the owner of an input")?;
            let kept: Box<Tensor> = Box::new(b.cx.input(input).clone());
            put(owner, Box::into_raw(kept).cast(), "the owner of an input")
        })
    }
}

unsafe extern "C" fn name(cx: *mut CarafeEval, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.cx.name()), "a name")) }
}

unsafe extern "C" fn variable(cx: *mut CarafeEval, id: CarafeStr, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `input`; the contract gives a text.
    unsafe {
        at(cx, |b| {
            let id = text(id, "the id of a variable")?;
            let t = b.cx.variable(id).ok_or_else(|| Error::not_found(format!("variable `{id}` has no value yet")))?;
            // Kept, because an assignment moves what the context holds.
            let kept = b.arena.keep(vec![t.clone()]);
            put(out, tensor_code(&*kept, &mut b.arena), "a tensor")
        })
    }
}

unsafe extern "C" fn assign(cx: *mut CarafeEval, id: CarafeStr, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `set_output`; the contract gives a text.
    unsafe {
        at(cx, |b| {
            let id = text(id, "the id of a variable")?;
            let t = t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            b.cx.assign(id, tensor_of(t)?);
            Ok(())
        })
    }
}
