//! Scan: a TensorIterator whose parts lose the scanned axis on the way in and get it back on the way out. Version 8 has a
//! batch axis in front of everything, which the body does not see: there a Loop goes over the batch, since OpenVINO refuses
//! one TensorIterator inside of another. Files know axes from the front only: an axis that is counted from the end of a
//! tensor of unknown rank is moved to the front.

use super::control::{capture, plain, stable_body};
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Fact, Model, Parameter, Result, Slicing, Value};
use carafe_ops::control::{Loop, TensorIterator};
use carafe_ops::movement::Transpose;
use carafe_ops::shape::Range;
use carafe_tensor::{Dim, ElementType, Tensor};
use std::sync::Arc;

pub(crate) const RULES: &[StaticRule] = &[rule("Scan", 8, batched_scan), rule("Scan", 9, scan)];

/// How the scanned tensors are read and written.
struct Plan {
    states: usize,
    input_axes: Vec<i64>,
    input_backwards: Vec<bool>,
    output_axes: Vec<i64>,
    output_backwards: Vec<bool>,
    /// Where the axis of an output belongs that was joined at the front.
    moved: Vec<Option<i64>>,
}

impl Plan {
    fn output_axis(&self, scan: usize) -> i64 {
        self.output_axes.get(scan).copied().unwrap_or(0)
    }
    fn slicing(axis: i64, backwards: bool) -> Slicing {
        match backwards {
            false => Slicing::along(axis),
            true => Slicing { axis, start: -1, end: 0, stride: -1, part_size: 1 },
        }
    }
}

fn scan(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut values = n.inputs()?;
    let mut plan = plan(n, values.len(), "scan_input_directions")?;
    for (i, value) in values[plan.states..].iter_mut().enumerate() {
        if n.rank(*value).is_none() && plan.input_axes[i] < 0 {
            *value = moved(n, *value, plan.input_axes[i], true)?;
            plan.input_axes[i] = 0;
        }
    }
    let facts = values.iter().map(|&v| plain(n.fact(v))).collect::<Vec<_>>();
    let (op, captured) = iterator(n, &mut plan, &facts)?;
    let inputs = [values, captured].concat();
    let mut results = n.emit_all(op, &inputs)?;
    for (result, axis) in results[plan.states..].iter_mut().zip(&plan.moved) {
        if let Some(axis) = axis {
            *result = moved(n, *result, *axis, false)?;
        }
    }
    Ok(results.into())
}

// A negative axis of a tensor of unknown rank goes to the front, or the first axis to where that one was.
fn moved(n: &mut NodeCx<'_>, x: Value, axis: i64, to_front: bool) -> Result<Value> {
    let shape = n.shape_of(x)?;
    let rank = n.shape_of(shape)?;
    let rank = n.reshape(rank, &[])?;
    let (zero, one, axis) = (n.i64(0)?, n.i64(1)?, n.i64(axis)?);
    let at = n.plus(axis, rank)?;
    let behind = n.plus(at, one)?;
    let parts = match to_front {
        true => [(at, behind), (zero, at), (behind, rank)],
        false => [(one, behind), (zero, one), (behind, rank)],
    };
    let mut order = vec![];
    for (start, stop) in parts {
        order.push(n.emit(Range { output_type: ElementType::I64 }, &[start, stop, one])?);
    }
    let order = n.concat(&order, 0)?;
    n.emit(Transpose, &[x, order])
}

fn plan(n: &NodeCx<'_>, given: usize, directions: &str) -> Result<Plan> {
    let scanned: i64 = n.required("num_scan_inputs")?;
    let scanned = usize::try_from(scanned).ok().filter(|&s| s >= 1 && s <= given);
    let scanned = scanned.ok_or_else(|| n.fail(format!("num_scan_inputs must be within 1..={given}")))?;
    let flags = |name: &str| -> Result<Vec<bool>> { Ok(n.attr(name, Vec::<i64>::new())?.iter().map(|&d| d != 0).collect()) };
    let mut input_axes: Vec<i64> = n.attr("scan_input_axes", vec![])?;
    let mut input_backwards = flags(directions)?;
    input_axes.resize(scanned, 0);
    input_backwards.resize(scanned, false);
    Ok(Plan {
        states: given - scanned,
        input_axes,
        input_backwards,
        output_axes: n.attr("scan_output_axes", vec![])?,
        output_backwards: flags("scan_output_directions")?,
        moved: vec![],
    })
}

// The iteration, and the captured values that follow the declared inputs. `facts` are those of the inputs.
fn iterator(n: &mut NodeCx<'_>, plan: &mut Plan, facts: &[Fact]) -> Result<(TensorIterator, Vec<Value>)> {
    let (states, scanned) = facts.split_at(plan.states);
    // Files know axes from the front only.
    for (axis, fact) in plan.input_axes.iter_mut().zip(scanned) {
        if let Some(rank) = fact.shape.rank() {
            *axis = n.axis(*axis, rank)? as i64;
        }
    }
    let mut rows = vec![];
    for (fact, &axis) in scanned.iter().zip(&plan.input_axes) {
        let mut row = fact.clone();
        if let Some(dims) = row.shape.dims_mut() {
            let axis = n.axis(axis, dims.len())?;
            dims.remove(axis);
        }
        rows.push(row);
    }
    let sub = stable_body(n, "body", &[], states.to_vec(), &rows, 0)?;
    if sub.outputs.iter().any(|o| !matches!(o, Item::Tensor(_))) {
        return Err(n.fail("the body of a Scan must give tensors"));
    }
    let mut model = sub.model;
    let results = model.results().to_vec();
    if results.len() < plan.states {
        return Err(n.fail(format!("the body must give at least {} values, found {}", plan.states, results.len())));
    }
    for (i, (fact, &axis)) in scanned.iter().zip(&plan.input_axes).enumerate() {
        let parameter = model.parameters()[plan.states + i];
        squeeze_parameter(&mut model, parameter.into(), fact, axis)?;
    }
    plan.output_axes.resize(results.len() - plan.states, 0);
    for (i, &result) in results[plan.states..].iter().enumerate() {
        let value = model.result_value(result);
        let axis = plan.output_axes[i];
        let rank = model.fact(value).shape.rank();
        plan.output_axes[i] = match rank {
            Some(rank) => n.axis(axis, rank + 1)? as i64,
            None => axis.max(0),
        };
        plan.moved.push(Some(axis).filter(|axis| rank.is_none() && *axis < 0));
        let row = model.with_axes(value, &[plan.output_axis(i)])?;
        model.set_input(result, 0, row);
    }
    model.infer()?;
    let mut body = Body::new(model);
    for i in 0..facts.len() {
        let scan = i.checked_sub(plan.states);
        let slicing = scan.map(|s| Plan::slicing(plan.input_axes[s], plan.input_backwards[s]));
        let back_edge = (i < plan.states).then_some(i);
        body.inputs.push(BodyInput { outer: Some(i), parameter: i, slicing, back_edge });
    }
    for r in 0..results.len() {
        let scan = r.checked_sub(plan.states);
        let backwards = |s: usize| plan.output_backwards.get(s).copied().unwrap_or(false);
        let slicing = scan.map(|s| Plan::slicing(plan.output_axis(s), backwards(s)));
        body.outputs.push(BodyOutput { outer: r, result: r, slicing });
    }
    let captured = capture(&mut body, &sub.captured, facts.len());
    Ok((TensorIterator { body }, captured))
}

// The parameter gets an axis of one, which is taken away for everything that reads it.
fn squeeze_parameter(model: &mut Model, parameter: Value, whole: &Fact, axis: i64) -> Result<()> {
    let mut shape = whole.shape.clone();
    if let Some(dims) = shape.dims_mut() {
        let axis = carafe_graph::normalize_axis(axis, dims.len())?;
        dims[axis] = Dim::known(1);
    }
    let element_type = whole.ty;
    model.set_op(parameter.node, Arc::new(Parameter { shape, element_type }))?;
    let row = model.without_axes(parameter, &[axis])?;
    model.replace_value(parameter, row);
    Ok(())
}

fn batched_scan(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.opt(0)?.is_some() {
        return Err(n.unsupported("sequence_lens of Scan 8 is not supported"));
    }
    let values = (1..n.n_inputs()).map(|i| n.input(i)).collect::<Result<Vec<_>>>()?;
    let mut plan = plan(n, values.len(), "directions")?;
    let mut rows = vec![];
    for &v in &values {
        let mut fact = plain(n.fact(v));
        match fact.shape.dims_mut() {
            Some(dims) if !dims.is_empty() => {
                dims.remove(0);
            }
            Some(_) => return Err(n.fail("every input of Scan 8 needs a batch axis, found a scalar")),
            None => {}
        }
        rows.push(fact);
    }
    let (inner, captured) = iterator(n, &mut plan, &rows)?;
    // OpenVINO refuses a TensorIterator inside of another, and a batch of one needs none.
    if values.iter().all(|&v| n.shape(v).dims().is_some_and(|d| d[0].get() == Some(1))) {
        let mut inputs = vec![];
        for &v in &values {
            inputs.push(n.squeeze(v, &[0])?);
        }
        inputs.extend(captured);
        let results = n.emit_all(inner, &inputs)?;
        let results = results.iter().map(|&v| n.unsqueeze(v, &[0])).collect::<Result<Vec<_>>>()?;
        return Ok(results.into());
    }
    let mut model = Model::new("batch");
    let mut arguments = vec![];
    for (i, &v) in values.iter().enumerate() {
        let mut fact = plain(n.fact(v));
        if let Some(dims) = fact.shape.dims_mut() {
            dims[0] = Dim::known(1);
        }
        let parameter = model.parameter(&format!("row/{i}"), fact.ty, fact.shape)?;
        arguments.push(model.without_axes(parameter, &[0])?);
    }
    for (i, &v) in captured.iter().enumerate() {
        let fact = n.fact(v);
        arguments.push(model.parameter(&format!("captured/{i}"), fact.ty, fact.shape.clone())?);
    }
    let results = model.put_all(inner, &arguments)?;
    for (i, &v) in results.iter().enumerate() {
        let row = model.with_axes(v, &[0])?;
        model.result(&format!("result/{i}"), row)?;
    }
    let goes_on = model.constant("goes_on", Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    model.result("goes_on", goes_on)?;
    let mut body = Body::new(model);
    body.execution_condition = Some(results.len());
    // Behind the number of iterations and the first condition.
    body.inputs = (0..arguments.len())
        .map(|i| {
            let slicing = (i < values.len()).then(|| Slicing::along(0));
            BodyInput { outer: Some(i + 2), parameter: i, slicing, back_edge: None }
        })
        .collect();
    body.outputs =
        (0..results.len()).map(|i| BodyOutput { outer: i, result: i, slicing: Some(Slicing::along(0)) }).collect();
    let batch = n.size(values[0], 0)?;
    let first = n.constant(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    let inputs = [vec![batch, first], values, captured].concat();
    Ok(n.emit_all(Loop { body }, &inputs)?.into())
}
