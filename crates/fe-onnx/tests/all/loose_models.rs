//! Models that are not written as ONNX asks: what nobody takes is refused with its node, what peers take is read with a
//! warning. The numbers of the latter are in `testkit/fixtures/onnx-loose`.

use crate::common::{Folder, check_error, graph, read, read_as, request};
use carafe_frontend::{Level, Log, ReadRequest};
use std::cell::RefCell;

/// The warnings while a model is read that must be read.
#[track_caller]
fn warnings(text: &str) -> Vec<String> {
    let heard = RefCell::new(vec![]);
    let hear = |level: Level, text: &str| {
        if level == Level::Warning {
            heard.borrow_mut().push(text.to_string());
        }
    };
    read_as(text, &ReadRequest { log: Log::to(&hear, false), ..request() }).expect("the model is read");
    heard.into_inner()
}

fn opset(version: i64, text: &str) -> String {
    format!("<ir_version: 8, opset_import: [\"\" : {version}]> g {text}")
}

#[test]
fn an_input_too_many_is_refused() {
    for op in ["Relu", "Sigmoid", "Abs", "Softmax", "HardSwish", "Celu", "Transpose", "Shape", "LeakyRelu"] {
        let text = opset(24, &format!("(float[2] x, float[2] z) => (float[2] y) {{ [n] y = {op} (x, z) }}"));
        check_error(text, "has 2 inputs, the operation takes 1 input: `z` would have no effect");
    }
    let swish = opset(24, "(float[2] x, float[1] z) => (float[2] y) { y = Swish (x, z) }");
    check_error(swish, "`z` would have no effect");
    let add = opset(14, "(float[2] x, float[2] z) => (float[2] y) { y = Add (x, x, z) }");
    check_error(add, "has 3 inputs, the operation takes 2 inputs: `z` would have no effect");
}

#[test]
fn inputs_left_out_at_the_end_are_no_inputs() {
    assert!(read(graph("g (float[2] x) => (float[2] y) { y = Relu (x, \"\", \"\") }")).is_ok());
}

#[test]
fn an_operation_of_a_later_opset_is_taken_with_one_warning() {
    let text = opset(
        11,
        "(float[2,4] x, float[4] s) => (float[2,4] y) { a = LayerNormalization (x, s) [second] y = LayerNormalization (a, s) }",
    );
    let wanted =
        "node `a`: LayerNormalization exists from opset 17 on, the model imports 11; it is taken as of opset 17";
    assert_eq!(warnings(&text), [wanted]);
}

#[test]
fn the_operations_that_peers_take_in_older_models_are_read() {
    let one = |op: &str| format!("(float[2,3,4] x) => (float[N,M,K] y) {{ y = {op} (x) }}");
    let ints = |op: &str| format!("(int64[2] x, int64[2] z) => (int64[2] y) {{ y = {op} (x, z) }}");
    let texts = [
        one("Mish"),
        one("Sign"),
        ints("BitwiseOr"),
        "(float[2,1] x, int64[2] s) => (float[N,M] y) { y = Expand (x, s) }".to_string(),
        "(float[2,3,1] x) => (float[N,M,K] y) { y = DFT <axis = 1> (x) }".to_string(),
        "(float[2,3] x, int64[1,1] i) => (float[N,M] y) { y = GatherND (x, i) }".to_string(),
        "(float[2] x, int64[1,1] i, float[1] u) => (float[N] y) { y = ScatterND (x, i, u) }".to_string(),
    ];
    for text in texts {
        assert_eq!(warnings(&opset(7, &text)).len(), 1, "{text}");
    }
}

#[test]
fn a_kernel_shape_must_fit_the_weights() {
    for op in ["Conv", "ConvTranspose"] {
        let text = format!(
            "g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,A,B] y) {{ y = {op} <kernel_shape = [2, 2]> (x, w) }}"
        );
        check_error(graph(&text), "attribute `kernel_shape` is [2, 2], the weights are [1,1,3,3]");
    }
}

#[test]
fn a_hidden_size_must_fit_the_weights() {
    for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
        let rows = 2 * gates;
        let text = format!(
            "g (float[2,1,3] x, float[1,{rows},3] w, float[1,{rows},2] r) => (float[A,B,C,D] y) {{ y = {op} <hidden_size = 5> (x, w, r) }}"
        );
        check_error(graph(&text), "attribute `hidden_size` is 5, R is");
    }
}

#[test]
fn a_wrapping_pad_that_crops_everything_is_refused() {
    for pads in ["-4, 0", "-2, -2", "-3, 1", "-3, 0"] {
        let text =
            format!("(float[3] x) => (float[N] y) <int64[2] p = {{{pads}}}> {{ y = Pad <mode = \"wrap\"> (x, p) }}");
        check_error(opset(19, &text), "leave nothing of axis 0, which is 3 long");
    }
    let text = "(float[3] x) => (float[N] y) <int64[2] p = {-2, 5}> { y = Pad <mode = \"wrap\"> (x, p) }";
    assert!(read(opset(19, text)).is_ok());
}

#[test]
fn data_cannot_be_repeated_a_negative_number_of_times() {
    let text = "g (float[3] x) => (float[N] y) <int64[1] p = {-1}> { y = Tile (x, p) }";
    check_error(graph(text), "data cannot be repeated -1 times");
}

#[test]
fn a_negative_number_of_boxes_is_refused() {
    let text =
        "g (float[1,2,4] b, float[1,1,2] s) => (int64[N,3] y) <int64 m = {-1}> { y = NonMaxSuppression (b, s, m) }";
    check_error(graph(text), "max_output_boxes_per_class must not be negative, found -1");
}

#[test]
fn an_input_that_a_node_makes_again_is_left_out_with_a_warning() {
    let text = graph("g (float[2] x, float[2] w) => (float[2] y) { w = Neg (x) y = Add (x, w) }");
    assert_eq!(warnings(&text), ["input `w` is produced by a node as well; the input is left out"]);
    assert_eq!(read(text).unwrap().parameters().len(), 1);
}

#[test]
fn what_openvino_overlooks_is_overlooked_with_a_warning() {
    let pool = "g (float[1,2,3,3] x) => (float[1,2,1,1] y) { [n] y = GlobalMaxPool <strides = [2, 2]> (x) }";
    assert_eq!(warnings(&graph(pool)), ["node `n`: GlobalMaxPool has no attribute `strides`, it is not looked at"]);
    for text in [
        "g (float[2,3] x) => (float[2,3] y) { y = CumSum (x) }",
        "g (float[1,16,1] x) => (float[1,N,M,2] y) <int64 s = {4}> { y = STFT (x, s) }",
        "g (float[1] x) => (float y) { y = ConstantOfShape (\"\") }",
        "g (float[1,3,2,4] x, float[1,8,4] w, float[1,8,2] r) => (float[3,1,2,2] y) { y = LSTM <hidden_size = 2> (x, w, r) }",
    ] {
        assert_eq!(warnings(&graph(text)).len(), 1, "{text}");
    }
}

#[test]
fn a_flattening_from_the_end_needs_no_rank() {
    let value = "input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 } } }";
    let node = "node { op_type: 'Flatten' input: 'x' output: 'y' attribute { name: 'axis' type: INT i: -2 } }";
    assert!(read(crate::common::proto(&format!("{node} {value}"))).is_ok());
}

#[test]
fn external_data_without_length_takes_what_it_needs() {
    let folder = Folder::new("no-length");
    folder.write("w.bin", [0u8; 40]);
    let tensor = "initializer { name: 'w' data_type: 1 dims: 4 data_location: EXTERNAL external_data { key: 'location' value: 'w.bin' } \
                  external_data { key: 'offset' value: '8' } }";
    let values = "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } } \
                  output { name: 'y' type { tensor_type { elem_type: 1 } } }";
    let node = "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }";
    folder.write("m.pbtxt", crate::common::proto(&format!("{node} {tensor} {values}")));
    assert!(folder.read("m.pbtxt").is_ok());
}

#[test]
fn a_tensor_of_no_elements_with_one_value_is_a_scalar() {
    let node = "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }";
    let values = "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } } \
                  output { name: 'y' type { tensor_type { elem_type: 1 } } }";
    let text = crate::common::proto(&format!(
        "{node} initializer {{ name: 'w' data_type: 1 dims: 0 float_data: 2.5 }} {values}"
    ));
    assert_eq!(warnings(&text), ["tensor `w` has no elements and one value; it is taken as a scalar"]);
}

#[test]
fn what_onnx_forbids_and_no_peer_takes_is_refused() {
    let refused = [
        (
            "(float[4,4,4] x, int64[4] l) => (float[4,4,4] y) { y = ReverseSequence <batch_axis = 2, time_axis = 0> (x, l) }",
            "must be 0 and 1",
        ),
        (
            "(float[4,4,4] x, int64[4] l) => (float[4,4,4] y) { y = ReverseSequence <batch_axis = 1, time_axis = 1> (x, l) }",
            "must be 0 and 1",
        ),
        ("(float[6] a, float[6] b) => (float[6] y) { y = Mod (a, b) }", "attribute `fmod` must be 1 for floats"),
        ("(float[3,4,5] x) => (float[3,4] y) { y = EyeLike (x) }", "the input must be a matrix"),
        ("(float[8,2,2] x) => (float[2,4,4] y) { y = DepthToSpace <blocksize = 2> (x) }", "data must have 4 axes"),
        ("(float[2,4,4] x) => (float[8,2,2] y) { y = SpaceToDepth <blocksize = 2> (x) }", "data must have 4 axes"),
        ("(int8[4] x) => (int8[1] y) { y = ReduceSum (x) }", "ReduceSum does not take i8"),
        ("(bool[4] x) => (bool[1] y) { y = ReduceMax (x) }", "ReduceMax does not take boolean before opset 20"),
    ];
    for (text, wanted) in refused {
        check_error(opset(17, text), wanted);
    }
    let scaled = "(int8[4] x) => (int32[4] y) <float s = {2}> { y = DequantizeLinear <output_dtype = 6> (x, s) }";
    check_error(opset(23, scaled), "attribute `output_dtype` must be a float type");
}

#[test]
fn a_scale_that_gives_no_numbers_is_taken_with_a_warning() {
    let quantize = |scale: &str| {
        graph(&format!(
            "g (float[2] x) => (uint8[2] y) <float s = {{{scale}}}, uint8 z = {{0}}> {{ [n] y = QuantizeLinear (x, s, z) }}"
        ))
    };
    assert_eq!(warnings(&quantize("0")), ["node `n`: the scale is 0 at position 0; expected a number above 0"]);
    assert_eq!(warnings(&quantize("-1")).len(), 1);
    assert_eq!(warnings(&quantize("0.5")).len(), 0);
    // A channel of zeros has such a scale.
    let back = "g (int8[2] x) => (float[2] y) <float[2] s = {0, 1}> { [n] y = DequantizeLinear <axis = 0> (x, s) }";
    assert_eq!(warnings(&graph(back)).len(), 0);
}

#[test]
fn a_scale_that_is_no_finite_number_is_refused() {
    let bytes = "uint8 z = {0}, uint8[2,2] b = {1, 2, 3, 4}, uint8[1,1,1,1] w = {1}";
    let both = |a: &str, b: &str| format!("{bytes}, float s = {{0.5}}, float a = {{{a}}}, float b_s = {{{b}}}");
    let ms = |text: &str| format!("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g {text}");
    for bad in ["nan", "inf", "-inf"] {
        let texts = [
            format!("(float[2,2] x) => (uint8[2,2] y) <{}> {{ y = QuantizeLinear (x, a, z) }}", both(bad, "1")),
            format!("(uint8[2,2] x) => (float[2,2] y) <{}> {{ y = DequantizeLinear (x, a, z) }}", both(bad, "1")),
            format!(
                "(uint8[2,2] x) => (uint8[2,2] y) <{}> {{ y = QLinearMatMul (x, a, z, b, s, z, s, z) }}",
                both(bad, "1")
            ),
            format!(
                "(uint8[2,2] x) => (uint8[2,2] y) <{}> {{ y = QLinearMatMul (x, s, z, b, s, z, b_s, z) }}",
                both("1", bad)
            ),
            format!(
                "(uint8[1,1,2,2] x) => (uint8[1,1,2,2] y) <{}> {{ y = QLinearConv (x, s, z, w, a, z, s, z) }}",
                both(bad, "1")
            ),
            ms(&format!(
                "(uint8[2,2] x) => (uint8[2,2] y) <{}> {{ y = com.microsoft.QLinearAdd (x, a, z, b, s, z, s, z) }}",
                both(bad, "1")
            )),
            ms(&format!(
                "(uint8[2,2] x) => (uint8[2,2] y) <{}> {{ y = com.microsoft.QLinearSigmoid (x, s, z, b_s, z) }}",
                both("1", bad)
            )),
            ms(&format!(
                "(uint8[2,2] x) => (uint8[2,2] y) <{}> {{ y = com.microsoft.QGemm (x, s, z, b, a, z, \"\", s, z) }}",
                both(bad, "1")
            )),
            ms(&format!(
                "(uint8[2,2] x) => (float[2,2] y) <{}> {{ y = com.microsoft.DequantizeLinear (x, a, z) }}",
                both(bad, "1")
            )),
        ];
        for text in texts {
            let text = if text.starts_with('<') { text } else { opset(17, &text) };
            check_error(text, "expected finite numbers above 0");
        }
    }
}

#[test]
fn a_negative_scale_of_an_operation_on_bytes_is_taken_with_a_warning() {
    let text = "(uint8[2] x) => (uint8[2] y) <float s = {-0.5}, float t = {0.5}, uint8 z = {0}> \
                { [n] y = com.microsoft.QLinearSigmoid (x, s, z, t, z) }";
    let text = format!("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g {text}");
    assert_eq!(warnings(&text), ["node `n`: the scale is -0.5 at position 0; expected a number above 0"]);
}
