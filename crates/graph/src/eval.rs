//! Runs `Op::eval` over a graph in topological order with exact shapes: the reference engine behind constant folding,
//! bodies and the TEMPLATE device. Values are dropped after their last use.

use crate::error::{Error, ErrorKind, Result};
use crate::fact::Fact;
use crate::infer::infer_op;
use crate::model::{Model, NodeId, position_of};
use crate::op::{Op, OpInfo};
use crate::panic::caught;
use crate::structural::{Parameter, ResultOp};
use carafe_tensor::memory::{ensure_address_space, ensure_memory};
use carafe_tensor::{ElementType, Number, Tensor, elements};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What an evaluation may remember between nodes and between runs.
#[derive(Debug, Default)]
pub struct EvalEnv {
    /// Values of variables by id; absent before the first assignment and after a reset.
    pub variables: HashMap<String, Tensor>,
    /// Position of each random generator in its stream, by node name.
    pub random: HashMap<String, [u64; 2]>,
    /// Set from another thread to stop between two nodes, and inside of those that look at it.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Time of each node of the outermost model, when asked for.
    pub profile: Option<HashMap<NodeId, Duration>>,
    /// Runs bodies in place of the reference engine.
    pub bodies: Option<Arc<dyn RunBody>>,
    depth: usize,
}

impl EvalEnv {
    fn check_cancelled(&self) -> Result<()> {
        match self.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            true => Err(Error::new(ErrorKind::Cancelled, "the inference was cancelled")),
            false => Ok(()),
        }
    }
}

/// A faster way to run bodies, for devices that have one.
pub trait RunBody: std::fmt::Debug + Send + Sync {
    /// Runs the body once.
    fn run_body(&self, body: &Model, parameters: &[Tensor], env: &mut EvalEnv) -> Result<Vec<Tensor>>;
}

/// What `Op::eval` sees and fills in.
#[derive(Debug)]
pub struct EvalCx<'a> {
    name: &'a str,
    info: &'static OpInfo,
    inputs: Vec<Tensor>,
    facts: &'a [Fact],
    outputs: Vec<Option<Tensor>>,
    env: &'a mut EvalEnv,
}

impl<'a> EvalCx<'a> {
    /// `facts` are the inferred outputs; an unknown type or shape there is decided by the evaluation.
    pub fn new(
        name: &'a str,
        info: &'static OpInfo,
        inputs: Vec<Tensor>,
        facts: &'a [Fact],
        env: &'a mut EvalEnv,
    ) -> EvalCx<'a> {
        EvalCx { name, info, inputs, facts, outputs: vec![None; facts.len()], env }
    }
    /// Evaluates `op` and gives its outputs. That there is memory for them is looked at first.
    pub fn evaluate(mut self, op: &dyn Op) -> Result<Vec<Tensor>> {
        ensure_room(&self.inputs, self.facts)?;
        op.eval(&mut self)?;
        self.finish()
    }
    /// The outputs, once all of them were set.
    pub fn finish(self) -> Result<Vec<Tensor>> {
        let missing = self.outputs.iter().position(|o| o.is_none());
        match missing {
            Some(i) => Err(Error::invalid(format!("evaluation left output {i} empty"))),
            None => Ok(self.outputs.into_iter().flatten().collect()),
        }
    }
    /// What the operation declares.
    pub fn info(&self) -> &'static OpInfo {
        self.info
    }
    /// Name of the node.
    pub fn name(&self) -> &str {
        self.name
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
    /// The tensor of an input.
    pub fn input(&self, input: usize) -> &Tensor {
        &self.inputs[input]
    }
    /// Element type of an input.
    pub fn ty(&self, input: usize) -> ElementType {
        self.inputs[input].element_type()
    }
    /// Shape of an input.
    pub fn shape(&self, input: usize) -> &[usize] {
        self.inputs[input].shape()
    }
    /// All elements as `T`: borrowed when that is the stored type, converted otherwise.
    pub fn get<T: Number>(&self, input: usize) -> Result<Cow<'_, [T]>> {
        Ok(self.inputs[input].to_vec::<T>()?)
    }
    /// The elements of an input as whole numbers.
    pub fn ints(&self, input: usize) -> Result<Vec<i64>> {
        Ok(self.get::<i64>(input)?.into_owned())
    }
    /// The single integer of an input.
    pub fn int(&self, input: usize) -> Result<i64> {
        self.get::<i64>(input)?.first().copied().ok_or_else(|| self.fail(format!("input {input} is empty")))
    }
    /// The single number of an input.
    pub fn float(&self, input: usize) -> Result<f64> {
        self.get::<f64>(input)?.first().copied().ok_or_else(|| self.fail(format!("input {input} is empty")))
    }

    // Outputs.

    /// Inferred type of an output.
    pub fn out_ty(&self, output: usize) -> ElementType {
        self.facts[output].ty
    }
    /// What was inferred for an output.
    pub fn out_fact(&self, output: usize) -> &Fact {
        &self.facts[output]
    }
    /// Inferred shape of an output, where it does not depend on data.
    pub fn out_shape(&self, output: usize) -> Result<Vec<usize>> {
        let shape = &self.facts[output].shape;
        shape.to_static().ok_or_else(|| self.fail(format!("output {output} has no static shape: [{shape}]")))
    }
    /// How many outputs there are.
    pub fn n_outputs(&self) -> usize {
        self.facts.len()
    }
    /// Stores numbers, converted to the inferred element type.
    pub fn put<T: Number>(&mut self, output: usize, shape: &[usize], data: Vec<T>) -> Result<()> {
        let ty = match self.out_ty(output) {
            ElementType::Dynamic => T::TYPE,
            ty => ty,
        };
        let t = Tensor::from_numbers(ty, shape, data)?;
        self.set(output, t)
    }
    /// Stores a tensor; it must agree with what was inferred.
    pub fn set(&mut self, output: usize, tensor: Tensor) -> Result<()> {
        let fact = &self.facts[output];
        if !(fact.ty.is_dynamic() || fact.ty == tensor.element_type()) || !fact.shape.accepts(tensor.shape()) {
            return Err(self.fail(format!(
                "output {output} was inferred as {fact} and evaluated to {}{:?}",
                tensor.element_type(),
                tensor.shape()
            )));
        }
        self.outputs[output] = Some(tensor);
        Ok(())
    }
    /// For operations that work with more than their inputs and outputs: an error unless `count` items of `size` bytes can
    /// be had. Memory for the outputs themselves is asked for before every evaluation.
    pub fn ensure_memory(&self, count: usize, size: usize) -> Result<()> {
        Ok(ensure_memory(count.saturating_mul(size))?)
    }
    /// An error that names the operation.
    pub fn fail(&self, message: impl Into<String>) -> Error {
        Error::invalid(message)
    }
    /// An error of kind `Cancelled` when the inference was cancelled. For evaluations with long loops, which ask now and then.
    pub fn check_cancelled(&self) -> Result<()> {
        self.env.check_cancelled()
    }

    // State and bodies.

    /// What a variable holds.
    pub fn variable(&self, id: &str) -> Option<&Tensor> {
        self.env.variables.get(id)
    }
    /// Sets a variable.
    pub fn assign(&mut self, id: &str, value: Tensor) {
        self.env.variables.insert(id.to_string(), value);
    }
    /// State of this node's random generator, kept from run to run.
    pub fn random_state(&mut self) -> &mut [u64; 2] {
        self.env.random.entry(self.name.to_string()).or_default()
    }
    /// Runs a body with these parameters; variables and generators are shared with the outer model.
    pub fn run_body(&mut self, body: &Model, parameters: &[Tensor]) -> Result<Vec<Tensor>> {
        match self.env.bodies.clone() {
            Some(bodies) => {
                let deeper = Deeper::into(self.env)?;
                bodies.run_body(body, parameters, deeper.0)
            }
            None => run(body, parameters, self.env),
        }
    }
}

/// Bodies inside bodies deeper than this are refused; a file must not be able to overflow the stack.
const MAX_DEPTH: usize = 64;

/// Runs a model once.
pub fn run(model: &Model, inputs: &[Tensor], env: &mut EvalEnv) -> Result<Vec<Tensor>> {
    let deeper = Deeper::into(env)?;
    run_nodes(model, inputs, deeper.0)
}

/// One body deeper until it goes, also when an operation panics.
struct Deeper<'a>(&'a mut EvalEnv);

impl Deeper<'_> {
    fn into(env: &mut EvalEnv) -> Result<Deeper<'_>> {
        if env.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!("bodies are nested deeper than {MAX_DEPTH}")));
        }
        env.depth += 1;
        Ok(Deeper(env))
    }
}

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.depth -= 1;
    }
}

fn run_nodes(model: &Model, inputs: &[Tensor], env: &mut EvalEnv) -> Result<Vec<Tensor>> {
    // A body's declared shapes may be older than a reshape of the outer model; its nodes infer from the real ones.
    if env.depth == 1 {
        check_inputs(model, inputs)?;
    }
    let order = model.topological_order()?;
    let mut left = uses_left(model);
    let mut values: HashMap<NodeId, Vec<Option<Tensor>>> = HashMap::new();
    for (&p, t) in model.parameters().iter().zip(inputs) {
        values.insert(p, vec![Some(t.clone())]);
    }
    let outermost = env.depth == 1;
    for id in order {
        let node = model.node(id);
        if node.op().is::<Parameter>() || node.op().is::<ResultOp>() {
            continue;
        }
        env.check_cancelled()?;
        let started = env.profile.is_some().then(Instant::now);
        let tensors: Vec<Tensor> = node
            .inputs()
            .iter()
            .map(|v| values[&v.node][v.port].clone().expect("a value lives until its last use"))
            .collect();
        let outputs = eval_node(model, id, tensors, env)?;
        for v in node.inputs() {
            let n = left.get_mut(v).expect("counted");
            *n -= 1;
            if *n == 0 {
                values.get_mut(&v.node).expect("present")[v.port] = None;
            }
        }
        values.insert(id, outputs.into_iter().map(Some).collect());
        if let (Some(started), true, Some(profile)) = (started, outermost, env.profile.as_mut()) {
            profile.insert(id, started.elapsed());
        }
    }
    let take = |r: &NodeId| {
        let v = model.result_value(*r);
        values[&v.node][v.port].clone().expect("results count as uses")
    };
    Ok(model.results().iter().map(take).collect())
}

fn uses_left(model: &Model) -> HashMap<crate::Value, usize> {
    let mut left = HashMap::new();
    for (_, node) in model.nodes() {
        for v in node.inputs() {
            *left.entry(*v).or_insert(0) += 1;
        }
    }
    left
}

fn check_inputs(model: &Model, inputs: &[Tensor]) -> Result<()> {
    let wanted = model.parameters();
    if wanted.len() != inputs.len() {
        return Err(Error::usage(format!("the model has {} inputs, found {}", wanted.len(), inputs.len())));
    }
    for (&p, t) in wanted.iter().zip(inputs) {
        let fact = model.fact(p.into());
        if !(fact.ty.is_dynamic() || fact.ty == t.element_type()) || !fact.shape.accepts(t.shape()) {
            return Err(Error::usage(format!(
                "input `{}` takes {fact}, found {}{:?}",
                model.parameter_name(p),
                t.element_type(),
                t.shape()
            )));
        }
    }
    Ok(())
}

/// An evaluation collects its results in vectors, which end the process when memory is missing: so it is asked for before.
/// Beside the outputs there may be copies of inputs and outputs in wider numbers, two of each at the most; who works with
/// more, or whose output has a shape that the data decides, asks by itself ([`EvalCx::ensure_memory`]).
fn ensure_room(inputs: &[Tensor], outputs: &[Fact]) -> Result<()> {
    /// A string and a short text on the heap.
    const TEXT_BYTES: usize = size_of::<String>() + 32;
    let wide = |ty: ElementType| if ty == ElementType::String { TEXT_BYTES } else { size_of::<f64>() };
    let mut stored = 0usize;
    let mut copies =
        inputs.iter().map(|t| t.len().saturating_mul(wide(t.element_type()))).fold(0, usize::saturating_add);
    for fact in outputs {
        let Some(shape) = fact.shape.to_static() else { continue };
        let count = elements(&shape).unwrap_or(usize::MAX);
        let bytes = match fact.ty {
            ElementType::String => count.checked_mul(TEXT_BYTES),
            ty => ty.byte_len(count),
        };
        stored = stored.saturating_add(bytes.unwrap_or(usize::MAX));
        copies = copies.saturating_add(count.saturating_mul(wide(fact.ty)));
    }
    ensure_memory(stored)?;
    Ok(ensure_address_space(copies.saturating_mul(2))?)
}

/// Evaluates one node with exact inputs. A panic of the operation is an error that names the node.
pub fn eval_node(model: &Model, id: NodeId, inputs: Vec<Tensor>, env: &mut EvalEnv) -> Result<Vec<Tensor>> {
    let node = model.node(id);
    eval_op(node.name(), id, node.op(), inputs, env)
}

/// Evaluates an operation as the node of this name and number, with exact inputs; for those who cannot hold the model
/// meanwhile.
pub fn eval_op(name: &str, id: NodeId, op: &dyn Op, inputs: Vec<Tensor>, env: &mut EvalEnv) -> Result<Vec<Tensor>> {
    if env.depth == 0 {
        // By itself, not within a run: the node is of the outermost model, and its bodies are bodies.
        let deeper = Deeper::into(env)?;
        return eval_op(name, id, op, inputs, deeper.0);
    }
    let facts: Vec<Fact> = inputs.iter().map(Fact::of).collect();
    let facts: Vec<&Fact> = facts.iter().collect();
    let result = caught("the evaluation", || {
        let outputs = infer_op(name, id, op, &facts, true)?;
        EvalCx::new(name, op.info(), inputs, &outputs, env).evaluate(op)
    });
    result.map_err(|e| if e.kind() == ErrorKind::Cancelled { e } else { e.at(position_of(name, op)) })
}
