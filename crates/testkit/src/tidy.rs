//! Runs a case through the tidying passes of a conversion. Passes look at constants, so a case is tidied with all inputs as
//! parameters, with each input alone as a parameter, and once more with the sizes of the parameters made unknown, where
//! the passes must not believe in the sizes that the case happens to have.

use crate::case::{Case, Expect};
use crate::runner::{InputsAs, any_dims, build, check_outputs, feed, is_unfoldable};
use carafe_graph::{ErrorKind, Model, Notes, Result, run_passes};
use carafe_passes::TIDY;
use std::collections::HashMap;

/// Runs the check.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    let Ok(plain) = build(case, InputsAs::Parameters) else { return Ok(()) };
    let n = plain.parameters().len();
    if matches!(case.expect, Expect::Error(_)) {
        // Whatever is wrong must come out as an error, not as a panic.
        drop(tidied(case, &plain, &[]));
        return Ok(());
    }
    let all: Vec<usize> = (0..n).collect();
    let alone = (0..n).map(|i| all.iter().copied().filter(|&other| other != i).collect::<Vec<_>>());
    // A random generator is told apart by where it stands, so its model is left as it is.
    let fixed: Vec<Vec<usize>> =
        if is_unfoldable(&plain) { vec![vec![]] } else { std::iter::once(vec![]).chain(alone).collect() };
    for fixed in fixed {
        let shown = |text: &str, e: String| format!("{text}, inputs {fixed:?} constant: {e}");
        check_outputs(case, tidied(case, &plain, &fixed)).map_err(|e| shown("tidied", e))?;
        if case.options.static_only {
            continue;
        }
        let mut open = plain.clone();
        match unknown_sizes(&mut open, &fixed) {
            Ok(()) => check_outputs(case, tidied(case, &open, &fixed)).map_err(|e| shown("sizes unknown", e))?,
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            Err(e) => return Err(shown("sizes unknown", e.to_string())),
        }
    }
    Ok(())
}

// Parameters without sizes, those left out that become constants anyway.
fn unknown_sizes(model: &mut Model, fixed: &[usize]) -> Result<()> {
    let shapes: HashMap<usize, _> = (0..model.parameters().len())
        .filter(|i| !fixed.contains(i))
        .map(|i| (i, any_dims(&model.fact(model.parameters()[i].into()).shape)))
        .collect();
    model.reshape(&shapes)
}

fn tidied(case: &Case, plain: &Model, fixed: &[usize]) -> Result<Vec<carafe_tensor::Tensor>> {
    let mut model = plain.clone();
    let values = feed(case, &model)?;
    let parameters = model.parameters().to_vec();
    let mut fed = Vec::new();
    for (i, (id, value)) in parameters.into_iter().zip(values).enumerate() {
        if !fixed.contains(&i) {
            fed.push(value);
            continue;
        }
        let name = format!("{}/value", model.node(id).name());
        let constant = model.constant(&name, value)?;
        model.replace_value(id.into(), constant);
        model.remove(id)?;
    }
    model.infer()?;
    let names =
        |m: &Model| m.results().iter().map(|&r| (m.node(r).name().to_string(), m.result_names(r))).collect::<Vec<_>>();
    let before = names(&model);
    run_passes(&mut model, TIDY, &mut Notes::enabled())?;
    let after = names(&model);
    let lost = before.iter().zip(&after).find(|((b, bt), (a, at))| b != a || !bt.is_subset(at));
    if let Some((b, a)) = lost {
        return Err(carafe_graph::Error::invalid(format!("output {b:?} became {a:?}")));
    }
    // The facts that are left must hold for the model as it is now.
    model.infer()?;
    model.evaluate(&fed)
}
