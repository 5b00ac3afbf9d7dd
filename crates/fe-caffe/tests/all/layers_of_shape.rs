//! Numbers of layers that move, reduce and compose, computed by hand from Caffe's definitions.

use crate::common::{blob, check, check_layer, check_layer_error, evaluate, net, read, run};

const SIX: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

#[test]
fn flatten_between_two_axes() {
    check_layer(&[1, 2, 3], &SIX, "type: 'Flatten'", &[], (&[1, 6], &SIX));
    check_layer(&[1, 2, 3, 1], &SIX, "type: 'Flatten' flatten_param { axis: 0 end_axis: 1 }", &[], (&[2, 3, 1], &SIX));
}

#[test]
fn reshape_copies_infers_and_works_in_between() {
    let text = |p: &str| format!("type: 'Reshape' reshape_param {{ {p} }}");
    check_layer(&[2, 3], &SIX, &text("shape { dim: 0 dim: -1 dim: 1 }"), &[], (&[2, 3, 1], &SIX));
    check_layer(&[1, 2, 3], &SIX, &text("shape { dim: 3 dim: 2 } axis: 1 num_axes: 2"), &[], (&[1, 3, 2], &SIX));
    check_layer(&[2, 3], &SIX, &text("shape { dim: 1 } axis: 0 num_axes: 0"), &[], (&[1, 2, 3], &SIX));
    check_layer(&[2, 3], &SIX, &text("shape { dim: 1 } axis: -1 num_axes: 0"), &[], (&[2, 3, 1], &SIX));
    check_layer_error(&[2, 3], &text("shape { dim: -1 dim: -1 }"), &[], "only one dimension may be -1");
    check_layer_error(&[2, 3], &text("shape { dim: 0 dim: 0 dim: 0 }"), &[], "copies axis 2, the bottom has 2");
    check_layer_error(&[2, 3], &text("shape { dim: -5 }"), &[], "must be -1, 0 or positive, found -5");
    check_layer_error(&[2, 3], &text("axis: 1 num_axes: 2 shape { dim: 3 }"), &[], "`num_axes` 2 from axis 1");
}

#[test]
fn permute_names_some_axes() {
    let wanted = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    check_layer(&[1, 2, 3], &SIX, "type: 'Permute' permute_param { order: 2 }", &[], (&[3, 1, 2], &wanted));
    check_layer_error(&[1, 2], "type: 'Permute' permute_param { order: 1 order: 1 }", &[], "once each");
}

#[test]
fn crop_to_another_blob() {
    let text = net(
        &[1, 1, 2, 3],
        "input: 'like' input_shape { dim: 1 dim: 1 dim: 1 dim: 2 }
         layer { name: 'c' type: 'Crop' bottom: 'x' bottom: 'like' top: 'y' crop_param { axis: 2 offset: 1 offset: 1 } }",
    );
    let found = run(text, None, &[(&[1, 1, 2, 3], &SIX), (&[1, 1, 1, 2], &[0.0; 2])]);
    check(found, &[1, 1, 1, 2], &[5.0, 6.0]);
    let text = net(
        &[1, 1, 2, 3],
        "layer { name: 'c' type: 'Crop' bottom: 'x' bottom: 'x' top: 'y' crop_param { offset: 1 } }",
    );
    crate::common::check_error(text, "axis 2 of 2 has no 2 elements from 1 on");
}

#[test]
fn tile_and_slice_and_concat() {
    check_layer(&[1, 2], &[1.0, 2.0], "type: 'Tile' tile_param { tiles: 2 }", &[], (&[1, 4], &[1.0, 2.0, 1.0, 2.0]));
    let text = net(
        &[1, 6],
        "layer { name: 's' type: 'Slice' bottom: 'x' top: 'a' top: 'b' top: 'c' slice_param { slice_dim: 1 slice_point: 1 slice_point: 3 } }
         layer { name: 'j' type: 'Concat' bottom: 'c' bottom: 'a' top: 'y' concat_param { axis: -1 } }
         layer { name: 'h' type: 'Slice' bottom: 'b' top: 'd' top: 'e' }",
    );
    let model = read(text).unwrap();
    let found = evaluate(&model, &[(&[1, 6], &SIX)]);
    check(found[0].clone(), &[1, 4], &[4.0, 5.0, 6.0, 1.0]);
    check(found[1].clone(), &[1, 1], &[2.0]);
    check(found[2].clone(), &[1, 1], &[3.0]);
    let slice = |p: &str| {
        net(
            &[1, 6],
            &format!("layer {{ name: 's' type: 'Slice' bottom: 'x' top: 'a' top: 'b' slice_param {{ {p} }} }}"),
        )
    };
    crate::common::check_error(slice("slice_point: 6"), "lies beyond the axis of 6");
    crate::common::check_error(slice("slice_point: 0"), "must grow");
    crate::common::check_error(slice("slice_point: 1 slice_point: 2"), "2 tops and 2 of `slice_point`");
    crate::common::check_error(slice("axis: 0 slice_dim: 2"), "only one can be meant");
}

#[test]
fn arg_max_with_and_without_axis() {
    let x = [3.0, 9.0, 9.0, 1.0];
    // Of equal values the last one goes first.
    check_layer(&[1, 4, 1, 1], &x, "type: 'ArgMax' argmax_param { top_k: 2 }", &[], (&[1, 1, 2, 1], &[2.0, 1.0]));
    let text = "type: 'ArgMax' argmax_param { top_k: 3 out_max_val: true }";
    check_layer(&[1, 4], &x, text, &[], (&[1, 2, 3], &[2.0, 1.0, 0.0, 9.0, 9.0, 3.0]));
    check_layer(&[2, 2], &x, "type: 'ArgMax' argmax_param { axis: 1 }", &[], (&[2, 1], &[1.0, 0.0]));
    check_layer(&[2, 2], &x, "type: 'ArgMax' argmax_param { axis: 0 out_max_val: true }", &[], (&[1, 2], &[9.0, 9.0]));
}

#[test]
fn reductions_over_the_last_axes() {
    let text = |p: &str| format!("type: 'Reduction' reduction_param {{ {p} }}");
    let x = [1.0, -2.0, 3.0, 4.0];
    check_layer(&[2, 2], &x, &text(""), &[], (&[], &[6.0]));
    check_layer(&[2, 2], &x, &text("operation: ASUM axis: 1"), &[], (&[2], &[3.0, 7.0]));
    check_layer(&[2, 2], &x, &text("operation: SUMSQ axis: 1 coeff: 2"), &[], (&[2], &[10.0, 50.0]));
    check_layer(&[2, 2], &x, &text("operation: 4 axis: -1"), &[], (&[2], &[-0.5, 3.5]));
}

#[test]
fn neurons() {
    let e = std::f32::consts::E;
    let check = |x: &[f32], text: &str, y: &[f32]| check_layer(&[1, x.len()], x, text, &[], (&[1, y.len()], y));
    check(&[-1.5], "type: 'AbsVal'", &[1.5]);
    check(&[0.0, 50.0], "type: 'BNLL'", &[2f32.ln(), 50.0]);
    check(&[1.0], "type: 'Exp'", &[e]);
    check(&[3.0], "type: 'Exp' exp_param { base: 2 scale: 2 shift: -1 }", &[32.0]);
    check(&[8.0], "type: 'Log' log_param { base: 2 }", &[3.0]);
    check(&[1.0], "type: 'Log' log_param { scale: 2 shift: -1 }", &[0.0]);
    check(&[3.0], "type: 'Power' power_param { power: 2 scale: 2 shift: -1 }", &[25.0]);
    check(&[3.0], "type: 'Power' power_param { scale: 0.5 shift: 1 }", &[2.5]);
    check(&[0.5, 0.6], "type: 'Threshold' threshold_param { threshold: 0.5 }", &[0.0, 1.0]);
    check(&[-2.0, 2.0, 9.0], "type: 'ReLU6'", &[0.0, 2.0, 6.0]);
    check(&[-2.0, 2.0, 9.0], "type: 'Clip' clip_param { min: -1 max: 5 }", &[-1.0, 2.0, 5.0]);
    check(&[-1.0, 2.0], "type: 'ELU' elu_param { alpha: 2 }", &[2.0 * (1.0 / e - 1.0), 2.0]);
    check(&[0.0, 1.0], "type: 'Sigmoid'", &[0.5, 1.0 / (1.0 + 1.0 / e)]);
    check(&[1.0], "type: 'TanH'", &[1f32.tanh()]);
    check(&[1.0], "type: 'Swish' swish_param { beta: 2 }", &[1.0 / (1.0 + (-2f32).exp())]);
    check(&[1.0], "type: 'SIGMOID'", &[1.0 / (1.0 + 1.0 / e)]);
}

#[test]
fn eltwise_of_products_and_largest() {
    let text = |op: &str| {
        net(
            &[1, 2],
            &format!(
                "layer {{ name: 'p' type: 'Power' bottom: 'x' top: 'p' power_param {{ shift: -3 }} }}
                 layer {{ name: 'e' type: 'Eltwise' bottom: 'x' bottom: 'p' bottom: 'x' top: 'y' eltwise_param {{ {op} }} }}"
            ),
        )
    };
    let x: &[(&[usize], &[f32])] = &[(&[1, 2], &[2.0, 4.0])];
    check(run(text("operation: PROD"), None, x), &[1, 2], &[-4.0, 16.0]);
    check(run(text("operation: MAX"), None, x), &[1, 2], &[2.0, 4.0]);
    crate::common::check_error(text("operation: PROD coeff: 1"), "a sum takes one for each bottom");
}

#[test]
fn axpy_of_three() {
    let text = "input: 'a' input: 'x' input: 'y'
        input_shape { dim: 1 dim: 2 dim: 1 dim: 1 } input_shape { dim: 1 dim: 2 dim: 1 dim: 2 } input_shape { dim: 1 dim: 2 dim: 1 dim: 2 }
        layer { name: 'l' type: 'Axpy' bottom: 'a' bottom: 'x' bottom: 'y' top: 'z' }";
    let found = run(
        text,
        None,
        &[(&[1, 2, 1, 1], &[2.0, 3.0]), (&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0]), (&[1, 2, 1, 2], &[0.5; 4])],
    );
    check(found, &[1, 2, 1, 2], &[2.5, 4.5, 9.5, 12.5]);
}

#[test]
fn scale_and_bias_by_a_second_bottom() {
    let text = "input: 'x' input: 's' input_shape { dim: 2 dim: 2 dim: 1 } input_shape { dim: 2 }
        layer { name: 's' type: 'Scale' bottom: 'x' bottom: 's' top: 'y' scale_param { axis: 0 } }
        layer { name: 'b' type: 'Bias' bottom: 'y' bottom: 's' top: 'z' bias_param { axis: 1 } }";
    let found = run(text, None, &[(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]), (&[2], &[10.0, 100.0])]);
    check(found, &[2, 2, 1], &[20.0, 120.0, 310.0, 500.0]);
    check_layer(&[1, 2], &[1.0, 2.0], "type: 'Bias'", &[blob(&[2], &[1.0, -1.0])], (&[1, 2], &[2.0, 1.0]));
    let all = "type: 'Scale' scale_param { axis: 0 num_axes: -1 }";
    check_layer(&[1, 2], &[1.0, 2.0], all, &[blob(&[1, 2], &[3.0, 4.0])], (&[1, 2], &[3.0, 8.0]));
    let one = "type: 'Scale' scale_param { num_axes: 0 bias_term: true }";
    check_layer(&[1, 2], &[1.0, 2.0], one, &[blob(&[], &[3.0]), blob(&[], &[1.0])], (&[1, 2], &[4.0, 7.0]));
}

#[test]
fn local_responses_across_and_within() {
    let across = "type: 'LRN' lrn_param { local_size: 3 alpha: 3 beta: 1 k: 2 }";
    // 1 / (2 + 1 + 4), 2 / (2 + 1 + 4 + 9), 3 / (2 + 4 + 9)
    check_layer(&[1, 3, 1, 1], &[1.0, 2.0, 3.0], across, &[], (&[1, 3, 1, 1], &[1.0 / 7.0, 0.125, 0.2]));
    let within = "type: 'LRN' lrn_param { local_size: 3 alpha: 9 beta: 1 k: 2 norm_region: WITHIN_CHANNEL }";
    // 1 / (1 + 1 + 4), 2 / (1 + 1 + 4 + 9), 3 / (1 + 4 + 9): here `k` has no say.
    check_layer(&[1, 1, 1, 3], &[1.0, 2.0, 3.0], within, &[], (&[1, 1, 1, 3], &[1.0 / 6.0, 2.0 / 15.0, 3.0 / 14.0]));
    check_layer_error(&[1, 3, 1, 1], "type: 'LRN' lrn_param { local_size: 4 }", &[], "must be odd");
}

#[test]
fn mean_and_variance_of_images() {
    let text = "type: 'MVN' mvn_param { eps: 1 }";
    check_layer(&[1, 2, 1, 2], &[1.0, 3.0, 2.0, 2.0], text, &[], (&[1, 2, 1, 2], &[-0.5, 0.5, 0.0, 0.0]));
    let text = "type: 'MVN' mvn_param { normalize_variance: false across_channels: true }";
    check_layer(&[1, 2, 1, 2], &[1.0, 3.0, 2.0, 2.0], text, &[], (&[1, 2, 1, 2], &[-1.0, 1.0, 0.0, 0.0]));
}

#[test]
fn batch_norm_of_forks() {
    let four = [blob(&[1], &[2.0]), blob(&[1], &[1.0]), blob(&[1], &[3.0]), blob(&[1], &[4.0])];
    let text = "type: 'BN' bn_param { eps: 0 momentum: 0.9 slope_filler { value: 1 } }";
    check_layer(&[1, 1, 1, 1], &[5.0], text, &four, (&[1, 1, 1, 1], &[3.0]));
    let text = "type: 'BN' bn_param { bn_mode: INFERENCE }";
    check_layer(&[1, 1, 1, 1], &[5.0], text, &four[..2], (&[1, 1, 1, 1], &[11.0]));
    check_layer_error(&[1, 1, 1, 1], "type: 'BN'", &four[..3], "has 3 blobs");
    let five = [blob(&[1], &[3.0]), blob(&[1], &[4.0]), blob(&[1], &[1.0]), blob(&[1], &[2.0]), blob(&[1], &[1.0])];
    check_layer(&[1, 1, 1, 1], &[5.0], "type: 'BatchNorm' batch_norm_param { eps: 0 }", &five, (&[1, 1, 1, 1], &[3.0]));
    let text = "type: 'BatchNorm' batch_norm_param { use_global_stats: false eps: 0 }";
    check_layer(&[2, 1, 1, 1], &[5.0, 9.0], text, &five[..3], (&[2, 1, 1, 1], &[-1.0, 1.0]));
}

#[test]
fn embed_and_reindex() {
    let blobs = [blob(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), blob(&[2], &[0.5, 0.5])];
    let text = "type: 'Embed' embed_param { num_output: 2 input_dim: 2 }";
    check_layer(&[2], &[1.0, 0.0], text, &blobs, (&[2, 2], &[3.5, 4.5, 1.5, 2.5]));
    let text = "input: 'x' input: 'i' input_shape { dim: 2 dim: 1 } input_shape { dim: 3 }
        layer { name: 'r' type: 'BatchReindex' bottom: 'x' bottom: 'i' top: 'y' }";
    let found = run(text, None, &[(&[2, 1], &[7.0, 8.0]), (&[3], &[1.0, 1.0, 0.0])]);
    check(found, &[3, 1], &[8.0, 8.0, 7.0]);
}

#[test]
fn pyramid_and_columns() {
    let x: Vec<f32> = (1..=16).map(|v| v as f32).collect();
    let text = "type: 'SPP' spp_param { pyramid_height: 2 pool: MAX }";
    check_layer(&[1, 1, 4, 4], &x, text, &[], (&[1, 5], &[16.0, 6.0, 8.0, 14.0, 16.0]));
    let text = "type: 'Im2col' convolution_param { kernel_h: 1 kernel_w: 2 }";
    check_layer(&[1, 2, 1, 3], &SIX, text, &[], (&[1, 4, 1, 2], &[1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]));
}

#[test]
fn pooling_of_other_kinds() {
    let x: Vec<f32> = (1..=6).map(|v| v as f32).collect();
    let text = |p: &str| format!("type: 'Pooling' pooling_param {{ {p} }}");
    check_layer(&[1, 1, 2, 3], &x, &text("pool: AVE global_pooling: true"), &[], (&[1, 1, 1, 1], &[3.5]));
    check_layer(&[1, 1, 2, 3], &x, &text("global_pooling: true kernel_size: 0"), &[], (&[1, 1, 1, 1], &[6.0]));
    check_layer(&[1, 1, 2, 3], &x, &text("kernel_size: 2 stride: 2 ceil_mode: false"), &[], (&[1, 1, 1, 1], &[5.0]));
    check_layer(&[1, 1, 2, 3], &x, &text("kernel_size: 2 stride: 2 round_mode: FLOOR"), &[], (&[1, 1, 1, 1], &[5.0]));
    check_layer(&[1, 1, 2, 3], &x, &text("kernel_size: 2 stride: 2"), &[], (&[1, 1, 1, 2], &[5.0, 6.0]));
    // A window larger than the data, of which rounding up leaves one.
    check_layer(&[1, 1, 2, 3], &x, &text("kernel_size: 3 stride: 2"), &[], (&[1, 1, 1, 1], &[6.0]));
    check_layer_error(&[1, 1, 2, 3], &text("kernel_size: 2 kernel_h: 2"), &[], "as well as");
    check_layer_error(&[1, 1, 2, 3], &text("pad: 2 kernel_size: 2"), &[], "must be smaller than the window");
    check_layer_error(&[1, 1, 2, 3], &text("stride: 2"), &[], "has neither `kernel_size`");
}

#[test]
fn places_of_the_largest() {
    let text = net(
        &[1, 2, 2, 2],
        "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y' top: 'mask' pooling_param { kernel_size: 2 } }",
    );
    let model = read(text).unwrap();
    let found = evaluate(&model, &[(&[1, 2, 2, 2], &[1.0, 4.0, 2.0, 3.0, 0.0, 1.0, 5.0, 2.0])]);
    check(found[0].clone(), &[1, 2, 1, 1], &[4.0, 5.0]);
    check(found[1].clone(), &[1, 2, 1, 1], &[1.0, 2.0]);
}

#[test]
fn fillers_without_chance_stand_for_weights() {
    let text = "type: 'Deconvolution' convolution_param { num_output: 1 kernel_size: 4 stride: 2 pad: 1 bias_term: false \
                weight_filler { type: 'bilinear' } }";
    let wanted = [0.5625, 0.75, 0.75, 0.5625, 0.75, 1.0, 1.0, 0.75, 0.75, 1.0, 1.0, 0.75, 0.5625, 0.75, 0.75, 0.5625];
    check_layer(&[1, 1, 2, 2], &[1.0; 4], text, &[], (&[1, 1, 4, 4], &wanted));
    let text = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 1 \
                weight_filler { type: 'diagonal' diag_val: 2 diag_val: 3 } }";
    check_layer(&[1, 2, 1, 1], &[1.0, 1.0], text, &[], (&[1, 2, 1, 1], &[2.0, 3.0]));
    let text = "type: 'InnerProduct' inner_product_param { num_output: 1 weight_filler { type: 'constant' value: 2 } }";
    check_layer(&[1, 2], &[1.0, 3.0], text, &[], (&[1, 1], &[8.0]));
    let text = "type: 'InnerProduct' inner_product_param { num_output: 1 weight_filler { type: 'gaussian' } }";
    check_layer_error(&[1, 2], text, &[], "give the `.caffemodel`");
}

#[test]
fn sources_inside_of_the_net() {
    let text = "layer { name: 'd' type: 'DummyData' top: 'd' top: 'e'
          dummy_data_param { shape { dim: 2 } shape { dim: 1 dim: 2 } data_filler { value: 3 } data_filler { value: 4 } } }
        layer { name: 'p' type: 'Power' bottom: 'd' top: 'y' power_param { shift: 1 } }";
    let model = read(text).unwrap();
    let found = evaluate(&model, &[]);
    check(found[0].clone(), &[1, 2], &[4.0, 4.0]);
    check(found[1].clone(), &[2], &[4.0, 4.0]);
    crate::common::check_error(
        "layer { name: 'd' type: 'DummyData' top: 'd' dummy_data_param { num: 1 channels: 2 height: 1 width: 1 data_filler { type: 'gaussian' } } }",
        "differs from run to run",
    );
}

#[test]
fn channels_at_another_axis() {
    let text = "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 axis: 2 bias_term: false }";
    check_layer(&[1, 2, 1, 3], &SIX, text, &[blob(&[1], &[2.0])], (&[1, 2, 1, 3], &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]));
    let text = "type: 'Convolution' convolution_param { num_output: 1 kernel_size: [1, 1, 2] bias_term: false }";
    check_layer(&[1, 1, 1, 2, 3], &SIX, text, &[blob(&[2], &[1.0, 1.0])], (&[1, 1, 1, 2, 2], &[3.0, 5.0, 9.0, 11.0]));
}

#[test]
fn depthwise_whatever_the_groups_say() {
    let text = "type: 'DepthwiseConvolution' convolution_param { num_output: 2 kernel_size: 1 bias_term: false }";
    check_layer(&[1, 2, 1, 1], &[1.0, 1.0], text, &[blob(&[2, 1, 1, 1], &[5.0, 6.0])], (&[1, 2, 1, 1], &[5.0, 6.0]));
}

fn detection(nms: &str) -> String {
    format!(
        "input: 'x' input_shape {{ dim: 1 dim: 8 }}
         input: 'c' input_shape {{ dim: 1 dim: 4 }} input: 'p' input_shape {{ dim: 1 dim: 2 dim: 8 }}
         layer {{ name: 'l' type: 'DetectionOutput' bottom: 'x' bottom: 'c' bottom: 'p' top: 'y'
         detection_output_param {{ num_classes: 2 keep_top_k: 2 nms_param {{ {nms} }} }} }}"
    )
}

#[test]
fn an_overlap_that_would_shrink_only_above_a_half_may_stay() {
    for nms in ["nms_threshold: 0.45 eta: 0.9", "eta: 0.5", "nms_threshold: 0.7 eta: 1"] {
        read(detection(nms)).unwrap();
    }
    crate::common::check_error(detection("nms_threshold: 0.7 eta: 0.9"), "`eta` = 0.9");
    crate::common::check_error(detection("nms_threshold: 0.4 eta: 0"), "`eta` must be above 0 and at most 1, found 0");
}

fn boxes(ty: &str, param: &str) -> String {
    format!(
        "input: 'f' input_shape {{ dim: 1 dim: 1 dim: 1 dim: 1 }} input: 'x' input_shape {{ dim: 1 dim: 1 dim: 10 dim: 20 }}
         layer {{ name: 'l' type: '{ty}' bottom: 'f' bottom: 'x' top: 'y' prior_box_param {{ {param} }} }}"
    )
}

#[test]
fn dense_boxes_that_caffe_counts_in_another_way_are_told_with_what_to_do() {
    let dense = "fixed_size: 4 density: 2 fixed_ratio: 1 fixed_ratio: 2";
    crate::common::check_error(boxes("PriorBox", dense), "8 boxes a cell, the shape of its top has room for 7");
    crate::common::check_error(boxes("PriorBox", dense), "let it make as many as there are of `fixed_ratio`");
    read(boxes("PriorBox", "fixed_size: 4 density: 2 fixed_ratio: 1 fixed_ratio: 2 aspect_ratio: 2 flip: false"))
        .unwrap();
    read(boxes("PriorBox", "fixed_size: 4 density: 2 aspect_ratio: 2")).unwrap();
}

#[test]
fn clustered_boxes_are_parts_of_the_second_bottom() {
    let inputs: [(&[usize], &[f32]); 2] = [(&[1, 1, 1, 1], &[0.0]), (&[1, 1, 10, 20], &[0.0; 200])];
    let found = |param: &str| run(boxes("PriorBoxClustered", param), None, &inputs);
    assert_eq!(found("width: 4 height: 3 img_w: 40 img_h: 20"), found("width: 4 height: 3"));
    assert_eq!(found("width: 4 height: 3 img_size: 40"), found("width: 4 height: 3"));
}

#[test]
fn reorg_of_darknet_has_two_names() {
    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let of = |layer: &str| {
        let text = net(&[1, 4, 2, 2], &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {layer} }}"));
        run(text, None, &[(&[1, 4, 2, 2], &x)])
    };
    let wanted = of("type: 'ReorgYolo' reorg_yolo_param { stride: 2 }");
    assert_eq!(of("type: 'Reorg' reorg_param { stride: 2 }"), wanted);
    check_layer_error(&[1, 4, 2, 2], "type: 'Reorg' reorg_param { stride: 2 reverse: true }", &[], "`reverse`");
}
