//! Puts extensions' kernels into a model: a node that a kernel takes keeps its operation for inference and gets the kernel
//! for evaluation. Layouts and precisions are changed at the borders of the node.

use crate::kernel::{Config, Kernel, PortLayout, PreparedKernel, Site};
use carafe_graph::{AttrValue, Body, EvalCx, InferCx, Model, NodeId, Notes, Op, OpDecl, OpInfo, OpRef, Result};
use carafe_tensor::Tensor;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// An operation that a kernel evaluates.
#[derive(Clone)]
pub struct KernelOp {
    inner: OpRef,
    name: String,
    config: Config,
    prepared: Arc<Mutex<Box<dyn PreparedKernel>>>,
}

impl KernelOp {
    /// Name of the kernel.
    pub fn kernel(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for KernelOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {}", self.inner.type_name(), self.name)
    }
}

/// Gives every node that a kernel for `device` takes to it; how many. Among several kernels the one registered last is
/// asked first. A kernel that fails to answer or to start is told of in the notes, and its node stays as it was.
pub fn use_kernels(model: &mut Model, device: &str, kernels: &[Arc<dyn Kernel>], notes: &mut Notes) -> Result<usize> {
    let wanted: Vec<&Arc<dyn Kernel>> = kernels.iter().rev().filter(|k| k.device() == device).collect();
    let mut taken = 0;
    if wanted.is_empty() {
        return Ok(0);
    }
    for id in model.topological_order()? {
        let op = model.node(id).op();
        let fits = |k: &&&Arc<dyn Kernel>| {
            k.op().eq_ignore_ascii_case(op.type_name()) && k.opset().is_none_or(|opset| opset == op.opset())
        };
        let candidates: Vec<Arc<dyn Kernel>> = wanted.iter().filter(fits).map(|k| (**k).clone()).collect();
        for kernel in candidates {
            match prepare(model, id, &kernel) {
                Ok(Some(op)) => {
                    model.set_op(id, Arc::new(op))?;
                    taken += 1;
                    break;
                }
                Ok(None) => notes.add(|| format!("kernel `{}` declines {}", kernel.name(), model.node(id).place())),
                Err(e) => notes.add(|| format!("kernel `{}` for {}: {e}", kernel.name(), model.node(id).place())),
            }
        }
    }
    Ok(taken)
}

fn prepare(model: &Model, id: NodeId, kernel: &Arc<dyn Kernel>) -> Result<Option<KernelOp>> {
    let node = model.node(id);
    let site = Site {
        name: node.name().to_string(),
        op_type: node.op().type_name().to_string(),
        opset: node.op().opset().to_string(),
        attrs: node.op().attrs().into_iter().map(|(n, v)| (n.into_owned(), v)).collect(),
        inputs: node.inputs().iter().map(|v| model.fact(*v).clone()).collect(),
        outputs: node.outputs().iter().map(|o| o.fact.clone()).collect(),
    };
    let configs = kernel.configs(&site)?;
    let Some(chosen) = configs.iter().position(|c| can_serve(c, &site)) else { return Ok(None) };
    let prepared = kernel.init(&site, chosen)?;
    Ok(Some(KernelOp {
        inner: node.op_ref().clone(),
        name: kernel.name().to_string(),
        config: configs[chosen].clone(),
        prepared: Arc::new(Mutex::new(prepared)),
    }))
}

// Plain memory always can be had; a blocked form needs to know the shape, a constant must be one.
fn can_serve(config: &Config, site: &Site) -> bool {
    let fits = |layout: &PortLayout, fact: &carafe_graph::Fact| {
        let holds = match &layout.blocked {
            None => true,
            Some(b) => fact.shape.to_static().is_some_and(|shape| b.fits(&shape)),
        };
        let number = |ty: carafe_tensor::ElementType| ty.is_float() || ty.is_integer();
        let converts = layout.ty == fact.ty || (number(layout.ty) && number(fact.ty));
        holds && converts && (!layout.constant || fact.tensor().is_some())
    };
    config.inputs.len() == site.inputs.len()
        && config.outputs.len() == site.outputs.len()
        && config.inputs.iter().zip(&site.inputs).all(|(l, f)| fits(l, f))
        && config.outputs.iter().zip(&site.outputs).all(|(l, f)| fits(l, f))
}

impl Op for KernelOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.inner.infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let mut inputs = Vec::with_capacity(cx.n_inputs());
        for (i, layout) in self.config.inputs.iter().enumerate() {
            let mut t: Tensor = cx.input(i).clone();
            if t.element_type() != layout.ty {
                t = t.cast(layout.ty)?;
            }
            inputs.push(match &layout.blocked {
                Some(b) => b.pack(&t)?,
                None => t,
            });
        }
        let facts: Vec<_> = (0..cx.n_outputs())
            .map(|i| {
                let mut fact = cx.out_fact(i).clone();
                fact.ty = self.config.outputs.get(i).map_or(fact.ty, |l| l.ty);
                fact
            })
            .collect();
        let outputs = {
            let mut kernel = self.prepared.lock().unwrap_or_else(|e| e.into_inner());
            kernel.execute(&inputs, &facts)?
        };
        for (i, output) in outputs.into_iter().enumerate() {
            let layout = &self.config.outputs[i];
            let plain = match &layout.blocked {
                Some(b) => b.unpack(&output, &cx.out_shape(i)?)?,
                None => output,
            };
            let wanted = cx.out_ty(i);
            let plain =
                if wanted.is_dynamic() || plain.element_type() == wanted { plain } else { plain.cast(wanted)? };
            cx.set(i, plain)?;
        }
        Ok(())
    }
}

impl OpDecl for KernelOp {
    fn info(&self) -> &'static OpInfo {
        self.inner.info()
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.inner.attrs()
    }
    fn type_name(&self) -> &str {
        self.inner.type_name()
    }
    fn opset(&self) -> &str {
        self.inner.opset()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        other.get::<KernelOp>().is_some_and(|o| self.name == o.name && self.inner.eq_op(&*o.inner))
    }
    fn bodies(&self) -> Vec<(&'static str, &Body)> {
        self.inner.bodies()
    }
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)> {
        vec![]
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}
