//! Drives `Op::infer`, and lets small integer values flow through the graph so that `ShapeOf -> Gather -> Concat ->
//! Reshape` ends in a static shape. Three ways a value is found, tried in this order: the op said it itself; all inputs
//! are known, so the op is evaluated; the op only moves elements, so it is evaluated on stand-ins for the unknown ones.

use crate::error::{Error, Result};
use crate::eval::{EvalCx, EvalEnv};
use crate::fact::{Content, Fact};
use crate::model::{NodeId, position_of};
use crate::op::{Op, OpInfo};
use crate::panic::caught;
use carafe_tensor::{Dim, ElementType, PartialShape, Symbol, Tensor};

/// Values with more elements than this are not followed; shape arithmetic is tiny, weights are not.
const FOLLOWED_ELEMENTS: usize = 4096;

/// What `Op::infer` sees and fills in.
#[derive(Debug)]
pub struct InferCx<'a> {
    id: NodeId,
    info: &'static OpInfo,
    inputs: &'a [&'a Fact],
    outputs: Vec<Fact>,
    exact: bool,
}

/// Infers one operation: checks the number of inputs, calls `infer`, follows values, and puts the node into errors.
/// `exact` says that an evaluation with these very inputs comes next, so bodies need not be looked into.
pub fn infer_op(name: &str, id: NodeId, op: &dyn Op, inputs: &[&Fact], exact: bool) -> Result<Vec<Fact>> {
    infer_inner(id, op, inputs, exact).map_err(|e| e.at(position_of(name, op)).with_code(37))
}

fn infer_inner(id: NodeId, op: &dyn Op, inputs: &[&Fact], exact: bool) -> Result<Vec<Fact>> {
    let info = op.info();
    let (min, max) = info.input_range();
    if inputs.len() < min || inputs.len() > max {
        let wanted = match max {
            usize::MAX => format!("at least {min}"),
            _ if min == max => min.to_string(),
            _ => format!("{min} to {max}"),
        };
        return Err(Error::invalid(format!("takes {wanted} inputs, found {}", inputs.len())));
    }
    let mut cx = InferCx { id, info, inputs, outputs: Vec::new(), exact };
    caught("the shape inference", || op.infer(&mut cx))?;
    let mut outputs = cx.outputs;
    for f in &outputs {
        check_dims(&f.shape)?;
    }
    if !exact {
        follow_values(op, inputs, &mut outputs);
        name_unknowns(id, &mut outputs);
    }
    Ok(outputs)
}

// A size that the operation computed gets a symbol, so that it is known again where it is used twice.
fn name_unknowns(id: NodeId, outputs: &mut [Fact]) {
    let shapes = outputs.iter_mut().filter_map(|o| o.shape.dims_mut()).flatten();
    let unnamed = shapes.filter(|d| !d.is_known() && d.symbol().is_none());
    for (i, d) in unnamed.take(SYMBOLS as usize).enumerate() {
        *d = d.with_symbol(symbol_of(id, i as u32));
    }
}

/// How many symbols a node has for its own.
const SYMBOLS: u32 = 64;

fn symbol_of(id: NodeId, i: u32) -> Symbol {
    Symbol(id.0.wrapping_mul(SYMBOLS).wrapping_add(i % SYMBOLS).wrapping_add(1))
}

fn check_dims(shape: &PartialShape) -> Result<()> {
    match shape.dims().and_then(|d| d.iter().position(|d| d.max().is_some_and(|m| m < 0))) {
        Some(axis) => Err(Error::invalid(format!("output shape [{shape}] has a negative dimension {axis}"))),
        None => Ok(()),
    }
}

fn follow_values(op: &dyn Op, inputs: &[&Fact], outputs: &mut [Fact]) {
    let info = op.info();
    if info.random || info.stateful || inputs.is_empty() || op.has_body() {
        return;
    }
    if outputs.iter().any(|o| !matches!(o.content, Content::Unknown) || !is_followed(o)) {
        return;
    }
    if inputs.iter().any(|i| i.shape.elements().is_none_or(|n| n > FOLLOWED_ELEMENTS)) {
        return;
    }
    if let Some(tensors) = inputs.iter().map(|i| i.tensor().cloned()).collect::<Option<Vec<_>>>() {
        if let Ok(values) = evaluate(op, tensors, outputs) {
            for (o, t) in outputs.iter_mut().zip(values) {
                o.shape = PartialShape::of(t.shape());
                o.ty = t.element_type();
                o.content = Content::Known(t);
            }
        }
        return;
    }
    if !info.moves.is_empty() {
        follow_movement(op, inputs, outputs);
    }
}

fn is_followed(f: &Fact) -> bool {
    !f.ty.is_dynamic() && f.shape.elements().is_some_and(|n| n <= FOLLOWED_ELEMENTS)
}

// Replaces each element of the moved inputs by its number in `seen`, evaluates, and looks the numbers up again.
fn follow_movement(op: &dyn Op, inputs: &[&Fact], outputs: &mut [Fact]) {
    let mut seen: Vec<Dim> = vec![Dim::known(0)];
    let mut stand_ins = Vec::with_capacity(inputs.len());
    for (i, fact) in inputs.iter().enumerate() {
        // A variadic last input (Concat) moves all of its ports.
        let moved = op.info().moves.contains(&i.min(op.info().inputs.len().saturating_sub(1)));
        let tensor = match (moved, fact.dims(), fact.shape.to_static()) {
            (true, Some(dims), Some(shape)) => {
                let codes: Vec<i64> = (seen.len() as i64..).take(dims.len()).collect();
                seen.extend(dims);
                Tensor::from_slice(&shape, &codes).ok()
            }
            _ => fact.tensor().cloned(),
        };
        match tensor {
            Some(t) => stand_ins.push(t),
            None => return,
        }
    }
    let coded: Vec<Fact> = outputs.iter().map(|o| Fact::new(ElementType::I64, o.shape.clone())).collect();
    let Ok(values) = evaluate(op, stand_ins, &coded) else { return };
    for (o, t) in outputs.iter_mut().zip(values) {
        let Ok(codes) = t.to_vec::<i64>() else { continue };
        let dims: Option<Vec<Dim>> = codes.iter().map(|&c| seen.get(usize::try_from(c).ok()?).copied()).collect();
        if let (Some(dims), true) = (dims, o.ty.is_integer()) {
            o.content = partial_content(o.ty, t.shape(), dims);
        }
    }
}

fn partial_content(ty: ElementType, shape: &[usize], dims: Vec<Dim>) -> Content {
    match dims.iter().map(|d| d.get()).collect::<Option<Vec<i64>>>() {
        Some(known) => match Tensor::from_i64(ty, shape, &known) {
            Ok(t) => Content::Known(t),
            Err(_) => Content::Unknown,
        },
        None => Content::Partial(dims),
    }
}

fn evaluate(op: &dyn Op, tensors: Vec<Tensor>, outputs: &[Fact]) -> Result<Vec<Tensor>> {
    let mut env = EvalEnv::default();
    EvalCx::new("", op.info(), tensors, outputs, &mut env).evaluate(op)
}

impl<'a> InferCx<'a> {
    /// What the operation declares.
    pub fn info(&self) -> &'static OpInfo {
        self.info
    }
    /// Whether every input is known exactly and an evaluation follows.
    pub fn exact(&self) -> bool {
        self.exact
    }

    // Inputs.

    /// How many inputs there are.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }
    /// Whether an optional input is given.
    pub fn has(&self, input: usize) -> bool {
        input < self.inputs.len()
    }
    /// What is known of an input.
    pub fn fact(&self, input: usize) -> &'a Fact {
        self.inputs[input]
    }
    /// Element type of an input.
    pub fn ty(&self, input: usize) -> ElementType {
        self.inputs[input].ty
    }
    /// Shape of an input.
    pub fn shape(&self, input: usize) -> &'a PartialShape {
        &self.inputs[input].shape
    }
    /// Number of axes of an input, when it is known.
    pub fn rank(&self, input: usize) -> Option<usize> {
        self.shape(input).rank()
    }
    /// One dimension; any when the rank is unknown.
    pub fn dim(&self, input: usize, axis: usize) -> Dim {
        self.shape(input).dim(axis)
    }
    /// The whole value, where known.
    pub fn tensor(&self, input: usize) -> Option<&'a Tensor> {
        self.inputs.get(input)?.tensor()
    }
    /// The value as integers, where all of them are known.
    pub fn ints(&self, input: usize) -> Option<Vec<i64>> {
        self.inputs.get(input)?.ints()
    }
    /// The first element as an integer, where known.
    pub fn int(&self, input: usize) -> Option<i64> {
        self.ints(input)?.first().copied()
    }
    /// The value as intervals; may hold negative numbers.
    pub fn dims_value(&self, input: usize) -> Option<Vec<Dim>> {
        self.inputs.get(input)?.dims()
    }
    /// The first element as a float, where known.
    pub fn float(&self, input: usize) -> Option<f64> {
        self.tensor(input)?.to_vec::<f64>().ok()?.first().copied()
    }

    // Outputs.

    /// Sets type and shape of an output.
    pub fn set(&mut self, output: usize, ty: ElementType, shape: PartialShape) {
        self.set_fact(output, Fact::new(ty, shape));
    }
    /// Sets all that is known of an output.
    pub fn set_fact(&mut self, output: usize, fact: Fact) {
        if self.outputs.len() <= output {
            self.outputs.resize_with(output + 1, Fact::unknown);
        }
        self.outputs[output] = fact;
    }
    /// Same type and shape as an input.
    pub fn output_like(&mut self, output: usize, input: usize) {
        self.set(output, self.ty(input), self.shape(input).clone());
    }
    /// Same value as an input.
    pub fn pass_through(&mut self, output: usize, input: usize) {
        self.set_fact(output, self.inputs[input].clone());
    }
    /// Sets what is known of the elements of an output.
    pub fn set_content(&mut self, output: usize, content: Content) {
        self.outputs[output].content = content;
    }
    /// Says the elements of an integer output of static shape, as far as they are known.
    pub fn set_dims_value(&mut self, output: usize, dims: Vec<Dim>) {
        let fact = &mut self.outputs[output];
        if let Some(shape) = fact.shape.to_static().filter(|s| s.iter().product::<usize>() == dims.len()) {
            fact.content = partial_content(fact.ty, &shape, dims);
        }
    }
    /// A symbol that only this node's `axis` has.
    pub fn symbol(&self, axis: usize) -> Symbol {
        symbol_of(self.id, axis as u32)
    }

    // Checks; each error says what was expected and found.

    /// An error that names the operation.
    pub fn fail(&self, message: impl Into<String>) -> Error {
        Error::invalid(message)
    }
    /// An error with this message unless it holds.
    pub fn require(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds { Ok(()) } else { Err(self.fail(message())) }
    }
    /// The common element type of these inputs.
    pub fn same_type(&self, inputs: &[usize]) -> Result<ElementType> {
        let mut ty = ElementType::Dynamic;
        for &i in inputs {
            ty = ElementType::merge(ty, self.ty(i)).ok_or_else(|| {
                self.fail(format!("inputs need one element type, found {} and {}", self.ty(inputs[0]), self.ty(i)))
            })?;
        }
        Ok(ty)
    }
    fn require_type(&self, input: usize, fits: bool, what: &str) -> Result<()> {
        let ty = self.ty(input);
        self.require(ty.is_dynamic() || fits, || format!("{} must be {what}, found {ty}", self.port_name(input)))
    }
    /// An error unless the input is of a float type.
    pub fn require_float(&self, input: usize) -> Result<()> {
        self.require_type(input, self.ty(input).is_float(), "a float tensor")
    }
    /// An error unless the input is of an integer type.
    pub fn require_integer(&self, input: usize) -> Result<()> {
        self.require_type(input, self.ty(input).is_integer(), "an integer tensor")
    }
    /// Integer or float.
    pub fn require_number(&self, input: usize) -> Result<()> {
        let ty = self.ty(input);
        self.require_type(input, ty.is_integer() || ty.is_float(), "numeric")
    }
    /// An error unless the input is boolean.
    pub fn require_boolean(&self, input: usize) -> Result<()> {
        self.require_type(input, self.ty(input) == ElementType::Boolean, "boolean")
    }
    /// The rank, if known, must be one of these.
    pub fn require_rank(&self, input: usize, ranks: &[usize]) -> Result<()> {
        match self.rank(input) {
            Some(r) if !ranks.contains(&r) => {
                let list = ranks.iter().map(|r| r.to_string()).collect::<Vec<_>>().join(" or ");
                Err(self.fail(format!(
                    "{} must have rank {list}, found [{}]",
                    self.port_name(input),
                    self.shape(input)
                )))
            }
            _ => Ok(()),
        }
    }
    /// Brings an axis into `0..rank`.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        normalize_axis(axis, rank)
    }
    /// numpy broadcast of two inputs.
    pub fn broadcast(&self, a: usize, b: usize) -> Result<PartialShape> {
        self.shape(a)
            .broadcast(self.shape(b))
            .ok_or_else(|| self.fail(format!("shapes [{}] and [{}] do not broadcast", self.shape(a), self.shape(b))))
    }
    /// `data` or `input 3`, for messages.
    pub fn port_name(&self, input: usize) -> String {
        match self.info.inputs.get(input) {
            Some(p) if !p.variadic => format!("input {input} (`{}`)", p.name),
            _ => format!("input {input}"),
        }
    }
}

/// Brings an axis that may count from the end into `0..rank`.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let r = rank as i64;
    if axis < -r || axis >= r {
        return Err(Error::invalid(format!("axis {axis} is outside of rank {rank}")));
    }
    Ok((if axis < 0 { axis + r } else { axis }) as usize)
}
