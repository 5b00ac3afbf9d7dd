//! Nets that are broken or mean nothing: each is refused with its place, and nothing panics.

use crate::common::{
    Proto, blob, check_error, check_layer_error, is_caffe, layer, net, read, read_as, read_with, request, weights,
};
use carafe_frontend::ReadRequest;

const RELU: &str = "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";

#[test]
fn slips_in_the_text_have_a_line_and_a_column() {
    check_error("layer {\n  name: 'a'\n  type 'ReLU'\n}", "line 3, column 8");
    check_error("layer {\n  name: 'a'", "line 2, column 12: expected `}`, found the end");
    check_error("layer { name: 'a\n' }", "line 1, column 15: the string does not end");
    check_error("input: 'x'\nlayer: 3", "line 2, column 1: `layer` must be a message, found `3`");
    check_error("layer {\n name: 3 type: 'ReLU' }", "line 2, column 2: `name` must be a string, found `3`");
    check_error("layer { name: 'a' }", "line 1, column 1: layer `a` has no `type`");
    check_error("layers { name: 'a' type: 77 }", "there is no layer type 77");
    let deep = format!("layer {{ {} }}", "p {".repeat(500));
    check_error(deep, "nested deeper than 100");
    check_error(&b"layer { name: '\xff\xfe' }\n"[..], "line 1, column 16: the byte 0xff is no UTF-8");
    check_error("name: 'x'", "the net has no layers");
    check_error("", "the net has no layers");
}

#[test]
fn values_of_another_kind_are_told_with_their_place() {
    let conv = |p: &str| {
        net(
            &[1, 1, 4, 4],
            &format!("layer {{ name: 'c' type: 'Convolution' bottom: 'x' top: 'y'\n convolution_param {{ {p} }} }}"),
        )
    };
    check_error(
        conv("num_output: 'two'"),
        "line 3, column 22: `num_output` must be a whole number, not negative, found a string",
    );
    check_error(conv("num_output: -2"), "not negative, found `-2`");
    check_error(conv("num_output: 1.5"), "found `1.5`");
    check_error(conv("num_output: 99999999999"), "beyond any size or axis");
    check_error(conv("bias_term: maybe"), "`bias_term` must be true or false, found `maybe`");
    check_error(conv("weight_filler: 3"), "`weight_filler` must be a message, found `3`");
    check_error(conv("kernel_size: 3"), "`num_output` is required and missing");
    check_error(conv("num_output: 1"), "has neither `kernel_size` nor `kernel_h` and `kernel_w`");
    check_error(conv("num_output: 0 kernel_size: 1"), "`num_output` must be from 1 to");
    check_error(conv("num_output: 1 kernel_size: 0"), "`kernel_size` must be from 1 to");
    check_error(conv("num_output: 1 kernel_size: 1 stride: 0"), "`stride` must be from 1 to");
    check_error(conv("num_output: 1 kernel_size: 1 group: 3"), "do not fall into 3 groups");
    check_error(conv("num_output: 1 kernel_size: [1, 1, 1]"), "3 values for 2 spatial axes");
    check_error(conv("num_output: 1 kernel_size: 1 axis: 9"), "axis");
    check_error(conv("num_output: 1 kernel_h: 1"), "`kernel_w` is missing");
    check_error(conv("num_output: 4294967295 kernel_size: 1"), "`num_output` must be from 1 to");
    check_error(conv("num_output: 2147483647 kernel_size: 2147483647"), "give the `.caffemodel`");
    check_error(
        conv("num_output: 2147483647 kernel_size: 2147483647 weight_filler { type: 'constant' }"),
        "too large to be filled",
    );
    let pool = net(
        &[1, 1, 4, 4],
        "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { pool: 9 kernel_size: 1 } }",
    );
    check_error(pool, "`pool` must be a word of its list, found `9`");
}

#[test]
fn blobs_come_from_somewhere_and_only_once() {
    check_error(
        net(&[1], "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'y' }"),
        "bottom `a` is produced by no layer",
    );
    let late =
        "layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'z' } layer { name: 's' type: 'ReLU' bottom: 'x' top: 'y' }";
    check_error(net(&[1], late), "layer `r` (ReLU, line 2): bottom `y` is produced by a later layer");
    let twice =
        "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' } layer { name: 's' type: 'ReLU' bottom: 'x' top: 'y' }";
    check_error(net(&[1], twice), "top `y` was already produced by layer `r`");
    check_error(
        net(&[1], "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' top: 'z' }"),
        "gives 1 tops, the net names 2",
    );
    check_error(net(&[1], "layer { name: 'r' type: 'ReLU' top: 'y' }"), "takes one bottom, has 0");
    check_error(net(&[1], "layer { name: 'r' type: 'Silence' bottom: 'x' }"), "has no outputs");
    check_error("input: 'x' input: 'x' input_shape { dim: 1 } ".to_string() + RELU, "top `x` was already produced");
}

#[test]
fn files_that_are_no_nets_say_what_they_are() {
    check_error("name: 'a'", "neither `layer` nor `layers`");
    check_error("net: 'x.prototxt'\nbase_lr: 0.1", "this is a solver");
    check_error("", "neither `layer` nor `layers`");
    check_error(&[0u8; 40][..], "not a valid caffemodel");
}

#[test]
fn shapes_of_inputs_are_checked() {
    check_error(net(&[1, 0], RELU), "the dimension 0 of an input must be from 1 to");
    check_error(net(&[1, -2], RELU), "the dimension -2");
    check_error(net(&[i64::MAX], RELU), "of an input must be from 1 to");
    check_error(net(&[1; 40], RELU), "40 dimensions");
    check_error(format!("input: 'x' input_shape {{ dim: 'a' }} {RELU}"), "a dimension must be a whole number");
    check_error(
        format!(
            "input: 'x' input: 'z' input_shape {{ dim: 1 }} input_shape {{ dim: 1 }} input_shape {{ dim: 1 }} {RELU}"
        ),
        "2 inputs and 3",
    );
    let shapes = "layer { name: 'i' type: 'Input' top: 'x' input_param { shape { dim: 1 } shape { dim: 1 } } }";
    check_error(format!("{shapes} {RELU}"), "1 tops and 2 shapes");
    // Sizes that multiply beyond memory are shapes all the same; nothing of that size is made.
    assert!(read(net(&[2147483647; 8], RELU)).is_ok());
}

#[test]
fn training_nets_are_refused_with_what_to_do() {
    let text = "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TEST } }
        layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 2 } }
        layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' }
        layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }";
    let found = read(text).unwrap_err();
    for wanted in [
        "deploy.prototxt",
        "`data` (Data) read their data from files",
        "`Input` layer",
        "`accuracy` (Accuracy), `loss` (SoftmaxWithLoss) compare with labels",
        "`Softmax` stands for `SoftmaxWithLoss`",
    ] {
        assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
    }
}

#[test]
fn all_unknown_layers_are_told_at_once() {
    let text = net(
        &[1],
        "layer { name: 'a' type: 'Foo' bottom: 'x' top: 'a' } layer { name: 'b' type: 'Foo' bottom: 'a' top: 'b' }
         layer { name: 'c' type: 'Bar' bottom: 'b' top: 'c' }",
    );
    let found = read(text).unwrap_err();
    assert!(found.contains("3 nodes of 2 operations cannot be translated"), "{found}");
    assert!(found.contains("2 x `Foo`") && found.contains("`a`, `b`") && found.contains("1 x `Bar`"), "{found}");
}

#[test]
fn stored_blobs_are_checked() {
    let scale = "type: 'Scale'";
    check_layer_error(
        &[1, 2],
        scale,
        &[blob(&[3], &[1.0, 2.0])],
        "stored blob `weights`: has 2 values, its shape [3] takes 3",
    );
    check_layer_error(&[1, 2], scale, &[blob(&[-2, -1], &[1.0, 2.0])], "negative dimension -2");
    check_layer_error(&[1, 2], scale, &[blob(&[i64::MAX, i64::MAX], &[1.0])], "more than memory holds");
    check_layer_error(&[1, 2], scale, &[Proto::new().bytes(5, [1, 2, 3])], "3 bytes of floats are not whole numbers");
    check_layer_error(&[1, 2], scale, &[Proto::new().bytes(8, [1, 2, 3])], "3 bytes of doubles are not whole numbers");
    check_layer_error(
        &[1, 2],
        "type: 'Scale' scale_param { bias_term: true }",
        &[blob(&[2], &[1.0; 2])],
        "needs blob 1, 1 are stored",
    );
    check_layer_error(&[1, 2], "type: 'PReLU'", &[blob(&[3], &[1.0; 3])], "blob 0 has 3 values, expected 2 = [2]");
    check_layer_error(&[1, 2, 1, 1], "type: 'BatchNorm'", &[blob(&[2], &[1.0; 2])], "needs blob 1");
    let stored = [blob(&[2], &[1.0; 2]), blob(&[2], &[1.0; 2]), blob(&[0], &[])];
    check_layer_error(&[1, 2, 1, 1], "type: 'BatchNorm'", &stored, "blob 2 must hold the divisor");
}

#[test]
fn a_blob_of_the_net_may_have_the_name_of_a_stored_one() {
    let text = net(
        &[1, 1],
        "layer { name: 'p' type: 'Power' bottom: 'x' top: 's/weights' }
         layer { name: 's' type: 'Scale' bottom: 's/weights' top: 'y' }",
    );
    let stored = weights(&[layer("s", "Scale", &[blob(&[1], &[2.0])])]);
    crate::common::check(crate::common::run(text, Some(stored), &[(&[1, 1], &[3.0])]), &[1, 1], &[6.0]);
}

// A net with most kinds of fields, in bytes.
fn sample() -> Vec<u8> {
    let conv = Proto::new().int(1, 2).int(4, 2).int(6, 1).message(7, Proto::new().bytes(1, "xavier"));
    let input = Proto::new().message(1, Proto::new().packed_ints(1, &[1, 1, 3, 3]));
    let blobs = [blob(&[2, 1, 2, 2], &[0.5; 8]), blob(&[2], &[1.0, 2.0])];
    Proto::new()
        .bytes(1, "net")
        .message(100, Proto::new().bytes(1, "in").bytes(2, "Input").bytes(4, "x").message(143, input))
        .message(100, layer("c", "Convolution", &blobs).bytes(3, "x").bytes(4, "c").message(106, conv))
        .message(100, layer("r", "ReLU", &[]).bytes(3, "c").bytes(4, "c").message(123, Proto::new().float(1, 0.1)))
        .message(
            100,
            layer("p", "Pooling", &[]).bytes(3, "c").bytes(4, "y").message(121, Proto::new().int(1, 1).int(2, 2)),
        )
        .0
}

#[test]
fn cut_and_changed_bytes_never_panic() {
    let bytes = sample();
    assert!(read(&bytes).is_ok());
    for n in 0..bytes.len() {
        let _ = is_caffe(&bytes[..n]);
        let _ = read(&bytes[..n]);
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[n] = value;
            let _ = read(&changed);
        }
    }
}

#[test]
fn cut_and_changed_weights_never_panic() {
    let text = net(&[1, 2], "layer { name: 'l' type: 'Scale' bottom: 'x' top: 'y' }");
    let bytes = weights(&[layer("l", "Scale", &[blob(&[2], &[1.0, 2.0])])]);
    for n in 0..bytes.len() {
        let _ = read_with(&text, Some(bytes[..n].to_vec()));
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[n] = value;
            let _ = read_with(&text, Some(changed));
        }
    }
}

#[test]
fn cut_text_never_panics() {
    let text = net(
        &[1, 3, 4, 4],
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 1 kernel_size: 2
           weight_filler { type: 'constant' value: 0.5 } } }
         layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
         layer { name: 'q' type: 'Python' bottom: 'p' top: 'q' python_param { module: 'a' layer: 'b' param_str: \"{'a': [1, 2]}\" } }",
    );
    let request = ReadRequest { keep_unknown: true, ..request() };
    for n in 0..text.len() {
        let _ = is_caffe(&text.as_bytes()[..n]);
        let _ = read_as(&text.as_bytes()[..n], None, &request);
    }
}

#[test]
fn many_fields_do_not_take_forever() {
    let many: String = (0..20_000).map(|i| format!("f{i}: 1 ")).collect();
    check_error(
        net(&[1], &format!("layer {{ name: 'm' type: 'ReLU' bottom: 'x' top: 'y' my_param {{ {many} }} }}")),
        "more than 4096",
    );
    let many: String =
        (0..5_000).map(|i| format!("layer {{ name: 'a' type: 'Dropout' bottom: 'x' top: 't{i}' }}\n")).collect();
    assert!(read(net(&[1], &many)).is_ok());
}

#[test]
fn a_layer_that_reads_itself_is_told_so() {
    check_error(
        net(&[1], "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' }"),
        "bottom `a` is its own top, and no layer before it produces `a`",
    );
}

#[test]
fn misspelt_parameters_are_named_with_their_place() {
    let pool = |p: &str| {
        let layer = format!("layer {{ name: 'p' type: 'Pooling' bottom: 'x' top: 'y'\n pooling_param {{ {p} }} }}");
        net(&[1, 1, 4, 4], &layer)
    };
    check_error(
        pool("kernel_sise: 2"),
        "line 3, column 18: `pooling_param` has no field `kernel_sise` (did you mean `kernel_size`?)",
    );
    check_error(pool("kernel_size: 2 strid: 2"), "line 3, column 33: `pooling_param` has no field `strid`");
}

#[test]
fn suggestions_for_unknown_layers_are_near() {
    let registry = carafe_graph::Registry::new();
    let request = ReadRequest { registry: Some(&registry), ..request() };
    let error = |ty: &str| {
        let layers = (0..12).map(|i| format!("layer {{ name: 'u{i}' type: '{ty}' bottom: 'x' top: 'y{i}' }}\n"));
        let text = net(&[1], &layers.collect::<String>());
        read_as(text, None, &request).unwrap_err().to_string()
    };
    let e = error("Zork");
    assert!(e.contains("12 x `Zork`") && e.contains("`u9` and 2 more, which") && !e.contains("did you mean"), "{e}");
    assert!(error("Softmaxx").contains("did you mean Softmax?"));
    let e = error("Python");
    assert!(e.contains("a Python layer needs `python_param"), "{e}");
}

#[test]
fn more_blobs_than_a_layer_reads_are_refused() {
    let conv = |p: &str| format!("type: 'Convolution' convolution_param {{ num_output: 1 kernel_size: 1 {p} }}");
    let (w, b) = (blob(&[1, 1, 1, 1], &[1.0]), blob(&[1], &[1.0]));
    let three = [w.clone(), b.clone(), b.clone()];
    check_layer_error(&[1, 1, 2, 2], &conv(""), &three, "takes 2 blobs as the net describes it, 3 are stored");
    let two = [w, b.clone()];
    check_layer_error(
        &[1, 1, 2, 2],
        &conv("bias_term: false"),
        &two,
        "takes one blob as the net describes it, 2 are stored",
    );
    check_layer_error(&[1, 1, 2, 2], "type: 'PReLU'", &[b.clone(), b.clone()], "takes one blob");
    check_layer_error(&[1, 1, 2, 2], "type: 'Scale'", &[b.clone(), b.clone()], "takes one blob");
    check_layer_error(&[1, 1, 2, 2], "type: 'BatchNorm'", &[b.clone(), b.clone(), b.clone(), b], "takes 3 blobs");
}

#[test]
fn a_blob_of_another_order_is_refused() {
    let values: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let conv = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 1 bias_term: false }";
    let turned = [blob(&[3, 2, 1, 1], &values)];
    check_layer_error(&[1, 3, 1, 1], conv, &turned, "blob 0 has the shape [3, 2, 1, 1], expected [2, 3, 1, 1]");
    let full = "type: 'InnerProduct' inner_product_param { num_output: 2 bias_term: false }";
    check_layer_error(&[1, 3], full, &[blob(&[3, 2], &values)], "blob 0 has the shape [3, 2], expected [2, 3]");
    // Axes that are joined or split leave the order alone, and old files have four.
    for shape in [&[1, 1, 2, 3][..], &[2, 3, 1, 1], &[6], &[2, 1, 3]] {
        for text in [conv, full] {
            let text = net(&[1, 3, 1, 1], &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {text} }}"));
            read_with(text, Some(weights(&[layer("l", "", &[blob(shape, &values)])]))).unwrap();
        }
    }
}

#[test]
fn sizes_have_two_limits() {
    let conv = |p: &str| format!("type: 'Convolution' convolution_param {{ {p} }}");
    let check = |text: &str, wanted: &str| check_layer_error(&[1, 1, 4, 4], text, &[], wanted);
    check(
        &conv("num_output: 1 kernel_size: 4294967295"),
        "`kernel_size` must be from 1 to 2147483647, found 4294967295",
    );
    check(
        &conv("num_output: 1 kernel_size: 3 pad: 4294967295"),
        "`pad` must be from 0 to 2147483647, found 4294967295",
    );
    check(
        &conv("num_output: 4000000000 kernel_size: 3"),
        "`num_output` must be from 1 to 2147483647, found 4000000000",
    );
    check("type: 'Pooling' pooling_param { kernel_size: 4294967295 }", "`kernel_size` must be from 1 to 2147483647");
    check(&conv("num_output: 0 kernel_size: 3"), "`num_output` must be from 1 to 2147483647, found 0");
}

#[test]
fn old_and_new_layers_in_one_net_are_refused() {
    let text = net(&[1, 2], &format!("{RELU}\nlayers {{ name: 's' type: RELU bottom: 'y' top: 'z' }}"));
    check_error(text, "line 3, column 1: the net has `layer` as well as `layers`");
}
