//! One model in every form that TensorFlow stores models in. `scripts/fixtures/tf_containers.py` writes them.

use crate::references;
use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{Content, Format, FormatOptions, ReadRequest};
use carafe_graph::{Model, Result};
use carafe_tensor::Tensor;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/containers").join(name)
}

fn read(name: &str, options: &[(&str, &str)]) -> Result<Model> {
    let mut all = FormatOptions::default();
    for (name, value) in options {
        all.set(*name, *value);
    }
    carafe_frontend::read(&TensorFlow, &ReadRequest { options: Some(&all), ..ReadRequest::new(&data(name)) })
}

#[track_caller]
fn check(model: Result<Model>, numbers: &str) -> Model {
    let model = model.expect("the model is read");
    references::check(&model, &data(&format!("{numbers}.npz"))).expect("the numbers of TensorFlow");
    model
}

const CHECKPOINTS: [&str; 6] = ["resource", "reference", "partitioned", "sharded", "version1", "version1_partitioned"];

#[test]
fn a_graph_takes_a_checkpoint() {
    for name in CHECKPOINTS {
        let folder = format!("checkpoint_{name}");
        let checkpoint = data(&format!("{folder}/model.ckpt")).display().to_string();
        check(read(&format!("{folder}/graph.pb"), &[("input_checkpoint", &checkpoint)]), &folder);
    }
}

#[test]
fn a_meta_graph_has_its_checkpoint_beside_it() {
    for name in CHECKPOINTS {
        let folder = format!("checkpoint_{name}");
        check(read(&format!("{folder}/model.ckpt.meta"), &[]), &folder);
    }
}

#[test]
fn weights_are_a_checkpoint() {
    let (model, weights) = (data("checkpoint_resource/graph.pb"), data("checkpoint_resource/model.ckpt.index"));
    let request = ReadRequest { weights: Some(Content::File(&weights)), ..ReadRequest::new(&model) };
    check(carafe_frontend::read(&TensorFlow, &request), "checkpoint_resource");
}

#[test]
fn variables_stay_mapped() {
    let model = read("checkpoint_resource/model.ckpt.meta", &[]).unwrap();
    let mapped = |id| model.node(id).op().get::<carafe_graph::Constant>().is_some_and(|c| c.tensor().is_mapped());
    assert!(model.nodes().any(|(id, node)| node.name() == "w" && mapped(id)));
}

#[test]
fn a_graph_without_its_checkpoint_says_so() {
    let e = read("checkpoint_resource/graph.pb", &[]).unwrap_err().to_string();
    assert!(e.contains("`w`") && e.contains("--input_checkpoint"), "{e}");
    let e = read("checkpoint_resource/graph.pb", &[("input_checkpoint", "/nonesuch")]).unwrap_err().to_string();
    assert!(e.contains("there is no checkpoint `/nonesuch`"), "{e}");
}

#[test]
fn a_checkpoint_of_another_model_is_told() {
    let other = data("saved_model_v2/variables/variables").display().to_string();
    let e = read("checkpoint_resource/graph.pb", &[("input_checkpoint", &other)]).unwrap_err().to_string();
    assert!(e.contains("no value for the variable `w`"), "{e}");
}

#[test]
fn a_checkpoint_is_no_model() {
    let e = read("checkpoint_resource/model.ckpt.index", &[]).unwrap_err().to_string();
    assert!(e.contains("--input_checkpoint"), "{e}");
}

#[test]
fn a_graph_may_be_text() {
    let text = check(read("frozen.pbtxt", &[]), "frozen");
    check(read("frozen.pbtxt", &[("input_model_is_text", "true")]), "frozen");
    assert_eq!(text.nodes().count(), read("frozen.pb", &[]).unwrap().nodes().count());
}

#[test]
fn keys_of_the_signature_are_tensor_names() {
    let model = check(read("saved_model_v1", &[]), "saved_model_v1");
    let names = |id: carafe_graph::NodeId| model.output(id.into()).names.clone();
    let input = names(model.parameters()[0]);
    assert!(["features", "x", "x:0"].iter().all(|n| input.contains(*n)), "{input:?}");
    let output = model.output(model.result_value(model.results()[0])).names.clone();
    assert!(["scores", "y", "y:0"].iter().all(|n| output.contains(*n)), "{output:?}");
    assert_eq!((model.parameters().len(), model.results().len()), (1, 1));
}

#[test]
fn tags_choose_the_graph() {
    check(read("saved_model_v1", &[("saved_model_tags", "serve, gpu")]), "saved_model_v1_gpu");
    let e = read("saved_model_v1", &[("saved_model_tags", "train")]).unwrap_err().to_string();
    assert!(e.contains("`serve`, `gpu,serve`") && e.contains("--saved_model_tags"), "{e}");
}

#[test]
fn a_signature_is_chosen_and_an_asset_fills_its_table() {
    let model = read("saved_model_v1", &[("signature", "words")]).unwrap();
    let words = ["blue", "pink", "red"].map(str::to_string).to_vec();
    let outputs = model.evaluate(&[carafe_tensor::Tensor::from_strings(&[3], words).unwrap()]).unwrap();
    assert_eq!(outputs[0].to_vec::<i64>().unwrap()[..], [2, -1, 0]);
    assert_eq!(outputs[1].to_vec::<f32>().unwrap()[..], [20.0, 0.0, 10.0]);
    let e = read("saved_model_v1", &[("signature", "nobody")]).unwrap_err().to_string();
    assert!(e.contains("the model has `serving_default`, `words`"), "{e}");
}

#[test]
fn functions_with_captured_variables_of_equal_names() {
    check(read("saved_model_v2", &[]), "saved_model_v2");
    check(read("saved_model_v2/saved_model.pb", &[]), "saved_model_v2");
}

#[test]
fn tables_are_filled_from_assets_and_from_constants() {
    let words = Tensor::from_strings(&[3], ["blue", "pink", "red"].map(str::to_string).to_vec()).unwrap();
    let of = |name: &str| {
        let model = read(name, &[]).unwrap();
        let found = model.evaluate(std::slice::from_ref(&words)).unwrap();
        found.iter().map(|t| t.to_vec::<f64>().unwrap().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("saved_model_words"), [vec![2.0, -1.0, 0.0], vec![20.0, 0.0, 10.0]]);
    assert_eq!(of("saved_model_v2_words"), [vec![20.0, -1.0, 10.0]]);
}

#[test]
fn a_folder_without_a_model_is_refused() {
    let e = read("saved_model_v1/assets", &[]).unwrap_err().to_string();
    assert!(e.contains("is no folder of a SavedModel"), "{e}");
    assert!(TensorFlow.recognizes_folder(&data("saved_model_words")));
    assert!(!TensorFlow.recognizes_folder(&data("saved_model_v1/assets")));
}

#[test]
fn files_are_recognised_by_their_content() {
    let names = ["frozen.pb", "frozen.pbtxt", "checkpoint_resource/model.ckpt.meta", "saved_model_v1/saved_model.pb"];
    for name in names.into_iter().chain(["saved_model_v2/saved_model.pb", "saved_model_words/saved_model.pbtxt"]) {
        let bytes = std::fs::read(data(name)).unwrap();
        assert!(TensorFlow.recognizes(&bytes[..bytes.len().min(64 * 1024)]), "{name}");
        assert!(TensorFlow.recognizes(&bytes[..200]), "the start of {name}");
    }
    assert!(!TensorFlow.recognizes(b""));
    assert!(!TensorFlow.recognizes(b"name: \"net\" input: \"x\""));
    assert!(!TensorFlow.recognizes(&std::fs::read(data("checkpoint_resource/model.ckpt.index")).unwrap()));
}

#[test]
fn files_of_keras_are_refused_with_a_way_out() {
    let zip = b"PK\x03\x04..metadata.json..config.json";
    for bytes in [&b"\x89HDF\r\n\x1a\n...."[..], zip] {
        assert!(TensorFlow.recognizes(bytes));
        let e = crate::common::read(bytes).unwrap_err();
        assert!(e.contains("holds no graph") && e.contains(".export(FOLDER)"), "{e}");
    }
}
