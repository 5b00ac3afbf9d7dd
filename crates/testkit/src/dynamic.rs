//! Infers a case again with less known: every input at once, and each input alone while the others stay constants.
//! Whatever is inferred must hold for the real outputs. An operation that cannot go on without knowing more may refuse,
//! but only with an `Unsupported` error; failing otherwise, or panicking, is a bug.

use crate::case::{Case, Expect};
use crate::guard::caught;
use crate::paths::direct;
use crate::runner::{InputsAs, any_dims, build, feed, make_op};
use carafe_graph::{ErrorKind, Fact, Model, NodeId, OpRef, infer_op};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// How much is taken away from an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Less {
    /// `3` becomes `2..4`.
    Intervals,
    /// `3` becomes `?`.
    Dims,
    Rank,
    /// The rank and the element type.
    Type,
}

/// Runs the check; a case that expects an error or is marked `static_only` has nothing to check.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    if matches!(case.expect, Expect::Error(_)) || case.options.static_only {
        return Ok(());
    }
    let target = match make_op(case).map_err(|e| e.to_string())? {
        Some(op) => Target::Op(op),
        None => Target::Model(build(case, InputsAs::Parameters).map_err(|e| e.to_string())?),
    };
    let real = real_outputs(case)?;
    let facts = target.facts(case)?;
    for less in [Less::Intervals, Less::Dims, Less::Rank, Less::Type] {
        let all: Vec<Fact> = facts.iter().map(|f| lessen(f, less)).collect();
        try_one(&target, &all, &real, less, "all inputs")?;
        for i in 0..facts.len() {
            let mut some = facts.clone();
            some[i] = lessen(&facts[i], less);
            try_one(&target, &some, &real, less, &format!("input {i}"))?;
        }
    }
    Ok(())
}

/// What is inferred again.
enum Target {
    Op(OpRef),
    Model(Model),
}

impl Target {
    /// All that is known of the inputs.
    fn facts(&self, case: &Case) -> Result<Vec<Fact>, String> {
        match self {
            Target::Op(_) => Ok(case
                .inputs
                .iter()
                .map(|i| match &i.value {
                    Some(t) => Fact::of(t),
                    None => Fact::new(i.ty, i.shape.clone()),
                })
                .collect()),
            Target::Model(model) if case.is_inference() => {
                Ok(model.parameters().iter().map(|&p| model.fact(p.into()).clone()).collect())
            }
            Target::Model(model) => Ok(feed(case, model).map_err(|e| e.to_string())?.iter().map(Fact::of).collect()),
        }
    }
    fn infer(&self, facts: &[Fact]) -> carafe_graph::Result<Vec<Fact>> {
        match self {
            Target::Op(op) => infer_op("op", NodeId(1000), &**op, &facts.iter().collect::<Vec<_>>(), false),
            Target::Model(model) => model.infer_with(facts),
        }
    }
}

fn real_outputs(case: &Case) -> Result<Vec<(ElementType, PartialShape)>, String> {
    if case.is_inference() {
        let Expect::Outputs(o) = &case.expect else { return Ok(vec![]) };
        return Ok(o.iter().map(|e| (e.ty, e.shape.clone())).collect());
    }
    let outputs = direct(case).map_err(|e| e.to_string())?;
    Ok(outputs.iter().map(|t| (t.element_type(), PartialShape::of(t.shape()))).collect())
}

fn lessen(fact: &Fact, less: Less) -> Fact {
    let shape = match less {
        Less::Intervals => match fact.shape.dims() {
            Some(dims) => PartialShape::new(
                dims.iter().map(|d| Dim::range((d.min() - 1).max(0), d.max().and_then(|m| m.checked_add(1)))),
            ),
            None => PartialShape::dynamic(),
        },
        Less::Dims => any_dims(&fact.shape),
        Less::Rank | Less::Type => PartialShape::dynamic(),
    };
    Fact::new(if less == Less::Type { ElementType::Dynamic } else { fact.ty }, shape)
}

fn try_one(
    target: &Target,
    facts: &[Fact],
    real: &[(ElementType, PartialShape)],
    less: Less,
    which: &str,
) -> Result<(), String> {
    let shown = || {
        let list: Vec<String> = facts.iter().map(|f| f.to_string()).collect();
        format!("with less known ({less:?}) of {which}: ({})", list.join(", "))
    };
    let inferred = caught(|| match target.infer(facts) {
        Ok(facts) => Ok(Some(facts)),
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(None),
        Err(e) => Err(e.to_string()),
    });
    let Some(found) = inferred.map_err(|e| format!("{}: {e}", shown()))? else { return Ok(()) };
    if found.len() != real.len() {
        return Err(format!("{}: inferred {} outputs, really {}", shown(), found.len(), real.len()));
    }
    for (i, (f, (ty, shape))) in found.iter().zip(real).enumerate() {
        if !(f.ty.is_dynamic() || ty.is_dynamic() || f.ty == *ty) || !f.shape.compatible(shape) {
            return Err(format!("{}: output {i} is inferred as {f}, really {ty}[{shape}]", shown()));
        }
    }
    Ok(())
}
