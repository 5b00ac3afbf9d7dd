//! What the device says it can run, and whether it keeps its word.

use super::bench::{Bench, Outcome, Stop, refused};
use super::{ensure, suite};
use carafe::{Model, Query};
use std::collections::BTreeMap;

suite!("query":
    every_node_is_answered_once,
    a_query_of_anything_gives_an_answer,
    a_query_twice_gives_the_same,
    what_is_supported_compiles,
    an_unknown_node_is_named_with_a_reason,
    an_unknown_node_does_not_compile,
    a_query_does_not_change_the_model,
    the_answer_does_not_depend_on_affinity,
    the_device_takes_at_least_one_operation,
);

fn models(b: &Bench) -> Outcome<Vec<Model>> {
    let through = Bench::through(carafe::ElementType::F32, "1,4")?;
    Ok(vec![b.plain(), b.pair(), b.weighted()?, b.chain("1,?", 2), b.chain("...", 1), through, Bench::constant()?])
}

fn ask(b: &Bench, model: &Model) -> Outcome<Query> {
    Ok(b.core.query_model(model, b.device(), b.properties())?)
}

fn every_node_is_answered_once(b: &Bench) -> Outcome {
    let mut all = models(b)?;
    all.push(b.unknown()?);
    for model in all {
        let query = ask(b, &model)?;
        let mut count: BTreeMap<&str, usize> = model.nodes().map(|(_, n)| (n.name(), 0)).collect();
        for name in query.supported.iter().chain(query.unsupported.iter().map(|u| &u.name)) {
            let Some(n) = count.get_mut(name.as_str()) else {
                return Err(Stop::Failed(format!("model `{}` has no node `{name}`, and it is answered", model.name)));
            };
            *n += 1;
        }
        let wrong = count.iter().find(|(_, n)| **n != 1);
        let (name, n) = wrong.map_or(("", 1), |(name, n)| (*name, *n));
        ensure!(wrong.is_none(), "model `{}`: node `{name}` is answered {n} times", model.name);
    }
    Ok(())
}

fn a_query_of_anything_gives_an_answer(b: &Bench) -> Outcome {
    let mut all = models(b)?;
    all.push(b.unknown()?);
    all.push(super::state::counter(true)?);
    for model in all {
        ask(b, &model).map_err(|e| Stop::Failed(format!("model `{}`: {e:?}", model.name)))?;
    }
    Ok(())
}

fn a_query_twice_gives_the_same(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let (mut one, mut two) = (ask(b, &model)?, ask(b, &model)?);
    one.supported.sort_unstable();
    two.supported.sort_unstable();
    ensure!(one.supported == two.supported, "first {:?}, then {:?}", one.supported, two.supported);
    Ok(())
}

fn what_is_supported_compiles(b: &Bench) -> Outcome {
    let mut all = models(b)?;
    all.push(super::state::counter(true)?);
    for model in all {
        if ask(b, &model)?.unsupported.is_empty() {
            b.compile(&model).map_err(|e| Stop::Failed(format!("model `{}`: {e:?}", model.name)))?;
        }
    }
    Ok(())
}

fn an_unknown_node_is_named_with_a_reason(b: &Bench) -> Outcome {
    let query = ask(b, &b.unknown()?)?;
    let Some(found) = query.unsupported.iter().find(|u| u.name == "mystery") else {
        return Err(Stop::Failed("a node of an unknown type is not among the unsupported ones".into()));
    };
    ensure!(found.type_name == "NobodyKnowsThis", "its type is told as `{}`", found.type_name);
    ensure!(!found.reason.trim().is_empty(), "there is no reason");
    Ok(())
}

fn an_unknown_node_does_not_compile(b: &Bench) -> Outcome {
    let result = b.core.compile_model(&b.unknown()?, b.device(), b.properties());
    let e = refused(result, "a model with a node of an unknown type")?.to_string();
    ensure!(e.contains("mystery") || e.contains("NobodyKnowsThis"), "the error does not name the node: {e}");
    Ok(())
}

fn a_query_does_not_change_the_model(b: &Bench) -> Outcome {
    for model in models(b)? {
        let before = model.clone();
        ask(b, &model)?;
        ensure!(model.same_as(&before), "model `{}` is another after the query", model.name);
    }
    Ok(())
}

fn the_answer_does_not_depend_on_affinity(b: &Bench) -> Outcome {
    b.skip_composite()?;
    let plain = b.weighted()?;
    let mut wishing = plain.clone();
    let ids: Vec<_> = wishing.nodes().map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| carafe::multi::set_affinity(&mut wishing, id, "ANOTHER"));
    let (one, two) = (ask(b, &plain)?, ask(b, &wishing)?);
    ensure!(one == two, "without wishes {one:?}, with wishes {two:?}");
    Ok(())
}

fn the_device_takes_at_least_one_operation(b: &Bench) -> Outcome {
    let (plain, weighted) = (ask(b, &b.plain())?, ask(b, &b.weighted()?)?);
    ensure!(
        plain.unsupported.is_empty() || weighted.supported.iter().any(|n| n == "sum"),
        "neither a plain activation nor an addition: {:?} {:?}",
        plain.unsupported,
        weighted.unsupported
    );
    Ok(())
}
