//! What Loop and TensorIterator share: inferring a body for all of its iterations at once, and running them. A carried
//! value may change its shape from iteration to iteration; its facts are widened until one more iteration adds nothing.

use super::bodies::{check_ports, declared_parameters, infer_body, parameter_type, union, without_content, without_symbols};
use super::parts;
use carafe_graph::{Body, BodyInput, BodyOutput, Content, Error, EvalCx, Fact, InferCx, Result, normalize_axis};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

/// Rounds of widening before a carried value counts as unknown; one per dimension is the most that is ever needed.
const MAX_ROUNDS: usize = 16;

/// A body as seen from outside, for every iteration.
pub(super) struct Iterated {
    pub parameters: Vec<Fact>,
    pub results: Vec<Fact>,
}

/// Says that `n` outputs exist and nothing about them: an evaluation comes next and needs no more.
pub(super) fn leave_outputs_open(cx: &mut InferCx<'_>, n: usize) {
    for i in 0..n {
        cx.set_fact(i, Fact::unknown());
    }
}

/// Facts of parameters and results that hold in every iteration. `once` says, from the results of the first iteration, that
/// no other follows; then nothing has to be widened.
pub(super) fn infer_iterations(
    cx: &InferCx<'_>,
    body: &Body,
    once: impl FnOnce(&[Fact]) -> Result<bool>,
) -> Result<Iterated> {
    check_ports(body, cx.n_inputs())?;
    let mut parameters = declared_parameters(&body.model);
    for input in &body.inputs {
        if let Some(outer) = input.outer {
            parameters[input.parameter] = parameter_fact(cx, body, input, outer, &parameters[input.parameter])?;
        }
    }
    let mut results = infer_body(&body.model, &parameters)?;
    if once(&results)? {
        return Ok(Iterated { parameters, results });
    }
    for _ in 0..MAX_ROUNDS {
        if !widen(body, &mut parameters, &results)? {
            return Ok(Iterated { parameters, results });
        }
        results = infer_body(&body.model, &parameters)?;
    }
    for (p, _) in carried(body) {
        parameters[p].shape = PartialShape::dynamic();
    }
    let results = infer_body(&body.model, &parameters)?;
    Ok(Iterated { parameters, results })
}

fn parameter_fact(cx: &InferCx<'_>, body: &Body, input: &BodyInput, outer: usize, declared: &Fact) -> Result<Fact> {
    let found = cx.fact(outer);
    let constant = input.slicing.is_none() && input.back_edge.is_none() && body.current_iteration != Some(input.parameter);
    let mut fact = if constant { without_symbols(found) } else { without_content(found) };
    fact.ty = parameter_type(declared.ty, found.ty, input.parameter)?;
    if let (Some(s), Some(dims)) = (&input.slicing, fact.shape.dims_mut()) {
        let axis = normalize_axis(s.axis, dims.len())?;
        parts::check(s)?;
        if let Some(n) = dims[axis].get() {
            parts::count(s, n)?;
        }
        dims[axis] = Dim::known(s.part_size);
    }
    if input.back_edge.is_some()
        && let Some(dims) = fact.shape.dims_mut()
    {
        // An empty start (a cache before its first entry) says nothing of the later iterations.
        dims.iter_mut().filter(|d| d.get() == Some(0)).for_each(|d| *d = Dim::ANY);
    }
    Ok(fact)
}

fn carried(body: &Body) -> impl Iterator<Item = (usize, usize)> + '_ {
    body.inputs.iter().filter_map(|i| Some((i.parameter, i.back_edge?)))
}

// Lets each carried parameter also hold what the iteration gave; true when one had to grow.
fn widen(body: &Body, parameters: &mut [Fact], results: &[Fact]) -> Result<bool> {
    let mut grown = false;
    for (p, r) in carried(body) {
        let (parameter, result) = (&mut parameters[p], &results[r]);
        let ty = parameter_type(parameter.ty, result.ty, p)?;
        let shape = match (parameter.shape.dims(), result.shape.dims()) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                PartialShape::new(a.iter().zip(b).map(|(a, b)| if covers(*a, *b) { *a } else { Dim::ANY }))
            }
            _ => PartialShape::dynamic(),
        };
        if shape != parameter.shape || ty != parameter.ty {
            *parameter = Fact::new(ty, shape);
            grown = true;
        }
    }
    Ok(grown)
}

fn covers(a: Dim, b: Dim) -> bool {
    a.min() <= b.min() && a.max().is_none_or(|a| b.max().is_some_and(|b| b <= a))
}

/// Sets the outer outputs when the body runs `count` times. `part_is_known`: an unknown axis of a joined result is as long
/// as the port map says.
pub(super) fn set_outputs(
    cx: &mut InferCx<'_>,
    body: &Body,
    iterated: &Iterated,
    count: Dim,
    part_is_known: bool,
) -> Result<()> {
    for output in &body.outputs {
        let result = &iterated.results[output.result];
        let fact = match output.slicing {
            Some(s) => Fact::new(result.ty, joined_shape(&result.shape, s.axis, s.part_size, count, part_is_known)?),
            None if count.min() > 0 => result.clone(),
            None => last_or_first(cx, body, output, result, count),
        };
        cx.set_fact(output.outer, fact);
    }
    Ok(())
}

fn joined_shape(
    part: &PartialShape,
    axis: i64,
    part_size: i64,
    count: Dim,
    part_is_known: bool,
) -> Result<PartialShape> {
    let Some(dims) = part.dims() else { return Ok(PartialShape::dynamic()) };
    let mut dims = if dims.is_empty() { vec![Dim::known(1)] } else { dims.to_vec() };
    let axis = normalize_axis(axis, dims.len())?;
    let size = if part_is_known && !dims[axis].is_known() { Dim::known(part_size) } else { dims[axis] };
    dims[axis] = size.mul(count).clamp_shape();
    Ok(PartialShape::new(dims))
}

// Where no iteration may run, a carried output may still have the value it started with.
fn last_or_first(cx: &InferCx<'_>, body: &Body, output: &BodyOutput, result: &Fact, count: Dim) -> Fact {
    let start = body.inputs.iter().find(|i| i.back_edge == Some(output.result)).and_then(|i| i.outer);
    match start.map(|outer| without_content(cx.fact(outer))) {
        Some(start) if count.get() == Some(0) => start,
        Some(start) => Fact::new(result.ty, union(&start.shape, &result.shape)),
        None => {
            let mut fact = without_content(result);
            if let Some(first) = fact.shape.dims_mut().and_then(|d| d.first_mut()) {
                *first = super::bodies::union_dim(*first, Dim::known(0));
            }
            fact
        }
    }
}

/// Runs a body at most `limit` times; a Loop also stops when its condition result is false.
pub(super) fn run(cx: &mut EvalCx<'_>, body: &Body, limit: i64, first: bool) -> Result<()> {
    let mut given = start_values(cx, body)?;
    let mut joined: Vec<Vec<Tensor>> = vec![Vec::new(); body.outputs.len()];
    let mut last: Option<Vec<Tensor>> = None;
    let mut iteration = 0;
    let mut go_on = first;
    while go_on && iteration < limit {
        for input in &body.inputs {
            if let (Some(s), Some(outer)) = (&input.slicing, input.outer) {
                let whole = cx.input(outer);
                let axis = normalize_axis(s.axis, whole.rank())?;
                let n = parts::count(s, whole.shape()[axis] as i64)?;
                // A Loop that runs on after its slices are used up sees the last one again.
                given[input.parameter] = Some(parts::take(whole, s, iteration.min(n - 1))?);
            }
        }
        let parameters = given.iter().cloned().collect::<Option<Vec<_>>>();
        let parameters = parameters.ok_or_else(|| cx.fail("a body parameter has no value"))?;
        let results = cx.run_body(&body.model, &parameters)?;
        for (output, list) in body.outputs.iter().zip(&mut joined) {
            if output.slicing.is_some() {
                list.push(results[output.result].clone());
            }
        }
        iteration += 1;
        if let Some(r) = body.execution_condition {
            go_on = results[r].to_vec::<u8>()?.first().copied().ok_or_else(|| cx.fail("the condition is empty"))? != 0;
        }
        if let Some(p) = body.current_iteration.filter(|&p| !carried(body).any(|(c, _)| c == p)) {
            given[p] = Some(counter(body, p, iteration)?);
        }
        for (p, r) in carried(body) {
            given[p] = Some(results[r].clone());
        }
        last = Some(results);
    }
    for (output, list) in body.outputs.iter().zip(joined) {
        let value = match (&output.slicing, &last) {
            (Some(s), Some(_)) => parts::join(&list, s)?,
            (None, Some(results)) => results[output.result].clone(),
            (_, None) => value_without_iterations(cx, body, output)?,
        };
        cx.set(output.outer, value)?;
    }
    Ok(())
}

fn start_values(cx: &EvalCx<'_>, body: &Body) -> Result<Vec<Option<Tensor>>> {
    check_ports(body, cx.n_inputs())?;
    let mut given = vec![None; body.model.parameters().len()];
    if let Some(p) = body.current_iteration {
        given[p] = Some(counter(body, p, 0)?);
    }
    for input in body.inputs.iter().filter(|i| i.slicing.is_none()) {
        if let Some(outer) = input.outer {
            given[input.parameter] = Some(cx.input(outer).clone());
        }
    }
    Ok(given)
}

// The iteration number in the type and shape the body wants it; one element when the body leaves the shape open.
fn counter(body: &Body, parameter: usize, iteration: i64) -> Result<Tensor> {
    let fact = body.model.fact(body.model.parameters()[parameter].into());
    let ty = if fact.ty.is_dynamic() { ElementType::I64 } else { fact.ty };
    let shape = fact.shape.to_static().unwrap_or_else(|| vec![1]);
    let n = carafe_tensor::elements(&shape).filter(|&n| n == 1);
    match n {
        Some(_) => Ok(Tensor::from_i64(ty, &shape, &[iteration])?),
        None => Err(Error::invalid(format!("the iteration counter must have one element, found [{}]", fact.shape))),
    }
}

// Nothing ran: a carried output keeps its start, a joined one is empty along its axis, another one along its first axis.
fn value_without_iterations(cx: &EvalCx<'_>, body: &Body, output: &BodyOutput) -> Result<Tensor> {
    let start = body.inputs.iter().find(|i| i.back_edge == Some(output.result)).and_then(|i| i.outer);
    if let (Some(outer), None) = (start, &output.slicing) {
        return Ok(cx.input(outer).clone());
    }
    let mut facts = declared_parameters(&body.model);
    for input in &body.inputs {
        let Some(outer) = input.outer else { continue };
        let mut fact = Fact::of(cx.input(outer));
        fact.content = Content::Unknown;
        if let (Some(s), Some(dims)) = (&input.slicing, fact.shape.dims_mut()) {
            let axis = normalize_axis(s.axis, dims.len())?;
            dims[axis] = Dim::known(s.part_size);
        }
        facts[input.parameter] = fact;
    }
    let fact = infer_body(&body.model, &facts)?.swap_remove(output.result);
    let unknown = || cx.fail(format!("no iteration ran, and the shape of output {} is not known", output.outer));
    let mut dims = fact.shape.dims().ok_or_else(unknown)?.to_vec();
    if dims.is_empty() && output.slicing.is_some() {
        dims.push(Dim::known(1));
    }
    let axis = match &output.slicing {
        Some(s) => normalize_axis(s.axis, dims.len())?,
        None => 0,
    };
    *dims.get_mut(axis).ok_or_else(unknown)? = Dim::known(0);
    let shape = PartialShape::new(dims).to_static().ok_or_else(unknown)?;
    Ok(Tensor::zeros(fact.ty, &shape)?)
}
