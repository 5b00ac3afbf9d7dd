//! What is written.

use crate::common::*;
use carafe_graph::{Constant, Model, RtTree, Value};
use carafe_ir::{WriteOptions, write_to};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn text(model: &Model) -> String {
    write_to(model, &WriteOptions::default()).unwrap().0
}

fn with_parameter() -> (Model, Value) {
    let mut model = Model::new("m");
    let x = model.parameter("x", ElementType::F32, "?,1..10,3".parse::<PartialShape>().unwrap()).unwrap();
    (model, x)
}

#[test]
fn a_small_model_is_written_as_openvino_writes_it() {
    let (mut model, x) = with_parameter();
    let relu = model.add("r", Relu, &[x]).unwrap();
    model.add_tensor_name(relu.into(), "b,c");
    model.add_tensor_name(relu.into(), "a");
    model.result("out", relu.into()).unwrap();
    let expected = r#"<?xml version="1.0"?>
<net name="m" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="?,1..10,3" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="x">
					<dim>-1</dim>
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="r" type="ReLU" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</input>
			<output>
				<port id="1" precision="FP32" names="a,b\,c">
					<dim>-1</dim>
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="out" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
		<edge from-layer="1" from-port="1" to-layer="2" to-port="0" />
	</edges>
	<rt_info />
</net>
"#;
    assert_eq!(text(&model), expected);
    round_trip(&model, &registry());
}

#[test]
fn parameters_come_first_and_results_last() {
    let (mut model, x) = with_parameter();
    let c = model.constant("c", Tensor::scalar(1f32)).unwrap();
    model.result("first", c).unwrap();
    model.parameter("late", ElementType::F32, PartialShape::dynamic()).unwrap();
    model.result("second", x).unwrap();
    let text = text(&model);
    let names: Vec<&str> = text
        .split("<layer id=")
        .skip(1)
        .map(|l| l.split("name=\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    assert_eq!(names, ["x", "late", "c", "first", "second"]);
}

#[test]
fn an_unknown_rank_has_no_dims_and_three_dots() {
    let mut model = Model::new("m");
    let x = model.parameter("x", ElementType::Dynamic, PartialShape::dynamic()).unwrap();
    model.result("out", x).unwrap();
    let xml = text(&model);
    assert!(xml.contains(r#"<data shape="..." element_type="dynamic" />"#), "{xml}");
    assert!(xml.contains(r#"<port id="0" precision="UNSPECIFIED" names="x" />"#), "{xml}");
    round_trip(&model, &registry());
}

#[test]
fn what_nothing_needs_is_not_written() {
    let (mut model, x) = with_parameter();
    model.add("dead", Relu, &[x]).unwrap();
    model.result("out", x).unwrap();
    assert!(!text(&model).contains("dead"));
}

#[test]
fn equal_constants_share_their_bytes_across_bodies_too() {
    let layers =
        parameter(0, "p") + &layer(1, "w", "Const", r#"element_type="f32" shape="2" offset="0" size="8""#, 0, &[""]);
    let layers = layers + &layer(2, "j", "Join", "", 2, &[""]) + &result(3, "q");
    let body = format!("<layers>{layers}</layers>{}", edges_xml(&[[0, 0, 2, 0], [1, 0, 2, 1], [2, 2, 3, 0]]));
    let repeat = format!(
        r#"<layer id="1" name="rep" type="Repeat" version="opset1"><input><port id="0"/></input><output>
        <port id="1" precision="FP32"/></output><port_map><input external_port_id="0" internal_layer_id="0"/>
        <output external_port_id="1" internal_layer_id="3"/></port_map><body>{body}</body></layer>"#
    );
    let outer = parameter(0, "x")
        + &repeat
        + &layer(2, "w", "Const", r#"element_type="f32" shape="1,2" offset="8" size="8""#, 0, &[""])
        + &result(3, "a")
        + &result(4, "b");
    let xml = net(11, &outer, &[[0, 0, 1, 0], [1, 1, 3, 0], [2, 0, 4, 0]], "");
    let bytes: Vec<u8> = [1f32, 2., 1., 2.].iter().flat_map(|x| x.to_le_bytes()).collect();
    let model = read_with(&xml, &bytes).unwrap();
    let (xml, weights) = write_to(&model, &WriteOptions::default()).unwrap();
    assert_eq!(weights, bytes[..8]);
    assert_eq!(xml.matches(r#"offset="0" size="8""#).count(), 2);
    round_trip(&model, &registry());
}

#[test]
fn constants_of_every_type_round_trip() {
    let mut model = Model::new("m");
    for &ty in ElementType::ALL.iter().filter(|t| !matches!(t, ElementType::Dynamic | ElementType::String)) {
        for n in [0usize, 1, 3, 9] {
            let values: Vec<i64> = (0..n as i64).map(|i| i % 2).collect();
            let name = format!("{ty}/{n}");
            let value = model.constant(&name, Tensor::from_i64(ty, &[n], &values).unwrap()).unwrap();
            model.result(&format!("{name}/result"), value).unwrap();
        }
    }
    let strings = Tensor::from_strings(&[2], vec!["a\nb".into(), "é".into()]).unwrap();
    let value = model.constant("strings", strings).unwrap();
    model.result("strings/result", value).unwrap();
    round_trip(&model, &registry());
}

#[test]
fn every_payload_is_aligned_for_its_elements() {
    let mut model = Model::new("m");
    for (i, tensor) in
        [Tensor::scalar(1u8), Tensor::scalar(2f32), Tensor::scalar(3u8), Tensor::scalar(4f64)].into_iter().enumerate()
    {
        let value = model.constant(&format!("c{i}"), tensor).unwrap();
        model.result(&format!("r{i}"), value).unwrap();
    }
    let xml = text(&model);
    for position in
        [r#"offset="0" size="1""#, r#"offset="4" size="4""#, r#"offset="8" size="1""#, r#"offset="16" size="8""#]
    {
        assert!(xml.contains(position), "{position}\n{xml}");
    }
}

#[test]
fn the_runtime_version_replaces_an_older_one() {
    let (mut model, x) = with_parameter();
    model.result("out", x).unwrap();
    model.rt_info = vec![RtTree::leaf("Runtime_version", "old"), RtTree::leaf("version", "11")];
    let options = WriteOptions { runtime_version: Some("new 1.0".into()), ..WriteOptions::default() };
    let (xml, _) = write_to(&model, &options).unwrap();
    assert!(xml.contains(r#"<Runtime_version value="new 1.0" />"#), "{xml}");
    assert!(!xml.contains("old") && !xml.contains("<version"), "{xml}");
}

#[test]
fn names_of_a_result_are_written_beside_it() {
    let (mut model, x) = with_parameter();
    let result = model.result("out", x).unwrap();
    model.add_tensor_name(result.into(), "y,z");
    assert!(text(&model).contains(r#"type="Result" version="opset1" output_names="y\,z""#));
    round_trip(&model, &registry());
}

#[test]
fn pads_beside_an_automatic_padding_are_written_as_zeros() {
    let (mut model, x) = with_parameter();
    let op = Padded { pads_begin: vec![1, 2], pads_end: vec![3, 4], auto_pad: "valid".into() };
    let padded = model.add("p", op, &[x]).unwrap();
    model.result("out", padded.into()).unwrap();
    assert!(text(&model).contains(r#"pads_begin="0, 0" pads_end="0, 0" auto_pad="valid""#));
}

#[test]
fn floats_are_written_with_as_many_digits_as_they_need() {
    let (mut model, x) = with_parameter();
    for (i, alpha) in [0.1f32, 1.0, 1e-30, f32::MAX, f32::INFINITY].into_iter().enumerate() {
        let op = Join { axis: 0, alpha, flag: false, sizes: vec![], text: String::new() };
        let join = model.add(format!("j{i}"), op, &[x]).unwrap();
        model.result(&format!("out{i}"), join.into()).unwrap();
    }
    assert!(text(&model).contains(r#"alpha="0.1""#));
    round_trip(&model, &registry());
}

#[test]
fn a_node_with_several_outputs_round_trips() {
    let (mut model, x) = with_parameter();
    let pair = model.add("p", Pair, &[x]).unwrap();
    model.add_tensor_name(Value { node: pair, port: 1 }, "second");
    model.result("out", Value { node: pair, port: 1 }).unwrap();
    let again = round_trip(&model, &registry());
    assert_eq!(again.result_value(again.results()[0]).port, 1);
}

#[test]
fn a_constant_read_back_is_equal_bit_by_bit() {
    let mut model = Model::new("m");
    let odd = [f32::NAN, -0.0, f32::from_bits(0x7fc0_0001), f32::MIN_POSITIVE];
    let value = model.constant("c", Tensor::from_slice(&[4], &odd).unwrap()).unwrap();
    model.result("r", value).unwrap();
    let again = round_trip(&model, &registry());
    let tensor = again.node(again.find_node("c").unwrap()).op().get::<Constant>().unwrap().tensor().clone();
    assert!(tensor.content_eq(&Tensor::from_slice(&[4], &odd).unwrap()));
}
