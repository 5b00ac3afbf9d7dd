//! Puts extensions' kernels into a model: a node that a kernel may take keeps its operation for inference and gets the kernel
//! for evaluation. Kernels are asked once where all shapes are known, and again for each set of shapes where they are not. A
//! device that plans memory asks once more with its layouts and the work that follows ([`KernelOp::choose`]) and runs the kernel
//! as a step; evaluated, it runs between plain tensors.

use crate::around::Around;
use crate::kernel::{EpilogueOp, Kernel, Site};
use crate::kernel_choice::{Asked, ChosenKernel, ask};
use crate::kernel_layout::Layout;
use carafe_graph::{EvalCx, Fact, Model, NodeId, Notes, Op, OpRef, Result};
use carafe_tensor::{PartialShape, Tensor};
use std::sync::{Arc, Mutex, MutexGuard};

/// Runtime information of a node that a kernel should run and cannot: why.
pub const KERNEL_TROUBLE: &str = "kernelTrouble";

/// Answers for sets of shapes that one node keeps.
const MOST_SHAPES: usize = 64;

/// Name in reports where no kernel runs a node.
const REFERENCE: &str = "reference";

/// An operation that a kernel evaluates, for the shapes at which one takes it.
#[derive(Clone)]
pub struct KernelOp {
    inner: OpRef,
    node: String,
    /// Those that are for the operation, the one to ask first in front.
    kernels: Arc<[Arc<dyn Kernel>]>,
    /// Layouts that the device offers.
    layouts: Arc<[Layout]>,
    /// What was known of the inputs when the kernels were put in, constants with their values.
    inputs: Vec<Fact>,
    /// The answer for the shapes of `inputs`, where they are known.
    settled: Option<ChosenKernel>,
    shared: Arc<Shared>,
}

/// What a plan offers to a kernel. Inputs of the node come first, then further operands of the epilogue.
#[derive(Clone, Debug, Default)]
pub struct KernelOffer {
    /// Types, shapes and constants of all inputs.
    pub inputs: Vec<Fact>,
    /// How each input lies now.
    pub input_layouts: Vec<Layout>,
    /// Types and shapes of the outputs.
    pub outputs: Vec<Fact>,
    /// Elementwise work that may be taken.
    pub epilogue: Vec<EpilogueOp>,
}

/// What all copies of a node share, so that reports of a compiled model tell of its plans.
#[derive(Default)]
struct Shared {
    answers: Mutex<Vec<(Vec<Vec<usize>>, Option<ChosenKernel>)>>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    kernel: Option<String>,
    trouble: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl KernelOp {
    /// Name of the kernel that runs it, or ran it last where that depends on shapes; `reference` when none does.
    pub fn kernel(&self) -> String {
        let settled = self.settled.as_ref().map(|c| c.name().to_string());
        settled.or_else(|| lock(&self.shared.last).kernel.clone()).unwrap_or_else(|| REFERENCE.into())
    }

    /// Why a kernel that is for it did not run it the last time one was asked.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.shared.last).trouble.clone()
    }

    /// Whether a kernel of it may take elementwise work that follows.
    pub fn fuses(&self) -> bool {
        self.settled.is_some() && self.kernels.iter().any(|k| k.fuses())
    }

    /// The kernel for a unit of a plan, where all types and shapes are known: in the layouts that suit both sides, with as
    /// much of the epilogue as it takes. A kernel that took the node before and does not want it so has it as it was then.
    pub fn choose(&self, offer: KernelOffer) -> Option<ChosenKernel> {
        let settled = self.settled.as_ref()?;
        let mut site = site(&self.node, &*self.inner, offer.inputs, offer.outputs, &self.layouts);
        site.input_layouts = offer.input_layouts;
        site.epilogue = offer.epilogue;
        match self.ask(&site) {
            // The same answer needs no second instance.
            Some(chosen) if chosen.name() == settled.name() && chosen.config() == settled.config() => {}
            Some(chosen) => return Some(chosen),
            None => lock(&self.shared.last).kernel = Some(settled.name().to_string()),
        }
        Some(settled.clone())
    }

    fn ask(&self, site: &Site) -> Option<ChosenKernel> {
        let Asked { chosen, trouble } = ask(&self.kernels, site);
        *lock(&self.shared.last) = Last { kernel: chosen.as_ref().map(|c| c.name().to_string()), trouble };
        chosen
    }

    // The answer for these inputs.
    fn answer(&self, cx: &EvalCx<'_>) -> Option<ChosenKernel> {
        if let Some(chosen) = &self.settled {
            return Some(chosen.clone());
        }
        let shapes: Vec<Vec<usize>> = (0..cx.n_inputs()).map(|i| cx.input(i).shape().to_vec()).collect();
        let known = lock(&self.shared.answers).iter().find(|(s, _)| *s == shapes).map(|(_, answer)| answer.clone());
        if let Some(answer) = known {
            return answer;
        }
        let exact = |(i, fact): (usize, &Fact)| match fact.tensor() {
            Some(_) => fact.clone(),
            None => Fact::new(cx.input(i).element_type(), PartialShape::of(&shapes[i])),
        };
        let inputs = self.inputs.iter().enumerate().map(exact).collect();
        let outputs = (0..cx.n_outputs()).map(|i| cx.out_fact(i).clone()).collect();
        let answer = self.ask(&site(&self.node, &*self.inner, inputs, outputs, &self.layouts));
        let mut answers = lock(&self.shared.answers);
        if answers.len() >= MOST_SHAPES {
            answers.remove(0);
        }
        answers.push((shapes, answer.clone()));
        answer
    }
}

impl std::fmt::Debug for KernelOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {}", self.inner.type_name(), self.kernel())
    }
}

fn site(name: &str, op: &dyn Op, inputs: Vec<Fact>, outputs: Vec<Fact>, layouts: &[Layout]) -> Site {
    Site {
        name: name.to_string(),
        op_type: op.type_name().to_string(),
        opset: op.opset().to_string(),
        attrs: op.attrs().into_iter().map(|(n, v)| (n.into_owned(), v)).collect(),
        inputs,
        outputs,
        layouts: layouts.to_vec(),
        input_layouts: vec![],
        epilogue: vec![],
    }
}

pub(crate) fn site_at(model: &Model, id: NodeId, op: &dyn Op, layouts: &[Layout]) -> Site {
    let node = model.node(id);
    let inputs = node.inputs().iter().map(|v| model.fact(*v).clone()).collect();
    site(node.name(), op, inputs, node.outputs().iter().map(|o| o.fact.clone()).collect(), layouts)
}

/// Kernels that are for an operation, the one to ask first in front: that which was registered last.
pub(crate) fn kernels_for(kernels: &[Arc<dyn Kernel>], op: &dyn Op) -> Arc<[Arc<dyn Kernel>]> {
    let fits = |k: &&Arc<dyn Kernel>| {
        k.op().eq_ignore_ascii_case(op.type_name()) && k.opset().is_none_or(|opset| opset == op.opset())
    };
    kernels.iter().rev().filter(fits).cloned().collect()
}

/// Whether all types and shapes are known, so that the answer of a kernel is its last.
pub(crate) fn is_known(site: &Site) -> bool {
    site.inputs.iter().chain(&site.outputs).all(|f| f.shape.is_static() && !f.ty.is_dynamic())
}

/// Gives every node that a kernel of the device takes to it; how many. Among several kernels the one registered last is
/// asked first. Where shapes are open the node is given to the kernels too, and each set of shapes asks them again. A kernel
/// that fails to answer or to start, or offers no usable layout, hears of it ([`Kernel::report`]); the node has the text as
/// [`KERNEL_TROUBLE`] and stays as it was. `layouts` are those that values of the device lie in.
pub fn use_kernels(
    model: &mut Model,
    device: &str,
    layouts: &[Layout],
    kernels: &[Arc<dyn Kernel>],
    notes: &mut Notes,
) -> Result<usize> {
    let mut taken = 0;
    let offered: Arc<[Layout]> = layouts.into();
    for id in model.topological_order()? {
        // An exported model may tell of the kernels of another time.
        if model.node(id).rt_info.has(KERNEL_TROUBLE) {
            model.rt_info_mut(id).remove(KERNEL_TROUBLE);
        }
        let op = model.node(id).op_ref().clone();
        let candidates = kernels_for(kernels, &*op);
        if candidates.is_empty() {
            continue;
        }
        let site = site_at(model, id, &*op, layouts);
        let known = is_known(&site);
        let node = site.name.clone();
        let inputs = site.inputs.clone();
        let layouts = offered.clone();
        let kernel =
            KernelOp { inner: op, node, kernels: candidates, layouts, inputs, settled: None, shared: Arc::default() };
        let chosen = kernel.ask(&site);
        if known && chosen.is_none() {
            match kernel.trouble() {
                Some(trouble) => {
                    notes.add(|| format!("{}: {trouble}", model.node(id).location()));
                    set_trouble(model, id, trouble);
                }
                None => notes.add(|| format!("every kernel of {device} declines {}", model.node(id).location())),
            }
            continue;
        }
        taken += usize::from(chosen.is_some());
        model.set_op(id, Arc::new(KernelOp { settled: chosen.filter(|_| known), ..kernel }))?;
    }
    Ok(taken)
}

/// Asks kernels again in a model whose shapes became known: nodes that one takes have it from then on, others become the
/// operation they were, for the device to run like any other.
pub fn settle_kernels(model: &mut Model) -> Result<()> {
    for id in model.topological_order()? {
        let Some(op) = model.op_at::<KernelOp>(id).filter(|op| op.settled.is_none()).cloned() else { continue };
        let site = site_at(model, id, &*op.inner, &op.layouts);
        if !is_known(&site) {
            continue;
        }
        match op.ask(&site) {
            Some(chosen) => {
                let settled = KernelOp { settled: Some(chosen), inputs: site.inputs, ..op };
                model.set_op(id, Arc::new(settled))?;
            }
            None => model.set_op(id, op.inner.clone())?,
        }
    }
    Ok(())
}

fn set_trouble(model: &mut Model, id: NodeId, trouble: String) {
    model.rt_info_mut(id).set(KERNEL_TROUBLE, "0", vec![("value".into(), trouble)]);
}

/// Writes into a model what its kernels said last, for reports.
pub fn tell_kernel_troubles(model: &mut Model) {
    let troubles: Vec<(NodeId, String)> =
        model.nodes().filter_map(|(id, n)| Some((id, n.op().get::<KernelOp>()?.trouble()?))).collect();
    troubles.into_iter().for_each(|(id, trouble)| set_trouble(model, id, trouble));
}

impl Around for KernelOp {
    fn inner(&self) -> &OpRef {
        &self.inner
    }
    fn evaluate(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let Some(chosen) = self.answer(cx) else { return self.inner.eval(cx) };
        let inputs: Vec<Tensor> = (0..cx.n_inputs()).map(|i| cx.input(i).clone()).collect();
        let facts: Vec<Fact> = (0..cx.n_outputs()).map(|i| cx.out_fact(i).clone()).collect();
        for (i, output) in chosen.execute_tensors(&inputs, &facts)?.into_iter().enumerate() {
            cx.set(i, output)?;
        }
        Ok(())
    }
    fn evaluates(&self) -> bool {
        true
    }
    fn is_same(&self, other: &KernelOp) -> bool {
        let names = |op: &KernelOp| op.kernels.iter().map(|k| k.name().to_string()).collect::<Vec<_>>();
        names(self) == names(other) && self.kernel() == other.kernel()
    }
}

crate::op_around!(KernelOp);
