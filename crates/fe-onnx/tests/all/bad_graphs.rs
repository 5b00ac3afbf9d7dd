//! Graphs that are well written and mean nothing: each is refused with the node it is about.

use crate::common::{check_error, error, graph, proto, read, read_as, request};
use carafe_frontend::{NodeCx, Outputs, ReadRequest, Rule};

#[test]
fn a_good_model_is_read() {
    let model = read(graph("g (float[2] x) => (float[2] y) { y = Relu (x) }")).unwrap();
    assert_eq!(model.parameters().len(), 1);
}

#[test]
fn a_file_without_a_graph_is_refused() {
    check_error("ir_version: 8", "has no graph");
}

#[test]
fn an_input_that_nothing_produces_is_named_with_its_node() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [n] y = Add (x, w) }"));
    assert!(found.contains("node `n` (Add, opset 17)"), "{found}");
    assert!(found.contains("input 1 reads `w`, which nothing produces"), "{found}");
}

#[test]
fn an_output_that_nothing_produces_is_named() {
    check_error(graph("g (float[2] x) => (float[2] z) { y = Relu (x) }"), "output `z` is produced by nothing");
}

#[test]
fn a_cycle_is_named_with_its_nodes() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [p] y = Add (x, z) [q] z = Relu (y) }"));
    assert!(found.contains("cycle through `p`, `q`"), "{found}");
}

#[test]
fn a_node_that_reads_itself_is_a_cycle() {
    check_error(graph("g (float[2] x) => (float[2] y) { [p] y = Add (x, y) }"), "cycle through `p`");
}

#[test]
fn a_value_made_by_two_nodes_is_refused() {
    check_error(graph("g (float[2] x) => (float[2] y) { y = Relu (x) y = Neg (x) }"), "`y` is produced twice");
}

#[test]
fn a_node_that_makes_an_initializer_again_is_refused() {
    let text = graph("g (float[2] x) => (float[2] y) < float[2] y = {1, 2} > { y = Relu (x) }");
    check_error(text, "`y` is produced twice");
}

#[test]
fn two_inputs_of_one_name_are_refused() {
    check_error(graph("g (float[2] x, float[2] x) => (float[2] y) { y = Relu (x) }"), "two inputs are named `x`");
}

#[test]
fn two_initializers_of_one_name_are_refused() {
    let text = graph("g (float[2] x) => (float[2] y) < float[2] w = {1, 2}, float w = {3} > { y = Add (x, w) }");
    check_error(text, "two initializers are named `w`");
}

#[test]
fn a_missing_input_is_named_with_its_node() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [n] y = Add (x) }"));
    assert!(found.contains("node `n` (Add, opset 17)") && found.contains("input 1 is required and missing"), "{found}");
}

#[test]
fn more_outputs_than_the_operation_has_are_refused() {
    check_error(graph("g (float[2] x) => (float[2] y) { [n] y, z = Relu (x) }"), "gives 1 outputs, the model reads 2");
}

#[test]
fn unknown_operations_are_told_all_at_once() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [a] t = Wobble (x) [b] y = d.Wibble (t) }"));
    assert!(found.contains("2 nodes of 2 operations cannot be translated"), "{found}");
    assert!(found.contains("`Wobble`") && found.contains("`Wibble` of domain `d`"), "{found}");
    assert!(found.contains("no rule and no operation") && found.contains("--extension"), "{found}");
}

#[test]
fn the_half_that_is_there_is_told() {
    let mut registry = carafe_graph::Registry::new();
    registry.add_all(carafe_ops::factories());
    let rule = |n: &mut NodeCx<'_>| n.input(0).map(Outputs::from);
    let user = [Rule::new("Wobble", rule).framework("tf"), Rule::new("Wibble", rule).domain("acme")];
    let request = ReadRequest { registry: Some(&registry), rules: &user, ..request() };
    let read = |op: &str| {
        let text = graph(&format!("g (float[2] x) => (float[2] y) {{ y = {op} (x) }}"));
        read_as(text, &request).unwrap_err().to_string()
    };
    let check = |op: &str, wanted: &str| assert!(read(op).contains(wanted), "{}", read(op));
    check("d.HSwish", "the operation `opset4::HSwish` is there, only the rule is missing");
    check("d.HSwish", "`Mapping::new(\"opset4::HSwish\").framework(\"onnx\").domain(\"d\")` would be one");
    check("d.Relu", "there is one for the default domain");
    check("Wibble", "there is one for domain `acme`");
    check("Wobble", "there is one for the format tf");
    check("SoftSwish", "did you mean SoftSign?");
}

#[test]
fn a_model_from_the_future_is_told_when_it_cannot_be_read() {
    let text = "<ir_version: 8, opset_import: [\"\" : 99]> g (float[2] x) => (float[2] y) { y = Wobble (x) }";
    check_error(text, "the model was written for opset 99, the newest known here is");
}

#[test]
fn an_attribute_of_the_wrong_kind_is_named_with_its_node() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [n] y = LeakyRelu <alpha = \"much\"> (x) }"));
    assert!(found.contains("node `n` (LeakyRelu, opset 17)") && found.contains("`alpha`"), "{found}");
}

#[test]
fn an_attribute_nobody_knows_is_refused() {
    let found = error(graph("g (float[2] x) => (float[2] y) { [n] y = Relu <slope = 2> (x) }"));
    assert!(found.contains("node `n`") && found.contains("`slope` = 2"), "{found}");
}

#[test]
fn an_attribute_that_says_tensor_and_has_none_is_refused() {
    let node = "node { name: 'n' op_type: 'Constant' output: 'y' attribute { name: 'value' type: TENSOR } } output { name: 'y' }";
    let found = error(proto(node));
    assert!(found.contains("node `n`") && found.contains("attribute `value`: a tensor attribute is empty"), "{found}");
}

#[test]
fn an_attribute_of_an_unknown_kind_is_refused() {
    let node = "node { name: 'n' op_type: 'Relu' input: 'x' output: 'y' attribute { name: 'a' type: 77 } } input { name: 'x' }";
    check_error(proto(node), "attributes of kind 77 are not supported");
}

#[test]
fn an_input_of_an_unknown_element_type_is_refused() {
    let input = "input { name: 'x' type { tensor_type { elem_type: 99 } } }";
    check_error(proto(input), "input `x`: 99 is not an element type of ONNX");
}

#[test]
fn a_missing_sub_graph_is_refused() {
    let found = error(graph("g (bool c) => (float y) { [n] y = If (c) }"));
    assert!(found.contains("node `n`") && found.contains("`then_branch` is required and missing"), "{found}");
}

#[test]
fn a_sub_graph_that_reads_what_nobody_has_is_refused() {
    let branch = |name: &str| format!("{name} = b () => (float z) {{ [inner] z = Neg (nothing) }}");
    let text =
        format!("g (bool c) => (float y) {{ [n] y = If (c) <{}, {}> }}", branch("then_branch"), branch("else_branch"));
    let found = error(graph(&text));
    assert!(found.contains("node `n` (If, opset 17)") && found.contains("node `inner` (Neg, opset 17)"), "{found}");
}

#[test]
fn scales_and_zero_points_that_are_too_few_are_counted() {
    let model = |rest: &str| graph(&format!("g (int8[4,3] w) => (float[4,3] y) {rest}"));
    let scales = "<float[2] s = {1, 2}> { [d] y = DequantizeLinear <axis = 1> (w, s) }";
    check_error(model(scales), "the scale has 2 numbers, but axis 1 of the data has 3 elements");
    let zeros = "<float[3] s = {1, 2, 3}, int8[2] z = {0, 0}> { [d] y = DequantizeLinear <axis = 1> (w, s, z) }";
    check_error(model(zeros), "2 zero points for 3 scales");
    let conv = |scales: &str, zeros: &str| {
        let stored = format!("<float s = {{1}}, uint8 z = {{0}}, {scales}, {zeros}>");
        let node = "{ [c] y = QLinearConv (x, s, z, w, ws, wz, s, z) }";
        graph(&format!("g (uint8[1,1,2,2] x, int8[3,1,1,1] w) => (uint8[1,3,2,2] y) {stored} {node}"))
    };
    let (scales, zeros) = ("float[3] ws = {1, 2, 3}", "int8[3] wz = {0, 0, 0}");
    assert!(read(conv(scales, zeros)).is_ok());
    check_error(conv("float[2] ws = {1, 2}", zeros), "2 scales of the weights for 3 filters");
    check_error(conv(scales, "int8[2] wz = {0, 0}"), "2 zero points of the weights for 3 filters");
}
