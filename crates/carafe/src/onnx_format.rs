//! ONNX as a format of `Core`.

use carafe_frontend::{ReadOptions, RuleSet};
use carafe_graph::{Model, Result};
use carafe_runtime::{ReadContext, ReadRequest, Reader};

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
    fn read(&self, request: &ReadRequest<'_>, cx: &ReadContext<'_>) -> Result<Model> {
        let options = ReadOptions {
            keep_unknown: request.keep_unknown,
            explain: request.explain,
            progress: request.progress,
            registry: Some(cx.registry),
            decoded: cx.decoded,
            telemetry: Some(cx.telemetry),
            log: request.log,
            wanted: request.wanted,
        };
        let rules = self.rules.with_user("onnx", cx.rules, cx.fallback);
        carafe_fe_onnx::read_file_with(request.path, &rules, &options)
    }
    fn has_decoded_form(&self) -> bool {
        true
    }
    fn decoded(&self, request: &ReadRequest<'_>) -> Result<Option<Model>> {
        carafe_fe_onnx::read_decoded(request.path).map(Some)
    }
}
