//! HETERO over random graphs, random wishes and random refusals: the split is complete, its order can run, and the
//! results are those of the whole model.

use crate::common::*;
use carafe::multi::{HeteroDevice, set_affinity};
use carafe::{Model, NodeId, Properties, Value};
use carafe_testkit::FakeDevice;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const DEVICES: [&str; 3] = ["A", "B", "C"];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n as u64) as usize
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const UNARY: [&str; 4] = ["Relu", "Exp", "Negative", "Tanh"];
const BINARY: [&str; 3] = ["Add", "Subtract", "Maximum"];

// Values are all f32[2,4]; some nodes split and join, some read variables, some are computed of constants alone.
fn graph(r: &mut Random, stateful: bool) -> Model {
    let mut m = Model::new("random");
    let mut values: Vec<Value> = (0..1 + r.below(2)).map(|i| parameter(&mut m, &format!("x{i}"), "2,4")).collect();
    let mut writes = Vec::new();
    for i in 0..4 + r.below(28) {
        let (a, b) = (r.pick(&values), r.pick(&values));
        let name = format!("n{i}");
        match r.below(if stateful { 12 } else { 11 }) {
            0..=3 => values.push(op(&mut m, r.pick(&UNARY), &name, &[a])),
            4..=7 => values.push(op(&mut m, r.pick(&BINARY), &name, &[a, b])),
            8 => {
                let k = m.constant(&format!("k{i}"), floats(&[2, 4], &[0.25; 8])).unwrap();
                values.push(k);
            }
            9 => {
                let axis = m.constant(&format!("axis{i}"), carafe::Tensor::scalar(1i64)).unwrap();
                let parts = add(&mut m, "Split", &name, &[("num_splits", "2")], &[a, axis]);
                let part = |port| Value { node: parts, port };
                let joined = add(&mut m, "Concat", &format!("{name}j"), &[("axis", "1")], &[part(1), part(0)]);
                values.push(joined.into());
            }
            10 => {
                let s = op(&mut m, "ShapeOf", &format!("{name}s"), &[a]);
                values.push(add(&mut m, "Reshape", &name, &[("special_zero", "false")], &[b, s]).into());
            }
            _ => {
                let id = format!("v{}", writes.len());
                let init = m.constant(&format!("init{i}"), floats(&[2, 4], &[0.125; 8])).unwrap();
                let attrs = [("variable_id", id.as_str()), ("variable_type", "f32"), ("variable_shape", "2,4")];
                values.push(add(&mut m, "ReadValue", &name, &attrs, &[init]).into());
                writes.push(id);
            }
        }
    }
    for (i, id) in writes.iter().enumerate() {
        let v = r.pick(&values);
        add(&mut m, "Assign", &format!("w{i}"), &[("variable_id", id.as_str())], &[v]);
    }
    for i in 0..1 + r.below(3) {
        let v = r.pick(&values);
        m.result(&format!("y{i}"), v).unwrap();
    }
    m.result("last", *values.last().unwrap()).unwrap();
    m
}

fn case(seed: u64, stateful: bool) {
    let r = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut model = graph(r, stateful);
    let all: Vec<&str> = UNARY.into_iter().chain(BINARY).chain(["Split", "Concat", "Reshape", "ShapeOf"]).collect();
    // The last device takes everything, so that a placement exists.
    let refused = |r: &mut Random| -> Vec<&str> { all.iter().copied().filter(|_| r.below(3) == 0).collect() };
    let (a, b) = (refused(r), refused(r));
    let core =
        core_with(&[&FakeDevice::new("A").refusing(&a), &FakeDevice::new("B").refusing(&b), &FakeDevice::new("C")]);
    // Wishes only where the device really takes the node, for a wish is an order.
    let ids: Vec<NodeId> = model.nodes().map(|(id, _)| id).collect();
    if !stateful {
        for id in ids {
            let t = model.node(id).op().type_name().to_string();
            let d = r.below(3);
            let takes = [&a, &b].get(d).is_none_or(|list| !list.iter().any(|l| l.eq_ignore_ascii_case(&t)));
            if r.below(3) == 0 && takes {
                set_affinity(&mut model, id, DEVICES[d]);
            }
        }
    }
    let list = Properties::new().with("MULTI_DEVICE_PRIORITIES", "A,B,C");
    let report = HeteroDevice::new(Arc::new(core.downgrade())).explain(&model, &list).unwrap();
    assert!(report.refused.is_empty(), "seed {seed}");
    check_complete(&model, &report, seed);
    check_order(&report, seed);
    let split = core.compile_model(&model, "HETERO:A,B,C", &Properties::new());
    let split = split.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{report}")).create_infer_request();
    let whole = core.compile_model(&model, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();

    for run in 0..3 {
        for i in 0..model.parameters().len() {
            let x: Vec<f32> = (0..8).map(|k| ((k * 7 + run * 3 + i) % 11) as f32 * 0.25 - 1.0).collect();
            split.set_input(i, floats(&[2, 4], &x)).unwrap();
            whole.set_input(i, floats(&[2, 4], &x)).unwrap();
        }
        split.infer(()).unwrap();
        whole.infer(()).unwrap();
        for i in 0..model.results().len() {
            let (s, w) = (split.output(i).unwrap(), whole.output(i).unwrap());
            assert!(s.content_eq(&w), "seed {seed}, run {run}, output {i}: {s:?} instead of {w:?}\n{report}");
        }
    }
}

// Every node that is needed runs somewhere or is known; what depends on inputs runs once.
fn check_complete(model: &Model, report: &carafe::multi::Report, seed: u64) {
    let mut needed = model.clone();
    needed.prune();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for (n, _) in report.sub_models.iter().flat_map(|s| &s.nodes) {
        *times.entry(n).or_default() += 1;
    }
    let folded: HashSet<&str> = report.folded.iter().map(String::as_str).collect();
    for (id, node) in needed.nodes() {
        let t = node.op().type_name();
        if ["Parameter", "Const", "Result"].contains(&t) {
            continue;
        }
        let n = times.get(node.name()).copied().unwrap_or(0);
        let known = model.fact(id.into()).tensor().is_some();
        assert!(
            n == 1 || folded.contains(node.name()) || known,
            "seed {seed}: `{}` runs {n} times\n{report}",
            node.name()
        );
    }
}

// A piece reads inputs of the model and outputs of earlier pieces only.
fn check_order(report: &carafe::multi::Report, seed: u64) {
    let mut there: HashSet<String> = (0..2).map(|i| format!("x{i}")).collect();
    for (i, s) in report.sub_models.iter().enumerate() {
        for input in &s.inputs {
            let node = input.split('.').next().unwrap_or(input);
            assert!(there.contains(node), "seed {seed}: piece {i} reads `{input}` too early\n{report}");
        }
        there.extend(s.nodes.iter().map(|(n, _)| n.clone()));
    }
}

#[test]
fn random_graphs_split_into_an_order_that_gives_the_same_results() {
    (0..300).for_each(|seed| case(seed, false));
}

#[test]
fn random_graphs_with_variables_do_too() {
    (0..300).for_each(|seed| case(seed, true));
}
