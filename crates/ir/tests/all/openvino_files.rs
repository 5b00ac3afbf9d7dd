//! Files that OpenVINO 2026.4.1 wrote (`scripts/fixtures/ir-files`), read with the real operation library. The expected
//! numbers are what OpenVINO's CPU device computes for inputs 0, 1, 2, ...

use carafe_graph::{EvalEnv, Model, run};
use carafe_ir::ReadOptions;
use carafe_tensor::{ElementType, Tensor};
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.xml"))
}

fn read(name: &str) -> Model {
    carafe_ir::read_file(&path(name), &carafe_ops::registry(), &ReadOptions::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

fn counting(model: &Model) -> Vec<Tensor> {
    let tensor = |p: &carafe_graph::NodeId| {
        let fact = model.fact((*p).into());
        let shape = fact.shape.to_static().unwrap();
        let count: Vec<i64> = (0..).take(shape.iter().product()).collect();
        Tensor::from_i64(fact.ty, &shape, &count).unwrap()
    };
    model.parameters().iter().map(tensor).collect()
}

/// Runs the model, and again after writing and reading it; both must give these numbers.
#[track_caller]
fn check(name: &str, expected: &[&[f64]]) {
    let model = read(name);
    let again = crate::common::round_trip(&model, &carafe_ops::registry());
    for model in [model, again] {
        let outputs = model.evaluate(&counting(&model)).unwrap();
        let numbers: Vec<Vec<f64>> = outputs.iter().map(|t| t.to_vec::<f64>().unwrap().into_owned()).collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn a_loop_carries_slices_and_concatenates() {
    let every = [
        0., 3., 6., 6., 9., 12., 4., 8., 12., 10., 14., 18., 12., 17., 22., 18., 23., 28., 24., 30., 36., 30., 36., 42.,
    ];
    check("loop", &[&[24., 29., 34., 27., 32., 37.], &every]);
}

#[test]
fn a_tensor_iterator_runs_backwards() {
    check("tensor_iterator", &[&[2., 3.875], &[2., 3.875, 4., 5.75, 4., 5.5]]);
}

#[test]
fn a_false_condition_takes_the_else_body() {
    check("if_else", &[&[0., 20.]]);
}

#[test]
fn weights_compressed_to_f16_are_restored_by_their_convert() {
    check("compressed", &[&[1.75, 4.75]]);
    let model = read("compressed");
    let convert = model.node(model.find_node("weights").unwrap());
    assert!(convert.rt_info.has("decompression"));
    assert_eq!(model.rt_info[0].key, "OpenVINO Runtime");
}

#[test]
fn automatic_and_explicit_pads_are_told_apart() {
    let same = [12., 27., 24., 63., 108., 81., 72., 117., 84.];
    let explicit = [21., 27., 33., 24., 54., 63., 72., 51., 99., 108., 117., 81., 144., 153., 162., 111.];
    check("padded", &[&same, &explicit]);
}

#[test]
fn a_variable_keeps_its_value_between_runs() {
    let model = crate::common::round_trip(&read("state"), &carafe_ops::registry());
    assert_eq!(model.sinks().len(), 1);
    let mut env = EvalEnv::default();
    let inputs = counting(&model);
    let mut last = vec![];
    for _ in 0..3 {
        last = run(&model, &inputs, &mut env).unwrap();
    }
    assert_eq!(last[0].as_slice::<f32>().unwrap(), [0., 3.]);
}

#[test]
fn string_constants_are_decoded() {
    let model = crate::common::round_trip(&read("strings"), &carafe_ops::registry());
    let outputs = model.evaluate(&[Tensor::from_strings(&[1], vec!["in".into()]).unwrap()]).unwrap();
    assert_eq!(outputs[0].strings().unwrap(), ["ab", "", "xyz é"]);
    assert_eq!(outputs[1].strings().unwrap(), ["in"]);
}

#[test]
fn constants_of_every_packed_type_are_read() {
    let expected: [(ElementType, &[f64]); 18] = [
        (ElementType::U1, &[1., 0., 0., 0., 0., 0., 1., 1., 1.]),
        (ElementType::U2, &[1., 2., 3., 0., 1.]),
        (ElementType::U3, &[1., 2., 3., 4., 5., 6., 7., 0.]),
        (ElementType::U4, &[1., 2., 3.]),
        (ElementType::I4, &[-1., 2., -8.]),
        (ElementType::U6, &[1., 2., 33., 63.]),
        (ElementType::Nf4, &[0., 1., -1.]),
        (ElementType::F4E2M1, &[0.5, 6., -1.]),
        (ElementType::F8E4M3, &[1., 448.]),
        (ElementType::F8E5M2, &[1., 2.]),
        (ElementType::F8E8M0, &[1., 4.]),
        (ElementType::Bf16, &[1., 2.]),
        (ElementType::F16, &[0.5, 2.]),
        (ElementType::Boolean, &[1., 0.]),
        (ElementType::I8, &[-1., 2.]),
        (ElementType::U16, &[1., 65535.]),
        (ElementType::U64, &[1., 9223372036854775808.]),
        (ElementType::F64, &[0.1, 2.]),
    ];
    let model = crate::common::round_trip(&read("packed"), &carafe_ops::registry());
    let outputs = model.evaluate(&[]).unwrap();
    for (output, (ty, values)) in outputs.iter().zip(expected) {
        assert_eq!((output.element_type(), &*output.to_vec::<f64>().unwrap()), (ty, values));
    }
    assert_eq!(outputs.len(), expected.len());
}

#[test]
fn layouts_user_data_and_the_model_tree_survive() {
    let first = read("annotated");
    for model in [crate::common::round_trip(&first, &carafe_ops::registry()), first] {
        let layout = |v: carafe_graph::Value| model.output(v).rt_info.get("layout").unwrap().fields[0].1.clone();
        let relu = model.find_node("relu").unwrap();
        assert_eq!(layout(model.parameters()[0].into()), "[N,C,H,W]");
        assert_eq!(layout(relu.into()), "[N,...]");
        assert_eq!(model.node(relu).rt_info.user[0].value.as_deref(), Some("kept"));
        assert_eq!(model.name, "annotated & <escaped>");
        let keys: Vec<&str> = model.rt_info.iter().map(|t| t.key.as_str()).collect();
        assert_eq!(keys, ["key with blanks", "model_info"]);
        assert_eq!(model.rt_info[1].child("scale").unwrap().value.as_deref(), Some("1.0"));
    }
}

#[test]
fn names_with_commas_are_unescaped() {
    let model = crate::common::round_trip(&read("annotated"), &carafe_ops::registry());
    let names: Vec<String> = model.result_names(model.results()[0]).into_iter().collect();
    assert_eq!(names, ["a,b", "plain"]);
}

#[test]
fn partial_shapes_keep_their_intervals() {
    let model = crate::common::round_trip(&read("dynamic"), &carafe_ops::registry());
    let shapes: Vec<String> =
        model.results().iter().map(|r| model.fact(model.result_value(*r)).shape.to_string()).collect();
    assert_eq!(shapes, ["?,1..10,3..,..7,5", "...", ""]);
}

#[test]
fn version_10_shows_f32_inputs_and_i32_outputs() {
    let model = read("version_10");
    let types = |ids: &[carafe_graph::NodeId]| -> Vec<String> {
        ids.iter().map(|id| model.fact((*id).into()).ty.to_string()).collect()
    };
    assert_eq!(types(model.parameters()), ["f32", "i64"]);
    assert_eq!(types(model.results()), ["f32", "i32", "f32"]);
    for name in ["half", "sum", "parts.1"] {
        assert!(model.find_result(name).is_some(), "{name}");
    }
    check("version_10", &[&[0., 1.], &[5., 7.], &[2.]]);
}
