//! Offers an `InferCx` of this side to an operation of the other.

use crate::convert::{Arena, dim_code, dim_of, fact_code, fact_of, tensor_code, tensor_of};
use crate::crossing::{Crossing, ask, put, with, writable};
use crate::tables::*;
use crate::text::slice;
use carafe_graph::{Content, Error, Fact, InferCx, Result};

/// The crossing object.
pub(crate) struct InferBridge<'a, 'b>(Crossing<CarafeInfer, Behind<'a, 'b>>);

/// What is behind it.
struct Behind<'a, 'b> {
    cx: &'a mut InferCx<'b>,
    arena: Arena,
    set: Vec<Option<Fact>>,
}

static FNS: CarafeInferFns = CarafeInferFns {
    size: size_of::<CarafeInferFns>(),
    n_inputs,
    input,
    value,
    intervals,
    set_output,
    set_value,
    set_intervals,
    symbol,
    exact,
};

const MOST_OUTPUTS: usize = 1 << 16;
const WHAT: &str = "the context of an inference";

impl<'a, 'b> InferBridge<'a, 'b> {
    pub(crate) fn new(cx: &'a mut InferCx<'b>) -> InferBridge<'a, 'b> {
        let behind = Behind { cx, arena: Arena::default(), set: vec![] };
        InferBridge(Crossing::new(CarafeInfer { fns: &FNS }, behind))
    }
    pub(crate) fn pointer(&self) -> *mut CarafeInfer {
        self.0.pointer()
    }
    /// Hands what the operation said to the real context; the number of outputs must be right.
    pub(crate) fn finish(self) -> Result<()> {
        let behind = self.0.into_inner();
        for (output, fact) in behind.set.into_iter().enumerate() {
            let fact = fact.ok_or_else(|| Error::invalid(format!("inference left output {output} open")))?;
            behind.cx.set_fact(output, fact);
        }
        Ok(())
    }
}

impl Behind<'_, '_> {
    fn checked(&self, input: usize) -> Result<()> {
        let n = self.cx.n_inputs();
        if input < n { Ok(()) } else { Err(Error::usage(format!("input {input} was asked for, there are {n}"))) }
    }
    fn output(&mut self, output: usize) -> Result<&mut Fact> {
        let slot = self.set.get_mut(output).and_then(Option::as_mut);
        slot.ok_or_else(|| Error::usage(format!("output {output} has no type and shape yet")))
    }
}

/// # Safety
/// `cx` must be null or the pointer of a live bridge.
unsafe fn at(cx: *mut CarafeInfer, f: impl FnOnce(&mut Behind<'_, '_>) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe { with::<CarafeInfer, Behind<'_, '_>>(cx, WHAT, f) }
}

unsafe extern "C" fn n_inputs(cx: *mut CarafeInfer) -> usize {
    // SAFETY: the operation passes on the pointer it was given, as the contract says; so in every function below.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.n_inputs()) }
}

unsafe extern "C" fn input(cx: *mut CarafeInfer, input: usize, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives places to write to, here and below.
    unsafe {
        at(cx, |b| {
            b.checked(input)?;
            put(out, fact_code(b.cx.ty(input), b.cx.shape(input), &mut b.arena), "a fact")
        })
    }
}

unsafe extern "C" fn value(cx: *mut CarafeInfer, input: usize, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe {
        at(cx, |b| {
            writable(out, "a tensor")?;
            let t = b.cx.tensor(input).ok_or_else(|| Error::not_found(format!("input {input} is not known")))?;
            put(out, tensor_code(t, &mut b.arena), "a tensor")
        })
    }
}

unsafe extern "C" fn intervals(
    cx: *mut CarafeInfer,
    input: usize,
    out: *mut *const CarafeDim,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `input`.
    unsafe {
        at(cx, |b| {
            writable(out, "a list of intervals")?;
            writable(n, "the length of a list")?;
            let dims = b.cx.dims_value(input).ok_or_else(|| Error::not_found(format!("input {input} is not known")))?;
            let codes: Vec<CarafeDim> = dims.into_iter().map(dim_code).collect();
            put(n, codes.len(), "the length of a list")?;
            put(out, b.arena.keep(codes), "a list of intervals")
        })
    }
}

unsafe extern "C" fn set_output(cx: *mut CarafeInfer, output: usize, fact: *const CarafeFact) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives a whole fact, and null is refused.
    unsafe {
        at(cx, |b| {
            let fact = fact.as_ref().ok_or_else(|| Error::usage("a null pointer for a fact"))?;
            if output >= MOST_OUTPUTS {
                return Err(Error::usage(format!("output {output} cannot be")));
            }
            let fact = fact_of(fact)?;
            if b.set.len() <= output {
                b.set.resize_with(output + 1, || None);
            }
            b.set[output] = Some(fact);
            Ok(())
        })
    }
}

unsafe extern "C" fn set_value(cx: *mut CarafeInfer, output: usize, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives a whole tensor, and null is refused.
    unsafe {
        at(cx, |b| {
            let t = tensor_of(t.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?)?;
            let fact = b.output(output)?;
            if fact.ty != t.element_type() || !fact.shape.accepts(t.shape()) {
                return Err(Error::invalid(format!(
                    "output {output} is {fact}, its value {}{:?}",
                    t.element_type(),
                    t.shape()
                )));
            }
            fact.content = Content::Known(t);
            Ok(())
        })
    }
}

unsafe extern "C" fn set_intervals(
    cx: *mut CarafeInfer,
    output: usize,
    dims: *const CarafeDim,
    n: usize,
) -> CarafeStatus {
    // SAFETY: as in `n_inputs`; the contract gives `n` dimensions.
    unsafe {
        at(cx, |b| {
            let dims = slice(dims, n, "intervals")?;
            let fact = b.output(output)?;
            if fact.shape.elements() != Some(n) || !fact.ty.is_integer() {
                return Err(Error::invalid(format!("output {output} is {fact}, {n} intervals do not fit")));
            }
            fact.content = Content::Partial(dims.iter().map(|d| dim_of(*d)).collect());
            Ok(())
        })
    }
}

unsafe extern "C" fn symbol(cx: *mut CarafeInfer, axis: usize) -> u32 {
    // SAFETY: as in `n_inputs`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.symbol(axis).0) }
}

unsafe extern "C" fn exact(cx: *mut CarafeInfer) -> u32 {
    // SAFETY: as in `n_inputs`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| u32::from(b.cx.exact())) }
}
