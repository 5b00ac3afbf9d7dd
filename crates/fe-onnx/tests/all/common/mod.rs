//! Models of a few words: ONNX's own text where the language can say it, protobuf text where it cannot.

#![allow(dead_code)]

use carafe_fe_onnx::Onnx;
use carafe_frontend::{Content, Format, ReadRequest};
use carafe_graph::Model;
use carafe_tensor::SharedBytes;
use std::path::{Path, PathBuf};

/// Reads a model from any form.
pub(crate) fn read(model: impl AsRef<[u8]>) -> Result<Model, String> {
    read_as(model, &request()).map_err(|e| e.to_string())
}

/// A request without a model.
pub(crate) fn request() -> ReadRequest<'static> {
    ReadRequest::new(Path::new(""))
}

/// Reads a model from any form, as a request says.
pub(crate) fn read_as(model: impl AsRef<[u8]>, request: &ReadRequest<'_>) -> carafe_graph::Result<Model> {
    let bytes = SharedBytes::from_vec(model.as_ref().to_vec());
    carafe_frontend::read(&Onnx, &ReadRequest { model: Content::Bytes(&bytes), ..*request })
}

pub(crate) fn is_onnx(head: &[u8]) -> bool {
    Onnx.recognizes(head)
}

/// The message about a model that must be refused.
#[track_caller]
pub(crate) fn error(model: impl AsRef<[u8]>) -> String {
    read(model).expect_err("the model must be refused")
}

#[track_caller]
pub(crate) fn check_error(model: impl AsRef<[u8]>, wanted: &str) {
    let found = error(model);
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

/// A graph in ONNX's text under opset 17.
pub(crate) fn graph(text: &str) -> String {
    format!("<ir_version: 8, opset_import: [\"\" : 17, \"d\" : 1]> {text}")
}

/// Protobuf text of a model with this graph content.
pub(crate) fn proto(graph: &str) -> String {
    format!("ir_version: 8 opset_import {{ version: 17 }} graph {{ name: 'g' {graph} }}")
}

/// A folder of its own for one test, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("carafe-fe-onnx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file in a temporary folder");
        path
    }
    pub(crate) fn read(&self, name: &str) -> Result<Model, String> {
        carafe_frontend::read(&Onnx, &ReadRequest::new(&self.0.join(name))).map_err(|e| e.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
