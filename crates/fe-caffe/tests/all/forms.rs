//! The same net in all the forms that Caffe had: old and new layers, inputs of three kinds, phases, text and bytes.

use crate::common::{
    Folder, Proto, blob, check, check_error, evaluate, is_caffe, layer, net, read, read_as, read_with, request, run,
    weights,
};
use carafe_fe_caffe::{Caffe, read_mean, read_mean_bytes};
use carafe_frontend::{Content, FormatOptions, Level, Log, Outputs, ReadRequest, Rule};
use carafe_graph::{AttrValue, Model};
use std::sync::{Arc, Mutex};

fn inputs(model: &Model) -> Vec<String> {
    model.parameters().iter().map(|p| model.parameter_name(*p)).collect()
}

fn outputs(model: &Model) -> Vec<String> {
    model.results().iter().map(|r| model.result_name(*r)).collect()
}

#[test]
fn old_layers_have_words_or_numbers_for_types() {
    for ty in ["INNER_PRODUCT", "14", "'InnerProduct'"] {
        let text = net(
            &[1, 2],
            &format!(
                "layers {{ name: 'f' type: {ty} bottom: 'x' top: 'y' blobs_lr: 1 weight_decay: 0 param: 'w'
                   inner_product_param {{ num_output: 1 }} }}"
            ),
        );
        let old_blob = Proto::new().int(1, 1).int(2, 1).int(3, 1).int(4, 2).packed_floats(5, &[2.0, 3.0]);
        let bias = Proto::new().int(4, 1).packed_floats(5, &[1.0]).int(1, 1).int(2, 1).int(3, 1);
        let stored = Proto::new().bytes(4, "f").int(5, 14).message(6, old_blob).message(6, bias);
        let weights = Proto::new().message(2, stored).0;
        check(run(text, Some(weights), &[(&[1, 2], &[1.0, 1.0])]), &[1, 1], &[6.0]);
    }
}

#[test]
fn the_first_format_is_refused_with_what_to_do() {
    let text = net(&[1, 2], "layers { layer { name: 'f' type: 'innerproduct' num_output: 1 } bottom: 'x' top: 'y' }");
    check_error(text, "line 2, column 1: the net is in the first format of Caffe");
}

#[test]
fn inputs_have_three_forms() {
    let relu = "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";
    for head in [
        "input: 'x' input_dim: 1 input_dim: 2",
        "input: 'x' input_shape { dim: 1 dim: 2 }",
        "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }",
        "layer { name: 'in' type: 'input' top: 'x' input_param { shape: { dim: [1, 2] } } }",
    ] {
        let model = read(format!("{head} {relu}")).unwrap();
        assert_eq!(inputs(&model), ["x"]);
        assert_eq!(model.fact(model.parameters()[0].into()).shape.to_string(), "1,2");
    }
    let two = "input: 'a' input: 'x' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4 input_dim: 5 input_dim: 6
        input_dim: 7 input_dim: 8";
    let model = read(format!("{two} {relu}")).unwrap();
    assert_eq!(inputs(&model), ["a", "x"]);
    assert_eq!(model.fact(model.parameters()[1].into()).shape.to_string(), "5,6,7,8");
    check_error(format!("{two} input_dim: 9 {relu}"), "2 inputs and 9 of `input_dim`");
    let model = read(format!("input: 'x' input_shape {{ dim: -1 dim: 2 }} {relu}")).unwrap();
    assert_eq!(model.fact(model.parameters()[0].into()).shape.to_string(), "?,2");
}

#[test]
fn inputs_of_one_name_are_told_apart() {
    let text = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } } \
                layer { name: 'more' type: 'Input' bottom: 'x' top: 'a' top: 'x' input_param { shape { dim: 1 } } } \
                layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'x' top: 's' }";
    let model = read(text).unwrap();
    carafe_graph::verify(&model).unwrap();
    let names: Vec<&str> = model.parameters().iter().map(|p| model.node(*p).name()).collect();
    assert_eq!(names, ["x", "a", "x_1"]);
}

#[test]
fn an_input_is_found_by_the_name_of_its_layer_and_of_its_blob() {
    let text = "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }
        layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";
    let model = read(text).unwrap();
    assert!(model.find_parameter("x").is_some() && model.find_parameter("in").is_some());
    assert!(model.find_result("y").is_some() && model.find_node("r").is_some());
}

#[test]
fn layers_in_place_pass_their_name_on() {
    let text = net(
        &[1, 2],
        "layer { name: 'p' type: 'Power' bottom: 'x' top: 'y' power_param { shift: -1 } }
         layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'y' }
         layer { name: 'd' type: 'Dropout' bottom: 'y' top: 'y' dropout_param { dropout_ratio: 0.5 } }
         layer { name: 'q' type: 'Power' bottom: 'y' top: 'y' power_param { scale: 10 } }",
    );
    let model = read(text).unwrap();
    assert_eq!(outputs(&model), ["y"]);
    let holders = model.nodes().filter(|(_, n)| n.outputs().iter().any(|o| o.names.contains("y"))).count();
    assert_eq!(holders, 2, "the last layer and the result");
    check(evaluate(&model, &[(&[1, 2], &[0.0, 3.0])]).remove(0), &[1, 2], &[0.0, 20.0]);
}

#[test]
fn outputs_are_what_nothing_reads_in_the_order_of_the_file() {
    let text = net(
        &[1, 4],
        "layer { name: 's' type: 'Slice' bottom: 'x' top: 'd' top: 'c' top: 'b' top: 'a' }
         layer { name: 'e' type: 'ReLU' bottom: 'c' top: 'z' }
         layer { name: 'q' type: 'Silence' bottom: 'b' }",
    );
    assert_eq!(outputs(&read(text).unwrap()), ["d", "a", "z"]);
}

#[test]
fn phases_levels_and_stages_choose_layers() {
    let kept = |rules: &str, state: &str| {
        let text = format!(
            "{state} input: 'x' input_shape {{ dim: 1 }} layer {{ name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }}
             layer {{ name: 't' type: 'ReLU' bottom: 'x' top: 'z' {rules} }}"
        );
        outputs(&read(text).unwrap()).len() == 2
    };
    assert!(kept("", ""));
    assert!(kept("include { phase: TEST }", ""));
    assert!(!kept("include { phase: TRAIN }", ""));
    assert!(!kept("include { phase: 0 }", ""));
    assert!(kept("include { phase: TRAIN } include { phase: TEST }", ""));
    assert!(kept("exclude { phase: TRAIN }", ""));
    assert!(!kept("exclude { phase: TEST }", ""));
    assert!(!kept("include { stage: 'deploy' }", ""));
    assert!(kept("include { stage: 'deploy' }", "state { stage: 'deploy' }"));
    assert!(!kept("include { not_stage: 'deploy' }", "state { stage: 'deploy' }"));
    assert!(!kept("include { min_level: 1 }", ""));
    assert!(kept("include { min_level: 1 max_level: 3 }", "state { level: 2 }"));
    // `phase` of the layer itself is no rule.
    assert!(kept("phase: TRAIN", ""));
    let both = net(&[1], "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' include { } exclude { } }");
    check_error(both, "has both `include` and `exclude`");
}

#[test]
fn a_caffemodel_alone_is_a_net() {
    let conv = Proto::new().int(1, 1).int(4, 2).int(6, 1).int(2, 0);
    let input = Proto::new().message(1, Proto::new().packed_ints(1, &[1, 1, 3, 3]));
    let swish = Proto::new().float(1, 2.0);
    let bytes = Proto::new()
        .bytes(1, "net")
        .message(100, Proto::new().bytes(1, "in").bytes(2, "Input").bytes(4, "x").message(143, input))
        .message(
            100,
            layer("c", "Convolution", &[blob(&[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0])])
                .bytes(3, "x")
                .bytes(4, "c")
                .message(106, conv),
        )
        .message(100, layer("s", "Swish", &[]).bytes(3, "c").bytes(4, "y").message(147, swish))
        .0;
    assert!(is_caffe(&bytes));
    let x: Vec<f32> = (0..9).map(|v| v as f32 / 10.0).collect();
    let y: Vec<f32> = [0.4f32, 0.6, 1.0, 1.2].iter().map(|v| v / (1.0 + (-2.0 * v).exp())).collect();
    check(run(bytes, None, &[(&[1, 1, 3, 3], &x)]), &[1, 1, 2, 2], &y);
}

#[test]
fn blobs_may_be_unpacked_in_pieces_doubles_or_text() {
    let text = net(&[1, 2], "layer { name: 'l' type: 'Scale' bottom: 'x' top: 'y' }");
    let unpacked = Proto::new().float(5, 2.0).float(5, 3.0);
    let pieces = Proto::new().packed_floats(5, &[2.0]).packed_floats(5, &[3.0]).int(4, 2).int(1, 1).int(2, 1).int(3, 1);
    let doubles = Proto::new().packed_doubles(8, &[2.0, 3.0]).message(7, Proto::new().int(1, 2));
    for b in [unpacked, pieces, doubles] {
        let stored = weights(&[layer("l", "Scale", &[b])]);
        check(run(&text, Some(stored), &[(&[1, 2], &[1.0, 1.0])]), &[1, 2], &[2.0, 3.0]);
    }
    let stored = "layer { name: 'l' blobs { shape { dim: 2 } data: 2 data: 3 } }";
    check(run(&text, Some(stored.into()), &[(&[1, 2], &[1.0, 1.0])]), &[1, 2], &[2.0, 3.0]);
}

#[test]
fn weights_are_joined_by_the_first_of_a_name() {
    let text = net(&[1, 1], "layer { name: 'l' type: 'Scale' bottom: 'x' top: 'y' }");
    let stored = weights(&[
        layer("other", "Scale", &[blob(&[1], &[9.0])]),
        layer("l", "Scale", &[blob(&[1], &[2.0])]),
        layer("l", "Scale", &[blob(&[1], &[3.0])]),
    ]);
    check(run(text, Some(stored), &[(&[1, 1], &[1.0])]), &[1, 1], &[2.0]);
}

#[test]
fn files_find_each_other_by_name() {
    let folder = Folder::new("siblings");
    let text = net(&[1, 1], "layer { name: 'l' type: 'Scale' bottom: 'x' top: 'y' }");
    let prototxt = folder.write("m.prototxt", &text);
    let caffemodel = folder.write("m.caffemodel", weights(&[layer("l", "Scale", &[blob(&[1], &[2.0])])]));
    let other = folder.write("other.caffemodel", weights(&[layer("l", "Scale", &[blob(&[1], &[5.0])])]));
    let value = |request: &ReadRequest<'_>| {
        let model = carafe_frontend::read(&Caffe::default(), request).unwrap();
        evaluate(&model, &[(&[1, 1], &[1.0])])[0].1[0]
    };
    assert_eq!(value(&ReadRequest::new(&prototxt)), 2.0);
    assert_eq!(value(&ReadRequest::new(&caffemodel)), 2.0);
    assert_eq!(value(&ReadRequest { weights: Some(Content::File(&other)), ..ReadRequest::new(&prototxt) }), 5.0);
    let mut options = FormatOptions::default();
    options.set("input_proto", prototxt.display().to_string());
    assert_eq!(value(&ReadRequest { options: Some(&options), ..ReadRequest::new(&other) }), 5.0);
}

#[test]
fn a_forks_own_proto_file_gives_numbers_and_kinds() {
    let folder = Folder::new("proto");
    let proto = folder.write(
        "caffe.proto",
        "package caffe; message LayerParameter { optional string name = 1; optional string type = 2; repeated string bottom = 3;
           repeated string top = 4; optional MineParameter mine_param = 999; optional InputParameter input_param = 143; }
         message MineParameter { repeated float factor = 5; optional Kind kind = 6; enum Kind { A = 0; B = 1; } }",
    );
    let input = Proto::new().message(1, Proto::new().packed_ints(1, &[1]));
    let mine = Proto::new().float(5, 0.5).int(6, 1);
    let bytes = Proto::new()
        .message(100, Proto::new().bytes(1, "in").bytes(2, "Input").bytes(4, "x").message(143, input))
        .message(100, layer("m", "Mine", &[]).bytes(3, "x").bytes(4, "y").message(999, mine))
        .0;
    let path = folder.write("m.caffemodel", bytes);
    let seen = Arc::new(Mutex::new(vec![]));
    let into = seen.clone();
    let rules = [Rule::new("Mine", move |n| {
        into.lock().unwrap().extend(n.attrs().iter().map(|(k, v)| (k.to_string(), v.clone())));
        Ok(Outputs::from(n.input(0)?))
    })];
    let mut options = FormatOptions::default();
    options.set("caffe_parser_path", proto.display().to_string());
    let request = ReadRequest { rules: &rules, options: Some(&options), ..ReadRequest::new(&path) };
    carafe_frontend::read(&Caffe::default(), &request).unwrap();
    let wanted = [("factor".into(), AttrValue::Floats(vec![0.5])), ("kind".into(), AttrValue::Str("B".into()))];
    assert_eq!(*seen.lock().unwrap(), wanted);
}

/// Attributes, bottoms and blobs of a layer as a rule sees them.
fn seen(layer_type: &str, text: &str) -> Vec<(String, AttrValue)> {
    let seen = Arc::new(Mutex::new(vec![]));
    let into = seen.clone();
    let rules = [Rule::new(layer_type, move |n| {
        into.lock().unwrap().extend(n.attrs().iter().map(|(k, v)| (k.to_string(), v.clone())));
        assert_eq!(n.inputs_named("bottom")?.len(), 1);
        assert_eq!(n.inputs_named("blob")?.len(), 1);
        Ok(Outputs::from(n.inputs_named("bottom")?[0]))
    })];
    let text = net(&[1], &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {text} }}"));
    let stored = weights(&[layer("l", "", &[blob(&[1], &[1.0])])]);
    read_as(text, Some(stored), &ReadRequest { rules: &rules, ..request() }).unwrap();
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn a_custom_layer_shows_everything_it_says() {
    let text = "type: 'My_Layer' my_param { a: 1 b: 0.5 c: 'text' d: WORD e: true r: 1 r: 2 s: 1 s: 0.5
        inner { x: 3 deep { y: 4 } } inner { x: 5 } } other_param { a: 7 z: 1 } relu_param { negative_slope: 1 }";
    let found = seen("MyLayer", text);
    let wanted = [
        ("a", AttrValue::Int(1)),
        ("b", AttrValue::Float(0.5)),
        ("c", AttrValue::Str("text".into())),
        ("d", AttrValue::Str("WORD".into())),
        ("e", AttrValue::Bool(true)),
        ("r", AttrValue::Ints(vec![1, 2])),
        ("s", AttrValue::Floats(vec![1.0, 0.5])),
        ("inner__x", AttrValue::Int(3)),
        ("inner__deep__y", AttrValue::Int(4)),
        ("inner__1__x", AttrValue::Int(5)),
        ("other_param__a", AttrValue::Int(7)),
        ("z", AttrValue::Int(1)),
        ("negative_slope", AttrValue::Float(1.0)),
    ];
    let wanted: Vec<(String, AttrValue)> = wanted.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_python_layer_is_its_module_and_class() {
    let text = "type: 'Python' python_param { module: 'rpn.proposal' layer: 'Layer' param_str: \"'feat_stride': 16\" }";
    assert_eq!(seen("rpn.proposal.Layer", text), [("feat_stride".to_string(), AttrValue::Int(16))]);
    let text = net(&[1], &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {text} }}"));
    check_error(text, "`rpn.proposal.Layer`");
}

#[test]
fn messages_of_other_layers_are_not_looked_at() {
    let text = net(&[1, 2], "layer { name: 'l' type: 'ReLU' bottom: 'x' top: 'y' power_param { power: 3 } }");
    assert!(read(text).is_ok());
    let text = net(&[1, 2], "layer { name: 'l' type: 'ReLU' bottom: 'x' top: 'y' relu_param { slope: 3 } }");
    check_error(text, "attributes `slope` = 3 are not understood");
}

#[test]
fn a_users_rule_goes_first() {
    let rules = [Rule::new("ReLU", |n| Ok(Outputs::from(n.input(0)?)))];
    let text = net(&[1], "layer { name: 'l' type: 'ReLU' bottom: 'x' top: 'y' }");
    let model = read_as(text, None, &ReadRequest { rules: &rules, ..request() }).unwrap();
    check(evaluate(&model, &[(&[1], &[-3.0])]).remove(0), &[1], &[-3.0]);
}

#[test]
fn unknown_layers_can_be_kept_to_look_at() {
    let text = net(
        &[1, 3, 4, 4],
        "layer { name: 'm' type: 'Mine' bottom: 'x' top: 'y' mine_param { a: 1 } }
         layer { name: 'p' type: 'Pooling' bottom: 'y' top: 'z' pooling_param { kernel_size: 2 } }",
    );
    let request = ReadRequest { keep_unknown: true, explain: true, ..request() };
    let model = read_as(text, None, &request).unwrap();
    carafe_graph::verify(&model).unwrap();
    assert_eq!(outputs(&model), ["z"]);
    let node = model.node(model.find_node("m").unwrap());
    assert!(node.op().is::<carafe_graph::FrameworkNode>());
    assert_eq!(carafe_frontend::Explained::of(node).unwrap().source_type, "Mine");
}

#[test]
fn formats_are_told_apart() {
    assert!(is_caffe(b"# a comment\nname: \"net\"\nlayer { name: 'a' type: 'ReLU' }"));
    assert!(is_caffe(b"name: 'net' input: 'data' input_dim: 1"));
    assert!(is_caffe(b"layers { type: DATA"));
    assert!(is_caffe(b"force_backward: true input: \"x\""));
    assert!(is_caffe(b"name: 'n' state { phase: TEST } layer { "));
    // ONNX, TensorFlow, solvers, other text.
    assert!(!is_caffe(b"ir_version: 8 graph { node { } }"));
    assert!(!is_caffe(b"node { name: 'a' op: 'Relu' }"));
    assert!(!is_caffe(b"net: 'train.prototxt' base_lr: 0.1"));
    assert!(!is_caffe(b"name: 'something'"));
    assert!(!is_caffe(b"name: 'x' node { }"));
    assert!(!is_caffe(b"input is a word"));
    assert!(!is_caffe(b"<?xml version='1.0'?><net name='a'>"));
    assert!(!is_caffe(b"{ \"layer\": 1 }"));
    assert!(!is_caffe(b"") && !is_caffe(b"\xff\xff\xff") && !is_caffe(&[0; 64]));
    assert!(is_caffe(&weights(&[layer("a", "ReLU", &[])])));
    let old =
        Proto::new().bytes(1, "net").message(2, Proto::new().bytes(2, "x").bytes(3, "y").bytes(4, "a").int(5, 18)).0;
    assert!(is_caffe(&old));
    let big = weights(&[layer("a", "InnerProduct", &[blob(&[1000], &[0.5; 1000])])]);
    assert!(is_caffe(&big[..500]));
    // An ONNX model: version, producer, graph. A TensorFlow graph: nodes.
    let onnx = Proto::new().int(1, 8).bytes(2, "maker").message(7, Proto::new().bytes(2, "g"));
    assert!(!is_caffe(&onnx.0));
    let tf = Proto::new().message(1, Proto::new().bytes(1, "a").bytes(2, "Relu")).message(4, Proto::new().int(1, 21));
    assert!(!is_caffe(&tf.0));
    let tf_library = Proto::new().message(2, Proto::new().message(1, Proto::new().bytes(1, "f")));
    assert!(!is_caffe(&tf_library.0));
    assert!(!is_caffe(&blob(&[1, 2], &[1.0, 2.0]).0));
}

#[test]
fn a_mean_file_gives_channels_and_size() {
    let old = Proto::new().int(1, 1).int(2, 2).int(3, 1).int(4, 2).packed_floats(5, &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read_mean_bytes(old.0.clone()).unwrap(), (vec![2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]));
    let new = blob(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read_mean_bytes(new.0).unwrap().0, [2, 1, 2]);
    let folder = Folder::new("mean");
    assert_eq!(read_mean(&folder.write("m.binaryproto", &old.0)).unwrap().0, [2, 1, 2]);
    let wrong = folder.write("wrong.binaryproto", blob(&[3], &[1.0]).0);
    assert!(read_mean(&wrong).unwrap_err().to_string().contains("has 1 values, its shape [3] takes 3"));
    let cut = folder.write("cut.binaryproto", &old.0[..old.0.len() - 1]);
    assert!(read_mean(&cut).unwrap_err().to_string().contains("cut off"));
    let empty = folder.write("empty.binaryproto", b"");
    assert!(read_mean(&empty).is_err());
    assert!(read_mean(&folder.0.join("absent")).is_err());
}

#[test]
fn layers_of_one_name_are_told_apart() {
    let text = net(
        &[1],
        "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'y' } layer { name: 'a' type: 'TanH' bottom: 'y' top: 'z' }",
    );
    let model = read_with(text, None).unwrap();
    assert!(model.find_node("a").is_some() && model.find_node("a_1").is_some());
}

// The model of a net with these weights, and what was warned of.
fn read_warned(text: &str, stored: Vec<u8>) -> (Model, Vec<String>) {
    let warned = Mutex::new(vec![]);
    let hear = |_: Level, text: &str| warned.lock().unwrap().push(text.to_string());
    let request = ReadRequest { log: Log::to(&hear, false), ..request() };
    let model = read_as(text, Some(stored), &request).unwrap();
    (model, warned.into_inner().unwrap())
}

#[test]
fn parameters_of_one_name_are_one_blob() {
    let full = |name: &str, bottom: &str, p: &str| {
        format!(
            "layer {{ name: '{name}' type: 'InnerProduct' bottom: '{bottom}' top: '{name}' {p}
             inner_product_param {{ num_output: 1 }} }}"
        )
    };
    let both = "param { name: 'w' lr_mult: 1 } param { name: 'b' }";
    let text = net(&[1, 1], &format!("{}{}", full("one", "x", both), full("two", "one", both)));
    let stored = |name: &str, w: f32, b: f32| layer(name, "InnerProduct", &[blob(&[1, 1], &[w]), blob(&[1], &[b])]);
    let found = |stored: &[Proto]| {
        let (model, warned) = read_warned(&text, weights(stored));
        (evaluate(&model, &[(&[1, 1], &[1.0])]).remove(0).1[0], warned)
    };
    // 2 * (2 * 1 + 1) + 1, whoever has them.
    assert_eq!(found(&[stored("one", 2.0, 1.0)]), (7.0, vec![]));
    assert_eq!(found(&[stored("two", 2.0, 1.0)]), (7.0, vec![]));
    assert_eq!(found(&[stored("one", 2.0, 1.0), stored("two", 2.0, 1.0)]), (7.0, vec![]));
    // The last one that is read counts.
    let (value, warned) = found(&[stored("one", 9.0, 1.0), stored("two", 2.0, 1.0)]);
    assert_eq!(value, 7.0);
    assert!(warned.len() == 1 && warned[0].contains("share the parameter `w`"), "{warned:?}");
    assert_eq!(found(&[stored("two", 9.0, 1.0), stored("one", 2.0, 1.0)]).0, 7.0);
    // The weight alone is shared.
    let own = "param { name: 'w' }";
    let text = net(&[1, 1], &format!("{}{}", full("one", "x", own), full("two", "one", own)));
    let (model, _) = read_warned(&text, weights(&[stored("one", 2.0, 1.0), stored("two", 2.0, 5.0)]));
    check(evaluate(&model, &[(&[1, 1], &[1.0])]).remove(0), &[1, 1], &[11.0]);
}

#[test]
fn old_layers_share_by_plain_names() {
    let full = |name: &str, bottom: &str| {
        format!(
            "layers {{ name: '{name}' type: INNER_PRODUCT bottom: '{bottom}' top: '{name}' param: 'w' param: 'b'
             inner_product_param {{ num_output: 1 }} }}"
        )
    };
    let text = net(&[1, 1], &format!("{}{}", full("one", "x"), full("two", "one")));
    let stored = layer("one", "", &[blob(&[1, 1], &[2.0]), blob(&[1], &[1.0])]);
    check(run(text, Some(weights(&[stored])), &[(&[1, 1], &[1.0])]), &[1, 1], &[7.0]);
}

#[test]
fn weights_of_another_layer_type_are_warned_of() {
    let text = net(
        &[1, 1],
        "layer { name: 'f' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 1 bias_term: false } }",
    );
    let stored = |ty: &str| weights(&[layer("f", ty, &[blob(&[1, 1], &[2.0])])]);
    let (_, warned) = read_warned(&text, stored("Convolution"));
    assert!(warned.len() == 1 && warned[0].contains("stored by a layer of type `Convolution`"), "{warned:?}");
    for ty in ["InnerProduct", "INNER_PRODUCT", ""] {
        assert_eq!(read_warned(&text, stored(ty)).1, Vec::<String>::new());
    }
}
