//! Numbers of single layers, computed by hand from Caffe's definitions.

use crate::common::{blob, check, check_layer, check_layer_error, evaluate, layer, net, read_with, run, weights};

#[test]
fn convolution_with_bias() {
    let x: Vec<f32> = (1..=9).map(|v| v as f32).collect();
    let blobs = [blob(&[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0]), blob(&[1], &[0.5])];
    let text =
        "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 2 weight_filler { type: 'xavier' } }";
    check_layer(&[1, 1, 3, 3], &x, text, &blobs, (&[1, 1, 2, 2], &[6.5, 8.5, 12.5, 14.5]));
}

#[test]
fn convolution_reads_a_value_for_each_axis() {
    let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
    // Windows of 1 x 2, steps of 2 x 1, pads of 0 x 1.
    let text = "type: 'Convolution' convolution_param { num_output: 1 bias_term: false kernel_size: [1, 2] stride: 2 stride: 1 \
                pad_h: 0 pad_w: 1 }";
    let wanted = [0.0, 1.0, 3.0, 5.0, 3.0, 8.0, 17.0, 19.0, 21.0, 11.0];
    check_layer(&[1, 1, 3, 4], &x, text, &[blob(&[2], &[1.0, 1.0])], (&[1, 1, 2, 5], &wanted));
}

#[test]
fn convolution_in_groups_with_dilation() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let text = "type: 'Convolution' convolution_param { num_output: 2 group: 2 bias_term: false kernel_h: 1 kernel_w: 2 \
                dilation: 2 }";
    check_layer(&[1, 2, 1, 3], &x, text, &[blob(&[2, 1, 1, 2], &[1.0, 1.0, 1.0, -1.0])], (&[1, 2, 1, 1], &[4.0, -2.0]));
}

#[test]
fn several_bottoms_share_the_weights() {
    let text = net(
        &[1, 1, 1, 2],
        "layer { name: 'c' type: 'Convolution' bottom: 'x' bottom: 'x' top: 'a' top: 'b'
           convolution_param { num_output: 1 kernel_size: 1 } }",
    );
    let stored = weights(&[layer("c", "Convolution", &[blob(&[1, 1, 1, 1], &[3.0]), blob(&[1], &[1.0])])]);
    let model = read_with(text, Some(stored)).unwrap();
    let found = evaluate(&model, &[(&[1, 1, 1, 2], &[1.0, 2.0])]);
    assert_eq!(found[0], found[1]);
    check(found[0].clone(), &[1, 1, 1, 2], &[4.0, 7.0]);
}

#[test]
fn deconvolution_grows() {
    let text = "type: 'Deconvolution' convolution_param { num_output: 1 kernel_size: 2 stride: 2 bias_term: false }";
    let wanted = [1.0, 2.0, 2.0, 4.0, 3.0, 4.0, 6.0, 8.0];
    check_layer(
        &[1, 1, 1, 2],
        &[1.0, 2.0],
        text,
        &[blob(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
        (&[1, 1, 2, 4], &wanted),
    );
}

#[test]
fn pooling_rounds_up_and_drops_a_window_in_the_padding() {
    let x: Vec<f32> = (1..=4).map(|v| v as f32).collect();
    // ceil((2 + 2 - 2) / 2) + 1 = 2, the second begins at 1 within the data.
    let text = "type: 'Pooling' pooling_param { pool: MAX kernel_size: 2 stride: 2 pad: 1 }";
    check_layer(&[1, 1, 2, 2], &x, text, &[], (&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]));
    // ceil((2 + 2 - 3) / 3) + 1 = 2 windows, the second would begin at 3 - 1 = 2, beyond the data.
    let text = "type: 'Pooling' pooling_param { pool: MAX kernel_size: 3 stride: 3 pad: 1 }";
    check_layer(&[1, 1, 2, 2], &x, text, &[], (&[1, 1, 1, 1], &[4.0]));
}

#[test]
fn the_mean_counts_the_padding_and_nothing_beyond_it() {
    // Windows of 3, steps of 2, pad 1 on 4 values: [p 1 2] [2 3 4] [4 p -], the last one clipped to two elements.
    let text = "type: 'Pooling' pooling_param { pool: AVE kernel_h: 1 kernel_w: 3 stride: 2 pad_w: 1 }";
    let x = [1.0, 2.0, 3.0, 4.0];
    check_layer(&[1, 1, 1, 4], &x, text, &[], (&[1, 1, 1, 3], &[1.0, 3.0, 2.0]));
    // Without padding only data count.
    let text = "type: 'Pooling' pooling_param { pool: AVE kernel_h: 1 kernel_w: 3 stride: 2 }";
    check_layer(&[1, 1, 1, 4], &x, text, &[], (&[1, 1, 1, 2], &[2.0, 3.5]));
}

#[test]
fn inner_product_flattens_from_its_axis() {
    let x = [1.0, 2.0, 3.0, 4.0];
    let blobs = [blob(&[1, 1, 1, 4], &[1.0, 0.0, 1.0, 0.0]), blob(&[1, 1, 1, 1], &[10.0])];
    check_layer(
        &[1, 2, 2, 1],
        &x,
        "type: 'InnerProduct' inner_product_param { num_output: 1 }",
        &blobs,
        (&[1, 1], &[14.0]),
    );
    let text = "type: 'InnerProduct' inner_product_param { num_output: 2 axis: -1 bias_term: false transpose: true }";
    let blobs = [blob(&[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    check_layer(&[1, 2, 2], &x, text, &blobs, (&[1, 2, 2], &[7.0, 10.0, 15.0, 22.0]));
}

#[test]
fn batch_norm_divides_its_sums() {
    let blobs = [blob(&[1], &[4.0]), blob(&[1], &[8.0]), blob(&[1], &[2.0])];
    let text = "type: 'BatchNorm' batch_norm_param { eps: 0 use_global_stats: true }";
    check_layer(&[1, 1, 1, 2], &[4.0, 6.0], text, &blobs, (&[1, 1, 1, 2], &[1.0, 2.0]));
    // A divisor of zero stands for no sums at all.
    let blobs = [blob(&[1], &[4.0]), blob(&[1], &[8.0]), blob(&[1], &[0.0])];
    let text = "type: 'BatchNorm' batch_norm_param { eps: 4 }";
    check_layer(&[1, 1, 1, 2], &[4.0, 6.0], text, &blobs, (&[1, 1, 1, 2], &[2.0, 3.0]));
}

#[test]
fn scale_with_and_without_weights() {
    let text = "type: 'Scale' scale_param { bias_term: true }";
    let blobs = [blob(&[2], &[2.0, 3.0]), blob(&[2], &[1.0, -1.0])];
    check_layer(&[1, 2, 1, 1], &[1.0, 1.0], text, &blobs, (&[1, 2, 1, 1], &[3.0, 2.0]));
    check_layer(&[1, 2, 1, 1], &[1.0, 5.0], text, &[], (&[1, 2, 1, 1], &[1.0, 5.0]));
}

#[test]
fn rectifiers() {
    let x = [-2.0, 3.0];
    check_layer(&[1, 2], &x, "type: 'ReLU'", &[], (&[1, 2], &[0.0, 3.0]));
    check_layer(&[1, 2], &x, "type: 'ReLU' relu_param { negative_slope: 0.5 }", &[], (&[1, 2], &[-1.0, 3.0]));
    check_layer(&[1, 2], &x, "type: 'PReLU'", &[blob(&[2], &[0.1, 0.2])], (&[1, 2], &[-0.2, 3.0]));
    let shared = "type: 'PReLU' prelu_param { channel_shared: true }";
    check_layer(&[1, 2], &x, shared, &[blob(&[], &[0.5])], (&[1, 2], &[-1.0, 3.0]));
}

#[test]
fn sums_have_coefficients() {
    let text = net(
        &[1, 2],
        "layer { name: 'e' type: 'Eltwise' bottom: 'x' bottom: 'x' bottom: 'x' top: 'y'
           eltwise_param { operation: SUM coeff: 1 coeff: -2 coeff: 0.5 } }",
    );
    check(run(text, None, &[(&[1, 2], &[2.0, 4.0])]), &[1, 2], &[-1.0, -2.0]);
}

#[test]
fn weights_of_another_size_are_refused_with_both_sizes() {
    let text = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 }";
    check_layer_error(
        &[1, 3, 8, 8],
        text,
        &[blob(&[5], &[0.0; 5])],
        "layer `l` (Convolution, line 2): blob 0 has 5 values, expected 54 = [2, 3, 3, 3]",
    );
    check_layer_error(&[1, 3, 8, 8], text, &[], "give the `.caffemodel`");
}

#[test]
fn fillers_without_a_type_are_constant() {
    let conv = "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 weight_filler { value: 0.5 } }";
    check_layer(&[1, 2, 1, 1], &[1.0, 2.0], conv, &[], (&[1, 1, 1, 1], &[1.5]));
    let conv = "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 weight_filler { value: 0.5 }
                bias_filler { value: 2 } }";
    check_layer(&[1, 2, 1, 1], &[1.0, 2.0], conv, &[], (&[1, 1, 1, 1], &[3.5]));
    let random = "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 weight_filler { std: 0.5 } }";
    check_layer_error(&[1, 2, 1, 1], random, &[], "needs stored weights");
}

#[test]
fn slopes_and_factors_that_nobody_gives_are_those_of_caffe() {
    check_layer(&[1, 2], &[-1.0, 2.0], "type: 'PReLU'", &[], (&[1, 2], &[-0.25, 2.0]));
    let text = "type: 'PReLU' prelu_param { filler { value: 0.5 } }";
    check_layer(&[1, 2], &[-1.0, 2.0], text, &[], (&[1, 2], &[-0.5, 2.0]));
    let text = |p: &str| format!("type: 'Normalize' norm_param {{ across_spatial: false {p} }}");
    check_layer(&[1, 2, 1, 1], &[3.0, 4.0], &text(""), &[], (&[1, 2, 1, 1], &[0.6, 0.8]));
    let given = text("channel_shared: false scale_filler { value: 20 }");
    check_layer(&[1, 2, 1, 1], &[3.0, 4.0], &given, &[], (&[1, 2, 1, 1], &[12.0, 16.0]));
}

#[test]
fn the_bilinear_filler_makes_windows_of_every_group() {
    let text = |p: &str| {
        format!(
            "type: 'Deconvolution' convolution_param {{ num_output: 2 kernel_size: 2 stride: 2 bias_term: false {p}
             weight_filler {{ type: 'bilinear' }} }}"
        )
    };
    let wanted = [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5];
    check_layer(&[1, 2, 1, 1], &[1.0, 2.0], &text("group: 2"), &[], (&[1, 2, 2, 2], &wanted));
    check_layer_error(&[1, 2, 1, 1, 1], &text(""), &[], "square windows of images, weights are [2, 2, 2, 2, 2]");
    check_layer_error(&[1, 2, 1], &text("group: 2"), &[], "square windows of images, weights are [2, 1, 2]");
}
