//! If and Loop. Outer values a sub-graph reads become further inputs of the operation. The facts a Loop body is
//! translated under must hold in every iteration, so carried shapes are widened and the body is translated again until
//! one more iteration adds nothing.

use super::compose::Compose;
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Fact, Result, Slicing, Value};
use carafe_ops::control::{If, Loop};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[rule("If", 1, if_rule), rule("Loop", 1, loop_rule)];

/// Translations of a body before carried values count as unknown.
const MAX_ROUNDS: usize = 8;

fn if_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let condition = n.input(0)?;
    let known = n.tensor(condition).and_then(|t| t.to_vec::<u8>().ok()?.first().map(|&b| b != 0));
    if let Some(taken) = known {
        let branch = n.body(if taken { "then_branch" } else { "else_branch" }, &[])?;
        return Ok(Outputs(n.inline(&branch, &[])?));
    }
    let condition = single(n, condition)?;
    let branches = [n.body("then_branch", &[])?, n.body("else_branch", &[])?];
    let outputs = common_structure(n, &branches)?;
    let mut inputs = vec![condition];
    let [then_body, else_body] = branches.map(|branch| {
        let results = branch.model.results().len();
        let mut body = Body::new(branch.model);
        let captured = capture(&mut body, &branch.captured, inputs.len());
        inputs.extend(captured);
        body.outputs = (0..results).map(|i| BodyOutput { outer: i, result: i, slicing: None }).collect();
        body
    });
    let values = n.emit_all(If { then_body, else_body }, &inputs)?;
    let mut values = values.into_iter();
    let mut next = |_: &Value| values.next().ok_or_else(|| carafe_graph::Error::invalid("an output is missing"));
    outputs.iter().map(|item| item.map(&mut next)).collect::<Result<Vec<_>>>().map(Outputs)
}

// What both branches give, where they agree about sequences and optionals.
fn common_structure(n: &NodeCx<'_>, branches: &[SubModel; 2]) -> Result<Vec<Item>> {
    fn same(a: &Item, b: &Item) -> bool {
        match (a, b) {
            (Item::Tensor(_), Item::Tensor(_)) | (Item::Nothing, Item::Nothing) => true,
            (Item::Sequence(a), Item::Sequence(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            _ => false,
        }
    }
    let [a, b] = [&branches[0].outputs, &branches[1].outputs];
    if a.len() != b.len() {
        return Err(n.fail(format!("both branches need the same outputs, found {} and {}", a.len(), b.len())));
    }
    if !a.iter().zip(b).all(|(a, b)| same(a, b)) {
        return Err(n.unsupported("sequences whose length depends on the branch taken are not supported"));
    }
    Ok(a.clone())
}

/// Connects the captured values of a sub-graph to inputs of the outer node from `first` on, and gives these.
pub(super) fn capture(body: &mut Body, captured: &[(Value, usize)], first: usize) -> Vec<Value> {
    for (i, &(_, parameter)) in captured.iter().enumerate() {
        body.inputs.push(BodyInput { outer: Some(first + i), parameter, slicing: None, back_edge: None });
    }
    captured.iter().map(|(v, _)| *v).collect()
}

// A condition or count of one element, as a scalar unless it is a vector of one.
fn single(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.rank(v) {
        Some(0 | 1) => Ok(v),
        _ => n.reshape(v, &[1]),
    }
}

fn loop_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.n_inputs() < 2 {
        return Err(n.fail(format!("a Loop has at least 2 inputs, found {}", n.n_inputs())));
    }
    let trips = trip_count(n)?;
    let condition = match n.opt(1)? {
        Some(c) => single(n, c)?,
        None => n.constant(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?,
    };
    let starts = (2..n.n_inputs()).map(|i| n.input(i)).collect::<Result<Vec<_>>>()?;
    let head = [Fact::new(ElementType::I64, PartialShape::scalar()), plain(n.fact(condition))];
    let states: Vec<Fact> = starts.iter().map(|&v| plain(n.fact(v))).collect();
    let carried = starts.len();
    let mut sub = stable_body(n, "body", &head, states, &[], 1)?;
    if sub.outputs.iter().any(|o| !matches!(o, Item::Tensor(_))) {
        return Err(n.unsupported("a Loop that gives sequences or optionals is not supported"));
    }
    let results = sub.model.results().to_vec();
    if results.len() < carried + 1 {
        return Err(n.fail(format!("the body must give at least {} values, found {}", carried + 1, results.len())));
    }
    for &scan in &results[carried + 1..] {
        let value = sub.model.result_value(scan);
        let row = sub.model.with_axes(value, &[0])?;
        sub.model.set_input(scan, 0, row);
    }
    sub.model.infer()?;
    let mut body = Body::new(sub.model);
    body.current_iteration = Some(0);
    body.execution_condition = Some(0);
    let mut inputs = vec![trips, condition];
    body.inputs.push(BodyInput { outer: None, parameter: 0, slicing: None, back_edge: None });
    for (i, v) in std::iter::once(condition).chain(starts).enumerate() {
        let outer = Some(inputs.len());
        body.inputs.push(BodyInput { outer, parameter: i + 1, slicing: None, back_edge: Some(i) });
        inputs.push(v);
    }
    let captured = capture(&mut body, &sub.captured, inputs.len());
    inputs.extend(captured);
    body.outputs = (1..results.len())
        .map(|r| BodyOutput { outer: r - 1, result: r, slicing: (r > carried).then(|| Slicing::along(0)) })
        .collect();
    Ok(n.emit_all(Loop { body }, &inputs)?.into())
}

// The bound of iterations. Here a negative count is none at all, there it is no bound.
fn trip_count(n: &mut NodeCx<'_>) -> Result<Value> {
    let Some(m) = n.opt(0)? else { return n.i64(-1) };
    let m = single(n, m)?;
    match n.ints(m).as_deref() {
        Some(&[count]) if count >= 0 => Ok(m),
        Some(&[_]) => n.i64(0),
        _ => {
            let zero = n.scalar_like(m, 0.0)?;
            n.max(m, zero)
        }
    }
}

/// The fact of a value without its content: a carried value changes.
pub(super) fn plain(fact: &Fact) -> Fact {
    let mut shape = fact.shape.clone();
    if let Some(dims) = shape.dims_mut() {
        // An empty start says nothing of the later iterations.
        for d in dims.iter_mut() {
            *d = if d.get() == Some(0) { Dim::ANY } else { Dim::range(d.min(), d.max()) };
        }
    }
    Fact::new(fact.ty, shape)
}

/// Translates a body whose parameters are `head`, the carried `states` and `tail`; its results from `first` on are the next
/// states.
pub(super) fn stable_body(
    n: &mut NodeCx<'_>,
    attribute: &str,
    head: &[Fact],
    mut states: Vec<Fact>,
    tail: &[Fact],
    first: usize,
) -> Result<SubModel> {
    for round in 0.. {
        let parameters = [head, &states, tail].concat();
        let sub = n.body(attribute, &parameters)?;
        let declared = sub.model.parameters().len() - sub.captured.len();
        if declared != parameters.len() {
            return Err(n.fail(format!("the body has {declared} inputs, the node gives {}", parameters.len())));
        }
        let mut grown = false;
        for (state, item) in states.iter_mut().zip(sub.outputs.iter().skip(first)) {
            let Item::Tensor(v) = item else { continue };
            let next = sub.model.fact(*v);
            let shape = match (state.shape.dims(), next.shape.dims()) {
                (Some(a), Some(b)) if a.len() == b.len() && round < MAX_ROUNDS => {
                    PartialShape::new(a.iter().zip(b).map(|(a, b)| if covers(*a, *b) { *a } else { Dim::ANY }))
                }
                _ => PartialShape::dynamic(),
            };
            let ty = if state.ty.is_dynamic() { next.ty } else { state.ty };
            if shape != state.shape || ty != state.ty {
                *state = Fact::new(ty, shape);
                grown = true;
            }
        }
        if !grown || round > MAX_ROUNDS {
            return Ok(sub);
        }
    }
    Err(n.fail("the shapes of the carried values do not settle"))
}

fn covers(a: Dim, b: Dim) -> bool {
    a.min() <= b.min() && a.max().is_none_or(|a| b.max().is_some_and(|b| b <= a))
}
