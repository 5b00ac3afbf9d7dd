//! Pooling over regions of interest, against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, compile, conv};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{ExperimentalDetectronROIFeatureExtractor, PoolMode, ROIAlign, ROIPooling};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn regions(n: &mut Numbers, count: usize, turned: bool) -> Vec<[f32; 4]> {
    (0..count)
        .map(|i| {
            let b: [f32; 4] = std::array::from_fn(|_| n.float() * 30.0 + 20.0);
            if turned && i % 3 == 0 { b } else { [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])] }
        })
        .collect()
}

fn kernels(model: &Model, inputs: &[Tensor]) -> Vec<String> {
    let mut request = compile(model, &Properties::new().with("PERF_COUNT", "YES")).create_request();
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
    request.infer().unwrap();
    request.profile().into_iter().map(|p| p.kernel).collect()
}

fn maps(m: &mut Model, n: &mut Numbers, behind_conv: bool) -> Value {
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 5, 23, 19])).unwrap();
    if behind_conv { conv(m, n, x, [5, 5], 3, 1) } else { x }
}

#[test]
fn aligned_regions() {
    let n = &mut Numbers(3);
    for aligned_mode in [AlignedMode::Asymmetric, AlignedMode::HalfPixelForNn, AlignedMode::HalfPixel] {
        for (mode, sampling_ratio) in [(PoolMode::Avg, 2), (PoolMode::Avg, 0), (PoolMode::Max, 2), (PoolMode::Max, 0)] {
            let mut m = Model::new("m");
            let x = maps(&mut m, n, sampling_ratio == 2);
            let rois = m.parameter("rois", ElementType::F32, "?,4".parse::<PartialShape>().unwrap()).unwrap();
            let images = m.parameter("images", ElementType::I32, "?".parse::<PartialShape>().unwrap()).unwrap();
            let op = ROIAlign { pooled_h: 3, pooled_w: 4, sampling_ratio, spatial_scale: 0.5, mode, aligned_mode };
            let y = m.add("y", op, &[x, rois, images]).unwrap();
            m.result("r", y.into()).unwrap();
            let rois: Vec<f32> = regions(n, 40, true).concat();
            let images: Vec<i32> = (0..40).map(|_| n.below(2) as i32).collect();
            let inputs = [
                n.tensor(&[2, 5, 23, 19]),
                Tensor::from_slice(&[40, 4], &rois).unwrap(),
                Tensor::from_slice(&[40], &images).unwrap(),
            ];
            assert_like_eval(&m, &inputs, 1e-5);
            assert!(kernels(&m, &inputs).iter().any(|k| k == "roi_align_f32"));
            let bad = Tensor::from_slice(&[40], &[2i32; 40]).unwrap();
            let mut request = compile(&m, &Properties::new()).create_request();
            [&inputs[0], &inputs[1], &bad]
                .iter()
                .enumerate()
                .for_each(|(i, &t)| request.set_input(i, t.clone()).unwrap());
            assert!(request.infer().unwrap_err().to_string().contains("names image 2"));
        }
    }
}

#[test]
fn largest_numbers_of_regions_up_to_the_end_of_the_list() {
    let n = &mut Numbers(4);
    let mut m = Model::new("m");
    let x = maps(&mut m, n, true);
    let rois = m.parameter("rois", ElementType::F32, PartialShape::of(&[30, 5])).unwrap();
    let op = ROIPooling { pooled_h: 4, pooled_w: 3, spatial_scale: 0.6, method: RoiMethod::Max };
    let y = m.add("y", op, &[x, rois]).unwrap();
    m.result("r", y.into()).unwrap();
    let mut list: Vec<f32> = vec![];
    for (i, b) in regions(n, 30, true).into_iter().enumerate() {
        list.push(if i == 25 { -1.0 } else { (i % 2) as f32 });
        list.extend(b);
    }
    let inputs = [n.tensor(&[2, 5, 23, 19]), Tensor::from_slice(&[30, 5], &list).unwrap()];
    assert_like_eval(&m, &inputs, 1e-5);
    assert!(kernels(&m, &inputs).iter().any(|k| k == "roi_pooling_f32"));
}

#[test]
fn regions_of_a_pyramid() {
    let n = &mut Numbers(5);
    for (sampling_ratio, aligned) in [(2, false), (0, true)] {
        let mut m = Model::new("m");
        let rois = m.parameter("rois", ElementType::F32, PartialShape::of(&[60, 4])).unwrap();
        let shapes = [[1, 5, 40, 36], [1, 5, 20, 18], [1, 5, 10, 9]];
        let mut inputs = vec![rois];
        for (i, shape) in shapes.iter().enumerate() {
            inputs.push(m.parameter(&format!("level{i}"), ElementType::F32, PartialShape::of(shape)).unwrap());
        }
        let op = ExperimentalDetectronROIFeatureExtractor {
            output_size: 3,
            sampling_ratio,
            pyramid_scales: vec![4, 8, 16],
            aligned,
        };
        let y = m.add("y", op, &inputs).unwrap();
        m.result("features", y.into()).unwrap();
        m.result("regions", Value { node: y, port: 1 }).unwrap();
        // Some are large and belong to a higher level, some have no area.
        let list: Vec<f32> =
            regions(n, 60, true).concat().iter().enumerate().map(|(i, v)| v * (1 + i / 80) as f32).collect();
        let mut values = vec![Tensor::from_slice(&[60, 4], &list).unwrap()];
        values.extend(shapes.iter().map(|s| n.tensor(s)));
        assert_like_eval(&m, &values, 1e-5);
        assert!(kernels(&m, &values).iter().any(|k| k == "roi_align_pyramid_f32"));
    }
}
