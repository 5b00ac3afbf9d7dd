//! Models that once made the reader panic or never end, cut down to what it takes.

mod common;

use common::{check_error, graph};

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
