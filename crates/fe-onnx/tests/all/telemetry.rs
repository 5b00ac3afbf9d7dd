//! Events while a model is read.

use crate::common::{graph, read_as, request};
use carafe_frontend::ReadRequest;
use std::cell::RefCell;

fn events(text: &str) -> Vec<String> {
    let heard = RefCell::new(vec![]);
    let hear = |kind: &str, category: &str, action: &str, label: &str, value: i64| {
        heard.borrow_mut().push(format!("{kind} {category} {action} {label} {value}"));
    };
    let _ = read_as(graph(text), &ReadRequest { telemetry: Some(&hear), ..request() });
    heard.into_inner()
}

#[test]
fn operations_are_counted_those_of_sub_graphs_too() {
    let text = "g (bool c, float[2] x) => (float[2] y) { t = Relu (x) y = If (c) <
        then_branch = b () => (float[2] z) { z = Relu (t) }, else_branch = b () => (float[2] z) { z = Abs (t) }> }";
    assert_eq!(
        events(text),
        ["event carafe op_count onnx_Abs 1", "event carafe op_count onnx_If 1", "event carafe op_count onnx_Relu 2"]
    );
}

#[test]
fn a_failure_names_its_cause_and_nothing_of_the_user() {
    let found = events("g (float[2] x) => (float[2] y) { [secret] y = d.Wobble (x) }");
    assert_eq!(found[..2], ["event carafe op_count onnx_d.Wobble 1", "event carafe error_cause onnx_d.Wobble 1"]);
    assert!(found[2].starts_with("event carafe error_info ") && !found[2].contains("secret"), "{found:?}");
    assert_eq!(found.len(), 3);
}
