//! Finds the step of each unit and the layout of each value, in one walk: a builder sees how its inputs lie and says how it
//! wants them; where that differs a reorder goes between, made once for each value and layout. Constants are put into the
//! wanted layout right here.

use super::draft::{Draft, Unit};
use super::post::{Post, Source};
use crate::makers::maker;
use crate::plan::{Action, Layout};
use crate::run::plannable;
use crate::steps::{BuildCx, Built, Port, Site, Work, build, reorder};
use carafe_graph::{Error, NodeId, Result, normalize_axis};
use carafe_kernels::MAX_PARTS;
use carafe_ops::movement::Concat;
use carafe_tensor::{ElementType, Tensor};
use std::collections::HashMap;

/// A value with its layout.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) ty: ElementType,
    pub(super) shape: Option<Vec<usize>>,
    pub(super) layout: Layout,
    pub(super) source: Origin,
}

/// What gives a value its bytes.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Input(usize),
    Constant(Tensor),
    /// A step with planned memory.
    Step,
    /// An evaluated step.
    Eval,
    /// The bytes of another value.
    View(usize),
    /// A part of another value: from which element on, and how far its rows lie apart (0 when they lie together).
    Inside {
        of: usize,
        start: usize,
        pitch: usize,
    },
}

/// A step with its values.
#[derive(Debug)]
pub(super) struct ChosenStep {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) place: String,
    pub(super) kernel: String,
    pub(super) action: Action,
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    pub(super) workspace: usize,
    pub(super) fused: Vec<String>,
    /// The read over which it writes its result.
    pub(super) over: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) values: Vec<Chosen>,
    pub(super) steps: Vec<ChosenStep>,
    pub(super) outputs: Vec<usize>,
    pub(super) scratch: usize,
}

fn place_of(unit: &Unit) -> String {
    format!("node `{}` ({}, {})", unit.name, unit.op.type_name(), unit.op.opset())
}

pub(super) fn select(draft: Draft, cx: &BuildCx<'_>) -> Result<Selection> {
    let (readers, handed) = draft.readers();
    let wanted = readers.iter().zip(handed).map(|(r, h)| !r.is_empty() || h > 0).collect();
    let mut walk = Walk { out: Selection::default(), copies: HashMap::new(), wanted, cx };
    for v in &draft.values {
        let source = match (&v.constant, v.input) {
            (Some(t), _) => Origin::Constant(t.clone()),
            (None, Some(i)) => Origin::Input(i),
            (None, None) => Origin::Eval,
        };
        walk.out.values.push(Chosen { ty: v.ty, shape: v.shape.clone(), layout: Layout::Plain, source });
    }
    for unit in &draft.units {
        walk.unit(unit)?;
    }
    for &v in &draft.outputs {
        let plain = walk.in_layout(v, Layout::Plain)?;
        walk.out.outputs.push(plain);
    }
    Ok(walk.out)
}

/// Most elements of a value that a kernel is asked for.
const LARGEST: usize = 1 << 34;

struct Walk<'a> {
    out: Selection,
    copies: HashMap<(usize, Layout), usize>,
    /// Whether anybody reads a value of the draft; values made later are.
    wanted: Vec<bool>,
    cx: &'a BuildCx<'a>,
}

impl Walk<'_> {
    fn unit(&mut self, unit: &Unit) -> Result<()> {
        if let Some((size, parts)) = self.parts_of_concat(unit) {
            return self.join_by_parts(unit, size, &parts);
        }
        match self.build(unit)? {
            Some(built) => match built.taken {
                Some(taken) if taken < unit.post.len() => {
                    let (first, rest) = self.split(unit, taken);
                    self.take(&first, built)?;
                    self.unit(&rest)
                }
                _ => self.take(unit, built),
            },
            None if unit.before.is_some() => self.one_by_one(unit),
            None if unit.out_order.is_some() || unit.orders.iter().any(Option::is_some) => self.in_order(unit),
            None if unit.group => self.one_post_at_a_time(unit),
            None if unit.post.is_empty() => self.evaluate(unit),
            // Nobody does it in one go: the operation first, then the rest.
            None => self.apart(unit),
        }
    }

    fn build(&self, unit: &Unit) -> Result<Option<Built>> {
        let port = |&v: &usize| {
            let value = &self.out.values[v];
            let constant = match &value.source {
                Origin::Constant(t) => Some(t.clone()),
                _ => None,
            };
            let shape = value.shape.clone()?;
            plannable(value.ty).then_some(Port { ty: value.ty, shape, layout: value.layout, constant })
        };
        let inputs: Option<Vec<Port>> = unit.inputs.iter().map(port).collect();
        let inputs = inputs.map(|mut ports| {
            for (port, order) in ports.iter_mut().zip(&unit.orders) {
                if let Some(order) = order {
                    port.shape = order.iter().map(|&a| port.shape[a]).collect();
                }
            }
            ports
        });
        let outputs: Option<Vec<Port>> = unit.outputs.iter().map(port).collect();
        let (Some(inputs), Some(outputs)) = (inputs, outputs) else { return Ok(None) };
        // What no memory holds is left to the evaluation, which refuses it with its reason.
        if inputs.iter().chain(&outputs).any(|p| carafe_tensor::elements(&p.shape).is_none_or(|n| n > LARGEST)) {
            return Ok(None);
        }
        // Nothing to compute: not worth a kernel that has to think of it.
        if outputs.iter().any(|p| p.len() == 0) || inputs.iter().any(|p| p.len() == 0) {
            return Ok(None);
        }
        if inputs.len() >= MAX_PARTS || outputs.len() > 8.max(MAX_PARTS / 2) || unit.op.info().stateful {
            return Ok(None);
        }
        let site = Site {
            op: &*unit.op,
            own_inputs: unit.own_inputs,
            wanted: unit.outputs.iter().map(|&v| self.wanted.get(v).copied().unwrap_or(true)).collect(),
            inputs,
            outputs,
            post: &unit.post,
            orders: &unit.orders,
            out_order: unit.out_order.as_deref(),
            group: unit.group,
            before: unit.before.as_deref(),
            cx: self.cx,
        };
        build(&site)
    }

    fn take(&mut self, unit: &Unit, built: Built) -> Result<()> {
        let mut reads = vec![];
        for (i, layout) in &built.reads {
            reads.push(self.in_layout(unit.inputs[*i], *layout)?);
        }
        for (&v, &layout) in unit.outputs.iter().zip(&built.outputs) {
            self.out.values[v].layout = layout;
            self.out.values[v].source = Origin::Step;
        }
        match built.work {
            Work::View => self.out.values[unit.outputs[0]].source = Origin::View(reads[0]),
            Work::Step(step) => {
                self.out.scratch = self.out.scratch.max(step.scratch_floats());
                self.out.steps.push(ChosenStep {
                    node: unit.node,
                    name: unit.name.clone(),
                    type_name: unit.op.type_name().to_string(),
                    place: place_of(unit),
                    kernel: step.kernel(),
                    action: Action::Fast(step),
                    reads,
                    writes: unit.outputs[..built.outputs.len()].to_vec(),
                    workspace: built.workspace,
                    fused: unit.fused.clone(),
                    over: None,
                });
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, unit: &Unit) -> Result<()> {
        let reads = unit.inputs.iter().map(|&v| self.in_layout(v, Layout::Plain)).collect::<Result<Vec<_>>>()?;
        let types: Vec<ElementType> = unit.inputs.iter().map(|&v| self.out.values[v].ty).collect();
        let (kernel, action) = match (unit.op.get::<carafe_device::KernelOp>(), maker(&*unit.op, &types)) {
            (Some(op), _) => (op.kernel(), Action::Eval(unit.op.clone())),
            (None, Some(maker)) => (maker.kernel().to_string(), Action::Make(maker)),
            (None, None) => ("reference".to_string(), Action::Eval(unit.op.clone())),
        };
        self.out.steps.push(ChosenStep {
            node: unit.node,
            name: unit.name.clone(),
            type_name: unit.op.type_name().to_string(),
            place: place_of(unit),
            kernel,
            action,
            reads,
            writes: unit.outputs.clone(),
            workspace: 0,
            fused: unit.fused.clone(),
            over: None,
        });
        Ok(())
    }

    // Where a concatenation has more inputs than a step may have: how many make a part, and the shapes of the parts.
    fn parts_of_concat(&self, unit: &Unit) -> Option<(usize, Vec<Vec<usize>>)> {
        let (op, count) = (unit.op.get::<Concat>()?, unit.inputs.len());
        let bare = !unit.group && unit.post.is_empty() && unit.orders.is_empty() && unit.out_order.is_none();
        if count < MAX_PARTS || !bare || !plannable(self.out.values[unit.outputs[0]].ty) {
            return None;
        }
        let shapes: Vec<&[usize]> =
            unit.inputs.iter().map(|&v| self.out.values[v].shape.as_deref()).collect::<Option<_>>()?;
        let axis = normalize_axis(op.axis, shapes[0].len()).ok()?;
        let size = count.div_ceil(count.div_ceil(MAX_PARTS - 1));
        let joined = |part: &[&[usize]]| {
            let mut shape = part[0].to_vec();
            shape[axis] = part.iter().map(|s| s[axis]).sum();
            shape
        };
        Some((size, shapes.chunks(size).map(joined).collect()))
    }

    fn join_by_parts(&mut self, unit: &Unit, size: usize, shapes: &[Vec<usize>]) -> Result<()> {
        let ty = self.out.values[unit.outputs[0]].ty;
        let mut whole = vec![];
        for (inputs, shape) in unit.inputs.chunks(size).zip(shapes) {
            let part = self.out.values.len();
            let shape = Some(shape.clone());
            self.out.values.push(Chosen { ty, shape, layout: Layout::Plain, source: Origin::Eval });
            let inputs = inputs.to_vec();
            self.unit(&Unit { own_inputs: inputs.len(), inputs, outputs: vec![part], fused: vec![], ..unit.clone() })?;
            whole.push(part);
        }
        self.unit(&Unit { own_inputs: whole.len(), inputs: whole, ..unit.clone() })
    }

    // What comes before is a step of its own after all.
    fn one_by_one(&mut self, unit: &Unit) -> Result<()> {
        let Some(before) = &unit.before else { return Ok(()) };
        self.unit(&before.unit)?;
        let inputs = unit.inputs[..before.first_input].to_vec();
        let taken = |name: &String| *name == before.unit.name || before.unit.fused.contains(name);
        let fused = unit.fused.iter().filter(|n| !taken(n)).cloned().collect();
        self.unit(&Unit { inputs, fused, before: None, ..unit.clone() })
    }

    fn apart(&mut self, unit: &Unit) -> Result<()> {
        let (first, rest) = self.split(unit, 0);
        self.unit(&first)?;
        self.unit(&rest)
    }

    // The operation with the first posts, and the others as a group behind it.
    fn split(&mut self, unit: &Unit, taken: usize) -> (Unit, Unit) {
        let between = self.out.values.len();
        let like = self.out.values[unit.outputs[0]].clone();
        self.out.values.push(like);
        let inputs = if taken == 0 { unit.own_inputs } else { unit.inputs.len() };
        let first = Unit {
            inputs: unit.inputs[..inputs].to_vec(),
            outputs: vec![between],
            post: unit.post[..taken].to_vec(),
            fused: vec![],
            ..unit.clone()
        };
        // Inputs of the operation are no business of the group: they may be empty where its operands are not.
        let (post, used) = super::post::as_group(&unit.post[taken..], taken, unit.inputs.len());
        let rest = Unit {
            inputs: used.into_iter().map(|i| unit.inputs.get(i).copied().unwrap_or(between)).collect(),
            own_inputs: 0,
            post,
            group: true,
            orders: vec![],
            out_order: None,
            before: None,
            ..unit.clone()
        };
        (first, rest)
    }

    // A group that is too much for one step. Every result of a group has the shape of the last.
    fn one_post_at_a_time(&mut self, unit: &Unit) -> Result<()> {
        if unit.post.len() < 2 {
            let shape = &self.out.values[unit.outputs[0]].shape;
            return Err(Error::invalid(format!("no memory for a value of shape {shape:?}")).at(place_of(unit)));
        }
        let mut results = vec![];
        for (k, post) in unit.post.iter().enumerate() {
            let last = k + 1 == unit.post.len();
            let to = if last { unit.outputs[0] } else { self.out.values.len() };
            if !last {
                let like = self.out.values[unit.outputs[0]].clone();
                self.out.values.push(like);
            }
            let value = |source: &Source| match *source {
                Source::Input(i) => unit.inputs[i],
                Source::Result(r) => results[r],
            };
            let inputs: Vec<usize> = post.sources.iter().map(value).collect();
            let sources = (0..inputs.len()).map(Source::Input).collect();
            let fused = if last { unit.fused.clone() } else { vec![] };
            let post = vec![Post { elt: post.elt, sources }];
            self.unit(&Unit { inputs, outputs: vec![to], post, fused, ..unit.clone() })?;
            results.push(to);
        }
        Ok(())
    }

    // Transposes again what was to be read or written in another order.
    fn in_order(&mut self, unit: &Unit) -> Result<()> {
        let mut main = Unit { orders: vec![], out_order: None, ..unit.clone() };
        for (i, order) in unit.orders.iter().enumerate() {
            let Some(order) = order else { continue };
            let mut like = self.out.values[unit.inputs[i]].clone();
            like.shape = like.shape.map(|s| order.iter().map(|&a| s[a]).collect());
            (like.layout, like.source) = (Layout::Plain, Origin::Eval);
            main.inputs[i] = self.out.values.len();
            self.out.values.push(like);
            self.transpose(unit, unit.inputs[i], order, main.inputs[i])?;
        }
        let Some(order) = &unit.out_order else { return self.unit(&main) };
        let mut like = self.out.values[unit.outputs[0]].clone();
        if let Some(shape) = &mut like.shape {
            let after = shape.clone();
            order.iter().zip(after).for_each(|(&a, n)| shape[a] = n);
        }
        main.outputs = vec![self.out.values.len()];
        self.out.values.push(like);
        self.unit(&main)?;
        self.transpose(unit, main.outputs[0], order, unit.outputs[0])
    }

    fn transpose(&mut self, unit: &Unit, from: usize, order: &[usize], to: usize) -> Result<()> {
        let numbers: Vec<i64> = order.iter().map(|&a| a as i64).collect();
        let tensor = Tensor::from_slice(&[order.len()], &numbers)?;
        let source = Origin::Constant(tensor);
        let shape = Some(vec![order.len()]);
        self.out.values.push(Chosen { ty: ElementType::I64, shape, layout: Layout::Plain, source });
        self.unit(&Unit {
            op: std::sync::Arc::new(carafe_ops::movement::Transpose),
            inputs: vec![from, self.out.values.len() - 1],
            own_inputs: 2,
            outputs: vec![to],
            post: vec![],
            group: false,
            fused: vec![],
            orders: vec![],
            out_order: None,
            ..unit.clone()
        })
    }

    /// The value in a layout: itself, or a copy of it.
    fn in_layout(&mut self, v: usize, layout: Layout) -> Result<usize> {
        let value = &self.out.values[v];
        let Some(shape) = value.shape.clone() else { return Ok(v) };
        if value.layout.same_for(layout, &shape) {
            return Ok(v);
        }
        if let Some(&copy) = self.copies.get(&(v, layout)) {
            return Ok(copy);
        }
        let mut copied = Chosen { layout, ..value.clone() };
        let copy = self.out.values.len();
        if let Origin::Constant(t) = &value.source {
            copied.source = Origin::Constant(reorder::constant(t, value.layout, layout)?);
            self.out.values.push(copied);
        } else {
            copied.source = Origin::Step;
            let step = reorder::step(&shape, value.ty, value.layout, layout);
            self.out.scratch = self.out.scratch.max(step.scratch_floats());
            self.out.steps.push(ChosenStep {
                node: NodeId(u32::MAX),
                name: format!("value_{v}_{}", layout.name()),
                type_name: "Reorder".to_string(),
                place: format!("reorder of value {v}"),
                kernel: step.kernel(),
                action: Action::Fast(step),
                reads: vec![v],
                writes: vec![copy],
                workspace: 0,
                fused: vec![],
                over: None,
            });
            self.out.values.push(copied);
        }
        self.copies.insert((v, layout), copy);
        Ok(copy)
    }
}
