//! Operations of TensorFlow inside of files of another format: each comes as one `NodeDef`.

use crate::store::Store;
use crate::wire::NodeDef;
use crate::{TensorFlow, attributes};
use carafe_frontend::{Format, Found};
use carafe_graph::{AttrMap, AttrValue, Error, Result};
use carafe_tensor::SharedBytes;
use prost::Message;

/// The operation and the attributes of the bytes of a `NodeDef`. Functions are left out.
pub fn node_def(bytes: &[u8]) -> Result<(String, AttrMap)> {
    let store = Store::new(SharedBytes::from_vec(bytes.to_vec()));
    let node = NodeDef::decode(store.bytes()).map_err(|e| Error::invalid(format!("not a NodeDef: {e}")))?;
    let mut attrs = AttrMap::new();
    for entry in &node.attr {
        let Some(value) = &entry.value else { continue };
        let value =
            attributes::value(&entry.key, value, &store).map_err(|e| e.at(format!("attribute `{}`", entry.key)))?;
        if let Some(value) = value {
            attrs.set(&entry.key, value);
        }
    }
    Ok((node.op, attrs))
}

/// Our rule for an operation.
pub fn rule(op: &str) -> Option<Found<'static>> {
    TensorFlow.rules().find("", op, 0)
}

/// Whether an attribute that no rule reads may be left out.
pub fn is_annotation(value: &AttrValue) -> bool {
    crate::ops::types::is_tolerated(value)
}
