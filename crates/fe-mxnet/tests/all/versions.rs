//! Files of every version: records of arrays, symbols of old MXNet, names, and what is known of inputs.

use crate::common::{SCALE, Version, file, floats, read, record, run};
use carafe::{ElementType, PartialShape};

fn half_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| carafe::f16::from_f32(*v).to_le_bytes()).collect()
}

#[test]
fn records_of_all_versions_are_read() {
    let bytes: Vec<u8> = [2.0f32, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    for version in [Version::V0, Version::V1, Version::V2, Version::V3] {
        let params = file(&[("arg:w", record(version, &[2], 0, &bytes))]);
        let model = read(SCALE, Some(&params)).unwrap_or_else(|e| panic!("{version:?}: {e}"));
        assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0], "{version:?}");
    }
}

#[test]
fn arrays_keep_their_element_type() {
    let text = SCALE.replace("elemwise_mul", "broadcast_mul");
    let params = file(&[("arg:w", record(Version::V2, &[2], 2, &half_bytes(&[2.0, 3.0])))]);
    // Both operands are computed in the wider of their types.
    let model = read(&text, Some(&params)).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
}

#[test]
fn names_without_a_prefix_are_arguments() {
    let model = read(SCALE, Some(&file(&[("w", floats(&[2.0, 3.0]))]))).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
}

#[test]
fn a_sparse_array_is_refused_by_name_where_it_is_read() {
    let mut sparse = vec![];
    sparse.extend(0xF993_FAC9u32.to_le_bytes());
    sparse.extend(1i32.to_le_bytes());
    for shape in [[1i64], [2]] {
        sparse.extend(1i32.to_le_bytes());
        sparse.extend(shape[0].to_le_bytes());
    }
    [1i32, 0, 0, 6, 1].iter().for_each(|n| sparse.extend(n.to_le_bytes()));
    sparse.extend(1i64.to_le_bytes());
    sparse.extend(2.0f32.to_le_bytes());
    sparse.extend(1i64.to_le_bytes());
    let e = read(SCALE, Some(&file(&[("arg:w", sparse)]))).unwrap_err().to_string();
    assert!(e.contains("`w` is stored as row_sparse") && e.contains("tostype"), "{e}");
}

// Before 0.9 settings lie in `param`, references have two numbers, and states of BatchNorm are not listed.
const OLD: &str = r#"{"nodes": [
    {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "bn_gamma", "inputs": [], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
    {"op": "BatchNorm", "param": {"eps": "0", "fix_gamma": "False", "momentum": "0.9"}, "name": "bn",
     "inputs": [[0, 0], [1, 0], [2, 0]], "backward_source_id": -1, "attr": {"lr_mult": "2"}},
    {"op": "_Plus", "param": {}, "name": "y", "inputs": [[3, 0], [3, 0]], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "softmax_label", "inputs": [], "backward_source_id": -1},
    {"op": "LinearRegressionOutput", "param": {}, "name": "out", "inputs": [[4, 0], [5, 0]], "backward_source_id": -1}
], "arg_nodes": [0, 1, 2, 5], "heads": [[6, 0]]}"#;

#[test]
fn a_symbol_before_0_9_gets_its_states_and_loses_its_label() {
    let params = file(&[
        ("arg:bn_gamma", floats(&[2.0, 3.0])),
        ("arg:bn_beta", floats(&[1.0, 1.0])),
        ("aux:bn_moving_mean", floats(&[1.0, 0.0])),
        ("aux:bn_moving_var", floats(&[4.0, 1.0])),
    ]);
    let model = read(OLD, Some(&params)).unwrap();
    assert_eq!(model.parameters().len(), 1);
    let x = carafe::Tensor::from_slice(&[1, 2], &[3.0f32, 2.0]).unwrap();
    let found = model.evaluate(&[x]).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap().as_ref(), [6.0, 14.0]);
}

#[test]
fn an_axis_of_minus_one_meant_none_before_0_9_5() {
    let text = |version: i64| {
        format!(
            r#"{{"nodes": [{{"op": "null", "name": "x", "attr": {{"__shape__": "(2, 2)"}}, "inputs": []}},
            {{"op": "argmax", "name": "y", "attr": {{"axis": "-1"}}, "inputs": [[0, 0, 0]]}}],
            "heads": [[1, 0, 0]], "attrs": {{"mxnet_version": ["int", {version}]}}}}"#
        )
    };
    let shape = |version| {
        let model = read(&text(version), None).unwrap();
        model.fact(model.result_value(model.results()[0])).shape.clone()
    };
    assert_eq!(shape(904), PartialShape::of(&[1]));
    assert_eq!(shape(905), PartialShape::of(&[2]));
}

#[test]
fn a_name_that_is_used_again_stands_for_two_nodes() {
    let text = r#"{"nodes": [{"op": "null", "name": "x", "attrs": {"__shape__": "(2,)"}, "inputs": []},
        {"op": "relu", "name": "act", "inputs": [[0, 0, 0]]},
        {"op": "_plus_scalar", "name": "act", "attrs": {"scalar": "1"}, "inputs": [[1, 0, 0]]},
        {"op": "relu", "name": "act_1", "inputs": [[2, 0, 0]]}], "heads": [[3, 0, 0]]}"#;
    let model = read(text, None).unwrap();
    assert_eq!(run(&model, [-4.0, 2.0]), [1.0, 3.0]);
}

#[test]
fn the_rank_and_channels_of_an_input_follow_from_the_weights_it_reaches() {
    let text = r#"{"nodes": [{"op": "null", "name": "data", "inputs": []},
        {"op": "_minus_scalar", "name": "a", "attrs": {"scalar": "127.5"}, "inputs": [[0, 0, 0]]},
        {"op": "null", "name": "w", "inputs": []},
        {"op": "Convolution", "name": "y", "attrs": {"kernel": "(1, 1)", "num_filter": "2", "no_bias": "True", "num_group": "2"},
         "inputs": [[1, 0, 0], [2, 0, 0]]}], "heads": [[3, 0, 0]]}"#;
    let weights = record(Version::V2, &[2, 1, 1, 1], 2, &half_bytes(&[1.0, 2.0]));
    let model = read(text, Some(&file(&[("arg:w", weights)]))).unwrap();
    let fact = model.fact(model.parameters()[0].into());
    assert_eq!(fact.ty, ElementType::F16);
    assert_eq!(fact.shape.to_string(), "?,2,?,?");
}

#[test]
fn mxnets_own_names_of_outputs_are_known() {
    let model = read(SCALE, Some(&file(&[("w", floats(&[2.0, 3.0]))]))).unwrap();
    for name in ["y", "y_output"] {
        assert!(model.find_result(name).is_some(), "{name}");
    }
}
