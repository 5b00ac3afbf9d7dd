//! Models on disk: mapped weights, files written whole or not at all.

use crate::common::*;
use carafe_graph::{Constant, ErrorKind, Model};
use carafe_ir::{ReadOptions, WriteOptions, read_file, write_file};
use carafe_tensor::Tensor;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("carafe-ir-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> carafe_graph::Result<Model> {
    read_file(path, &registry(), &ReadOptions::default())
}

fn constant_model(values: &[f32]) -> Model {
    let mut model = Model::new("c");
    let value = model.constant("w", Tensor::from_slice(&[values.len()], values).unwrap()).unwrap();
    model.result("out", value).unwrap();
    model
}

fn weights_of(model: &Model) -> Tensor {
    model.node(model.find_node("w").unwrap()).op().get::<Constant>().unwrap().tensor().clone()
}

#[test]
fn constants_are_views_of_the_mapped_file() {
    let folder = Folder::new();
    write_file(&constant_model(&[1., 2.]), &folder.file("m.xml"), &WriteOptions::default()).unwrap();
    let tensor = weights_of(&read(&folder.file("m.xml")).unwrap());
    assert!(tensor.is_mapped());
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [1., 2.]);
}

#[test]
fn a_weights_file_of_a_gigabyte_is_not_loaded() {
    let folder = Folder::new();
    let end = 1u64 << 30;
    let mut bin = File::create(folder.file("m.bin")).unwrap();
    bin.set_len(end).unwrap();
    bin.seek(SeekFrom::Start(end - 4)).unwrap();
    bin.write_all(&7f32.to_le_bytes()).unwrap();
    let data = format!(r#"element_type="f32" shape="{}" offset="0" size="{end}""#, end / 4);
    let layers = layer(0, "w", "Const", &data, 0, &[""]) + &result(1, "out");
    fs::write(folder.file("m.xml"), net(11, &layers, &[[0, 0, 1, 0]], "")).unwrap();
    let started = std::time::Instant::now();
    let tensor = weights_of(&read(&folder.file("m.xml")).unwrap());
    assert!(started.elapsed().as_secs_f64() < 1.0, "took {:?}", started.elapsed());
    assert!(tensor.is_mapped());
    assert_eq!(tensor.as_slice::<f32>().unwrap().last(), Some(&7.0));
}

#[test]
fn without_constants_no_weights_file_is_needed() {
    let folder = Folder::new();
    fs::write(folder.file("m.xml"), chain(&layer(1, "r", "ReLU", "", 1, &["y"]))).unwrap();
    assert!(read(&folder.file("m.xml")).is_ok());
    File::create(folder.file("m.bin")).unwrap();
    assert!(read(&folder.file("m.xml")).is_ok());
}

#[test]
fn a_missing_weights_file_is_named_when_a_constant_needs_it() {
    let folder = Folder::new();
    write_file(&constant_model(&[1.]), &folder.file("m.xml"), &WriteOptions::default()).unwrap();
    fs::remove_file(folder.file("m.bin")).unwrap();
    let error = read(&folder.file("m.xml")).unwrap_err().to_string();
    assert!(error.contains("m.bin` does not exist") && error.contains("layer 'w' (Const, id 0)"), "{error}");
}

#[test]
fn a_truncated_weights_file_is_refused() {
    let folder = Folder::new();
    write_file(&constant_model(&[1., 2.]), &folder.file("m.xml"), &WriteOptions::default()).unwrap();
    File::options().write(true).open(folder.file("m.bin")).unwrap().set_len(7).unwrap();
    let error = read(&folder.file("m.xml")).unwrap_err().to_string();
    assert!(error.starts_with("model `") && error.contains("m.xml`, layer 'w'"), "{error}");
    assert!(error.contains("size 8 reach past the weights, which have 7 bytes"), "{error}");
}

#[test]
fn weights_can_lie_elsewhere() {
    let folder = Folder::new();
    write_file(&constant_model(&[3.]), &folder.file("m.xml"), &WriteOptions::default()).unwrap();
    fs::rename(folder.file("m.bin"), folder.file("other.weights")).unwrap();
    let options = ReadOptions { weights: Some(folder.file("other.weights")), ..ReadOptions::default() };
    assert!(read_file(&folder.file("m.xml"), &registry(), &options).is_ok());
    let options = ReadOptions { weights: Some(folder.file("none")), ..ReadOptions::default() };
    let error = read_file(&folder.file("m.xml"), &registry(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_missing_model_is_not_found_by_name() {
    let error = read(Path::new("/nowhere/m.xml")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("/nowhere/m.xml"), "{error}");
}

#[test]
fn a_model_that_is_not_text_is_refused() {
    let folder = Folder::new();
    fs::write(folder.file("m.xml"), b"<net version='11'>\xff</net>").unwrap();
    assert!(read(&folder.file("m.xml")).unwrap_err().to_string().contains("not UTF-8 text: byte 18"));
}

#[test]
fn a_model_can_be_written_over_the_file_it_is_mapped_from() {
    let folder = Folder::new();
    let path = folder.file("m.xml");
    write_file(&constant_model(&[1., 2., 3.]), &path, &WriteOptions::default()).unwrap();
    let mut model = read(&path).unwrap();
    // A constant in front moves the mapped one to another place.
    let extra = model.constant("extra", Tensor::from_slice(&[2], &[8f64, 9.]).unwrap()).unwrap();
    let result = model.result("first", extra).unwrap();
    let old = model.results()[0];
    model.order_results(vec![result, old]);
    write_file(&model, &path, &WriteOptions::default()).unwrap();
    assert_eq!(weights_of(&model).as_slice::<f32>().unwrap(), [1., 2., 3.]);
    assert_eq!(weights_of(&read(&path).unwrap()).as_slice::<f32>().unwrap(), [1., 2., 3.]);
    assert_eq!(folder.names(), ["m.bin", "m.xml"]);
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let folder = Folder::new();
    let path = folder.file("m.xml");
    write_file(&constant_model(&[5.]), &path, &WriteOptions::default()).unwrap();
    let mut bad = constant_model(&[6.]);
    bad.set_name(bad.find_node("w").unwrap(), "\u{1}");
    assert!(write_file(&bad, &path, &WriteOptions::default()).is_err());
    assert_eq!(folder.names(), ["m.bin", "m.xml"]);
    assert_eq!(weights_of(&read(&path).unwrap()).as_slice::<f32>().unwrap(), [5.]);
}

#[test]
fn a_failed_write_into_an_empty_folder_leaves_it_empty() {
    let folder = Folder::new();
    let mut bad = constant_model(&[6.]);
    bad.set_name(bad.find_node("w").unwrap(), "\u{1}");
    let error = write_file(&bad, &folder.file("m.xml"), &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("m.xml`, node `\u{1}`") && error.contains("XML cannot hold"), "{error}");
    assert!(folder.names().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error = write_file(&constant_model(&[1.]), Path::new("/nowhere/m.xml"), &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn only_xml_files_are_written() {
    let folder = Folder::new();
    for name in ["m.bin", "m", "m.onnx"] {
        let error = write_file(&constant_model(&[1.]), &folder.file(name), &WriteOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
    fs::create_dir(folder.file("taken.bin")).unwrap();
    let error = write_file(&constant_model(&[1.]), &folder.file("taken.xml"), &WriteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("taken.bin` is a folder"), "{error}");
}
