//! Two nodes with the same operation, attributes and inputs become one: `f(x), f(x)` becomes `f(x)` read twice. Random and
//! stateful operations stay, and so does the second of two nodes that are both outputs of the model, for each has a name.

use crate::shared::{feeds_result, forward};
use carafe_graph::{Constant, Model, Node, NodeId, Notes, Outcome, Pass, Result, ResultOp, RtInfo, Value, in_bodies};
use std::collections::HashMap;

/// Nodes that compute the same become one.
#[derive(Clone, Copy, Debug)]
pub struct MergeIdenticalNodes;

impl Pass for MergeIdenticalNodes {
    fn name(&self) -> &'static str {
        "merge_identical_nodes"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let in_bodies = in_bodies(model, &mut |body| self.run(body, notes))?;
        let mut merged = 0;
        let mut seen: HashMap<(&'static str, Vec<Value>), Vec<NodeId>> = HashMap::new();
        for id in model.topological_order()? {
            let node = model.node(id);
            if !may_merge(node) {
                continue;
            }
            let known = seen.entry((node.op().info().name, node.inputs().to_vec())).or_default();
            let Some(&first) = known.iter().find(|&&other| same(model.node(other), node)) else {
                known.push(id);
                continue;
            };
            let location = node.location();
            let outputs = node.outputs().len();
            let value = |node, port| Value { node, port };
            let clash = |port| feeds_result(model, value(id, port)) && feeds_result(model, value(first, port));
            let outcome = if (0..outputs).any(clash) {
                Outcome::skip("both are outputs of the model")
            } else {
                // Single outputs may hand over a name and be refused; the ports of several are independent.
                let all: Vec<Outcome> = (0..outputs).map(|p| forward(model, value(id, p), value(first, p))).collect();
                all.into_iter().find(|o| *o != Outcome::Done).unwrap_or(Outcome::Done)
            };
            match outcome {
                Outcome::Done => {
                    merged += 1;
                    notes.add(|| format!("{}: fired at {location}", self.name()));
                }
                Outcome::Skip(why) => notes.add(|| format!("{}: {location} stays: {why}", self.name())),
                Outcome::NoMatch => {}
            }
        }
        if merged > 0 {
            model.prune();
        }
        Ok(merged + in_bodies)
    }
}

fn may_merge(node: &Node) -> bool {
    let info = node.op().info();
    // Constants have a pass of their own, and of an unknown operation nothing is known.
    !(node.inputs().is_empty()
        || node.outputs().is_empty()
        || info.random
        || info.stateful
        || info.sink
        || info.since == 0
        || node.op().is::<ResultOp>()
        || node.op().has_body()
        || node.op().is::<Constant>())
}

fn same(a: &Node, b: &Node) -> bool {
    // Where a node came from does not tell it apart.
    let told = |info: &RtInfo| {
        let mut info = info.clone();
        info.remove("fused_names");
        info
    };
    a.op().eq_op(b.op())
        && a.op().opset() == b.op().opset()
        && a.outputs().len() == b.outputs().len()
        && told(&a.rt_info) == told(&b.rt_info)
        && a.outputs().iter().zip(b.outputs()).all(|(x, y)| x.rt_info == y.rt_info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_graph::{AttrMap, OpNew};
    use carafe_ops::arithmetic::Add;
    use carafe_ops::math::{Abs, Tanh};
    use carafe_ops::random::RandomUniform;
    use carafe_tensor::ElementType;

    #[test]
    fn chains_that_are_equal_become_one() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let mut ends = Vec::new();
        for _ in 0..2 {
            let a = d.add("a", Abs, &[x]);
            ends.push(d.add("t", Tanh, &[a]));
        }
        let s = d.add("s", Add::default(), &ends);
        d.result(s);
        assert_eq!((d.run(&MergeIdenticalNodes).0, d.count("Abs"), d.count("Tanh")), (2, 1, 1));
    }

    #[test]
    fn outputs_keep_their_names() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let (a, b) = (d.add("a", Abs, &[x]), d.add("b", Abs, &[x]));
        let t = d.add("t", Tanh, &[a]);
        d.result(t);
        let r = d.result(b);
        assert_eq!(d.run(&MergeIdenticalNodes).0, 1);
        assert_eq!(d.model.result_name(r), "b");

        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let (a, b) = (d.add("a", Abs, &[x]), d.add("b", Abs, &[x]));
        d.result(a);
        d.result(b);
        let (fired, why) = d.run(&MergeIdenticalNodes);
        assert!(fired == 0 && why[0].contains("both are outputs"), "{why:?}");
    }

    #[test]
    fn random_numbers_stay_apart() {
        let mut d = Draft::new();
        let shape = d.ints(&[2]);
        let (low, high) = (d.floats(&[], 0.0), d.floats(&[], 1.0));
        let attrs: AttrMap =
            [("output_type".to_string(), carafe_graph::AttrValue::Text("f32".into()))].into_iter().collect();
        let random = RandomUniform::from_attrs(&attrs).unwrap();
        let a = d.add("a", random.clone(), &[shape, low, high]);
        let b = d.add("b", random, &[shape, low, high]);
        let s = d.add("s", Add::default(), &[a, b]);
        d.result(s);
        assert_eq!(d.run(&MergeIdenticalNodes).0, 0);
        assert_eq!(d.model.fact(s).ty, ElementType::F32);
    }
}
