//! Files that must be refused: each with the place, what was expected and what was found, and without a panic or a large
//! allocation.

use crate::common::*;

#[track_caller]
fn check(xml: &str, parts: &[&str]) {
    let error = refused(xml);
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

fn constant(data: &str) -> String {
    net(11, &(layer(4, "c", "Const", data, 0, &[""]) + &result(1, "out")), &[[4, 0, 1, 0]], "")
}

#[test]
fn text_that_is_not_xml() {
    check("", &["not well-formed"]);
    check("<net version='11'><layers>", &["not well-formed"]);
    check("<net version='11'></layers>", &["not well-formed"]);
}

#[test]
fn a_root_that_is_not_a_net() {
    check("<network version='11'/>", &["expected <net>", "<network>"]);
}

#[test]
fn other_versions() {
    check("<net version='7'><layers/></net>", &["expected IR version 10 or 11", "`7`"]);
    check("<net><layers/></net>", &["`version`", "missing"]);
}

#[test]
fn a_net_without_layers() {
    check("<net version='11'/>", &["<net> has no <layers>"]);
}

#[test]
fn a_billion_laughs() {
    let entities: String =
        (1..10).map(|i| format!("<!ENTITY l{i} \"{}\">", format!("&l{};", i - 1).repeat(10))).collect();
    let bomb = format!("<!DOCTYPE net [<!ENTITY l0 \"lol\">{entities}]><net version='11' name='&l9;'><layers/></net>");
    check(&bomb, &["document type"]);
}

#[test]
fn nesting_without_end() {
    check(&format!("<net version='11'>{}", "<a>".repeat(1_000_000)), &["nested deeper than 256"]);
}

#[test]
fn runtime_information_nested_too_deep() {
    let deep = format!("<rt_info>{}{}</rt_info>", "<a>".repeat(300), "</a>".repeat(300));
    check(&net(11, "", &[], &deep), &["nested deeper than 256"]);
}

#[test]
fn layers_without_their_attributes() {
    for (missing, layer) in [
        ("id", r#"<layer name="n" type="ReLU" version="opset1"/>"#),
        ("name", r#"<layer id="3" type="ReLU" version="opset1"/>"#),
        ("type", r#"<layer id="3" name="n" version="opset1"/>"#),
        ("version", r#"<layer id="3" name="n" type="ReLU"/>"#),
    ] {
        check(&net(11, layer, &[], ""), &[&format!("attribute `{missing}` of <layer> is required"), "layer '"]);
    }
}

#[test]
fn an_id_that_is_not_a_number() {
    let bad = r#"<layer id="-1" name="n" type="ReLU" version="opset1"/>"#;
    check(&net(11, bad, &[], ""), &["layer 'n' (ReLU, id -1)", "`id`", "an integer from 0 on", "`-1`"]);
}

#[test]
fn the_same_id_twice() {
    let layers = parameter(3, "x") + &parameter(3, "y");
    check(&net(11, &layers, &[], ""), &["layer 'y' (Parameter, id 3)", "already that of layer 'x'"]);
}

#[test]
fn the_same_port_id_twice() {
    let join =
        r#"<layer id="1" name="j" type="Join" version="opset1"><input><port id="5"/><port id="5"/></input></layer>"#;
    check(&net(11, join, &[], ""), &["layer 'j'", "two input ports have the id 5"]);
}

#[test]
fn an_edge_to_a_layer_that_is_not_there() {
    let layers = parameter(0, "x") + &result(1, "out");
    check(&net(11, &layers, &[[0, 0, 7, 0]], ""), &["edge 0:0 to 7:0", "no layer with id 7"]);
}

#[test]
fn an_edge_to_a_port_that_is_not_there() {
    let layers = parameter(0, "x") + &result(1, "out");
    check(&net(11, &layers, &[[0, 0, 1, 3]], ""), &["layer 'out' (Result, id 1) has no input port 3", "are: 0"]);
    check(&net(11, &layers, &[[0, 2, 1, 0]], ""), &["layer 'x' (Parameter, id 0) has no output port 2"]);
}

#[test]
fn an_edge_without_all_its_ends() {
    let edges = r#"<edges><edge from-layer="0" from-port="0" to-layer="1"/></edges>"#;
    let layers = parameter(0, "x") + &result(1, "out");
    let xml = format!("<net version='11'><layers>{layers}</layers>{edges}</net>");
    check(&xml, &["edge 0:0 to 1:?", "`to-port` of <edge> is required"]);
}

#[test]
fn two_edges_into_one_input() {
    let layers = parameter(0, "x") + &parameter(5, "y") + &result(1, "out");
    check(&net(11, &layers, &[[0, 0, 1, 0], [5, 0, 1, 0]], ""), &["input 0 of layer 'out'", "already has an edge"]);
}

#[test]
fn a_gap_between_inputs() {
    let layers = parameter(0, "x") + &layer(1, "j", "Join", "", 2, &[""]) + &result(2, "out");
    let xml = net(11, &layers, &[[0, 0, 1, 1], [1, 2, 2, 0]], "");
    check(&xml, &["layer 'j' (Join, id 1)", "input 0 has no edge, but input 1 has one"]);
}

#[test]
fn an_input_too_few_or_too_many() {
    let layers = layer(1, "r", "ReLU", "", 0, &[""]) + &result(2, "out");
    check(&net(11, &layers, &[[1, 0, 2, 0]], ""), &["`r` (ReLU", "takes 1 inputs, found 0"]);
    let layers = parameter(0, "x") + &layer(1, "r", "ReLU", "", 2, &[""]) + &result(2, "out");
    check(&net(11, &layers, &[[0, 0, 1, 0], [0, 0, 1, 1], [1, 2, 2, 0]], ""), &["takes 1 inputs, found 2"]);
}

#[test]
fn an_output_that_the_operation_does_not_have() {
    let layers = parameter(0, "x") + &layer(1, "r", "ReLU", "", 1, &["a", "b"]) + &result(2, "out");
    let xml = net(11, &layers, &[[0, 0, 1, 0], [1, 2, 2, 0]], "");
    check(&xml, &["layer 'out'", "reads output 1 of layer 'r' (ReLU, id 1), which has 1"]);
}

#[test]
fn an_edge_out_of_a_result() {
    let layers = parameter(0, "x") + &layer(1, "a", "Result", "", 1, &[""]) + &result(2, "b");
    check(&net(11, &layers, &[[0, 0, 1, 0], [1, 1, 2, 0]], ""), &["layer 'a' (Result, id 1) is a result"]);
}

#[test]
fn a_cycle() {
    let layers = layer(0, "a", "ReLU", "", 1, &[""]) + &layer(1, "b", "ReLU", "", 1, &[""]) + &result(2, "out");
    let xml = net(11, &layers, &[[0, 1, 1, 0], [1, 1, 0, 0], [1, 1, 2, 0]], "");
    check(&xml, &["cycle of 2 layers", "'a'", "'b'"]);
}

#[test]
fn a_layer_that_reads_itself() {
    let layers = layer(0, "a", "ReLU", "", 1, &[""]) + &result(2, "out");
    check(&net(11, &layers, &[[0, 1, 0, 0], [0, 1, 2, 0]], ""), &["cycle of 1 layers: 'a'"]);
}

#[test]
fn a_parameter_without_data() {
    let layers = layer(0, "x", "Parameter", "", 0, &[""]) + &result(1, "out");
    check(&net(11, &layers, &[[0, 0, 1, 0]], ""), &["layer 'x' (Parameter, id 0)", "`shape` is required"]);
}

#[test]
fn a_parameter_with_a_negative_or_endless_dimension() {
    for shape in ["-2", "1,-5", "99999999999999999999", "5..2", "1,,2", "a"] {
        let layers = layer(0, "x", "Parameter", &format!(r#"shape="{shape}" element_type="f32""#), 0, &[""]);
        check(&net(11, &layers, &[], ""), &["layer 'x' (Parameter, id 0)", "`shape`"]);
    }
}

#[test]
fn a_port_with_a_negative_dimension() {
    let relu = r#"<layer id="1" name="r" type="ReLU" version="opset1"><input><port id="0"/></input>
        <output><port id="1" precision="FP32"><dim>-7</dim></port></output></layer>"#;
    check(&chain(relu), &["layer 'r'", "output port 0", "found `-7`"]);
}

#[test]
fn a_port_with_an_unknown_precision() {
    let relu = r#"<layer id="1" name="r" type="ReLU" version="opset1"><input><port id="0"/></input>
        <output><port id="1" precision="FP33"/></output></layer>"#;
    check(&chain(relu), &["layer 'r'", "`FP33`"]);
}

#[test]
fn attributes_of_the_wrong_kind() {
    for (data, part) in [
        (r#"axis="one""#, "`axis`: expected an integer, found `one`"),
        (r#"axis="1.5""#, "`axis`: expected an integer, found `1.5`"),
        (r#"axis="9999999999999999999999""#, "`axis`"),
        (r#"alpha="fast""#, "`alpha`: expected a number, found `fast`"),
        (r#"flag="perhaps""#, "`flag`: expected true or false"),
        (r#"sizes="1,x""#, "`sizes`: expected an integer, found `x`"),
    ] {
        check(&chain(&layer(1, "j", "Join", data, 1, &[""])), &["layer 'j' (Join, id 1)", part]);
    }
    check(&chain(&layer(1, "c", "Convert", r#"destination_type="f33""#, 1, &[""])), &["an element type, found `f33`"]);
    check(&chain(&layer(1, "c", "Convert", "", 1, &[""])), &["`destination_type` is required"]);
}

#[test]
fn constants_past_the_end_of_the_weights() {
    let data = r#"element_type="f32" shape="2" offset="0" size="8""#;
    let error = read_with(&constant(data), &[0; 7]).unwrap_err().to_string();
    assert!(error.contains("layer 'c' (Const, id 4)"), "{error}");
    assert!(error.contains("offset 0 and size 8 reach past the weights, which have 7 bytes"), "{error}");
    let error = read_with(&constant(&data.replace("offset=\"0\"", "offset=\"100\"")), &[0; 8]).unwrap_err().to_string();
    assert!(error.contains("offset 100 and size 8"), "{error}");
}

#[test]
fn constants_whose_offset_and_size_overflow() {
    let max = u64::MAX;
    check(&constant(&format!(r#"element_type="u8" shape="1" offset="{max}" size="{max}""#)), &["reach past"]);
    check(&constant(&format!(r#"element_type="u8" shape="1" offset="{max}0" size="1""#)), &["`offset`"]);
    check(&constant(r#"element_type="u8" shape="1" offset="-1" size="1""#), &["`offset`", "from 0 on"]);
}

#[test]
fn constants_with_too_few_bytes() {
    let error = read_with(&constant(r#"element_type="f32" shape="2, 3" offset="0" size="20""#), &[0; 64]).unwrap_err();
    assert!(error.to_string().contains("need 24 bytes, found 20"), "{error}");
}

#[test]
fn constants_of_2_to_the_60_elements() {
    for shape in ["1152921504606846976", "1073741824, 1073741824", "4294967296, 4294967296, 4294967296"] {
        for ty in ["f32", "u8", "u1", "string"] {
            let data = format!(r#"element_type="{ty}" shape="{shape}" offset="0" size="64""#);
            let error = read_with(&constant(&data), &[0; 64]).unwrap_err().to_string();
            assert!(error.contains("layer 'c' (Const, id 4)"), "{error}");
        }
    }
}

#[test]
fn constants_with_a_negative_or_unknown_dimension() {
    for shape in ["-1", "2,-3", "?", "..."] {
        let data = format!(r#"element_type="f32" shape="{shape}" offset="0" size="4""#);
        check(&constant(&data), &["layer 'c'", "expected sizes from 0 on", shape]);
    }
}

#[test]
fn constants_without_a_type_or_of_none() {
    check(&constant(r#"shape="1" offset="0" size="4""#), &["`element_type`", "required"]);
    check(&constant(r#"element_type="f33" shape="1" offset="0" size="4""#), &["`element_type`", "`f33`"]);
    check(&constant(r#"element_type="dynamic" shape="1" offset="0" size="0""#), &["layer 'c'", "dynamic"]);
    check(&constant(""), &["layer 'c'", "<data> is required"]);
}

#[test]
fn a_string_constant_whose_payload_lies() {
    let data = r#"element_type="string" shape="1" offset="0" size="12""#;
    let mut payload = vec![];
    [1i32, 0, 1_000_000].iter().for_each(|n| payload.extend(n.to_le_bytes()));
    let error = read_with(&constant(data), &payload).unwrap_err().to_string();
    assert!(error.contains("layer 'c'") && error.contains("string 0"), "{error}");
    let error = read_with(&constant(data), &i32::MAX.to_le_bytes().repeat(3)).unwrap_err().to_string();
    assert!(error.contains("string payload"), "{error}");
}

#[test]
fn an_assignment_to_a_variable_that_nothing_reads() {
    let assign = versioned(1, "write", "Assign", "opset6", r#"variable_id="v""#, 1, &[""]);
    let xml = net(11, &(parameter(0, "x") + &assign), &[[0, 0, 1, 0]], "");
    check(&xml, &["`write`", "variable `v`, which nothing reads"]);
}

#[test]
fn a_file_cut_anywhere() {
    let xml = chain(&layer(1, "r", "ReLU", "", 1, &["y"]));
    for end in (0..xml.len()).filter(|i| xml.is_char_boundary(*i)) {
        refused(&xml[..end]);
    }
}
