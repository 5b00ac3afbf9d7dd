//! If and Loop. Outer values a sub-graph reads become further inputs of the operation. The types a Loop body is
//! translated under must hold in every iteration, so carried shapes are widened and the body is translated again until
//! one more iteration adds nothing. A sequence that keeps its length from one iteration to the next is carried element by
//! element; others are packed where they are carried, or differ between the branches.

use carafe_frontend::{Compose, Given, Item, NodeCx, Outputs, StaticRule, SubModel, join, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Fact, ItemType, Result, Slicing, Value};
use carafe_ops::control::{If, Loop};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[rule("If", 1, if_rule), rule("Loop", 1, loop_rule)];

/// Translations of a body before carried values count as unknown.
const MAX_ROUNDS: usize = 8;

/// A longer sequence is carried packed: each element carried by itself is an input and an output of the operation.
const MOST_ELEMENTS: usize = 64;

fn if_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let condition = n.input(0)?;
    let known = n.tensor(condition).and_then(|t| t.to_vec::<u8>().ok()?.first().map(|&b| b != 0));
    if let Some(taken) = known {
        let branch = n.body(if taken { "then_branch" } else { "else_branch" }, &[])?;
        return Ok(Outputs(n.inline(&branch, &[])?));
    }
    let condition = single(n, condition)?;
    let mut branches = [n.body("then_branch", &[])?, n.body("else_branch", &[])?];
    let types = common_types(n, &branches)?;
    branches.iter_mut().try_for_each(|b| b.settle(&types))?;
    let outputs = branches[0].outputs.clone();
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

// The types of outputs that must be packed: the branches do not give the same number of tensors, or a run decides it.
fn common_types(n: &NodeCx<'_>, branches: &[SubModel; 2]) -> Result<Vec<Option<ItemType>>> {
    fn same(a: &Item, b: &Item) -> bool {
        match (a, b) {
            (Item::Tensor(_), Item::Tensor(_)) | (Item::Nothing, Item::Nothing) => true,
            (Item::Sequence(a), Item::Sequence(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            _ => false,
        }
    }
    let [a, b] = [&branches[0], &branches[1]];
    let (n_a, n_b) = (a.outputs.len(), b.outputs.len());
    if n_a != n_b {
        return Err(n.fail(format!("both branches need the same outputs, found {n_a} and {n_b}")));
    }
    let common = |(x, y): (&Item, &Item)| match same(x, y) {
        true => Ok(None),
        false => join(&x.ty(&a.model)?, &y.ty(&b.model)?).map(Some),
    };
    a.outputs.iter().zip(&b.outputs).map(common).collect()
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
    let starts = (2..n.n_inputs()).map(|i| Ok(n.item(i)?.unwrap_or(Item::Nothing))).collect::<Result<Vec<_>>>()?;
    // Some bodies declare the number of the iteration as a vector of one, and compute with it as such.
    let is_vector = matches!(n.declared_input("body", 0), Some(ItemType::Tensor(_, s)) if s.rank() == Some(1));
    let counter = if is_vector { PartialShape::new([Dim::known(1)]) } else { PartialShape::scalar() };
    let head = [Fact::new(ElementType::I64, counter), plain(n.fact(condition))];
    let head = head.each_ref().map(ItemType::of);
    let states = starts.iter().map(|item| start_given(n, item)).collect::<Result<Vec<_>>>()?;
    let carried = starts.len();
    let (mut sub, states) = stable_items(n, "body", &head, states, &[], 1)?;
    if sub.outputs.len() < carried + 1 {
        return Err(n.fail(format!("the body must give at least {} values, found {}", carried + 1, sub.outputs.len())));
    }
    let tensor = |i: &usize| matches!(sub.outputs[*i], Item::Tensor(_));
    if let Some(i) = (0..sub.outputs.len()).find(|i| !(tensor(i) || (1..=carried).contains(i))) {
        return Err(n.fail(format!("output {i} of the body must be a tensor, found {}", sub.outputs[i].ty(&sub.model)?)));
    }
    let packed = |given: &Given| match given {
        Given::Whole(ty) => ty.is_packed().then(|| ty.clone()),
        Given::Apart(_) | Given::Outer(_) => None,
    };
    let settled = std::iter::once(None).chain(states.iter().map(packed));
    let settled: Vec<_> = settled.chain(std::iter::repeat(None)).take(sub.outputs.len()).collect();
    sub.settle(&settled)?;
    let mut values = vec![];
    for (item, given) in starts.iter().zip(&states) {
        match (item, given) {
            (Item::Sequence(items), Given::Apart(types)) => {
                for (item, ty) in items.iter().zip(types) {
                    values.push(n.pack(item, ty)?);
                }
            }
            (item, Given::Whole(ty)) => values.push(n.pack(item, ty)?),
            _ => return Err(n.fail("a carried sequence is not known element by element")),
        }
    }
    let starts = values;
    let carried = starts.len();
    let results = sub.model.results().to_vec();
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
    let values = n.emit_all(Loop { body }, &inputs)?;
    let mut values = values.into_iter();
    let mut outputs = vec![];
    for given in states {
        match given {
            Given::Whole(ty) => outputs.extend(values.next().map(|v| Item::of(v, ty))),
            Given::Outer(item) => outputs.push(item),
            Given::Apart(types) => {
                let items = types.into_iter().zip(values.by_ref()).map(|(ty, v)| Item::of(v, ty));
                outputs.push(Item::Sequence(items.collect()));
            }
        }
    }
    outputs.extend(values.map(Item::Tensor));
    Ok(Outputs(outputs))
}

// What a carried value begins as.
fn start_given(n: &NodeCx<'_>, item: &Item) -> Result<Given> {
    let tensor = |item: &Item| match item {
        Item::Tensor(v) => Some(ItemType::of(&plain(n.fact(*v)))),
        _ => None,
    };
    if let Item::Sequence(items) = item
        && (1..=MOST_ELEMENTS).contains(&items.len())
        && let Some(types) = items.iter().map(tensor).collect()
    {
        return Ok(Given::Apart(types));
    }
    Ok(Given::Whole(match tensor(item) {
        Some(ty) => ty,
        None => item.ty(n.model())?,
    }))
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

/// As `stable_items`, for a body that takes tensors alone.
pub(super) fn stable_body(
    n: &mut NodeCx<'_>,
    attribute: &str,
    head: &[Fact],
    states: Vec<Fact>,
    tail: &[Fact],
    first: usize,
) -> Result<SubModel> {
    let types = |facts: &[Fact]| facts.iter().map(ItemType::of).collect::<Vec<_>>();
    let states = types(&states).into_iter().map(Given::Whole).collect();
    Ok(stable_items(n, attribute, &types(head), states, &types(tail), first)?.0)
}

/// Translates a body whose parameters are `head`, the carried `states` and `tail`; its results from `first` on are the next
/// states. Gives the types of the states too, which hold in every iteration.
fn stable_items(
    n: &mut NodeCx<'_>,
    attribute: &str,
    head: &[ItemType],
    mut states: Vec<Given>,
    tail: &[ItemType],
    first: usize,
) -> Result<(SubModel, Vec<Given>)> {
    let whole = |types: &[ItemType]| types.iter().cloned().map(Given::Whole).collect::<Vec<_>>();
    for round in 0.. {
        let parameters = [whole(head), states.clone(), whole(tail)].concat();
        let sub = n.body_given(attribute, &parameters)?;
        let given = |given: &Given| match given {
            Given::Whole(_) => 1,
            Given::Apart(types) => types.len(),
            Given::Outer(_) => 0,
        };
        let declared = sub.model.parameters().len() - sub.captured.len();
        let count: usize = parameters.iter().map(given).sum();
        if declared != count {
            return Err(n.fail(format!("the body has {declared} inputs, the node gives {count}")));
        }
        let mut grown = false;
        for (state, item) in states.iter_mut().zip(sub.outputs.iter().skip(first)) {
            let wider = match (&*state, item) {
                (Given::Apart(types), Item::Sequence(items)) if types.len() == items.len() => {
                    let next = |(ty, item): (&ItemType, &Item)| widened(n, ty, &item.ty(&sub.model)?, round);
                    Given::Apart(types.iter().zip(items).map(next).collect::<Result<_>>()?)
                }
                // The length changes, or only a run knows it.
                (Given::Apart(types), _) => {
                    let any = |joined: ItemType, ty: &ItemType| widened(n, &joined, ty, round);
                    let element = types.iter().try_fold(ItemType::Unknown, any)?;
                    Given::Whole(widened(n, &ItemType::sequence(element), &item.ty(&sub.model)?, round)?)
                }
                (Given::Whole(ty), _) => Given::Whole(widened(n, ty, &item.ty(&sub.model)?, round)?),
                (Given::Outer(_), _) => state.clone(),
            };
            if wider != *state {
                *state = wider;
                grown = true;
            }
        }
        if !grown || round > MAX_ROUNDS {
            return Ok((sub, states));
        }
    }
    Err(n.fail("the shapes of the carried values do not settle"))
}

// The type of a carried value that was `state` and is `next` one iteration later.
fn widened(n: &NodeCx<'_>, state: &ItemType, next: &ItemType, round: usize) -> Result<ItemType> {
    let shapes = |a: &PartialShape, b: &PartialShape| match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() && round < MAX_ROUNDS => {
            PartialShape::new(a.iter().zip(b).map(|(a, b)| if covers(*a, *b) { *a } else { Dim::ANY }))
        }
        _ => PartialShape::dynamic(),
    };
    match (state, next) {
        // A tensor keeps its element type, whatever the body says.
        (ItemType::Tensor(a, s), ItemType::Tensor(b, t)) => {
            Ok(ItemType::Tensor(if a.is_dynamic() { *b } else { *a }, shapes(s, t)))
        }
        _ => state
            .join(next, &shapes)
            .ok_or_else(|| n.fail(format!("a carried value is {state} in one iteration and {next} in the next"))),
    }
}

fn covers(a: Dim, b: Dim) -> bool {
    a.min() <= b.min() && a.max().is_none_or(|a| b.max().is_some_and(|b| b <= a))
}
