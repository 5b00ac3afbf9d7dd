//! Offers an `EvalCx` of this side to an operation of the other.

use crate::Library;
use crate::convert::{Arena, fact_code, foreign_tensor, static_shape, tensor_code, tensor_of, type_of};
use crate::status::guard;
use crate::tables::*;
use crate::text::text;
use carafe_graph::{Error, EvalCx, Fact, Result};
use carafe_tensor::Tensor;
use std::ffi::c_void;
use std::sync::Arc;

/// The crossing object with what is behind it. `base` stands first, so that a pointer to it is one to the whole.
#[repr(C)]
pub(crate) struct EvalBridge<'a, 'b> {
    base: CarafeEval,
    cx: &'a mut EvalCx<'b>,
    arena: Arena,
    /// Outputs whose memory was handed out and is being filled.
    open: Vec<Option<Tensor>>,
    /// What to tell of outputs where the context does not know it.
    shown: Option<Vec<Fact>>,
    library: Option<Arc<Library>>,
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
        let open = (0..cx.n_outputs()).map(|_| None).collect();
        EvalBridge { base: CarafeEval { fns: &FNS }, cx, arena: Arena::default(), open, shown: None, library }
    }
    /// Tells these facts of the outputs instead of those of the context.
    pub(crate) fn show(mut self, facts: &[Fact]) -> EvalBridge<'a, 'b> {
        self.shown = Some(facts.to_vec());
        self
    }
    pub(crate) fn pointer(&mut self) -> *mut CarafeEval {
        (&raw mut *self).cast()
    }
    /// Hands the filled outputs to the real context.
    pub(crate) fn finish(self) -> Result<()> {
        for (output, tensor) in self.open.into_iter().enumerate() {
            if let Some(tensor) = tensor {
                self.cx.set(output, tensor)?;
            }
        }
        Ok(())
    }
    fn checked_input(&self, input: usize) -> Result<()> {
        let n = self.cx.n_inputs();
        if input < n { Ok(()) } else { Err(Error::usage(format!("input {input} was asked for, there are {n}"))) }
    }
    fn checked_output(&self, output: usize) -> Result<()> {
        let n = self.open.len();
        if output < n { Ok(()) } else { Err(Error::usage(format!("output {output} was set, there are {n}"))) }
    }
}

/// # Safety
/// `cx` must be the pointer of a live bridge that nothing else uses now.
unsafe fn bridge<'x>(cx: *mut CarafeEval) -> &'x mut EvalBridge<'x, 'x> {
    // SAFETY: the caller promises; `base` is the first field of the `repr(C)` struct.
    unsafe { &mut *cx.cast() }
}

unsafe extern "C" fn n_inputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: the operation passes on the pointer it was given, as the contract says; so in every function below.
    unsafe { bridge(cx) }.cx.n_inputs()
}

unsafe extern "C" fn input(cx: *mut CarafeEval, input: usize, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_input(input)?;
        let code = tensor_code(b.cx.input(input), &mut b.arena);
        // SAFETY: the contract gives a place to write to.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn n_outputs(cx: *mut CarafeEval) -> usize {
    // SAFETY: as in `n_inputs`.
    unsafe { bridge(cx) }.open.len()
}

unsafe extern "C" fn output_fact(cx: *mut CarafeEval, output: usize, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_output(output)?;
        let fact = b.shown.as_ref().map_or_else(|| b.cx.out_fact(output), |f| &f[output]);
        let code = fact_code(fact.ty, &fact.shape, &mut b.arena);
        // SAFETY: the contract gives a place to write to.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn output(
    cx: *mut CarafeEval,
    output: usize,
    element_type: u32,
    rank: u32,
    shape: *const usize,
    data: *mut *mut c_void,
) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_output(output)?;
        // SAFETY: the contract gives `rank` dimensions.
        let shape = unsafe { static_shape(rank, shape)? };
        let mut tensor = Tensor::zeros(type_of(element_type)?, shape)?;
        if tensor.strings().is_ok() {
            return Err(Error::usage("strings are set with set_output"));
        }
        let p = tensor.bytes_mut().as_mut_ptr();
        // The tensor moves into the list, its memory stays: it is the only handle to it.
        b.open[output] = Some(tensor);
        // SAFETY: the contract gives a place to write to.
        unsafe { data.write(p.cast()) };
        Ok(())
    })
}

unsafe extern "C" fn set_output(cx: *mut CarafeEval, output: usize, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_output(output)?;
        // SAFETY: the contract gives a whole tensor; null is refused.
        let t = unsafe { t.as_ref() }.ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
        // SAFETY: as above.
        b.open[output] = Some(unsafe { tensor_of(t)? });
        Ok(())
    })
}

unsafe extern "C" fn give_output(
    cx: *mut CarafeEval,
    output: usize,
    t: *const CarafeTensor,
    owner: *mut c_void,
    release: CarafeRelease,
) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_output(output)?;
        // SAFETY: the contract gives a whole tensor; null is refused.
        let t = unsafe { t.as_ref() }.ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
        // SAFETY: the contract keeps the memory until `release(owner)`.
        b.open[output] = Some(unsafe { foreign_tensor(t, owner, release, b.library.clone())? });
        Ok(())
    })
}

unsafe extern "C" fn forward(cx: *mut CarafeEval, output: usize, input: usize) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_output(output)?;
        b.checked_input(input)?;
        b.open[output] = Some(b.cx.input(input).clone());
        Ok(())
    })
}

unsafe extern "C" fn keep_input(cx: *mut CarafeEval, input: usize, owner: *mut *mut c_void) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked_input(input)?;
        let kept: Box<Tensor> = Box::new(b.cx.input(input).clone());
        // SAFETY: the contract gives a place to write to; `drop_owner` takes the box back.
        unsafe { owner.write(Box::into_raw(kept).cast()) };
        Ok(())
    })
}

unsafe extern "C" fn name(cx: *mut CarafeEval, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives a place to write to.
    unsafe { out.write(CarafeStr::of(bridge(cx).cx.name())) };
    CARAFE_OK
}

unsafe extern "C" fn variable(cx: *mut CarafeEval, id: CarafeStr, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        // SAFETY: the contract gives a text.
        let id = unsafe { text(id, "the id of a variable")? };
        let t = b.cx.variable(id).ok_or_else(|| Error::not_found(format!("variable `{id}` has no value yet")))?;
        let code = tensor_code(t, &mut b.arena);
        // SAFETY: the contract gives a place to write to.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn assign(cx: *mut CarafeEval, id: CarafeStr, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        // SAFETY: the contract gives a text.
        let id = unsafe { text(id, "the id of a variable")? };
        // SAFETY: the contract gives a whole tensor; null is refused.
        let t = unsafe { t.as_ref() }.ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
        // SAFETY: as above.
        b.cx.assign(id, unsafe { tensor_of(t)? });
        Ok(())
    })
}
