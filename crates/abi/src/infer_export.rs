//! Offers an `InferCx` of this side to an operation of the other.

use crate::convert::{Arena, dim_code, dim_of, fact_code, fact_of, tensor_code, tensor_of};
use crate::status::guard;
use crate::tables::*;
use crate::text::slice;
use carafe_graph::{Content, Error, Fact, InferCx, Result};

/// The crossing object with what is behind it. `base` stands first, so that a pointer to it is one to the whole.
#[repr(C)]
pub(crate) struct InferBridge<'a, 'b> {
    base: CarafeInfer,
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

impl<'a, 'b> InferBridge<'a, 'b> {
    pub(crate) fn new(cx: &'a mut InferCx<'b>) -> InferBridge<'a, 'b> {
        InferBridge { base: CarafeInfer { fns: &FNS }, cx, arena: Arena::default(), set: vec![] }
    }
    pub(crate) fn pointer(&mut self) -> *mut CarafeInfer {
        (&raw mut *self).cast()
    }
    /// Hands what the operation said to the real context; the number of outputs must be right.
    pub(crate) fn finish(self) -> Result<()> {
        for (output, fact) in self.set.into_iter().enumerate() {
            let fact = fact.ok_or_else(|| Error::invalid(format!("inference left output {output} open")))?;
            self.cx.set_fact(output, fact);
        }
        Ok(())
    }
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
/// `cx` must be the pointer of a live bridge that nothing else uses now.
unsafe fn bridge<'x>(cx: *mut CarafeInfer) -> &'x mut InferBridge<'x, 'x> {
    // SAFETY: the caller promises; `base` is the first field of the `repr(C)` struct.
    unsafe { &mut *cx.cast() }
}

const MOST_OUTPUTS: usize = 1 << 16;

unsafe extern "C" fn n_inputs(cx: *mut CarafeInfer) -> usize {
    // SAFETY: the operation passes on the pointer it was given, as the contract says; so in every function below.
    unsafe { bridge(cx) }.cx.n_inputs()
}

unsafe extern "C" fn input(cx: *mut CarafeInfer, input: usize, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        b.checked(input)?;
        let code = fact_code(b.cx.ty(input), b.cx.shape(input), &mut b.arena);
        // SAFETY: the contract gives a place to write to.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn value(cx: *mut CarafeInfer, input: usize, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    let Some(t) = b.cx.tensor(input) else { return CARAFE_NOT_FOUND };
    let code = tensor_code(t, &mut b.arena);
    // SAFETY: the contract gives a place to write to.
    unsafe { out.write(code) };
    CARAFE_OK
}

unsafe extern "C" fn intervals(
    cx: *mut CarafeInfer,
    input: usize,
    out: *mut *const CarafeDim,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    let Some(dims) = b.cx.dims_value(input) else { return CARAFE_NOT_FOUND };
    let codes: Vec<CarafeDim> = dims.into_iter().map(dim_code).collect();
    let len = codes.len();
    let kept = b.arena.keep(codes);
    // SAFETY: the contract gives places to write to.
    unsafe {
        n.write(len);
        out.write(kept);
    }
    CARAFE_OK
}

unsafe extern "C" fn set_output(cx: *mut CarafeInfer, output: usize, fact: *const CarafeFact) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        if output >= MOST_OUTPUTS {
            return Err(Error::invalid(format!("output {output} cannot be")));
        }
        // SAFETY: the contract gives a fact with its dimensions; null is refused.
        let fact = unsafe { fact.as_ref() }.ok_or_else(|| Error::usage("a null pointer for a fact"))?;
        // SAFETY: as above.
        let fact = unsafe { fact_of(fact)? };
        if b.set.len() <= output {
            b.set.resize_with(output + 1, || None);
        }
        b.set[output] = Some(fact);
        Ok(())
    })
}

unsafe extern "C" fn set_value(cx: *mut CarafeInfer, output: usize, t: *const CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        // SAFETY: the contract gives a whole tensor; null is refused.
        let t = unsafe { t.as_ref() }.ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
        // SAFETY: as above.
        let t = unsafe { tensor_of(t)? };
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

unsafe extern "C" fn set_intervals(
    cx: *mut CarafeInfer,
    output: usize,
    dims: *const CarafeDim,
    n: usize,
) -> CarafeStatus {
    // SAFETY: as in `n_inputs`.
    let b = unsafe { bridge(cx) };
    guard(|| {
        // SAFETY: the contract gives `n` dimensions.
        let dims = unsafe { slice(dims, n, "intervals")? };
        let fact = b.output(output)?;
        if fact.shape.elements() != Some(n) || !fact.ty.is_integer() {
            return Err(Error::invalid(format!("output {output} is {fact}, {n} intervals do not fit")));
        }
        fact.content = Content::Partial(dims.iter().map(|d| dim_of(*d)).collect());
        Ok(())
    })
}

unsafe extern "C" fn symbol(cx: *mut CarafeInfer, axis: usize) -> u32 {
    // SAFETY: as in `n_inputs`.
    unsafe { bridge(cx) }.cx.symbol(axis).0
}

unsafe extern "C" fn exact(cx: *mut CarafeInfer) -> u32 {
    // SAFETY: as in `n_inputs`.
    u32::from(unsafe { bridge(cx) }.cx.exact())
}
