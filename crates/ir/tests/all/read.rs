//! What good files become, whatever liberties they take.

use crate::common::*;
use carafe_graph::{Constant, FrameworkNode};
use carafe_ir::ReadOptions;
use carafe_tensor::{ElementType, PartialShape, SharedBytes};

const TINY: &str = r#"<?xml version="1.0"?>
<net name="tiny" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="?,3" element_type="f32"/>
      <output><port id="0" precision="FP32" names="x"><dim>-1</dim><dim>3</dim></port></output>
    </layer>
    <layer id="1" name="w" type="Const" version="opset1">
      <data element_type="f32" shape="2, 3" offset="0" size="24"/>
      <output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output>
    </layer>
    <layer id="2" name="j" type="Join" version="opset1">
      <data axis="1" alpha="0.5"/>
      <input>
        <port id="0" precision="FP32"><dim>-1</dim><dim>3</dim></port>
        <port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port>
      </input>
      <output><port id="2" precision="FP32" names="y"><dim>-1</dim><dim>2</dim></port></output>
    </layer>
    <layer id="3" name="y/result" type="Result" version="opset1" output_names="z">
      <input><port id="0" precision="FP32"><dim>-1</dim><dim>2</dim></port></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
  </edges>
  <rt_info/>
</net>"#;

fn six_floats() -> Vec<u8> {
    (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

#[test]
fn the_small_example_reads_and_round_trips() {
    let model = read_with(TINY, &six_floats()).unwrap();
    assert_eq!((model.name.as_str(), model.len()), ("tiny", 4));
    let w = model.node(model.find_node("w").unwrap());
    assert_eq!(w.op().get::<Constant>().unwrap().tensor().as_slice::<f32>().unwrap(), [0., 1., 2., 3., 4., 5.]);
    assert_eq!(attr::<f32>(&model, "j", "alpha"), 0.5);
    round_trip(&model, &registry());
}

#[test]
fn a_model_without_parameters_results_or_layers_reads() {
    assert!(good("<net version='11'><layers/></net>").is_empty());
}

#[test]
fn the_root_may_have_any_letter_case() {
    assert_eq!(good("<NeT version='11' name='n'><layers/></NeT>").name, "n");
}

#[test]
fn ids_may_be_sparse_and_unordered_and_layers_in_any_order() {
    let layers = result(7, "out") + &layer(900, "r", "ReLU", "", 1, &["y"]) + &parameter(33, "x");
    let model = good(&net(11, &layers, &[[900, 1, 7, 0], [33, 0, 900, 0]], ""));
    assert_eq!(model.len(), 3);
}

#[test]
fn ports_are_told_by_their_place_not_their_number() {
    let join = r#"<layer id="1" name="j" type="Join" version="opset1">
        <input><port id="40"/><port id="7"/></input><output><port id="3" precision="FP32"/></output></layer>"#;
    let layers = parameter(0, "a") + &parameter(5, "b") + join + &result(2, "out");
    let model = good(&net(11, &layers, &[[5, 0, 1, 7], [0, 0, 1, 40], [1, 3, 2, 0]], ""));
    let inputs = model.node(model.find_node("j").unwrap()).inputs();
    assert_eq!(inputs.iter().map(|v| model.node(v.node).name()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn input_and_output_ports_may_share_numbers() {
    let relu = r#"<layer id="1" name="r" type="ReLU" version="opset1">
        <input><port id="0"/></input><output><port id="0" precision="FP32"/></output></layer>"#;
    let layers = parameter(0, "x") + relu + &result(2, "out");
    assert_eq!(good(&net(11, &layers, &[[0, 0, 1, 0], [1, 0, 2, 0]], "")).len(), 3);
}

#[test]
fn an_unconnected_last_port_is_an_absent_optional_input() {
    let layers = parameter(0, "x") + &layer(1, "j", "Join", "", 2, &[""]) + &result(2, "out");
    let model = good(&net(11, &layers, &[[0, 0, 1, 0], [1, 2, 2, 0]], ""));
    assert_eq!(model.node(model.find_node("j").unwrap()).inputs().len(), 1);
}

#[test]
fn types_are_found_in_any_letter_case_and_in_every_opset_that_has_them() {
    good(&chain(&versioned(1, "r", "relu", "opset8", "", 1, &["y"])));
    good(&chain(&versioned(1, "r", "ReLU", "opset17", "", 1, &["y"])));
}

#[test]
fn a_written_type_has_the_spelling_and_the_home_opset_of_its_class() {
    let model = good(&chain(&versioned(1, "r", "RELU", "opset8", "", 1, &["y"])));
    let (xml, _) = carafe_ir::write_to(&model, &Default::default()).unwrap();
    assert!(xml.contains(r#"type="ReLU" version="opset1""#), "{xml}");
}

#[test]
fn opset1_types_that_came_with_opset2_are_found() {
    good(&chain(&versioned(1, "r", "MVN", "opset1", "", 1, &["y"])));
}

#[test]
fn experimental_types_are_found_in_opset6() {
    for opset in ["experimental", "extension"] {
        good(&chain(&versioned(1, "r", "Proposal", opset, "", 1, &["y"])));
    }
}

#[test]
fn what_no_result_needs_is_dropped_but_parameters_stay() {
    let layers =
        parameter(0, "x") + &parameter(9, "unused") + &layer(1, "r", "ReLU", "", 1, &["y"]) + &result(2, "out");
    let dead = layer(3, "dead", "ReLU", "", 1, &["d"]) + &layer(4, "strange", "Unheard", "", 1, &["d"]);
    let model = good(&net(11, &(layers + &dead), &[[0, 0, 1, 0], [1, 1, 2, 0], [1, 1, 3, 0], [3, 1, 4, 0]], ""));
    assert!(model.find_node("dead").is_none());
    assert_eq!(model.parameters().len(), 2);
}

#[test]
fn parameters_and_results_keep_the_order_of_the_file() {
    let layers = result(0, "second_in_id") + &parameter(9, "b") + &result(5, "r2") + &parameter(1, "a");
    let model = good(&net(11, &layers, &[[9, 0, 5, 0], [1, 0, 0, 0]], ""));
    let names =
        |ids: &[carafe_graph::NodeId]| ids.iter().map(|i| model.node(*i).name().to_string()).collect::<Vec<_>>();
    assert_eq!(names(model.parameters()), ["b", "a"]);
    assert_eq!(names(model.results()), ["second_in_id", "r2"]);
    round_trip(&model, &registry());
}

#[test]
fn repeated_names_are_made_unique_and_outer_ones_keep_theirs() {
    let layers = layer(1, "x", "ReLU", "", 1, &["t1"]) + &layer(3, "x", "ReLU", "", 1, &["t2"]);
    let layers = layers + &parameter(0, "x") + &result(2, "x");
    let model = good(&net(11, &layers, &[[0, 0, 1, 0], [1, 1, 3, 0], [3, 1, 2, 0]], ""));
    let mut names: Vec<&str> = model.nodes().map(|(_, n)| n.name()).collect();
    names.sort();
    assert_eq!(names, ["x", "x_2", "x_3", "x_4"]);
    assert_eq!(model.node(model.parameters()[0]).name(), "x");
    round_trip(&model, &registry());
}

#[test]
fn output_names_become_the_names_of_the_result() {
    let model = read_with(TINY, &six_floats()).unwrap();
    assert_eq!(model.find_result("z"), Some(0));
    assert_eq!(model.output(model.result_value(model.results()[0])).names.iter().next().unwrap(), "y");
}

#[test]
fn a_result_without_names_has_those_of_its_source() {
    let model = good(&chain(&layer(1, "r", "ReLU", "", 1, &["y"])));
    assert_eq!(model.result_name(model.results()[0]), "y");
}

#[test]
fn unknown_attributes_are_ignored() {
    let model = good(&chain(&layer(1, "j", "Join", r#"axis="2" later="1" x.y="z""#, 1, &[""])));
    assert_eq!(attr::<i64>(&model, "j", "axis"), 2);
}

#[test]
fn lists_and_booleans_are_read_in_every_spelling() {
    let model = good(&chain(&layer(1, "j", "Join", r#"sizes="1,2, 3" flag="TRUE""#, 1, &[""])));
    assert_eq!(attr::<Vec<i64>>(&model, "j", "sizes"), [1, 2, 3]);
    assert!(attr::<bool>(&model, "j", "flag"));
}

#[test]
fn an_attribute_text_with_line_ends_and_quotes_round_trips() {
    let model = good(&chain(&layer(1, "j", "Join", r#"text="a&#10;b&quot;&lt;&#9;c""#, 1, &[""])));
    assert_eq!(attr::<String>(&model, "j", "text"), "a\nb\"<\tc");
    round_trip(&model, &registry());
}

#[test]
fn pads_beside_an_automatic_padding_are_zeros() {
    let data = r#"pads_begin="1,2" pads_end="3" auto_pad="same_upper""#;
    let model = good(&chain(&layer(1, "p", "Padded", data, 1, &[""])));
    assert_eq!(attr::<Vec<i64>>(&model, "p", "pads_begin"), [0, 0]);
    assert_eq!(attr::<Vec<i64>>(&model, "p", "pads_end"), [0]);
    let explicit = good(&chain(&layer(1, "p", "Padded", &data.replace("same_upper", "explicit"), 1, &[""])));
    assert_eq!(attr::<Vec<i64>>(&explicit, "p", "pads_begin"), [1, 2]);
}

#[test]
fn a_constant_without_offset_takes_its_value_attribute() {
    let layers = layer(0, "c", "Const", r#"element_type="u8" shape="2" value="AB""#, 0, &[""]) + &result(1, "out");
    let model = good(&net(11, &layers, &[[0, 0, 1, 0]], ""));
    assert_eq!(model.evaluate(&[]).unwrap()[0].bytes(), b"AB");
}

#[test]
fn a_constant_may_give_more_bytes_than_it_needs() {
    let layers =
        layer(0, "c", "Const", r#"element_type="u8" shape="" offset="1" size="3""#, 0, &[""]) + &result(1, "out");
    let model = read_with(&net(11, &layers, &[[0, 0, 1, 0]], ""), &[1, 2, 3, 4]).unwrap();
    assert_eq!(model.evaluate(&[]).unwrap()[0].bytes(), [2]);
}

#[test]
fn an_empty_constant_needs_no_weights() {
    let layers =
        layer(0, "c", "Const", r#"element_type="f32" shape="2, 0" offset="0" size="0""#, 0, &[""]) + &result(1, "out");
    let model = good(&net(11, &layers, &[[0, 0, 1, 0]], ""));
    assert_eq!(model.evaluate(&[]).unwrap()[0].shape(), [2, 0]);
    round_trip(&model, &registry());
}

#[test]
fn variables_are_read_and_assigned() {
    let read = versioned(
        1,
        "read",
        "ReadValue",
        "opset6",
        r#"variable_id="v" variable_type="f32" variable_shape="?,3""#,
        1,
        &["y"],
    );
    let assign = versioned(3, "write", "Assign", "opset6", r#"variable_id="v""#, 1, &[""]);
    let layers = parameter(0, "x") + &read + &result(2, "out") + &assign;
    let model = good(&net(11, &layers, &[[0, 0, 1, 0], [1, 1, 2, 0], [1, 1, 3, 0]], ""));
    assert_eq!(model.sinks().len(), 1);
    round_trip(&model, &registry());
}

#[test]
fn a_sink_alone_keeps_what_it_needs() {
    let data = r#"variable_id="v" variable_type="f32" variable_shape="2,3""#;
    let layers = parameter(0, "x")
        + &versioned(1, "read", "ReadValue", "opset6", data, 1, &["y"])
        + &versioned(3, "write", "Assign", "opset6", r#"variable_id="v""#, 1, &[]);
    let model = good(&net(11, &layers, &[[0, 0, 1, 0], [1, 1, 3, 0]], ""));
    assert_eq!(model.len(), 3);
    round_trip(&model, &registry());
}

#[test]
fn runtime_information_of_nodes_and_ports_is_kept_even_when_unknown() {
    let relu = r#"<layer id="1" name="r" type="ReLU" version="opset1">
        <rt_info><attribute name="fused_names" version="0" value="a,b"/><attribute name="new" version="3" x="1"/>
          <user_data name="mine" version=""><user_data name="inner" value="v" version=""/></user_data></rt_info>
        <input><port id="0"><rt_info><attribute name="in" version="0"/></rt_info></port></input>
        <output><port id="1" precision="FP32"><rt_info><attribute name="layout" version="0" layout="[N,C]"/></rt_info>
        </port></output></layer>"#;
    let first = good(&chain(relu));
    for model in [round_trip(&first, &registry()), first] {
        let node = model.node(model.find_node("r").unwrap());
        assert_eq!(node.rt_info.get("fused_names").unwrap().fields, [("value".to_string(), "a,b".to_string())]);
        assert_eq!(node.rt_info.get("new").unwrap().version, "3");
        assert_eq!(node.rt_info.user[0].child("inner").unwrap().value.as_deref(), Some("v"));
        assert!(node.input_rt_info[0].has("in"));
        assert!(node.outputs()[0].rt_info.has("layout"));
    }
}

#[test]
fn the_model_tree_is_kept_with_keys_that_are_not_tags() {
    let info = r#"<rt_info><info name="a key" value="1"/><conversion_parameters><input value="x"/></conversion_parameters>
        <empty/></rt_info>"#;
    let layers = parameter(0, "x") + &result(1, "out");
    let first = good(&net(11, &layers, &[[0, 0, 1, 0]], info));
    for model in [round_trip(&first, &registry()), first] {
        let keys: Vec<&str> = model.rt_info.iter().map(|t| t.key.as_str()).collect();
        assert_eq!(keys, ["a key", "conversion_parameters", "empty"]);
        assert_eq!(model.rt_info[1].child("input").unwrap().value.as_deref(), Some("x"));
    }
}

#[test]
fn an_unknown_layer_can_be_kept_and_is_written_back_as_it_was() {
    let strange = r#"<layer id="1" name="s" type="Strange" version="my_opset"><data alpha="0.50" list="1,2"/>
        <input><port id="0"/></input><output><port id="1" precision="I64" names="y"><dim>-1</dim><dim>4</dim></port>
        </output></layer>"#;
    let options = ReadOptions { keep_unknown: true, ..ReadOptions::default() };
    let model = carafe_ir::read(&chain(strange), SharedBytes::from_vec(vec![]), &registry(), &options).unwrap();
    let node = model.node(model.find_node("s").unwrap());
    let kept = node.op().get::<FrameworkNode>().unwrap();
    assert_eq!((kept.type_name.as_str(), kept.opset.as_str()), ("Strange", "my_opset"));
    assert_eq!(kept.outputs, [(ElementType::I64, "?,4".parse::<PartialShape>().unwrap())]);
    let (xml, _) = carafe_ir::write_to(&model, &Default::default()).unwrap();
    assert!(
        xml.contains(r#"type="Strange" version="my_opset""#) && xml.contains(r#"alpha="0.50" list="1,2""#),
        "{xml}"
    );
    round_trip(&model, &registry());
}

#[test]
fn a_chain_of_20_000_layers_reads() {
    let n = 20_000;
    let mut layers = parameter(0, "x");
    let mut edges = vec![];
    for i in 1..=n {
        layers += &layer(i, &format!("r{i}"), "ReLU", "", 1, &[""]);
        edges.push([i - 1, u32::from(i > 1), i, 0]);
    }
    layers += &result(n + 1, "out");
    edges.push([n, 1, n + 1, 0]);
    let model = good(&net(11, &layers, &edges, ""));
    assert_eq!(model.len(), n as usize + 2);
}
