//! An operation of this side as a table for the other. In a library it offers the author's operations to the engine; the
//! code of an operation is the same on both sides.

use crate::convert::{
    Arena, attrs_code, attrs_of, dim_code, dim_of, fact_code, fact_of, kind_code, tensor_code, tensor_head, tensor_of,
};
use crate::crossing::{put, writable};
use crate::host::{end, host, tell};
use crate::status::guard_into;
use crate::tables::*;
use crate::text::slice;
use carafe_graph::{
    Content, Elementwise, Error, EvalCx, EvalEnv, Fact, NodeId, Op, OpInfo, OpNew, PortInfo, Result, infer_op,
};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use std::ffi::{CString, c_char, c_void};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

/// An instance: the operation, and its attributes in crossing form.
struct Made<T> {
    op: T,
    attrs: CarafeAttrs,
    _arena: Arena,
}

/// The table of an operation class. Made once for each use and never freed, as the boundary asks.
pub fn op_table<T: OpNew>() -> CarafeOp {
    let info = T::INFO;
    let flags = [
        (info.commutative, CARAFE_OP_COMMUTATIVE),
        (info.random, CARAFE_OP_RANDOM),
        (info.stateful, CARAFE_OP_STATEFUL),
        (info.sink, CARAFE_OP_SINK),
        (info.elementwise == Elementwise::First, CARAFE_OP_ELEMENTWISE),
        (info.elementwise == Elementwise::All, CARAFE_OP_BROADCASTS),
        (info.keeps_shape, CARAFE_OP_KEEPS_SHAPE),
        (info.keeps_zero, CARAFE_OP_KEEPS_ZERO),
        (info.idempotent, CARAFE_OP_IDEMPOTENT),
        (info.involution, CARAFE_OP_INVOLUTION),
        (info.quantizes, CARAFE_OP_QUANTIZES),
        (info.shape_only, CARAFE_OP_SHAPE_ONLY),
        (info.heavy, CARAFE_OP_HEAVY),
    ];
    let attrs: Vec<CarafeAttrInfo> = info
        .attrs
        .iter()
        .map(|a| CarafeAttrInfo {
            name: c_leak(a.name),
            kind: kind_code(a.kind),
            required: u32::from(a.default.is_none()),
            default_value: std::ptr::null(),
            doc: c_leak(a.doc),
        })
        .collect();
    let (n_attrs, attrs) = (attrs.len(), attrs.leak().as_ptr());
    let internal: Vec<usize> = (0..n_attrs).filter(|i| info.attrs[*i].internal).collect();
    CarafeOp {
        size: size_of::<CarafeOp>(),
        abi: CARAFE_ABI_MAJOR,
        flags: flags.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum(),
        name: c_leak(info.xml_name),
        opset: c_leak(info.opset),
        doc: c_leak(info.doc),
        inputs: leak_ports(info.inputs),
        n_inputs: info.inputs.len(),
        outputs: leak_ports(info.outputs),
        n_outputs: info.outputs.len(),
        attrs,
        n_attrs,
        user: std::ptr::null_mut(),
        create: Some(create::<T>),
        infer: Some(infer::<T>),
        eval: Some(eval::<T>),
        release: Some(release::<T>),
        instance_attrs: Some(instance_attrs::<T>),
        moves: info.moves.as_ptr(),
        n_moves: info.moves.len(),
        evaluates: Some(evaluates::<T>),
        n_internal_attrs: internal.len(),
        internal_attrs: internal.leak().as_ptr(),
        shape_inputs: info.shape_inputs.as_ptr(),
        n_shape_inputs: info.shape_inputs.len(),
        rows: info.rows.as_ptr(),
        n_rows: info.rows.len(),
        macs: Some(macs::<T>),
    }
}

pub(crate) fn c_leak(s: &str) -> *const c_char {
    CString::new(s.replace('\0', " ")).unwrap_or_default().into_raw()
}

fn leak_ports(ports: &[PortInfo]) -> *const CarafePort {
    let list = ports.iter().map(|p| CarafePort {
        name: c_leak(p.name),
        optional: p.optional.into(),
        variadic: p.variadic.into(),
    });
    list.collect::<Vec<_>>().leak().as_ptr()
}

unsafe extern "C" fn create<T: OpNew>(_: *mut c_void, attrs: CarafeAttrs, out: *mut *mut c_void) -> CarafeStatus {
    guard_into(
        || {
            writable(out, "an instance")?;
            // SAFETY: the contract gives whole attributes.
            let op = T::from_attrs(&unsafe { attrs_of(attrs)? })?;
            let mut arena = Arena::default();
            let list = op.attrs();
            let attrs = attrs_code(list.iter().map(|(n, v)| (n.as_ref(), v)), &mut arena)?;
            let made = Box::new(Made { op, attrs, _arena: arena });
            // SAFETY: the contract gives a place to write to; `release` takes the box back.
            unsafe { out.write(Box::into_raw(made).cast()) };
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn instance_attrs<T: OpNew>(instance: *const c_void, out: *mut CarafeAttrs) -> CarafeStatus {
    // SAFETY: the contract passes what `create` made, and a place to write to.
    guard_into(|| unsafe { put(out, (*instance.cast::<Made<T>>()).attrs, "attributes") }, tell)
}

unsafe extern "C" fn release<T: OpNew>(instance: *mut c_void) {
    // SAFETY: the contract passes what `create` made, once.
    end("the end of an operation", || drop(unsafe { Box::from_raw(instance.cast::<Made<T>>()) }));
}

unsafe extern "C" fn infer<T: OpNew>(instance: *const c_void, cx: *mut CarafeInfer) -> CarafeStatus {
    // SAFETY: the contract passes what `create` made.
    let made = unsafe { &*instance.cast::<Made<T>>() };
    // SAFETY: the contract passes a live context.
    guard_into(|| unsafe { infer_through(&made.op, cx) }, tell)
}

unsafe extern "C" fn evaluates<T: OpNew>(instance: *const c_void) -> u32 {
    let mut has = true;
    guard_into(
        || {
            // SAFETY: the contract passes what `create` made.
            has = unsafe { &*instance.cast::<Made<T>>() }.op.has_eval();
            Ok(())
        },
        |_| {},
    );
    has.into()
}

unsafe extern "C" fn macs<T: OpNew>(
    instance: *const c_void,
    inputs: *const CarafeFact,
    n_inputs: usize,
    outputs: *const CarafeFact,
    n_outputs: usize,
    out: *mut u64,
) -> CarafeStatus {
    // SAFETY: the contract passes what `create` made, whole lists and a place to write to.
    guard_into(
        || unsafe { count_macs(&(*instance.cast::<Made<T>>()).op, (inputs, n_inputs), (outputs, n_outputs), out) },
        tell,
    )
}

/// # Safety
/// The lists must be there, and `out` a place to write to.
unsafe fn count_macs(
    op: &dyn Op,
    inputs: (*const CarafeFact, usize),
    outputs: (*const CarafeFact, usize),
    out: *mut u64,
) -> Result<()> {
    let facts = |(list, n): (*const CarafeFact, usize)| -> Result<Vec<Fact>> {
        // SAFETY: passed on from the caller.
        unsafe { slice(list, n, "facts")?.iter().map(|f| fact_of(f)).collect() }
    };
    let (inputs, outputs) = (facts(inputs)?, facts(outputs)?);
    let inputs: Vec<&Fact> = inputs.iter().collect();
    let outputs: Vec<&Fact> = outputs.iter().collect();
    let macs = op.macs(&inputs, &outputs).ok_or_else(|| Error::not_found("a shape is not known"))?;
    // SAFETY: passed on from the caller.
    unsafe { put(out, macs, "the number") }
}

unsafe extern "C" fn eval<T: OpNew>(instance: *const c_void, cx: *mut CarafeEval) -> CarafeStatus {
    // SAFETY: the contract passes what `create` made.
    let made = unsafe { &*instance.cast::<Made<T>>() };
    // SAFETY: the contract passes a live context.
    guard_into(|| unsafe { eval_through(&made.op, cx) }, tell)
}

/// The error behind a status that the engine returned to a library.
pub(crate) fn from_host(status: CarafeStatus) -> Result<()> {
    if status == CARAFE_OK {
        return Ok(());
    }
    let mut text = CarafeStr::EMPTY;
    // SAFETY: the host table lives for ever; the text is copied before the next call.
    let text = unsafe {
        (host().last_error)(&mut text);
        crate::text::text(text, "the error text").map(str::to_string).unwrap_or_default()
    };
    Err(Error::new(crate::status::kind(status), text))
}

/// Infers an operation of this side in a context of the other.
///
/// # Safety
/// `cx` must be a live context.
pub(crate) unsafe fn infer_through(op: &dyn Op, cx: *mut CarafeInfer) -> Result<()> {
    // SAFETY: a live context has its functions.
    let fns = unsafe { &*(*cx).fns };
    // SAFETY: the context is live; so in every call below.
    let n = unsafe { (fns.n_inputs)(cx) };
    let mut inputs = Vec::with_capacity(n);
    for i in 0..n {
        // SAFETY: as above.
        inputs.push(unsafe { input_fact(fns, cx, i)? });
    }
    // Symbols are made from the number of the node, which the engine knows.
    // SAFETY: as above.
    let (first, exact) = unsafe { ((fns.symbol)(cx, 0), (fns.exact)(cx) != 0) };
    let id = NodeId(first.wrapping_sub(1) / 64);
    let facts: Vec<&Fact> = inputs.iter().collect();
    let outputs = infer_op("", id, op, &facts, exact).map_err(|e| Error::new(e.kind(), e.message().to_string()))?;
    let mut arena = Arena::default();
    for (i, fact) in outputs.iter().enumerate() {
        let code = fact_code(fact.ty, &fact.shape, &mut arena);
        // SAFETY: as above.
        from_host(unsafe { (fns.set_output)(cx, i, &code) })?;
        let status = match &fact.content {
            Content::Unknown => CARAFE_OK,
            // SAFETY: as above.
            Content::Known(t) => unsafe { (fns.set_value)(cx, i, &tensor_code(t, &mut arena)) },
            Content::Partial(dims) => {
                let codes: Vec<CarafeDim> = dims.iter().map(|d| dim_code(*d)).collect();
                // SAFETY: as above.
                unsafe { (fns.set_intervals)(cx, i, codes.as_ptr(), codes.len()) }
            }
        };
        from_host(status)?;
    }
    Ok(())
}

/// # Safety
/// `cx` must be a live context with these functions.
unsafe fn input_fact(fns: &CarafeInferFns, cx: *mut CarafeInfer, i: usize) -> Result<Fact> {
    let mut code = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
    // SAFETY: passed on from the caller; so below. What comes back stays until the outer call returns.
    from_host(unsafe { (fns.input)(cx, i, &mut code) })?;
    // SAFETY: as above.
    let mut fact = unsafe { fact_of(&code)? };
    // Larger values are weights, of no use for shapes and costly to look at.
    if fact.shape.elements().is_some_and(|n| n > 4096) {
        return Ok(fact);
    }
    let mut tensor = CarafeAttr::EMPTY.tensor;
    // SAFETY: as above.
    if unsafe { (fns.value)(cx, i, &mut tensor) } == CARAFE_OK {
        // SAFETY: as above.
        fact.content = Content::Known(unsafe { tensor_of(&tensor)? });
        return Ok(fact);
    }
    let (mut dims, mut n) = (std::ptr::null(), 0);
    // SAFETY: as above.
    if unsafe { (fns.intervals)(cx, i, &mut dims, &mut n) } == CARAFE_OK {
        // SAFETY: as above.
        let dims = unsafe { slice(dims, n, "intervals")? };
        fact.content = Content::Partial(dims.iter().map(|d| dim_of(*d)).collect());
    }
    Ok(fact)
}

/// Memory of an input that belongs to the caller. When a tensor over it outlives the call, `kept` holds it.
struct Lent {
    ty: ElementType,
    shape: Vec<usize>,
    data: *const u8,
    len: usize,
    kept: OnceLock<Kept>,
}

struct Kept(*mut c_void);

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `keep_input` gave it, and it is given back once.
        unsafe { (host().drop_owner)(self.0) }
    }
}

// SAFETY: the bytes are only read, and live as `eval_through` promises; owners may be dropped by any thread.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}
// SAFETY: as above.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: within the call the caller keeps the bytes, afterwards `kept` does.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Evaluates an operation of this side in a context of the other. Inputs are not copied, nor are outputs.
///
/// # Safety
/// `cx` must be a live context.
pub(crate) unsafe fn eval_through(op: &dyn Op, cx: *mut CarafeEval) -> Result<()> {
    // SAFETY: a live context has its functions.
    let fns = unsafe { &*(*cx).fns };
    // SAFETY: the context is live; so in every call below.
    let (n_inputs, n_outputs) = unsafe { ((fns.n_inputs)(cx), (fns.n_outputs)(cx)) };
    let mut lending = Lending { fns, cx, lent: Vec::with_capacity(n_inputs) };
    let lent = &mut lending.lent;
    let mut inputs = Vec::with_capacity(n_inputs);
    for i in 0..n_inputs {
        let mut code = CarafeAttr::EMPTY.tensor;
        // SAFETY: as above.
        from_host(unsafe { (fns.input)(cx, i, &mut code) })?;
        // SAFETY: as above.
        let (ty, shape) = unsafe { tensor_head(&code)? };
        if ty == ElementType::String {
            // SAFETY: as above.
            inputs.push(unsafe { tensor_of(&code)? });
            lent.push(None);
        } else {
            let owner = Arc::new(Lent {
                ty,
                shape: shape.to_vec(),
                data: code.data.cast(),
                len: code.bytes,
                kept: OnceLock::new(),
            });
            inputs.push(Tensor::view(ty, shape, &SharedBytes::from_owner(owner.clone()), 0, code.bytes)?);
            lent.push(Some(owner));
        }
    }
    let mut facts = Vec::with_capacity(n_outputs);
    for i in 0..n_outputs {
        let mut code = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
        // SAFETY: as above.
        from_host(unsafe { (fns.output_fact)(cx, i, &mut code) })?;
        // SAFETY: as above.
        facts.push(unsafe { fact_of(&code)? });
    }
    let mut name = CarafeStr::EMPTY;
    // SAFETY: as above.
    let name = unsafe {
        from_host((fns.name)(cx, &mut name))?;
        crate::text::text(name, "the name of the node")?
    };
    let variable = variable_id(op);
    let mut env = EvalEnv::default();
    if let Some(id) = &variable {
        let mut code = CarafeAttr::EMPTY.tensor;
        // SAFETY: as above.
        if unsafe { (fns.variable)(cx, CarafeStr::of(id), &mut code) } == CARAFE_OK {
            // SAFETY: as above.
            env.variables.insert(id.clone(), unsafe { tensor_of(&code)? });
        }
    }
    let outputs = EvalCx::new(name, op.info(), inputs, &facts, &mut env).evaluate(op);
    for (i, output) in outputs?.into_iter().enumerate() {
        // SAFETY: as above.
        from_host(unsafe { hand_over(fns, cx, i, output, lent)? })?;
    }
    if let Some((id, value)) = variable.and_then(|id| env.variables.remove_entry(&id)) {
        let mut arena = Arena::default();
        // SAFETY: as above.
        from_host(unsafe { (fns.assign)(cx, CarafeStr::of(&id), &tensor_code(&value, &mut arena)) })?;
    }
    Ok(())
}

/// The inputs of one evaluation. At its end, also by an error or a panic, a tensor over an input that is still somewhere
/// keeps the memory from there on.
struct Lending<'a> {
    fns: &'a CarafeEvalFns,
    cx: *mut CarafeEval,
    lent: Vec<Option<Arc<Lent>>>,
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        for (i, owner) in self.lent.iter().enumerate() {
            let Some(owner) = owner.as_ref().filter(|o| Arc::strong_count(o) > 1) else { continue };
            let mut kept = std::ptr::null_mut();
            // SAFETY: the context lives until the evaluation returns, which is after this.
            if unsafe { (self.fns.keep_input)(self.cx, i, &mut kept) } == CARAFE_OK {
                let _ = owner.kept.set(Kept(kept));
            } else {
                // Without its memory the tensor must not be used again.
                std::process::abort();
            }
        }
    }
}

/// Hands outputs that were computed on this side to a context of the other.
///
/// # Safety
/// `cx` must be a live context.
pub(crate) unsafe fn eval_outputs_to(cx: *mut CarafeEval, outputs: Vec<Tensor>) -> Result<()> {
    // SAFETY: passed on from the caller.
    let takes = unsafe { Takes::of(cx)? };
    for (i, output) in outputs.into_iter().enumerate() {
        // SAFETY: the context is live.
        from_host(unsafe { takes.hand_over(cx, i, output)? })?;
    }
    Ok(())
}

type SetOutput = unsafe extern "C" fn(*mut CarafeEval, usize, *const CarafeTensor) -> CarafeStatus;
type GiveOutput =
    unsafe extern "C" fn(*mut CarafeEval, usize, *const CarafeTensor, *mut c_void, CarafeRelease) -> CarafeStatus;

/// How a context takes outputs. One that a library made may have few of the functions.
struct Takes {
    set: Option<SetOutput>,
    give: Option<GiveOutput>,
}

impl Takes {
    /// # Safety
    /// `cx` must be null or a live context whose functions are there as far as their size says; those that it does not
    /// have are null.
    unsafe fn of(cx: *mut CarafeEval) -> Result<Takes> {
        let missing = |what: &str| Error::usage(format!("{what} of the context that takes the outputs"));
        if cx.is_null() {
            return Err(missing("a null pointer instead"));
        }
        // SAFETY: the caller promises a live context.
        let fns = unsafe { (*cx).fns };
        if fns.is_null() || !fns.is_aligned() {
            return Err(missing("a null pointer for the functions"));
        }
        // SAFETY: not null; a table begins with its size.
        let size = unsafe { (*fns.cast::<usize>()).min(size_of::<CarafeEvalFns>()) };
        let (set_at, give_at) = (offset_of!(CarafeEvalFns, set_output), offset_of!(CarafeEvalFns, give_output));
        // SAFETY: the table reaches as far as its size says; a null pointer to a function is `None`.
        let takes = unsafe {
            let at = |offset: usize| (size >= offset + size_of::<usize>()).then(|| fns.cast::<u8>().add(offset));
            Takes {
                set: at(set_at).and_then(|p| p.cast::<Option<SetOutput>>().read()),
                give: at(give_at).and_then(|p| p.cast::<Option<GiveOutput>>().read()),
            }
        };
        if takes.set.is_none() && takes.give.is_none() {
            return Err(missing("neither `set_output` nor `give_output` is among the functions"));
        }
        Ok(takes)
    }

    /// # Safety
    /// `cx` must be the live context that this is of.
    unsafe fn hand_over(&self, cx: *mut CarafeEval, i: usize, output: Tensor) -> Result<CarafeStatus> {
        match (self.give, self.set) {
            (Some(give), _) if output.element_type() != ElementType::String => {
                let mut given = Box::new((output, Arena::default()));
                let (output, arena) = &mut *given;
                let code = tensor_code(output, arena);
                let owner = Box::into_raw(given);
                // SAFETY: passed on from the caller; the box keeps shape and bytes in place until `drop_output`.
                let status = unsafe { give(cx, i, &code, owner.cast(), Some(drop_output)) };
                if status != CARAFE_OK {
                    // SAFETY: a call that fails takes nothing, so the box is still ours.
                    drop(unsafe { Box::from_raw(owner) });
                }
                Ok(status)
            }
            // SAFETY: passed on from the caller.
            (_, Some(set)) => Ok(unsafe { set(cx, i, &tensor_code(&output, &mut Arena::default())) }),
            (_, None) => Err(Error::usage(format!("output {i} holds strings, and the context has no `set_output`"))),
        }
    }
}

fn variable_id(op: &dyn Op) -> Option<String> {
    let info: &OpInfo = op.info();
    if !info.stateful {
        return None;
    }
    op.attrs().into_iter().find(|(n, _)| n == "variable_id")?.1.to_text()
}

/// # Safety
/// `cx` must be a live context with these functions.
unsafe fn hand_over(
    fns: &CarafeEvalFns,
    cx: *mut CarafeEval,
    i: usize,
    output: Tensor,
    lent: &[Option<Arc<Lent>>],
) -> Result<CarafeStatus> {
    let mut arena = Arena::default();
    let code = tensor_code(&output, &mut arena);
    // An input that was passed on whole is told as such: its memory belongs to the caller anyway.
    let whole = lent
        .iter()
        .position(|l| l.as_ref().is_some_and(|l| code.bytes > 0 && l.data == code.data.cast() && l.len == code.bytes));
    if let Some(input) = whole {
        let same = lent[input].as_ref().is_some_and(|l| l.ty == output.element_type() && *l.shape == *output.shape());
        if same {
            // SAFETY: passed on from the caller; so below.
            return Ok(unsafe { (fns.forward)(cx, i, input) });
        }
        // SAFETY: as above.
        return Ok(unsafe { (fns.set_output)(cx, i, &code) });
    }
    // SAFETY: as above.
    unsafe { Takes { set: Some(fns.set_output), give: Some(fns.give_output) }.hand_over(cx, i, output) }
}

unsafe extern "C" fn drop_output(owner: *mut c_void) {
    // SAFETY: `hand_over` made the box, and the contract releases it once.
    end("the end of an output", || drop(unsafe { Box::from_raw(owner.cast::<(Tensor, Arena)>()) }));
}
