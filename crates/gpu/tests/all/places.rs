//! Kernels that read data at places, and heads of detectors, against the evaluation of the same models, in f32 and with halves in memory.

use crate::heavy::{Net, conv};
use carafe_graph::Value;
use carafe_ops::convolution::DeformableConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::detection::psroi_pooling::PsRoiMode;
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{PSROIPooling, PoolMode, ROIAlign, ROIPooling, RegionYolo, ReorgYolo};
use carafe_ops::pooling::{AdaptiveAvgPool, AdaptiveMaxPool};
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::{ElementType, Tensor};

#[test]
fn adaptive_pools_in_one_two_and_three_dimensions() {
    for (shape, to) in [(&[2, 5, 9, 10][..], &[4, 3][..]), (&[1, 3, 11], &[4]), (&[1, 2, 5, 6, 7], &[2, 3, 7])] {
        let mut net = Net::new();
        let (x, to_shape) = (net.input(shape), net.ints(to));
        let mean = net.op(AdaptiveAvgPool, &[x, to_shape]);
        net.check("adaptive_pool_mean", &[mean]);
        let mut net = Net::new();
        let (x, to_shape) = (net.input(shape), net.ints(to));
        let op = AdaptiveMaxPool { index_element_type: ElementType::I64 };
        let node = net.model.add("pool", op, &[x, to_shape]).unwrap();
        net.check("adaptive_pool_max", &[Value::from(node), Value { node, port: 1 }]);
    }
}

#[test]
fn an_adaptive_pool_reads_channels_where_a_convolution_left_them() {
    let mut net = Net::new();
    let (x, w, one) = (net.input(&[2, 5, 9, 10]), net.weights(&[6, 5, 3, 3]), net.ints(&[1, 1]));
    let y = net.op(conv(&[1, 1], &[1, 1], &[1, 1]), &[x, w]);
    let y = net.op(AdaptiveAvgPool, &[y, one]);
    net.check("adaptive_pool_mean", &[y]);
}

#[test]
fn images_at_points_of_a_grid() {
    use {PaddingMode as P, SampleMode as S};
    for mode in [S::Bilinear, S::Bicubic, S::Nearest] {
        for (padding_mode, align_corners) in
            [(P::Zeros, false), (P::Border, true), (P::Reflection, false), (P::Reflection, true)]
        {
            let mut net = Net::new();
            let (x, grid) = (net.input(&[2, 3, 6, 7]), net.input(&[2, 5, 9, 2]));
            // Some points lie outside.
            let far = net.constant(Tensor::from_slice(&[1], &[1.5f32]).unwrap());
            let grid = net.op(carafe_ops::arithmetic::Multiply::default(), &[grid, far]);
            let y = net.op(GridSample { align_corners, mode, padding_mode }, &[x, grid]);
            net.check("grid_sample", &[y]);
        }
    }
}

#[test]
fn regions_by_samples_largest_cells_and_parts() {
    let corners = [1.0f32, 0.5, 9.0, 7.5, 0.0, 0.0, 4.0, 5.0, 3.0, 2.0, 11.0, 11.0];
    for mode in [PoolMode::Avg, PoolMode::Max] {
        for (aligned_mode, sampling_ratio) in [(AlignedMode::Asymmetric, 0), (AlignedMode::HalfPixel, 2)] {
            let mut net = Net::new();
            let (x, images) = (net.input(&[2, 5, 12, 13]), net.ints(&[0, 1, 1]));
            let rois = net.constant(Tensor::from_slice(&[3, 4], &corners).unwrap());
            let op = ROIAlign { pooled_h: 3, pooled_w: 2, sampling_ratio, spatial_scale: 0.75, mode, aligned_mode };
            let y = net.op(op, &[x, rois, images]);
            net.check("roi_align", &[y]);
        }
    }
    let listed = |scale: f32| {
        let rows = corners.chunks(4).zip([0.0, 1.0, 1.0]);
        let rows = rows
            .flat_map(|(c, image)| [image].into_iter().chain(c.iter().map(move |v| v * scale)).collect::<Vec<f32>>());
        Tensor::from_vec(&[3, 5], rows.collect::<Vec<f32>>()).unwrap()
    };
    for (method, scale) in [(RoiMethod::Max, 1.0), (RoiMethod::Bilinear, 1.0 / 12.0)] {
        let mut net = Net::new();
        let x = net.input(&[2, 5, 12, 13]);
        let rois = net.constant(listed(scale));
        let y = net.op(ROIPooling { pooled_h: 3, pooled_w: 2, spatial_scale: 1.0, method }, &[x, rois]);
        net.check("roi_pooling", &[y]);
    }
    for (mode, channels) in [(PsRoiMode::Average, 2 * 9), (PsRoiMode::Bilinear, 2 * 6)] {
        let mut net = Net::new();
        let x = net.input(&[2, channels, 12, 13]);
        let rois = net.constant(listed(1.0 / 12.0));
        let spatial_scale = if mode == PsRoiMode::Average { 12.0 } else { 1.0 };
        let op =
            PSROIPooling { output_dim: 2, group_size: 3, spatial_scale, mode, spatial_bins_x: 2, spatial_bins_y: 3 };
        let y = net.op(op, &[x, rois]);
        net.check("psroi_pooling", &[y]);
    }
}

#[test]
fn convolutions_with_moved_taps() {
    for (group, deformable_group, masked, fades) in [(1, 1, false, false), (2, 3, true, true), (3, 2, true, false)] {
        let mut net = Net::new();
        let (x, offsets) = (net.input(&[2, 6, 9, 10]), net.input(&[2, 18 * deformable_group, 5, 5]));
        let w = net.weights(&[12, 6 / group, 3, 3]);
        let mut inputs = vec![x, offsets, w];
        if masked {
            inputs.push(net.input(&[2, 9 * deformable_group, 5, 5]));
        }
        let op = DeformableConvolution {
            strides: vec![2; 2],
            pads_begin: vec![1; 2],
            pads_end: vec![1; 2],
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
            group: group as i64,
            deformable_group: deformable_group as i64,
            bilinear_interpolation_pad: fades,
        };
        let y = net.op(op, &inputs);
        let y = net.op(carafe_ops::activation::Relu, &[y]);
        net.check("deformable_conv", &[y]);
    }
}

#[test]
fn heads_of_yolo() {
    for do_softmax in [false, true] {
        let mut net = Net::new();
        let x = net.input(&[2, 21, 5, 6]);
        let op = RegionYolo {
            anchors: vec![],
            axis: 1,
            coords: 4,
            classes: 2,
            end_axis: 3,
            num: 3,
            do_softmax,
            mask: vec![0, 1, 2],
        };
        let y = net.op(op, &[x]);
        net.check("region_yolo", &[y]);
    }
    let mut net = Net::new();
    let x = net.input(&[2, 8, 6, 4]);
    let y = net.op(ReorgYolo { stride: 2 }, &[x]);
    net.check("reorg_yolo", &[y]);
}
