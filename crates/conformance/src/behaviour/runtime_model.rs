//! The graph that really runs.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, row, run};
use super::{ensure, suite};
use carafe::{Constant, Model, Node, NodeId, Parameter, ResultOp};
use std::collections::{HashMap, HashSet};

suite!("runtime_model":
    node_names_are_unique,
    inputs_and_outputs_are_those_of_the_model,
    nodes_tell_their_order,
    nodes_tell_what_runs_them,
    it_can_be_written_as_ir,
    it_is_there_before_and_after_an_inference,
    it_is_a_copy,
);

fn graphs(b: &Bench) -> Outcome<Vec<Model>> {
    let mut all = Vec::new();
    for model in [b.chain("1,4", 3), b.pair(), b.weighted()?] {
        // A device without addition has the others.
        if b.skip_unsupported(&model).is_ok() {
            let graph = b.compile(&model)?.runtime_model();
            ensure!(!working(&graph).is_empty(), "nothing runs in the runtime model of `{}`", model.name);
            all.push(graph);
        }
    }
    match all.is_empty() {
        true => Err(Stop::Skipped("the device takes none of the models".into())),
        false => Ok(all),
    }
}

// Nodes that run; inputs, outputs and constants need tell nothing.
fn working(model: &Model) -> Vec<(NodeId, &Node)> {
    let still = |n: &Node| n.op().is::<Parameter>() || n.op().is::<Constant>() || n.op().is::<ResultOp>();
    model.nodes().filter(|(_, n)| !still(n)).collect()
}

fn text<'a>(node: &'a Node, key: &str) -> Outcome<&'a str> {
    let found = node.rt_info.get(key).and_then(|a| a.fields.iter().find(|(k, _)| k == "value"));
    match found {
        Some((_, v)) if !v.trim().is_empty() => Ok(v),
        _ => Err(Stop::Failed(format!("{} has no {key}", node.location()))),
    }
}

fn node_names_are_unique(b: &Bench) -> Outcome {
    for model in graphs(b)? {
        let mut seen = HashSet::new();
        for (_, node) in model.nodes() {
            ensure!(!node.name().is_empty(), "a node has no name");
            ensure!(seen.insert(node.name()), "two nodes are called `{}`", node.name());
        }
    }
    Ok(())
}

fn inputs_and_outputs_are_those_of_the_model(b: &Bench) -> Outcome {
    let compiled = b.compile(&b.pair())?;
    let model = compiled.runtime_model();
    let found = (model.parameters().len(), model.results().len());
    let expected = (compiled.inputs().len(), compiled.outputs().len());
    ensure!(found == expected, "{found:?} inputs and outputs, the compiled model has {expected:?}");
    Ok(())
}

fn nodes_tell_their_order(b: &Bench) -> Outcome {
    for model in graphs(b)? {
        let mut at: HashMap<NodeId, usize> = HashMap::new();
        for (id, node) in working(&model) {
            let order = text(node, "execOrder")?;
            let order =
                order.parse().map_err(|_| Stop::Failed(format!("{}: execOrder is `{order}`", node.location())))?;
            ensure!(!at.values().any(|o| *o == order), "two nodes have execOrder {order}");
            at.insert(id, order);
        }
        for (id, node) in working(&model) {
            for source in node.inputs() {
                let before = at.get(&source.node).is_none_or(|o| *o < at[&id]);
                ensure!(
                    before,
                    "{} runs before {}, which it reads",
                    node.location(),
                    model.node(source.node).location()
                );
            }
        }
    }
    Ok(())
}

fn nodes_tell_what_runs_them(b: &Bench) -> Outcome {
    for model in graphs(b)? {
        for (_, node) in working(&model) {
            text(node, "primitiveType")?;
        }
    }
    Ok(())
}

fn it_can_be_written_as_ir(b: &Bench) -> Outcome {
    for model in graphs(b)? {
        let (xml, _) = carafe::ir::write_to(&model, &Default::default())?;
        ensure!(xml.contains("<net"), "the text is no IR");
    }
    Ok(())
}

fn it_is_there_before_and_after_an_inference(b: &Bench) -> Outcome {
    let compiled = b.compile(&b.plain())?;
    let before = compiled.runtime_model().len();
    run(&mut *compiled.clone().create_request(), &[row(4, 1)], 1)?;
    let after = compiled.runtime_model().len();
    ensure!(before > 0 && before == after, "{before} nodes before an inference, {after} after");
    Ok(())
}

fn it_is_a_copy(b: &Bench) -> Outcome {
    let model = b.plain();
    let compiled = b.compile(&model)?;
    let mut copy = compiled.runtime_model();
    let ids: Vec<NodeId> = copy.nodes().map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| copy.set_name(id, format!("{}", id.0)));
    let fresh = compiled.runtime_model();
    ensure!(fresh.nodes().all(|(_, n)| n.name().parse::<u32>().is_err()), "a change of the copy changed the model");
    Ok(())
}
