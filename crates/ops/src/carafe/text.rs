//! What the operations on texts share.

use carafe_graph::{InferCx, Result};
use carafe_tensor::ElementType;

/// Refuses an input that holds anything but texts.
pub(super) fn require_text(cx: &InferCx<'_>, input: usize) -> Result<()> {
    let ty = cx.ty(input);
    cx.require(matches!(ty, ElementType::String | ElementType::Dynamic), || {
        format!("{} must be string, found {ty}", cx.port_name(input))
    })
}
