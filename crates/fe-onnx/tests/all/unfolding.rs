//! Small files that would grow without end: recursion, and expansion by powers.

use crate::common::{check_error, graph, read};

fn function(name: &str, body: &str) -> String {
    format!("< domain: \"d\", opset_import: [\"\" : 17, \"d\" : 1] > {name} (x) => (y) {{ {body} }}\n")
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let text = graph("g (float x) => (float y) { y = d.f (x) }") + &function("f", "y = d.f (x)");
    check_error(text, "functions call each other deeper than 64");
}

#[test]
fn functions_that_call_each_other_are_refused() {
    let functions = function("f", "y = d.h (x)") + &function("h", "y = d.f (x)");
    check_error(
        graph("g (float x) => (float y) { y = d.f (x) }") + &functions,
        "functions call each other deeper than 64",
    );
}

#[test]
fn a_function_that_calls_itself_from_a_branch_is_refused() {
    let branch = |name: &str| format!("{name} = b () => (float z) {{ z = d.f (x) }}");
    let body = format!("c = Cast <to = 9> (x) y = If (c) <{}, {}>", branch("then_branch"), branch("else_branch"));
    check_error(graph("g (float x) => (float y) { y = d.f (x) }") + &function("f", &body), "deeper than 64");
}

#[test]
fn functions_that_double_at_every_level_are_refused() {
    let mut text = graph("g (float x) => (float y) { y = d.f40 (x) }");
    for i in 1..=40 {
        text += &function(&format!("f{i}"), &format!("t = d.f{} (x) y = d.f{} (t)", i - 1, i - 1));
    }
    check_error(text + &function("f0", "y = Neg (x)"), "unfold the model to more than 1000 times its size");
}

#[test]
fn functions_in_functions_are_fine_while_they_end() {
    let mut text = graph("g (float x) => (float y) { y = d.f30 (x) }");
    for i in 1..=30 {
        text += &function(&format!("f{i}"), &format!("y = d.f{} (x)", i - 1));
    }
    assert!(read(text + &function("f0", "y = Neg (x)")).is_ok());
}

#[test]
fn a_function_that_reads_names_of_its_caller_is_refused() {
    let text = graph("g (float x) => (float y) { w = Neg (x) y = d.f (x) }") + &function("f", "y = Add (x, w)");
    check_error(text, "reads `w`, which nothing produces");
}

#[test]
fn a_function_that_lacks_its_output_is_refused() {
    let text = graph("g (float x) => (float y) { y = d.f (x) }") + &function("f", "z = Neg (x)");
    check_error(text, "function output `y` is not produced");
}
