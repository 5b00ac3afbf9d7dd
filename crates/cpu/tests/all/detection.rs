//! Boxes that are left of many, against the operations' own evaluation.

use crate::nets::{Numbers, compile};
use carafe_device::Properties;
use carafe_graph::Model;
use carafe_ops::detection::detection_output::CodeType;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::detection::{DetectionOutput, NonMaxSuppression, NonMaxSuppressionV5};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn boxes(n: &mut Numbers, count: usize) -> Vec<f32> {
    (0..count)
        .flat_map(|_| {
            let [x, y, w, h] = [(); 4].map(|()| n.float() * 0.5 + 0.5);
            [x - 0.2 * w, y - 0.2 * h, x + 0.2 * w, y + 0.2 * h]
        })
        .collect()
}

// Exactly what evaluation gives, with the kernel of this name.
fn check(m: &Model, inputs: &[Tensor], kernel: &str) {
    let wanted = m.evaluate(inputs).unwrap();
    for threads in [1, 3] {
        let properties = Properties::new().with("INFERENCE_NUM_THREADS", threads).with("PERF_COUNT", "YES");
        let mut request = compile(m, &properties).create_request();
        inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
        for _ in 0..2 {
            request.infer().unwrap();
            for (i, wanted) in wanted.iter().enumerate() {
                assert!(request.output(i).unwrap().content_eq(wanted), "output {i}");
            }
        }
        let kernels: Vec<String> = request.profile().into_iter().map(|p| p.kernel).collect();
        assert!(kernels.iter().any(|k| k.starts_with(kernel)), "{kernels:?}");
    }
}

#[test]
fn detections_of_all_classes() {
    for (normalized, top_k, keep, clip, images) in
        [(true, 20, 30, false, 2), (false, -1, 200, true, 1), (true, 400, -1, true, 2), (true, -1, -1, false, 1)]
    {
        let (priors, classes) = (150, 6);
        let n = &mut Numbers(7);
        let op = DetectionOutput {
            background_label_id: 2,
            top_k,
            variance_encoded_in_target: false,
            keep_top_k: vec![keep],
            code_type: CodeType::CenterSize,
            share_location: true,
            nms_threshold: 0.4,
            confidence_threshold: 0.1,
            clip_after_nms: clip,
            clip_before_nms: !clip,
            decrease_label_id: false,
            normalized,
            input_height: 3,
            input_width: 2,
            objectness_score: 0.0,
        };
        let mut list = vec![];
        for b in boxes(n, priors).chunks_exact(4) {
            if !normalized {
                list.push(0.0);
            }
            list.extend_from_slice(b);
        }
        list.resize(list.len() * 2, 0.2);
        let size = list.len() / 2;
        let shapes = [vec![images, priors * 4], vec![images, priors * classes], vec![1, 2, size]];
        let mut m = Model::new("m");
        let names = ["logits", "scores", "priors"];
        let ports = [0, 1, 2].map(|i| m.parameter(names[i], ElementType::F32, PartialShape::of(&shapes[i])).unwrap());
        let y = m.add("y", op, &ports).unwrap();
        m.result("r", y.into()).unwrap();
        let inputs = [n.tensor(&shapes[0]), n.tensor(&shapes[1]), Tensor::from_slice(&shapes[2], &list).unwrap()];
        check(&m, &inputs, "detection_output");
    }
}

#[test]
fn suppression_of_both_generations() {
    let n = &mut Numbers(8);
    let (count, classes) = (400, 5);
    for (newest, most, sigma) in [(true, 40, 0.0), (false, 400, 0.0), (true, 30, 0.4), (false, -1, 0.4)] {
        let mut m = Model::new("m");
        let corners = m.parameter("boxes", ElementType::F32, PartialShape::of(&[2, count, 4])).unwrap();
        let scores = m.parameter("scores", ElementType::F32, PartialShape::of(&[2, classes, count])).unwrap();
        let mut inputs = vec![corners, scores, m.constant("most", Tensor::scalar(most as i64)).unwrap()];
        for (name, v) in [("iou", 0.5f32), ("score", 0.2), ("sigma", sigma)] {
            inputs.push(m.constant(name, Tensor::scalar(v)).unwrap());
        }
        let (box_encoding, output_type) = (BoxEncoding::Corner, ElementType::I32);
        let y = match newest {
            true => m.add("y", NonMaxSuppression { box_encoding, sort_result_descending: true, output_type }, &inputs),
            false => {
                m.add("y", NonMaxSuppressionV5 { box_encoding, sort_result_descending: false, output_type }, &inputs)
            }
        };
        let y = y.unwrap();
        (0..3).for_each(|port| {
            m.result(&format!("r{port}"), carafe_graph::Value { node: y, port }).unwrap();
        });
        let corners = Tensor::from_slice(&[2, count, 4], &boxes(n, 2 * count)).unwrap();
        check(&m, &[corners, n.tensor(&[2, classes, count])], "nms");
    }
}
