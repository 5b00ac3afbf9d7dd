//! ONNX as a format of `Core`.

use carafe_frontend::{ReadOptions, RuleSet};
use carafe_graph::{Model, Registry, Result};
use carafe_runtime::{ReadRequest, Reader};

/// The reader, with its rules; a user's rules stand in front of the built-in ones.
#[derive(Debug)]
pub(crate) struct OnnxFormat {
    rules: RuleSet,
}

impl OnnxFormat {
    pub(crate) fn new() -> OnnxFormat {
        OnnxFormat { rules: carafe_fe_onnx::rules() }
    }
}

impl Reader for OnnxFormat {
    fn format(&self) -> &'static str {
        "ONNX"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        carafe_fe_onnx::is_onnx(head)
    }
    fn read(&self, request: &ReadRequest<'_>, _: &Registry) -> Result<Model> {
        let options = ReadOptions { keep_unknown: request.keep_unknown, progress: request.progress };
        carafe_fe_onnx::read_file_with(request.path, &self.rules, &options)
    }
}
