//! Models that once made the reader panic or never end, cut down to what it takes.

use crate::common::{check_error, graph};

#[test]
fn col2im_with_more_axes_than_any_image_has_is_refused() {
    let text = "g (float[1,5,5] x, int64[1000000] i, int32[1000000] b) => (float y) { y = Col2Im (x, b, i) }";
    check_error(graph(text).replace("17", "18"), "spatial axes are too many");
}

#[test]
fn a_gru_whose_weights_declare_a_size_nobody_has_is_refused() {
    let text = "g (float[] x, float[1,15,9223372036854775807] w, float[] r) => (float[] y) { y = GRU <hidden_size = 5> (x, r, w) }";
    check_error(graph(text), "input `w`: dimension 9223372036854775807 is too large");
}

#[test]
fn an_empty_tensor_of_many_large_axes_is_only_empty() {
    let axes = "118,97,108,117,101,2,32,3,18,1,121,42,12,98,97,99,107,101,0";
    let text = format!("g (int64[1] s) => (int64[] y) {{ y = ConstantOfShape <value = int64[{axes}] {{}}> (s) }}");
    check_error(graph(&text), "node `y` (ConstantOfShape, opset 17)");
}

#[test]
fn a_hidden_size_nobody_has_is_refused() {
    let text =
        "g (float[] x, float[] w, float[] r) => (float[] y) { y = GRU <hidden_size = 9223372036854775807> (x, w, r) }";
    check_error(graph(text), "attribute `hidden_size` = 9223372036854775807 is beyond any size or axis");
}

#[test]
fn a_bias_that_only_a_declared_size_asks_for_is_refused() {
    let text = "g (float[] x, float[] w, float[1,8589934588,2147483647] r) => (float[] y) { y = LSTM (x, w, r) }";
    check_error(graph(text), "is too large");
}
