//! Looking into a body: facts that cross its border, and the checks every port map has to pass. Symbols never cross: they
//! are numbered per model, so a symbol of the outer graph means something else inside.

use carafe_graph::{Body, Content, Error, Fact, Model, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::cell::Cell;

/// Bodies inside bodies deeper than this are not looked into; each level may be inferred several times.
const MAX_DEPTH: usize = 6;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Facts of the results of a body for these parameters; nothing is said about a body that lies too deep.
pub(super) fn infer_body(model: &Model, parameters: &[Fact]) -> Result<Vec<Fact>> {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        return Ok(vec![Fact::unknown(); model.results().len()]);
    }
    DEPTH.set(depth + 1);
    let results = model.infer_with(parameters);
    DEPTH.set(depth);
    Ok(results?.iter().map(without_symbols).collect())
}

/// What the body itself says of its parameters.
pub(super) fn declared_parameters(model: &Model) -> Vec<Fact> {
    model.parameters().iter().map(|&p| without_content(model.fact(p.into()))).collect()
}

/// The fact as the other side of a body's border may use it.
pub(super) fn without_symbols(fact: &Fact) -> Fact {
    let content = match &fact.content {
        Content::Partial(dims) => Content::Partial(dims.iter().map(|&d| plain(d)).collect()),
        other => other.clone(),
    };
    Fact { content, ..without_content(fact) }
}

/// Type and shape alone: what holds when the elements change from iteration to iteration.
pub(super) fn without_content(fact: &Fact) -> Fact {
    let mut shape = fact.shape.clone();
    if let Some(dims) = shape.dims_mut() {
        dims.iter_mut().for_each(|d| *d = plain(*d));
    }
    Fact::new(fact.ty, shape)
}

fn plain(d: Dim) -> Dim {
    Dim::range(d.min(), d.max())
}

/// The type of a body parameter that a value of type `found` is given to.
pub(super) fn parameter_type(declared: ElementType, found: ElementType, parameter: usize) -> Result<ElementType> {
    ElementType::merge(declared, found)
        .ok_or_else(|| Error::invalid(format!("body parameter {parameter} takes {declared}, found {found}")))
}

/// The smallest shape that holds both.
pub(super) fn union(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            PartialShape::new(x.iter().zip(y).map(|(x, y)| union_dim(*x, *y)))
        }
        _ => PartialShape::dynamic(),
    }
}

pub(super) fn union_dim(a: Dim, b: Dim) -> Dim {
    let max = a.max().zip(b.max()).map(|(a, b)| a.max(b));
    Dim::range(a.min().min(b.min()), max)
}

/// Checks the port map: every index exists, every parameter has one source, the outputs are numbered without holes.
pub(super) fn check_ports(body: &Body, n_outer: usize) -> Result<()> {
    body.check(n_outer)?;
    let mut fed = vec![false; body.model.parameters().len()];
    for input in &body.inputs {
        if std::mem::replace(&mut fed[input.parameter], true) {
            return Err(Error::invalid(format!("body parameter {} is fed twice", input.parameter)));
        }
        if input.outer.is_none() && body.current_iteration != Some(input.parameter) {
            return Err(Error::invalid(format!("body parameter {} has no outer input", input.parameter)));
        }
    }
    if let Some(p) = body.current_iteration {
        fed[p] = true;
    }
    if let Some(p) = fed.iter().position(|f| !f) {
        return Err(Error::invalid(format!("nothing feeds body parameter {p}")));
    }
    let mut given = vec![false; body.outputs.len()];
    for output in &body.outputs {
        match given.get_mut(output.outer) {
            Some(g) if !*g => *g = true,
            _ => {
                let n = body.outputs.len();
                return Err(Error::invalid(format!("port map names output {} twice or beyond {n}", output.outer)));
            }
        }
    }
    Ok(())
}
