//! Models with operations that nobody knows, looked at all the same.

use crate::common::{graph, read_as, request};
use carafe_frontend::{Progress, ReadRequest};
use carafe_graph::Model;
use std::cell::RefCell;

fn keep(text: &str) -> Result<Model, String> {
    read_as(graph(text), &ReadRequest { keep_unknown: true, ..request() }).map_err(|e| e.to_string())
}

fn types(model: &Model) -> Vec<String> {
    let mut types: Vec<String> = model.nodes().map(|(_, n)| n.op().type_name().to_string()).collect();
    types.sort();
    types
}

#[test]
fn an_operation_without_a_rule_becomes_an_opaque_node() {
    let model =
        keep("g (float[2] x) => (float[2] y) { t = Relu (x) [n] u = d.Wobble <a = 3> (t) y = Neg (u) }").unwrap();
    assert_eq!(types(&model), ["Negative", "Parameter", "ReLU", "Result", "Wobble"]);
    let (_, node) = model.nodes().find(|(_, n)| n.name() == "n").unwrap();
    assert_eq!(node.op().opset(), "d");
    assert_eq!(node.op().attrs()[0].0, "a");
}

#[test]
fn declared_types_are_those_of_its_outputs() {
    let model = keep("g (float[2] x) => (float[2] y) < int64[7] t > { t = Wobble (x) y = Wobble (t) }").unwrap();
    let shown: Vec<String> =
        model.results().iter().map(|r| model.fact(model.result_value(*r)).shape.to_string()).collect();
    assert_eq!(shown, ["2"]);
}

#[test]
fn a_node_that_needs_a_shape_behind_an_unknown_one_is_kept_too() {
    let model = keep("g (float[2] x) => (float y) { t = Wobble (x) y = Flatten (t) }");
    assert!(model.is_ok(), "{model:?}");
}

#[test]
fn an_unknown_operation_in_a_branch_is_kept() {
    let branch = |name: &str| format!("{name} = b () => (float[2] z) {{ z = Wobble (x) }}");
    let text = format!(
        "g (bool c, float[2] x) => (float[2] y) {{ y = If (c) <{}, {}> }}",
        branch("then_branch"),
        branch("else_branch")
    );
    let model = keep(&text).unwrap();
    let (_, node) = model.nodes().find(|(_, n)| n.op().type_name() == "If").unwrap();
    assert!(node.op().bodies().iter().all(|(_, b)| types(&b.model).contains(&"Wobble".to_string())));
}

#[test]
fn what_is_wrong_in_a_known_model_stays_an_error() {
    let found = keep("g (float[2] x) => (float[2] y) { [n] y = Add (x, w) }").unwrap_err();
    assert!(found.contains("`w`, which nothing produces"), "{found}");
}

#[test]
fn an_unknown_node_that_reads_nothing_known_is_refused() {
    let found = keep("g (float[2] x) => (float[2] y) { [n] y = Wobble (w) }").unwrap_err();
    assert!(found.contains("node `n` (Wobble, opset 17)") && found.contains("reads `w`"), "{found}");
}

#[test]
fn progress_counts_the_nodes_of_the_outermost_graph() {
    let told = RefCell::new(vec![]);
    let listener = |done: usize, total: usize, what: &str| told.borrow_mut().push(format!("{done}/{total} {what}"));
    let request = ReadRequest { progress: Progress::to(&listener), ..request() };
    let text = graph("g (float[2] x) => (float[2] y) { t = Relu (x) y = Neg (t) }");
    read_as(text, &request).unwrap();
    assert_eq!(*told.borrow(), ["0/2 nodes translated", "1/2 nodes translated"]);
}

#[test]
fn what_lies_behind_the_wanted_values_is_not_translated() {
    let text = graph(
        "g (float[2] x, float[2] z, bool c) => (float[2] y) { t = Relu (x) s = Neg (x) u = d.Wobble (t, z)
         [choose] v = If (c) <then_branch = b () => (float[2] p) { p = Abs (s) }, else_branch = b () => (float[2] p) { p = Neg (s) }>
         y = Add (u, v) }",
    );
    let results = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|s| s.to_string()).collect();
        let model = read_as(&text, &ReadRequest { wanted: &wanted, ..request() }).map_err(|e| e.to_string())?;
        Ok::<_, String>(model.results().iter().map(|r| model.result_name(*r)).collect::<Vec<_>>())
    };
    assert_eq!(results(&["t"]).unwrap(), ["t"]);
    // A sub-graph needs what it reads of the graph around it.
    assert_eq!(results(&["choose", "t"]).unwrap(), ["t", "v"]);
    // What is not there may mean something in the translated model, so nothing is left out.
    assert!(results(&["t", "elsewhere"]).unwrap_err().contains("Wobble"));
}
