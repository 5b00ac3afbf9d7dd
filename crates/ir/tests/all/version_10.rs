//! Files of version 10: what the API of their time added to them, and what it ignored.

use crate::common::*;
use carafe_graph::{Constant, Model};
use carafe_ir::ReadOptions;
use carafe_tensor::SharedBytes;

fn typed(id: u32, name: &str, ty: &str, shape: &str) -> String {
    layer(id, name, "Parameter", &format!(r#"shape="{shape}" element_type="{ty}""#), 0, &[""])
}

/// `x -> r -> out`, with a parameter of this type.
fn file(ty: &str, rest: &str) -> String {
    let layers = typed(0, "x", ty, "1,2,1,2") + &layer(1, "r", "ReLU", "", 1, &["t"]) + &result(2, "out");
    net(10, &layers, &[[0, 0, 1, 0], [1, 1, 2, 0]], rest)
}

fn types(model: &Model) -> (String, String) {
    let input = model.fact(model.parameters()[0].into()).ty;
    let output = model.fact(model.result_value(model.results()[0])).ty;
    (input.to_string(), output.to_string())
}

#[test]
fn inputs_and_outputs_have_the_types_of_the_old_api() {
    for (ty, input, output) in [
        ("f32", "f32", "f32"),
        ("f16", "f32", "f32"),
        ("i64", "i64", "i32"),
        ("u32", "u32", "i32"),
        ("i32", "i32", "i32"),
        ("u8", "u8", "f32"),
        ("boolean", "boolean", "f32"),
    ] {
        let model = good(&file(ty, ""));
        assert_eq!(types(&model), (input.to_string(), output.to_string()), "{ty}");
        round_trip(&model, &registry());
    }
}

#[test]
fn the_inside_of_the_model_keeps_its_types() {
    let model = good(&file("f16", ""));
    let relu = model.find_node("r").unwrap();
    assert_eq!(model.fact(relu.into()).ty.to_string(), "f16");
    assert!(model.find_node("x/convert").is_some() && model.find_node("r/convert").is_some());
}

#[test]
fn operation_names_and_tensor_names_both_find_inputs_and_outputs() {
    for ty in ["f32", "i64"] {
        let model = good(&file(ty, ""));
        assert_eq!(model.find_parameter("x"), Some(0));
        assert_eq!((model.find_result("r"), model.find_result("t")), (Some(0), Some(0)), "{ty}");
    }
}

#[test]
fn an_output_of_several_is_named_with_its_number() {
    let layers = parameter(0, "x") + &layer(1, "p", "Pair", "", 1, &["", ""]) + &result(2, "out");
    let model = good(&net(10, &layers, &[[0, 0, 1, 0], [1, 2, 2, 0]], ""));
    assert_eq!(model.result_name(model.results()[0]), "p.1");
}

#[test]
fn an_input_that_is_an_output_keeps_its_names() {
    let layers = typed(0, "x", "boolean", "2") + &result(1, "out");
    let model = good(&net(10, &layers, &[[0, 0, 1, 0]], ""));
    assert_eq!((model.find_parameter("x"), model.find_result("x")), (Some(0), Some(0)));
}

#[test]
fn two_results_of_one_value_both_have_its_name() {
    let layers = typed(0, "x", "i64", "2") + &layer(1, "r", "ReLU", "", 1, &[""]) + &result(2, "a") + &result(3, "b");
    let model = good(&net(10, &layers, &[[0, 0, 1, 0], [1, 1, 2, 0], [1, 1, 3, 0]], ""));
    for result in model.results() {
        assert_eq!(model.result_name(*result), "r");
        assert_eq!(model.fact(model.result_value(*result)).ty.to_string(), "i32");
    }
}

#[test]
fn the_adjustments_can_be_left_out() {
    let options = ReadOptions { old_api: false, ..ReadOptions::default() };
    let model = carafe_ir::read(&file("f16", ""), SharedBytes::from_vec(vec![]), &registry(), &options).unwrap();
    assert_eq!((types(&model), model.len()), (("f16".into(), "f16".into()), 3));
}

#[test]
fn runtime_information_of_layers_is_not_read() {
    let info = r#"<rt_info><attribute name="precise" version="0"/></rt_info><input>"#;
    let xml =
        file("f32", "").replacen("version=\"opset1\"><input><port", &format!("version=\"opset1\">{info}<port"), 1);
    let model = good(&xml);
    assert!(model.nodes().all(|(_, n)| n.rt_info.is_empty()));
}

#[test]
fn old_kernel_preferences_become_runtime_information() {
    let layers =
        parameter(0, "x") + &layer(1, "r", "ReLU", r#"PrimitivesPriority="a,b""#, 1, &[""]) + &result(2, "out");
    let model = good(&net(10, &layers, &[[0, 0, 1, 0], [1, 1, 2, 0]], ""));
    let relu = model.node(model.find_node("r").unwrap());
    assert_eq!(relu.rt_info.get("primitives_priority").unwrap().fields[0].1, "a,b");
}

#[test]
fn meta_data_becomes_the_tree_of_version_11() {
    let meta = r#"<meta_data><MO_version value="2021.4"/><cli_parameters><batch value="1"/>
        <unset unset_cli_parameters="a, b"/></cli_parameters></meta_data>
        <quantization_parameters><config> text </config><version value="2"/></quantization_parameters>"#;
    let model = good(&file("f32", meta));
    assert_eq!((model.rt_info[0].key.as_str(), model.rt_info[0].value.as_deref()), ("MO_version", Some("2021.4")));
    let parameters = &model.rt_info[1];
    assert_eq!(parameters.key, "conversion_parameters");
    assert_eq!(parameters.child("batch").unwrap().value.as_deref(), Some("1"));
    assert_eq!(parameters.child("unset_cli_parameters").unwrap().value.as_deref(), Some("a, b"));
    assert_eq!(model.rt_info[2].child("config").unwrap().value.as_deref(), Some("text"));
}

fn channels(first: &str, second: &str) -> String {
    format!(
        r#"<pre-process mean-precision="FP32" reference-layer-name="x"><channel id="0">{first}<scale value="2"/></channel>
        <channel id="1">{second}</channel></pre-process>"#
    )
}

fn mean_of(model: &Model) -> (Vec<usize>, Vec<f64>) {
    let mean = model.node(model.find_node("x/mean").unwrap()).op().get::<Constant>().unwrap().tensor().clone();
    (mean.shape().to_vec(), mean.to_vec::<f64>().unwrap().into_owned())
}

#[test]
fn mean_values_are_subtracted_in_the_type_of_the_input() {
    for ty in ["f32", "f16", "u8"] {
        let model = good(&file(ty, &channels(r#"<mean value="3"/>"#, r#"<mean value="5"/>"#)));
        assert_eq!(mean_of(&model), (vec![2, 1, 1], vec![3., 5.]));
        let relu = model.node(model.find_node("r").unwrap());
        assert_eq!(model.node(relu.inputs()[0].node).name(), "x/subtract_mean");
        round_trip(&model, &registry());
    }
}

#[test]
fn mean_images_are_read_from_the_weights() {
    let bytes: Vec<u8> = [1f32, 2., 3., 4.].iter().flat_map(|x| x.to_le_bytes()).collect();
    let pre = channels(r#"<mean offset="0" size="8"/>"#, r#"<mean offset="8" size="8"/>"#);
    let model = read_with(&file("f32", &pre), &bytes).unwrap();
    assert_eq!(mean_of(&model), (vec![2, 1, 2], vec![1., 2., 3., 4.]));
    assert!(read_with(&file("f32", &pre), &bytes[..12]).unwrap_err().to_string().contains("reach past the weights"));
}

#[test]
fn a_pre_process_that_does_not_fit_is_refused() {
    for (pre, part) in [
        (channels(r#"<mean value="3"/>"#, r#"<mean offset="0" size="8"/>"#), "cannot be mixed"),
        (channels(r#"<mean value="3"/>"#, ""), "channels 0 to 1"),
        (channels(r#"<mean value="3"/>"#, r#"<mean value="much"/>"#), "`much` is not a number"),
        (channels("", "").replace(r#""x""#, r#""nobody""#), "names no input"),
    ] {
        let error = refused(&file("f32", &pre));
        assert!(error.contains("<pre-process>") && error.contains(part), "{error}");
    }
}

#[test]
fn channels_without_a_mean_change_nothing() {
    assert_eq!(good(&file("f32", &channels("", ""))).len(), 3);
}

#[test]
fn an_input_that_nothing_reads_gets_no_dangling_nodes() {
    let pre = channels(r#"<mean value="3"/>"#, r#"<mean value="5"/>"#);
    let model = good(&net(10, &typed(0, "x", "f16", "1,2,1,2"), &[], &pre));
    assert_eq!((model.len(), model.fact(model.parameters()[0].into()).ty.to_string()), (1, "f32".to_string()));
}

#[test]
fn a_name_that_no_list_can_hold_is_not_made_a_tensor_name() {
    for name in ["", "a\\"] {
        let xml =
            file("f32", "").replace("name=\"r\"", &format!("name=\"{name}\"")).replace("names=\"t\"", "names=\"t\\\"");
        round_trip(&good(&xml), &registry());
    }
}
