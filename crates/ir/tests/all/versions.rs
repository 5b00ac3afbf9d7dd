//! Versions of operations: reading upgrades, writing downgrades, and both together change nothing.

use crate::common::round_trip;
use carafe_graph::{Model, Op, Value};
use carafe_ir::{ReadOptions, Versions, WriteOptions, write_to};
use carafe_ops::activation::Softmax;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::indexing::Gather;
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::{ElementType, PartialShape, SharedBytes, Tensor};

fn pool(rounding_type: Rounding) -> MaxPool {
    MaxPool {
        strides: vec![2, 2],
        dilations: vec![1, 1],
        pads_begin: vec![0, 0],
        pads_end: vec![0, 0],
        kernel: vec![2, 2],
        rounding_type,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    }
}

// One operation on f32 data of this shape and these further constants, with its first `outputs` outputs read.
fn model_of(op: impl Op, shape: &[usize], constants: &[Tensor], outputs: usize) -> Model {
    let mut model = Model::new("m");
    let mut inputs = vec![model.parameter("x", ElementType::F32, PartialShape::of(shape)).unwrap()];
    for (i, t) in constants.iter().enumerate() {
        inputs.push(model.constant(&format!("c{i}"), t.clone()).unwrap());
    }
    let node = model.add("node", op, &inputs).unwrap();
    for port in 0..outputs {
        model.result(&format!("y{port}"), Value { node, port }).unwrap();
    }
    model
}

// The opset that a node is written with; the model must come back as it was.
#[track_caller]
fn opset_of(model: &Model) -> String {
    round_trip(model, &carafe_ops::registry());
    let xml = write_to(model, &WriteOptions::default()).unwrap().0;
    let line = xml.lines().find(|l| l.contains("name=\"node\"")).unwrap();
    line.split("version=\"").nth(1).unwrap().split('"').next().unwrap().to_string()
}

#[test]
fn a_node_is_written_in_the_oldest_version_that_says_the_same() {
    let image: &[usize] = &[1, 2, 4, 4];
    assert_eq!(opset_of(&model_of(pool(Rounding::Floor), image, &[], 1)), "opset1");
    assert_eq!(opset_of(&model_of(pool(Rounding::Floor), image, &[], 2)), "opset8");
    assert_eq!(opset_of(&model_of(pool(Rounding::CeilTorch), image, &[], 1)), "opset14");
    let dilated = MaxPool { dilations: vec![2, 1], ..pool(Rounding::Ceil) };
    assert_eq!(opset_of(&model_of(dilated, image, &[], 1)), "opset8");
    assert_eq!(opset_of(&model_of(Softmax { axis: 1 }, image, &[], 1)), "opset1");
    assert_eq!(opset_of(&model_of(Softmax { axis: -1 }, image, &[], 1)), "opset8");
}

#[test]
fn a_maximum_without_dilations_is_written_as_one_of_ones() {
    let maximum = |dilations: &[i64]| MaxPool {
        dilations: dilations.to_vec(),
        strides: vec![2, 2],
        pads_begin: vec![0, 0],
        pads_end: vec![0, 0],
        kernel: vec![2, 2],
        auto_pad: PadType::Explicit,
        rounding_type: Rounding::Floor,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    for (dilations, opset) in [(&[][..], "opset1"), (&[1, 1], "opset1"), (&[1, 2], "opset8")] {
        assert_eq!(opset_of(&model_of(maximum(dilations), &[1, 2, 6, 6], &[], 1)), opset, "{dilations:?}");
    }
}

#[test]
fn an_average_without_dilations_is_written_as_one_of_ones() {
    let average = |dilations: &[i64]| AvgPool {
        dilations: dilations.to_vec(),
        strides: vec![2, 2],
        pads_begin: vec![0, 0],
        pads_end: vec![0, 0],
        kernel: vec![2, 2],
        exclude_pad: true,
        auto_pad: PadType::Explicit,
        rounding_type: Rounding::Floor,
    };
    for (dilations, opset) in [(&[][..], "opset1"), (&[1, 1], "opset1"), (&[1, 2], "opset16")] {
        assert_eq!(opset_of(&model_of(average(dilations), &[1, 2, 6, 6], &[], 1)), opset, "{dilations:?}");
    }
}

#[test]
fn indices_from_the_end_need_a_newer_gather() {
    let axis = Tensor::scalar(0i64);
    let at = |index: i64| model_of(Gather { batch_dims: 0 }, &[3, 2], &[Tensor::scalar(index), axis.clone()], 1);
    assert_eq!((opset_of(&at(2)).as_str(), opset_of(&at(-1)).as_str()), ("opset1", "opset8"));
}

#[test]
fn a_constant_with_a_name_of_its_own_is_not_made_an_attribute() {
    let op = Mvn { eps: 1e-6, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
    let axes = Tensor::from_slice(&[2], &[2i64, 3]).unwrap();
    assert_eq!(opset_of(&model_of(op.clone(), &[1, 2, 4, 4], std::slice::from_ref(&axes), 1)), "opset6");
    let mut model = model_of(op, &[1, 2, 4, 4], &[axes], 1);
    let constant = model.find_node("c0").unwrap();
    model.set_name(constant, "node/axes");
    assert_eq!(opset_of(&model), "opset2");
}

#[test]
fn an_old_version_is_read_as_the_newest() {
    let model = model_of(pool(Rounding::Floor), &[1, 2, 4, 4], &[], 1);
    let (xml, weights) = write_to(&model, &WriteOptions::default()).unwrap();
    let options = ReadOptions::default();
    let again = carafe_ir::read(&xml, SharedBytes::from_vec(weights), &carafe_ops::registry(), &options).unwrap();
    let node = again.node(again.find_node("node").unwrap());
    assert!(node.op().is::<MaxPool>() && xml.contains("type=\"MaxPool\" version=\"opset1\""), "{xml}");
    // Further outputs of the newest version do not change how the first is called.
    assert_eq!(again.result_name(again.results()[0]), "node");
}

#[test]
fn a_limit_lists_the_nodes_that_need_a_newer_opset() {
    let op = TopK {
        axis: 0,
        mode: TopKMode::Max,
        sort: TopKSort::Value,
        index_element_type: ElementType::I32,
        stable: true,
    };
    let model = model_of(op.clone(), &[4], &[Tensor::scalar(2i64)], 1);
    let options = |n| WriteOptions { versions: Versions::UpTo(n), ..WriteOptions::default() };
    let error = write_to(&model, &options(10)).unwrap_err().to_string();
    assert_eq!(error, "1 node needs a newer opset than opset10: `node` (TopK, opset11)");
    assert!(write_to(&model, &options(11)).is_ok());
    let plain = model_of(TopK { stable: false, ..op }, &[4], &[Tensor::scalar(2i64)], 1);
    assert!(write_to(&plain, &options(3)).is_ok());
}

#[test]
fn for_a_device_versions_stay_as_they_are() {
    let model = model_of(pool(Rounding::Floor), &[1, 2, 4, 4], &[], 1);
    let xml = write_to(&model, &WriteOptions::transfer()).unwrap().0;
    assert!(xml.contains("type=\"MaxPool\" version=\"opset14\""), "{xml}");
}
