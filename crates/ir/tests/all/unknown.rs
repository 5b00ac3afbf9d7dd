//! Layers of unknown type: all of them in one message.

use crate::common::*;
use carafe_graph::ErrorKind;
use carafe_ir::ReadOptions;
use carafe_tensor::SharedBytes;

fn file(layers: &[String]) -> String {
    let mut all = parameter(0, "x");
    let mut edges = vec![];
    for (i, layer) in (1..).zip(layers) {
        all += layer;
        all += &result(100 + i, &format!("out{i}"));
        edges.extend([[0, 0, i, 0], [i, 1, 100 + i, 0]]);
    }
    net(11, &all, &edges, "")
}

#[test]
fn all_unknown_types_are_listed_with_counts_names_and_hints() {
    let xml = file(&[
        versioned(1, "a", "Foo", "extension", "", 1, &[""]),
        versioned(2, "c", "Relu6", "opset1", "", 1, &[""]),
        versioned(3, "b", "Foo", "extension", "", 1, &[""]),
        versioned(4, "d", "ReadValue", "opset1", "", 1, &[""]),
    ]);
    let error = read(&xml).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "4 layers of 3 types are not known: 2 x `Foo` from the unknown opset `extension` (nodes `a`, `b`); \
         1 x `Relu6` from opset1 (node `c`; did you mean Relu?); \
         1 x `ReadValue` from opset1 (node `d`; the type exists in opset6); \
         register them with `Core::add_ops`, or load a library with them by `Core::add_extension` or `--extension`"
    );
}

#[test]
fn a_single_layer_reads_naturally() {
    let error = refused(&file(&[versioned(1, "a", "Foo", "mine", "", 1, &[""])]));
    assert_eq!(
        error,
        "1 layer is not known: 1 x `Foo` from the unknown opset `mine` (node `a`); \
         register it with `Core::add_ops`, or load a library with it by `Core::add_extension` or `--extension`"
    );
}

#[test]
fn a_long_list_of_layers_is_cut() {
    let layers: Vec<String> = (1..=8).map(|i| versioned(i, &format!("n{i}"), "Foo", "mine", "", 1, &[""])).collect();
    let error = refused(&file(&layers));
    assert!(error.contains("8 x `Foo`") && error.contains("`n5` and 3 more)"), "{error}");
}

#[test]
fn unknown_types_inside_bodies_are_found_too() {
    let inner = parameter(0, "p") + &versioned(1, "deep", "Foo", "mine", "", 1, &[""]) + &result(2, "q");
    let body = format!("<layers>{inner}</layers>{}", edges_xml(&[[0, 0, 1, 0], [1, 1, 2, 0]]));
    let repeat = format!(
        r#"<layer id="1" name="rep" type="Repeat" version="opset1"><input><port id="0"/></input><output>
        <port id="1" precision="FP32"/></output><port_map><input external_port_id="0" internal_layer_id="0"/>
        <output external_port_id="1" internal_layer_id="2"/></port_map><body>{body}</body></layer>"#
    );
    assert!(refused(&chain(&repeat)).contains("`deep`"));
}

#[test]
fn a_layer_that_nothing_needs_is_not_missed() {
    let xml = net(11, &(parameter(0, "x") + &versioned(1, "a", "Foo", "mine", "", 1, &[""])), &[[0, 0, 1, 0]], "");
    assert!(read(&xml).is_ok());
}

#[test]
fn problems_can_be_asked_for_without_reading() {
    let xml = file(&[versioned(1, "a", "Foo", "mine", "", 1, &[""])]);
    let problems = carafe_ir::problems(&xml, &registry()).unwrap();
    assert_eq!((problems.len(), problems[0].layers.as_slice()), (1, &["a".to_string()][..]));
}

#[test]
fn an_unknown_layer_with_a_body_cannot_be_kept() {
    let strange = r#"<layer id="1" name="s" type="Strange" version="mine"><input><port id="0"/></input>
        <output><port id="1" precision="FP32"/></output><body><layers/></body></layer>"#;
    let options = ReadOptions { keep_unknown: true, ..ReadOptions::default() };
    let error = carafe_ir::read(&chain(strange), SharedBytes::from_vec(vec![]), &registry(), &options).unwrap_err();
    assert!(
        error.to_string().contains("layer 's' (Strange, id 1)") && error.to_string().contains("has a body"),
        "{error}"
    );
}
