//! Finds the step of each unit and the layout of each value, in one walk: a builder sees how its inputs lie and says how it
//! wants them; where that differs a reorder or a conversion goes between, made once for each value and form. Constants are
//! put into the wanted form right here.

use super::draft::{Draft, Unit};
use super::grids;
use crate::backend::{Backend, Known, Step, model_precision};
use crate::compressed::Compressed;
use crate::epilogue::{ElementwiseOp, Source, as_group};
use crate::grid::{Grid, Integers};
use crate::layout::{Form, Layout};
use crate::plan::Action;
use crate::site::{Built, Port, Site, Work};
use carafe_graph::{Error, NodeId, OpNew, Result, normalize_axis};
use carafe_ops::convert::Convert;
use carafe_ops::movement::Concat;
use carafe_tensor::{ElementType, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// A value with its layout.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The type in which it is stored.
    pub(super) ty: ElementType,
    /// The type that the model says.
    pub(super) model_ty: ElementType,
    pub(super) shape: Option<Vec<usize>>,
    pub(super) layout: Layout,
    pub(super) source: Origin,
    /// The steps on which its numbers lie; then its type may be u8 where the model says f32.
    pub(super) grid: Option<Grid>,
    /// The type in which its readers would rather have it.
    pub(super) preferred: Option<ElementType>,
}

impl Chosen {
    fn plain(ty: ElementType, shape: Option<Vec<usize>>, source: Origin) -> Chosen {
        Chosen { ty, model_ty: ty, shape, layout: Layout::PLAIN, source, grid: None, preferred: None }
    }
    // A value of the same form with other numbers.
    fn like(&self) -> Chosen {
        Chosen { grid: None, ty: self.model_ty, ..self.clone() }
    }
    /// Elements of the last dimension in memory.
    pub(super) fn row(&self) -> usize {
        self.shape.as_ref().and_then(|s| self.layout.dims(s).last().copied()).unwrap_or(1)
    }
    /// Elements in memory, padding among them.
    pub(super) fn elements(&self) -> usize {
        self.shape.as_ref().map_or(0, |s| self.layout.elements(s))
    }
}

/// What gives a value its bytes.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Input(usize),
    Constant(Tensor),
    /// Weights that are a constant as soon as somebody wants floats.
    Integers(Integers),
    /// The same for compressed ones.
    Compressed(Compressed),
    /// A step with planned memory.
    Step,
    /// An evaluated step.
    Eval,
    /// The bytes of another value.
    View(usize),
    /// A part of another value: from which element on, and elements from row to row (0 when it is dense).
    Alias {
        of: usize,
        start: usize,
        row_stride: usize,
    },
}

/// A step with its values.
#[derive(Debug)]
pub(super) struct ChosenStep<B: Backend> {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) location: String,
    pub(super) kernel: String,
    pub(super) precision: ElementType,
    pub(super) action: Action<B>,
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    pub(super) workspace: usize,
    pub(super) fused: Vec<String>,
    /// The read whose bytes its result overwrites.
    pub(super) in_place: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Selection<B: Backend> {
    pub(super) values: Vec<Chosen>,
    pub(super) steps: Vec<ChosenStep<B>>,
    pub(super) outputs: Vec<usize>,
    pub(super) scratch: usize,
}

/// Whether the elements of a type can lie in planned memory.
fn plannable(ty: ElementType) -> bool {
    !ty.is_dynamic() && ty != ElementType::String && !ty.is_sub_byte()
}

fn location_of(unit: &Unit) -> String {
    format!("node `{}` ({}, {})", unit.name, unit.op.type_name(), unit.op.opset())
}

pub(super) fn select<B: Backend>(draft: Draft, backend: &B) -> Result<Selection<B>> {
    let (readers, handed) = draft.readers();
    let wanted = readers.iter().zip(handed).map(|(r, h)| !r.is_empty() || h > 0).collect();
    let out = Selection { values: vec![], steps: vec![], outputs: vec![], scratch: 0 };
    let wants_bytes = grids::readers_of_bytes(&draft);
    let mut walk = Walk { out, copies: HashMap::new(), wanted, wants_bytes, backend, cx: backend.build_cx() };
    for v in &draft.values {
        let source = match (&v.constant, &v.integers, v.input) {
            (Some(t), ..) => Origin::Constant(t.clone()),
            (None, Some(integers), _) => Origin::Integers(integers.clone()),
            (None, None, Some(i)) => Origin::Input(i),
            (None, None, None) => v.compressed.clone().map_or(Origin::Eval, Origin::Compressed),
        };
        let plain = Chosen::plain(v.ty, v.shape.clone(), source);
        walk.out.values.push(Chosen { grid: v.grid, preferred: v.preferred, ..plain });
    }
    for unit in &draft.units {
        walk.unit(unit)?;
    }
    for &v in &draft.outputs {
        let plain = walk.in_form(v, Layout::PLAIN.into())?;
        walk.out.outputs.push(plain);
    }
    Ok(walk.out)
}

/// Most elements of a value that a kernel is asked for.
const LARGEST: usize = 1 << 34;

struct Walk<'a, B: Backend> {
    out: Selection<B>,
    copies: HashMap<(usize, Layout, ElementType), usize>,
    /// Whether anybody reads a value of the draft; values made later are.
    wanted: Vec<bool>,
    /// Whether a value of the draft has a reader that computes with integers.
    wants_bytes: Vec<bool>,
    backend: &'a B,
    cx: B::BuildCx,
}

impl<B: Backend> Walk<'_, B> {
    fn unit(&mut self, unit: &Unit) -> Result<()> {
        if !self.keeps_stored(unit) {
            unit.inputs.iter().try_for_each(|&v| self.widen(v))?;
        }
        if let Some((size, parts)) = self.parts_of_concat(unit) {
            return self.join_by_parts(unit, size, &parts);
        }
        match self.build(unit)? {
            Some(built) => match built.taken {
                Some(taken) if taken < unit.epilogue.len() => {
                    let (first, rest) = self.split(unit, taken);
                    self.take(&first, built)?;
                    self.unit(&rest)
                }
                _ => self.take(unit, built),
            },
            None if self.keeps_stored(unit) => {
                unit.inputs.iter().try_for_each(|&v| self.widen(v))?;
                self.unit(unit)
            }
            None if unit.before.is_some() => self.one_by_one(unit),
            None if unit.out_order.is_some() || unit.orders.iter().any(Option::is_some) => self.in_order(unit),
            None if unit.group => self.one_function_at_a_time(unit),
            None if unit.epilogue.is_empty() => self.evaluate(unit),
            // Nobody does it in one go: the operation first, then the rest.
            None => self.without_epilogue(unit),
        }
    }

    // Whether a unit has weights that its builder may want as they are stored.
    fn keeps_stored(&self, unit: &Unit) -> bool {
        self.keeps_integers(unit) || self.keeps_compressed(unit)
    }

    fn keeps_compressed(&self, unit: &Unit) -> bool {
        let compressed = |v: usize| matches!(self.out.values[v].source, Origin::Compressed(_));
        let kept = |(i, &v): (usize, &usize)| compressed(v) && self.backend.reads_compressed(&*unit.op, i);
        !unit.group && unit.inputs[..unit.own_inputs].iter().enumerate().any(kept)
    }

    // Whether a unit has integer weights for data on a grid, so that its builder may want both as they are.
    fn keeps_integers(&self, unit: &Unit) -> bool {
        let value = |i: usize| unit.inputs.get(i).map(|&v| &self.out.values[v]);
        let integers = value(1).is_some_and(|v| matches!(v.source, Origin::Integers(_)));
        integers && !unit.group && value(0).is_some_and(|v| v.grid.is_some())
    }

    // Stored weights become the floats that they stand for.
    fn widen(&mut self, v: usize) -> Result<()> {
        let numbers = match &self.out.values[v].source {
            Origin::Integers(integers) => integers.numbers()?,
            Origin::Compressed(compressed) => compressed.numbers()?,
            _ => return Ok(()),
        };
        self.out.values[v].source = Origin::Constant(numbers);
        Ok(())
    }

    fn build(&self, unit: &Unit) -> Result<Option<Built<B>>> {
        let port = |&v: &usize| {
            let value = &self.out.values[v];
            let (constant, integers, compressed) = match &value.source {
                Origin::Constant(t) => (Some(t.clone()), None, None),
                Origin::Integers(integers) => (None, Some(integers.clone()), None),
                Origin::Compressed(compressed) => (None, None, Some(compressed.clone())),
                _ => (None, None, None),
            };
            let shape = value.shape.clone()?;
            let (ty, stored, layout) = (value.model_ty, value.ty, value.layout);
            let (grid, preferred) = (value.grid, value.preferred);
            let wants_bytes = self.wants_bytes.get(v).copied().unwrap_or(false);
            let port = Port { ty, shape, layout, stored, constant, grid, preferred, wants_bytes, integers, compressed };
            plannable(ty).then_some(port)
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
        if inputs.len() >= B::MAX_OPERANDS || outputs.len() > 8.max(B::MAX_OPERANDS / 2) || unit.op.info().stateful {
            return Ok(None);
        }
        let site = Site {
            op: &*unit.op,
            own_inputs: unit.own_inputs,
            wanted: unit.outputs.iter().map(|&v| self.wanted.get(v).copied().unwrap_or(true)).collect(),
            inputs,
            outputs,
            epilogue: &unit.epilogue,
            orders: &unit.orders,
            out_order: unit.out_order.as_deref(),
            group: unit.group,
            before: unit.before.as_deref(),
            precision: unit.precision,
            cx: &self.cx,
        };
        self.backend.build(&site)
    }

    fn take(&mut self, unit: &Unit, built: Built<B>) -> Result<()> {
        let mut reads = vec![];
        for (i, form) in &built.reads {
            reads.push(self.in_form(unit.inputs[*i], *form)?);
        }
        for (&v, form) in unit.outputs.iter().zip(&built.outputs) {
            let value = &mut self.out.values[v];
            (value.layout, value.ty) = (form.layout, form.ty.unwrap_or(value.model_ty));
            value.source = Origin::Step;
        }
        let step = match built.work {
            Work::View => {
                self.out.values[unit.outputs[0]].source = Origin::View(reads[0]);
                return Ok(());
            }
            Work::Step(step) => step,
        };
        self.out.scratch = self.out.scratch.max(step.scratch_bytes());
        let writes = unit.outputs[..built.outputs.len()].to_vec();
        let precision = built.precision.unwrap_or(unit.precision);
        let (kernel, workspace) = (step.kernel(), built.workspace);
        self.push(unit, kernel, precision, Action::Kernel(step), reads, writes, workspace);
        Ok(())
    }

    fn push(
        &mut self,
        unit: &Unit,
        kernel: String,
        precision: ElementType,
        action: Action<B>,
        reads: Vec<usize>,
        writes: Vec<usize>,
        workspace: usize,
    ) {
        self.out.steps.push(ChosenStep {
            node: unit.node,
            name: unit.name.clone(),
            type_name: unit.op.type_name().to_string(),
            location: location_of(unit),
            kernel,
            precision,
            action,
            reads,
            writes,
            workspace,
            fused: unit.fused.clone(),
            in_place: None,
        });
    }

    fn evaluate(&mut self, unit: &Unit) -> Result<()> {
        let plain = |&v: &usize| self.in_form(v, Layout::PLAIN.into());
        let reads = unit.inputs.iter().map(plain).collect::<Result<Vec<_>>>()?;
        let known = |&v: &usize| {
            let value = &self.out.values[v];
            Known { ty: value.model_ty, shape: value.shape.as_deref(), is_constant: false, is_fine: false }
        };
        let types: Vec<ElementType> = unit.inputs.iter().map(|&v| self.out.values[v].model_ty).collect();
        let dynamic = self.backend.dynamic_output(&*unit.op, &types);
        let (kernel, action) = match (unit.op.get::<carafe_device::KernelOp>(), dynamic) {
            (Some(op), _) => (op.kernel(), Action::Eval(unit.op.clone())),
            (None, Some(dynamic)) => (dynamic.kernel().to_string(), Action::Dynamic(dynamic)),
            (None, None) => ("reference".to_string(), Action::Eval(unit.op.clone())),
        };
        // An evaluation computes in the types of the model.
        let (inputs, outputs): (Vec<_>, Vec<_>) =
            (unit.inputs.iter().map(known).collect(), unit.outputs.iter().map(known).collect());
        let precision = model_precision(&inputs, &outputs);
        self.push(unit, kernel, precision, action, reads, unit.outputs.clone(), 0);
        Ok(())
    }

    // Where a concatenation has more inputs than a step may have: how many make a part, and the shapes of the parts.
    fn parts_of_concat(&self, unit: &Unit) -> Option<(usize, Vec<Vec<usize>>)> {
        let (op, count) = (unit.op.get::<Concat>()?, unit.inputs.len());
        let bare = !unit.group && unit.epilogue.is_empty() && unit.orders.is_empty() && unit.out_order.is_none();
        if count < B::MAX_OPERANDS || !bare || !plannable(self.out.values[unit.outputs[0]].model_ty) {
            return None;
        }
        let shapes: Vec<&[usize]> =
            unit.inputs.iter().map(|&v| self.out.values[v].shape.as_deref()).collect::<Option<_>>()?;
        let axis = normalize_axis(op.axis, shapes[0].len()).ok()?;
        let size = count.div_ceil(count.div_ceil(B::MAX_OPERANDS - 1));
        let joined = |part: &[&[usize]]| {
            let mut shape = part[0].to_vec();
            shape[axis] = part.iter().map(|s| s[axis]).sum();
            shape
        };
        Some((size, shapes.chunks(size).map(joined).collect()))
    }

    fn join_by_parts(&mut self, unit: &Unit, size: usize, shapes: &[Vec<usize>]) -> Result<()> {
        let ty = self.out.values[unit.outputs[0]].model_ty;
        let mut whole = vec![];
        for (inputs, shape) in unit.inputs.chunks(size).zip(shapes) {
            let part = self.out.values.len();
            let shape = Some(shape.clone());
            self.out.values.push(Chosen::plain(ty, shape, Origin::Eval));
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

    fn without_epilogue(&mut self, unit: &Unit) -> Result<()> {
        let (first, rest) = self.split(unit, 0);
        self.unit(&first)?;
        self.unit(&rest)
    }

    // The operation with the first of its epilogue, and the rest as a group behind it.
    fn split(&mut self, unit: &Unit, taken: usize) -> (Unit, Unit) {
        let between = self.out.values.len();
        let like = self.out.values[unit.outputs[0]].like();
        self.out.values.push(like);
        let inputs = if taken == 0 { unit.own_inputs } else { unit.inputs.len() };
        // Each is named after the last node that it does, where the nodes are those of the epilogue alone.
        let (name, done, left) = match unit.fused.len() == unit.epilogue.len() {
            true => (&unit.fused[taken], &unit.fused[..taken], &unit.fused[taken + 1..]),
            false => (&unit.name, &[][..], &unit.fused[..]),
        };
        let first = Unit {
            name: name.clone(),
            inputs: unit.inputs[..inputs].to_vec(),
            outputs: vec![between],
            epilogue: unit.epilogue[..taken].to_vec(),
            fused: done.to_vec(),
            ..unit.clone()
        };
        // Inputs of the operation are no business of the group: they may be empty where its operands are not.
        let (epilogue, used) = as_group(&unit.epilogue[taken..], taken, unit.inputs.len());
        let rest = Unit {
            inputs: used.into_iter().map(|i| unit.inputs.get(i).copied().unwrap_or(between)).collect(),
            own_inputs: 0,
            epilogue,
            fused: left.to_vec(),
            group: true,
            orders: vec![],
            out_order: None,
            before: None,
            ..unit.clone()
        };
        (first, rest)
    }

    // A group that is too much for one step. Every result of a group has the shape of the last.
    fn one_function_at_a_time(&mut self, unit: &Unit) -> Result<()> {
        if unit.epilogue.len() < 2 {
            let Chosen { model_ty, shape, .. } = &self.out.values[unit.outputs[0]];
            let refused = format!("no kernel takes a value of type {model_ty} and shape {shape:?}");
            return Err(Error::unsupported(refused).at(location_of(unit)));
        }
        let mut results = vec![];
        for (k, function) in unit.epilogue.iter().enumerate() {
            let last = k + 1 == unit.epilogue.len();
            let to = if last { unit.outputs[0] } else { self.out.values.len() };
            if !last {
                let like = self.out.values[unit.outputs[0]].like();
                self.out.values.push(like);
            }
            let value = |source: &Source| match *source {
                Source::Input(i) => unit.inputs[i],
                Source::Result(r) => results[r],
            };
            let inputs: Vec<usize> = function.sources.iter().map(value).collect();
            let sources = (0..inputs.len()).map(Source::Input).collect();
            let fused = if last { unit.fused.clone() } else { vec![] };
            let epilogue = vec![ElementwiseOp { sources, ..*function }];
            self.unit(&Unit { inputs, outputs: vec![to], epilogue, fused, ..unit.clone() })?;
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
            like = Chosen::plain(like.model_ty, like.shape, Origin::Eval);
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
        self.out.values.push(Chosen::plain(ElementType::I64, shape, source));
        self.unit(&Unit {
            op: Arc::new(carafe_ops::movement::Transpose),
            inputs: vec![from, self.out.values.len() - 1],
            own_inputs: 2,
            outputs: vec![to],
            epilogue: vec![],
            group: false,
            fused: vec![],
            orders: vec![],
            out_order: None,
            ..unit.clone()
        })
    }

    /// The value in a form: itself, or a copy of it.
    fn in_form(&mut self, v: usize, form: Form) -> Result<usize> {
        self.widen(v)?;
        let value = &self.out.values[v];
        let Some(shape) = value.shape.clone() else { return Ok(v) };
        let (from, layout, ty) = (value.ty, form.layout, form.ty.unwrap_or(value.model_ty));
        let same_layout = value.layout.same_for(layout, &shape);
        if same_layout && from == ty {
            return Ok(v);
        }
        if let Some(&copy) = self.copies.get(&(v, layout, ty)) {
            return Ok(copy);
        }
        let copy = if let Origin::Constant(t) = &value.source {
            let typed = if from == ty { t.clone() } else { t.cast(ty)? };
            let source = Origin::Constant(layout.pack(&typed)?);
            self.out.values.push(Chosen { ty, layout, source, ..value.clone() });
            self.out.values.len() - 1
        } else {
            // The smaller of the two types is put into another order.
            let (mut at, convert_first) = (v, ty.bits() < from.bits());
            if from != ty && (convert_first || same_layout) {
                at = self.convert(at, &shape, ty)?;
            }
            if !same_layout {
                let Chosen { layout: now, ty, .. } = self.out.values[at];
                let step = self.backend.reorder(&shape, ty, now, layout);
                at = self.copied(at, "Reorder", step, layout, ty);
            }
            if self.out.values[at].ty != ty {
                at = self.convert(at, &shape, ty)?;
            }
            at
        };
        self.copies.insert((v, layout, ty), copy);
        Ok(copy)
    }

    fn convert(&mut self, v: usize, shape: &[usize], to: ElementType) -> Result<usize> {
        let Chosen { ty, model_ty, layout, grid, .. } = self.out.values[v];
        // Steps of a grid are the numbers of the model before they are those of a third type.
        if grid.is_some() && ty != model_ty && to != model_ty {
            let numbers = self.convert(v, shape, model_ty)?;
            return self.convert(numbers, shape, to);
        }
        let step = self.backend.convert(layout.elements(shape), ty, to, grid)?;
        Ok(self.copied(v, Convert::INFO.name, step, layout, to))
    }

    // A step of the planner's own: a value as another one.
    fn copied(&mut self, v: usize, what: &str, step: Arc<dyn Step<B>>, layout: Layout, ty: ElementType) -> usize {
        let copy = self.out.values.len();
        self.out.scratch = self.out.scratch.max(step.scratch_bytes());
        self.out.steps.push(ChosenStep {
            node: NodeId(u32::MAX),
            name: format!("value_{v}_{}", if what == "Reorder" { layout.name() } else { ty.to_string() }),
            type_name: what.to_string(),
            location: format!("{} of value {v}", what.to_ascii_lowercase()),
            kernel: step.kernel(),
            precision: ty,
            action: Action::Kernel(step),
            reads: vec![v],
            writes: vec![copy],
            workspace: 0,
            fused: vec![],
            in_place: None,
        });
        let value = Chosen { ty, layout, source: Origin::Step, ..self.out.values[v].clone() };
        self.out.values.push(value);
        copy
    }
}
