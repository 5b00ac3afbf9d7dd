//! Sequences and optionals as a user gives and gets them: files of arrays.

use carafe::{ElementType, Tensor};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn model(name: &str) -> String {
    format!("{}/../testkit/fixtures/onnx-sequences/{name}/model.onnx", env!("CARGO_MANIFEST_DIR"))
}

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    String::from_utf8(done.stderr).unwrap()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
    /// `NAME=FILE` for arrays written to an archive.
    fn npz(&self, name: &str, items: &[Tensor]) -> String {
        let arrays: Vec<_> = items.iter().enumerate().map(|(i, t)| (format!("arr_{i}"), t.clone())).collect();
        let file = self.path(&format!("{name}.npz"));
        std::fs::write(&file, carafe_npy::write_npz(&arrays).unwrap()).unwrap();
        format!("{name}={file}")
    }
    fn npy(&self, name: &str, tensor: &Tensor) -> String {
        let file = self.path(&format!("{name}.npy"));
        std::fs::write(&file, carafe_npy::write_npy(tensor).unwrap()).unwrap();
        format!("{name}={file}")
    }
    fn arrays(&self, file: &str) -> Vec<Tensor> {
        let arrays = carafe_npy::read_npz(&std::fs::read(self.path(file)).unwrap()).unwrap();
        for (i, (name, _)) in arrays.iter().enumerate() {
            assert_eq!(*name, format!("arr_{i}"));
        }
        arrays.into_iter().map(|(_, t)| t).collect()
    }
    fn list(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.0.join("outputs.json")).unwrap()).unwrap()
    }
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

#[test]
fn a_sequence_goes_in_and_out_as_one_archive() {
    let dir = Folder::new("sequence");
    let s = dir.npz("s", &[row(&[1.0, 2.0]), row(&[3.0])]);
    let (x, at) = (dir.npy("x", &row(&[9.0])), dir.npy("at", &Tensor::scalar(1i64)));
    let text = ok(&["run", &model("edit"), "-i", &s, "-i", &x, "-i", &at, "-o", &dir.path("")]);
    assert!(
        text.contains("longer: sequence(") && text.contains("with 3 elements") && text.contains("longer[1]: f32[1]")
    );
    let longer = dir.arrays("longer.npz");
    assert!(longer.len() == 3 && longer[1].content_eq(&row(&[9.0])) && longer[2].content_eq(&row(&[3.0])));
    assert!(dir.arrays("shorter.npz")[0].content_eq(&row(&[1.0, 2.0])));
    let list = dir.list();
    assert_eq!(list["outputs"][0]["file"], "longer.npz");
    assert_eq!(list["outputs"][0]["elements"][0]["shape"][0], 2);
    assert_eq!(list["outputs"][2]["file"], "one.npy");
}

#[test]
fn the_parts_of_a_tensor_cut_at_known_places_are_one_archive_too() {
    let dir = Folder::new("parts");
    let model = format!("{}/../testkit/fixtures/onnx/test_split_to_sequence_2/model.onnx", env!("CARGO_MANIFEST_DIR"));
    let data = Tensor::zeros(ElementType::F32, &[3, 6]).unwrap();
    let split = Tensor::from_slice(&[2], &[1i64, 2]).unwrap();
    let (data, split) = (dir.npy("data", &data), dir.npy("split", &split));
    ok(&["run", &model, "-i", &data, "-i", &split, "-o", &dir.path("")]);
    assert_eq!(dir.list()["outputs"].as_array().unwrap().len(), 1);
    let shapes: Vec<_> = dir.arrays("seq.npz").iter().map(|t| t.shape().to_vec()).collect();
    assert_eq!(shapes, [[1, 6], [2, 6]]);
}

#[test]
fn an_optional_without_a_file_has_no_content() {
    let dir = Folder::new("optional");
    let (o, x) = (dir.npy("o", &row(&[2.0])), dir.npy("x", &row(&[5.0])));
    let run = |args: &[&str]| ok(&[&["run", &model("perhaps-full")], args].concat());
    assert!(run(&["-i", &o, "-i", &x]).contains("min 10 max 10"));
    assert!(run(&["-i", &x]).contains("min -5 max -5"));
    let empty = dir.npz("o", &[]);
    assert!(run(&["-i", &empty, "-i", &x]).contains("min -5 max -5"));
    let two = dir.npz("o", &[row(&[1.0]), row(&[2.0])]);
    assert!(fails(&["run", &model("perhaps-full"), "-i", &two, "-i", &x]).contains("is one tensor, found 2"));
}

#[test]
fn an_optional_output_tells_whether_it_has_content() {
    let dir = Folder::new("optional_output");
    let (c, x) =
        (dir.npy("c", &Tensor::from_i64(ElementType::Boolean, &[], &[0]).unwrap()), dir.npy("x", &row(&[5.0])));
    let text = ok(&["run", &model("maybe-full"), "-i", &c, "-i", &x, "-o", &dir.path("")]);
    assert!(text.contains("without content"), "{text}");
    assert!(dir.list()["outputs"][0]["elements"].is_null());
    let c = dir.npy("c", &Tensor::from_i64(ElementType::Boolean, &[], &[1]).unwrap());
    ok(&["run", &model("maybe-full"), "-i", &c, "-i", &x, "-o", &dir.path("")]);
    assert!(dir.arrays("o.npz")[0].content_eq(&row(&[-5.0])));
}

#[test]
fn a_converted_model_takes_and_gives_the_same_files() {
    let dir = Folder::new("converted");
    let s = dir.npz("s", &[row(&[1.0]), row(&[2.0])]);
    ok(&["convert", &model("loop-reverses"), "-o", &dir.path("model.xml")]);
    let text = ok(&["inspect", &dir.path("model.xml")]);
    assert!(text.contains("s: sequence(f32[?])") && text.contains("y: sequence("), "{text}");
    ok(&["run", &dir.path("model.xml"), "-i", &s, "-o", &dir.path("out")]);
    assert!(dir.arrays("out/y.npz")[0].content_eq(&row(&[2.0])));
    assert!(dir.arrays("out/left.npz").is_empty());
}

#[test]
fn elements_of_another_type_and_other_files_are_refused() {
    let dir = Folder::new("refused");
    let numbers = dir.npz("s", &[Tensor::scalar(1i64)]);
    assert!(fails(&["run", &model("join"), "-i", &numbers]).contains("elements of type f32, found i64"));
    std::fs::write(dir.path("s.raw"), [1, 2, 3]).unwrap();
    assert!(fails(&["run", &model("join"), "-i", &dir.path("s.raw")]).contains("is read from .npz or .npy"));
}
