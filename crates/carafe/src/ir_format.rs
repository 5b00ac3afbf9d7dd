//! OpenVINO IR as a format of `Core`.

use carafe_graph::{Model, Result};
use carafe_ir::ReadOptions;
use carafe_runtime::{ReadContext, ReadRequest, Reader};

#[derive(Clone, Copy, Debug)]
pub(crate) struct IrFormat;

impl Reader for IrFormat {
    fn format(&self) -> &'static str {
        "OpenVINO IR"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        carafe_ir::is_ir(head)
    }
    fn read(&self, request: &ReadRequest<'_>, cx: &ReadContext<'_>) -> Result<Model> {
        let options = ReadOptions {
            keep_unknown: request.keep_unknown,
            weights: request.weights.map(|p| p.to_path_buf()),
            loaded: cx.extensions.to_vec(),
            ..ReadOptions::default()
        };
        carafe_ir::read_file(request.path, cx.registry, &options)
    }
}
