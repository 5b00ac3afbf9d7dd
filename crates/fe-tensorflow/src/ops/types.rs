//! What type attributes say. Files of TensorFlow are full of attributes that a translation does not need (`T`, `Tidx`,
//! `_output_shapes`, `_class` and whatever a later version adds): those that nobody reads are tolerated, here and nowhere
//! else. The exception is a complex element type. Complex numbers are carried as pairs in a last axis of size 2, and a rule
//! that does not know it would take that axis for one of the data's; so a rule that can do complex numbers asks
//! [`is_complex`], and a complex type that nobody asked about is an error.

use carafe_frontend::NodeCx;
use carafe_graph::{AttrValue, Result};
use carafe_tensor::ElementType;

/// Whether an attribute of this value may be left unread.
pub(crate) fn is_tolerated(value: &AttrValue) -> bool {
    complex_part(value).is_none()
}

fn complex_part(value: &AttrValue) -> Option<ElementType> {
    match value {
        AttrValue::Str(name) if name == "complex64" => Some(ElementType::F32),
        AttrValue::Str(name) if name == "complex128" => Some(ElementType::F64),
        _ => None,
    }
}

/// Whether a type attribute, such as `T`, is of complex numbers.
pub(crate) fn is_complex(n: &NodeCx<'_>, name: &str) -> bool {
    n.attr_value(name).and_then(complex_part).is_some()
}

/// An element type; of complex numbers that of their parts.
pub(crate) fn element_type(n: &NodeCx<'_>, name: &str, default: ElementType) -> Result<ElementType> {
    match n.attr_value(name).and_then(complex_part) {
        Some(part) => Ok(part),
        None => n.attr(name, default),
    }
}
