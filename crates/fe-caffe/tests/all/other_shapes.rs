//! A net read with one shape and reshaped afterwards gives what the same net gives that was written with the other shape:
//! sizes that layers compute with are taken from their bottoms, not from the text.

use crate::common::{Proto, blob, evaluate, layer, net, read_with, weights};
use carafe_tensor::PartialShape;
use std::collections::HashMap;

// Numbers that are neither sorted nor equal.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0).collect()
}

// Both ways.
#[track_caller]
fn check_between(layers: &str, blobs: &[Proto], from: &[usize], to: &[usize]) {
    check_from(layers, blobs, from, to);
    check_from(layers, blobs, to, from);
}

#[track_caller]
fn check_from(layers: &str, blobs: &[Proto], from: &[usize], to: &[usize]) {
    let text = |shape: &[usize]| net(&shape.iter().map(|d| *d as i64).collect::<Vec<_>>(), layers);
    let stored = || (!blobs.is_empty()).then(|| weights(&[layer("l", "", blobs)]));
    let read = |shape: &[usize]| read_with(text(shape), stored()).expect("the net is read");
    let x = numbers(to.iter().product());
    let mut model = read(from);
    let given: HashMap<usize, PartialShape> = [(0, PartialShape::of(to))].into();
    model.reshape(&given).expect("the model takes the other shape");
    let (found, wanted) = (evaluate(&model, &[(to, &x)]), evaluate(&read(to), &[(to, &x)]));
    for (found, wanted) in found.into_iter().zip(wanted) {
        crate::common::check(found, &wanted.0, &wanted.1);
    }
}

#[track_caller]
fn check_layer_between(layer: &str, from: &[usize], to: &[usize]) {
    check_between(&format!("layer {{ name: 'l' bottom: 'x' top: 'y' {layer} }}"), &[], from, to);
}

const SMALL: [usize; 4] = [1, 2, 8, 8];
const LARGE: [usize; 4] = [1, 2, 9, 11];

#[test]
fn anchors_follow_the_image() {
    let boxes = |ty: &str, param: &str| {
        format!(
            "layer {{ name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param {{ kernel_size: 2 stride: 2 }} }}
             layer {{ name: 'l' type: '{ty}' bottom: 'p' bottom: 'x' top: 'y' prior_box_param {{ {param} }} }}"
        )
    };
    check_between(&boxes("PriorBox", "min_size: 3 max_size: 5 aspect_ratio: 2"), &[], &SMALL, &LARGE);
    check_between(&boxes("PriorBox", "min_size: 3 step_h: 2 step_w: 3"), &[], &SMALL, &LARGE);
    check_between(&boxes("PriorBoxClustered", "width: 3 height: 4"), &[], &SMALL, &LARGE);
}

#[test]
fn sizes_of_interpolation_follow_the_bottom() {
    let text = |p: &str| format!("type: 'Interp' interp_param {{ {p} }}");
    check_layer_between(&text("zoom_factor: 2"), &SMALL, &LARGE);
    check_layer_between(&text("shrink_factor: 2"), &[1, 2, 9, 9], &[1, 2, 13, 17]);
    check_layer_between(&text("shrink_factor: 2 zoom_factor: 3"), &[1, 2, 9, 9], &[1, 2, 13, 17]);
    check_layer_between(&text("zoom_factor: 2 pad_beg: -1 pad_end: -1"), &SMALL, &LARGE);
    check_layer_between(&text("height: 5 width: 20"), &SMALL, &LARGE);
}

#[test]
fn sizes_of_resampling_follow_the_bottom() {
    let text = |p: &str| format!("type: 'Resample' resample_param {{ {p} }}");
    for kind in ["NEAREST", "LINEAR", "CUBIC"] {
        for rest in ["factor: 2", "factor: 0.5", "factor: 0.7 antialias: false", "height: 4 width: 5"] {
            check_layer_between(&text(&format!("type: {kind} {rest}")), &SMALL, &LARGE);
        }
    }
    // Along one axis it grows, along the other it shrinks.
    check_layer_between(&text("type: LINEAR height: 7 width: 12"), &[1, 2, 8, 8], &[1, 2, 9, 16]);
}

#[test]
fn pyramids_of_poolings_follow_the_bottom() {
    check_layer_between("type: 'SPP' spp_param { pyramid_height: 3 }", &SMALL, &LARGE);
    check_layer_between("type: 'SPP' spp_param { pyramid_height: 2 pool: AVE }", &SMALL, &LARGE);
}

#[test]
fn means_of_windows_that_hang_over_the_end_follow_the_bottom() {
    let text = "type: 'Pooling' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }";
    check_layer_between(text, &[1, 2, 9, 9], &[1, 2, 8, 10]);
    let text = "type: 'Pooling' pooling_param { pool: AVE kernel_h: 3 kernel_w: 4 stride: 3 pad_h: 1 pad_w: 0 }";
    check_layer_between(text, &[1, 2, 10, 10], &[1, 2, 12, 9]);
}

#[test]
fn windows_larger_than_the_data_are_whole_windows_for_larger_data() {
    for pool in ["MAX", "AVE", "STOCHASTIC"] {
        let text = |p: &str| format!("type: 'Pooling' pooling_param {{ pool: {pool} stride: 3 {p} }}");
        for (param, small) in [("kernel_size: 5", [1, 2, 4, 3]), ("kernel_size: 5 pad: 1", [1, 2, 2, 6])] {
            let layer = format!("layer {{ name: 'l' bottom: 'x' top: 'y' {} }}", text(param));
            check_from(&layer, &[], &small, &LARGE);
        }
    }
}

#[test]
fn unpooling_follows_the_bottom() {
    let pooled = |ty: &str, param: &str| {
        format!(
            "layer {{ name: 'p' type: 'Pooling' bottom: 'x' top: 'p' top: 'm' pooling_param {{ kernel_size: 2 stride: 2 }} }}
             layer {{ name: 'l' type: '{ty}' bottom: 'p' bottom: 'm' top: 'y' {param} }}"
        )
    };
    let (from, to) = ([1, 2, 8, 8], [1, 2, 12, 10]);
    check_between(&pooled("Upsample", "upsample_param { scale: 2 }"), &[], &from, &to);
    check_between(&pooled("Unpooling", "unpooling_param { kernel_size: 2 stride: 2 }"), &[], &from, &to);
    check_between(&pooled("MaxUnpool", ""), &[], &from, &to);
}

#[test]
fn layers_of_optical_flow_follow_their_bottoms() {
    let two = |ty: &str, param: &str| {
        format!(
            "layer {{ name: 's' type: 'Slice' bottom: 'x' top: 'a' top: 'b' }}
             layer {{ name: 'l' type: '{ty}' bottom: 'a' bottom: 'b' top: 'y' {param} }}"
        )
    };
    let (from, to) = ([1, 4, 8, 8], [1, 4, 9, 11]);
    for param in ["kernel_size: 1 stride_1: 2 stride_2: 2 pad: 2", "kernel_size: 3 stride_1: 2 pad: 3"] {
        let param = format!("correlation_param {{ max_displacement: 2 {param} }}");
        check_between(&two("Correlation", &param), &[], &from, &to);
        check_between(&two("Correlation1D", &param), &[], &from, &to);
    }
    check_between(&two("FlowWarp", ""), &[], &from, &to);
    check_between(&two("Accum", "accum_param { size_divisible_by: 4 }"), &[], &from, &to);
    check_between(&two("Accum", "accum_param { top_height: 9 top_width: 10 }"), &[], &from, &to);
    check_layer_between("type: 'DataAugmentation' augmentation_param { crop_width: 5 crop_height: 4 }", &SMALL, &LARGE);
}

#[test]
fn spatial_transformers_follow_their_bottoms() {
    let text = |p: &str| {
        format!(
            "layer {{ name: 'i' type: 'Pooling' bottom: 'x' top: 't' pooling_param {{ global_pooling: true }} }}
             layer {{ name: 'l' type: 'SpatialTransformer' bottom: 'x' bottom: 't' top: 'y' st_param {{
             theta_1_1: 0.5 theta_1_2: 0.1 theta_2_1: 0 theta_2_2: 0.7 {p} }} }}"
        )
    };
    check_between(&text(""), &[], &SMALL, &LARGE);
    check_between(&text("output_H: 3 output_W: 4"), &[], &SMALL, &LARGE);
}

#[test]
fn recurrent_layers_take_more_steps_and_images() {
    let text = "layer { name: 'c' type: 'Reduction' bottom: 'x' top: 'c' reduction_param { axis: 2 } }
                layer { name: 'l' type: 'LSTM' bottom: 'x' bottom: 'c' top: 'y' recurrent_param { num_output: 2 } }";
    let blobs = [blob(&[8, 3], &numbers(24)), blob(&[8], &numbers(8)), blob(&[8, 2], &numbers(16))];
    check_between(text, &blobs, &[2, 1, 3], &[4, 2, 3]);
}

#[test]
fn convolutions_over_later_axes_follow_their_bottoms() {
    let text = "layer { name: 'l' type: 'Convolution' bottom: 'x' top: 'y'
                convolution_param { num_output: 2 kernel_size: 2 axis: 2 } }";
    let blobs = [blob(&[2, 3, 2, 2], &numbers(24)), blob(&[2], &numbers(2))];
    check_between(text, &blobs, &[1, 2, 3, 4, 4], &[2, 3, 3, 5, 6]);
}
