//! OpenVINO IR as a format of `Core`. Its nodes are operations already, so there is nothing to decode and no rule.

use crate::{ReadOptions, is_ir, read, read_file};
use carafe_frontend::{Content, Format, ReadRequest, Source};
use carafe_graph::{Error, Registry, Result};
use carafe_tensor::SharedBytes;

/// The format OpenVINO IR, versions 10 and 11.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ir;

impl Format for Ir {
    fn name(&self) -> &'static str {
        "OpenVINO IR"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        is_ir(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let none = Registry::new();
        let registry = request.registry.unwrap_or(&none);
        let options = ReadOptions {
            keep_unknown: request.keep_unknown,
            weights: request.weights.and_then(Content::path).map(|p| p.to_path_buf()),
            loaded: request.extensions.to_vec(),
            ..ReadOptions::default()
        };
        if let (Content::File(path), None | Some(Content::File(_))) = (request.model, request.weights) {
            return read_file(path, registry, &options).map(Source::Model);
        }
        let text = request.model.map()?;
        let text = std::str::from_utf8(text.as_slice())
            .map_err(|e| Error::invalid(format!("not UTF-8 text: byte {} is wrong", e.valid_up_to())))?;
        let weights = match request.weights {
            Some(weights) => weights.map()?,
            None => SharedBytes::from_vec(vec![]),
        };
        read(text, weights, registry, &options).map(Source::Model)
    }
}
