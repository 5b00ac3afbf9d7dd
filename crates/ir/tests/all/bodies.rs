//! Sub-graphs: how files connect them, and what is refused.

use crate::common::*;
use carafe_graph::{Body, BodyInput, BodyOutput, Model, NodeId, Slicing};
use carafe_tensor::{ElementType, PartialShape};

/// A body that hands its parameter (id 30) through to its result (id 10), beside an unused parameter (id 20).
fn body() -> String {
    let layers =
        parameter(20, "counter") + &parameter(30, "p") + &layer(5, "r", "ReLU", "", 1, &[""]) + &result(10, "q");
    format!("<layers>{layers}</layers>{}", edges_xml(&[[30, 0, 5, 0], [5, 1, 10, 0]]))
}

fn repeat(map: &str, extra: &str) -> String {
    let repeat = format!(
        r#"<layer id="1" name="rep" type="Repeat" version="opset1"><input><port id="3"/></input>
        <output><port id="8" precision="FP32"/></output>
        <port_map>{map}</port_map>{extra}<body>{}</body></layer>"#,
        body()
    );
    let layers = parameter(0, "x") + &repeat + &result(2, "out");
    net(11, &layers, &[[0, 0, 1, 3], [1, 8, 2, 0]], "")
}

const IN: &str = r#"<input external_port_id="3" internal_layer_id="30"/>"#;
const OUT: &str = r#"<output external_port_id="8" internal_layer_id="10"/>"#;

fn the_body(model: &Model) -> Body {
    let node = model.node(model.find_node("rep").unwrap());
    node.op().bodies()[0].1.clone()
}

#[test]
fn ports_are_connected_by_layer_ids_and_counted_by_place() {
    let model = good(&repeat(&format!("{IN}{OUT}"), ""));
    let body = the_body(&model);
    assert_eq!(body.inputs, [BodyInput { outer: Some(0), parameter: 1, slicing: None, back_edge: None }]);
    assert_eq!(body.outputs, [BodyOutput { outer: 0, result: 0, slicing: None }]);
    round_trip(&model, &registry());
}

#[test]
fn an_axis_makes_a_slice_with_defaults() {
    let sliced = r#"<input axis="1" external_port_id="3" internal_layer_id="30"/>"#;
    let model = good(&repeat(&format!("{sliced}{OUT}"), ""));
    assert_eq!(the_body(&model).inputs[0].slicing, Some(Slicing::along(1)));
    round_trip(&model, &registry());
}

#[test]
fn a_slice_keeps_its_start_end_stride_and_part() {
    let joined = r#"<output axis="0" external_port_id="8" internal_layer_id="10" start="-1" end="0" stride="-2"
        part_size="2"/>"#;
    let model = good(&repeat(&format!("{IN}{joined}"), ""));
    let slicing = Slicing { axis: 0, start: -1, end: 0, stride: -2, part_size: 2 };
    assert_eq!(the_body(&model).outputs[0].slicing, Some(slicing));
    round_trip(&model, &registry());
}

#[test]
fn a_back_edge_makes_a_carried_value() {
    let back = r#"<back_edges><edge from-layer="10" from-port="0" to-layer="30" to-port="0"/></back_edges>"#;
    let model = good(&repeat(&format!("{IN}{OUT}"), back));
    assert_eq!(the_body(&model).inputs[0].back_edge, Some(0));
    round_trip(&model, &registry());
}

#[test]
fn purposes_name_the_counter_and_the_condition() {
    let special = r#"<input external_port_id="-1" internal_layer_id="20" purpose="current_iteration"/>
        <output external_port_id="-1" internal_layer_id="10" purpose="execution_condition"/>"#;
    let model = good(&repeat(&format!("{IN}{OUT}{special}"), ""));
    let body = the_body(&model);
    assert_eq!((body.current_iteration, body.execution_condition), (Some(0), Some(0)));
    assert_eq!(body.inputs.len(), 1);
    round_trip(&model, &registry());
}

#[test]
fn outputs_are_numbered_by_the_order_of_their_ids() {
    let map = r#"<output external_port_id="90" internal_layer_id="10"/>
        <output external_port_id="4" internal_layer_id="10"/>"#;
    let model = good(&repeat(&format!("{IN}{map}"), ""));
    let outer: Vec<usize> = the_body(&model).outputs.iter().map(|o| o.outer).collect();
    assert_eq!(outer, [1, 0]);
    round_trip(&model, &registry());
}

#[test]
fn two_bodies_have_a_port_map_each() {
    let either = format!(
        r#"<layer id="1" name="e" type="Either" version="opset8"><input><port id="0"/><port id="1"/></input>
        <output><port id="2" precision="FP32"/></output>
        <else_port_map><input external_port_id="1" internal_layer_id="30"/>
          <output external_port_id="0" internal_layer_id="10"/></else_port_map>
        <then_port_map><output external_port_id="2" internal_layer_id="10"/></then_port_map>
        <then_body>{0}</then_body><else_body>{0}</else_body></layer>"#,
        body()
    );
    let layers = parameter(0, "x") + &either + &result(2, "out");
    let model = good(&net(11, &layers, &[[0, 0, 1, 0], [0, 0, 1, 1], [1, 2, 2, 0]], ""));
    let node = model.node(model.find_node("e").unwrap());
    let bodies = node.op().bodies();
    assert_eq!((bodies[0].0, bodies[0].1.inputs.len()), ("then_body", 0));
    assert_eq!((bodies[1].0, bodies[1].1.inputs[0].outer), ("else_body", Some(1)));
    round_trip(&model, &registry());
}

#[test]
fn one_outer_input_for_two_parameters_is_written_as_two_ports() {
    let mut inner = Model::new("");
    let shape = PartialShape::of(&[2]);
    let a = inner.parameter("a", ElementType::F32, shape.clone()).unwrap();
    inner.parameter("b", ElementType::F32, shape.clone()).unwrap();
    inner.result("r", a).unwrap();
    let mut body = Body::new(inner);
    let input = |parameter| BodyInput { outer: Some(0), parameter, slicing: None, back_edge: None };
    body.inputs = vec![input(0), input(1)];
    body.outputs = vec![BodyOutput { outer: 0, result: 0, slicing: None }];
    let mut model = Model::new("m");
    let x = model.parameter("x", ElementType::F32, shape).unwrap();
    let repeat: NodeId = model.add("rep", Repeat { body }, &[x]).unwrap();
    model.result("out", repeat.into()).unwrap();
    let (xml, _) = carafe_ir::write_to(&model, &Default::default()).unwrap();
    let again = good(&xml);
    let outer: Vec<_> = the_body(&again).inputs.iter().map(|i| i.outer).collect();
    assert_eq!(outer, [Some(0), Some(1)]);
    assert_eq!(again.node(again.find_node("rep").unwrap()).inputs(), [again.parameters()[0].into(); 2]);
    round_trip(&again, &registry());
}

#[test]
fn two_entries_for_one_outer_port_are_read_as_two_inputs() {
    let second = r#"<input external_port_id="3" internal_layer_id="20"/>"#;
    let model = good(&repeat(&format!("{IN}{second}{OUT}"), ""));
    let outer: Vec<_> = the_body(&model).inputs.iter().map(|i| i.outer).collect();
    assert_eq!(outer, [Some(0), Some(1)]);
    round_trip(&model, &registry());
}

#[track_caller]
fn check(map: &str, extra: &str, parts: &[&str]) {
    let error = refused(&repeat(map, extra));
    for part in parts.iter().chain(&["layer 'rep' (Repeat, id 1)", "`body`"]) {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn a_port_map_that_names_no_input_of_the_layer_is_refused() {
    let map = r#"<input external_port_id="77" internal_layer_id="30"/>"#;
    check(map, "", &["external_port_id 77", "its ports: 3"]);
}

#[test]
fn a_port_map_that_names_no_layer_of_the_body_is_refused() {
    check(r#"<input external_port_id="3" internal_layer_id="99"/>"#, "", &["there is no layer 99"]);
    check(r#"<output external_port_id="8" internal_layer_id="99"/>"#, "", &["there is no layer 99"]);
}

#[test]
fn a_port_map_that_names_the_wrong_kind_of_layer_is_refused() {
    check(
        r#"<input external_port_id="3" internal_layer_id="10"/>"#,
        "",
        &["expected a Parameter", "layer 10, a Result"],
    );
    check(r#"<output external_port_id="8" internal_layer_id="5"/>"#, "", &["expected a Result", "layer 5, a ReLU"]);
}

#[test]
fn two_results_for_one_output_are_refused() {
    check(&format!("{OUT}{OUT}"), "", &["two outputs have the external_port_id 8"]);
}

#[test]
fn a_back_edge_to_nowhere_is_refused() {
    let back = r#"<back_edges><edge from-layer="10" to-layer="99"/></back_edges>"#;
    check(&format!("{IN}{OUT}"), back, &["back edge", "there is no layer 99"]);
}

#[test]
fn a_port_map_entry_without_its_ids_is_refused() {
    check(r#"<input internal_layer_id="30"/>"#, "", &["`external_port_id` of <input> is required"]);
    check(r#"<input external_port_id="x" internal_layer_id="30"/>"#, "", &["`external_port_id`", "found `x`"]);
}

#[test]
fn a_missing_body_is_refused() {
    let bare = layer(1, "rep", "Repeat", "", 1, &[""]);
    assert!(refused(&chain(&bare)).contains("`body` is required and missing"));
}

#[test]
fn an_error_inside_a_body_says_where_the_body_is() {
    let bad = repeat(&format!("{IN}{OUT}"), "").replace(r#"type="ReLU""#, r#"type="Join""#);
    let bad = bad.replace(
        r#"name="r" type="Join" version="opset1">"#,
        r#"name="r" type="Join" version="opset1"><data axis="q"/>"#,
    );
    let error = refused(&bad);
    assert!(
        error.starts_with("layer 'rep' (Repeat, id 1), `body`, layer 'r' (Join, id 5): attribute `axis`"),
        "{error}"
    );
}

#[test]
fn bodies_nested_too_deep_are_refused() {
    let mut inner = body();
    for _ in 0..40 {
        let repeat = format!(
            r#"<layer id="5" name="rep" type="Repeat" version="opset1"><input><port id="0"/></input><output>
            <port id="1" precision="FP32"/></output><port_map><input external_port_id="0" internal_layer_id="30"/>
            <output external_port_id="1" internal_layer_id="10"/></port_map><body>{inner}</body></layer>"#
        );
        let layers = parameter(30, "p") + &repeat + &result(10, "q");
        inner = format!("<layers>{layers}</layers>{}", edges_xml(&[[30, 0, 5, 0], [5, 1, 10, 0]]));
    }
    let error = refused(&format!("<net version='11'>{inner}</net>"));
    assert!(error.ends_with("bodies are nested deeper than 32"), "{error}");
}
