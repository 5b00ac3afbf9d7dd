//! Values of resources. A variable is its value, a table its keys and its values: they are stored with the node, which reads them
//! as inputs 0 and 1. They are read from the checkpoint when a rule asks for them.

use crate::checkpoint::Checkpoint;
use crate::initial::{Filling, Initial, Restored};
use crate::store::Store;
use crate::table_file::TableFile;
use crate::tensor::tensor;
use carafe_frontend::{MARK, SourceNode, SourceTensor};
use carafe_graph::{AttrValue, Error};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// What is known of the resources of a model.
#[derive(Debug, Default)]
pub(crate) struct Resources<'m> {
    pub(crate) checkpoint: Option<Rc<Checkpoint>>,
    pub(crate) initial: Initial<'m>,
    /// Files of the model by the nodes that hold their paths.
    pub(crate) assets: HashMap<String, PathBuf>,
}

impl Resources<'_> {
    /// Gives a node of a resource its value; leaves any other as it is.
    pub(crate) fn attach(&self, node: &mut SourceNode, store: &Store) {
        match node.op_type.as_str() {
            "VarHandleOp" | "Variable" | "VariableV2" | "AutoReloadVariable" => self.variable(node),
            "HashTable" | "HashTableV2" | "MutableHashTable" | "MutableHashTableV2" => self.table(node, store),
            _ => {}
        }
    }

    fn variable(&self, node: &mut SourceNode) {
        let Some(checkpoint) = &self.checkpoint else { return };
        let shared = match node.attrs.get("shared_name") {
            Some(AttrValue::Str(name)) if !name.is_empty() => name.clone(),
            _ => node.name.clone(),
        };
        let named = |key: &str| Some(Restored { key: key.to_string(), part: None });
        let found = self.initial.variables.get(node.name.as_str()).filter(|r| checkpoint.has(&r.key)).cloned();
        let found = found.or_else(|| checkpoint.key_of(&shared).and_then(named));
        let found = found.or_else(|| named(&shared).filter(|r| checkpoint.has(&r.key)));
        let found =
            found.or_else(|| named(&format!("{shared}/.ATTRIBUTES/VARIABLE_VALUE")).filter(|r| checkpoint.has(&r.key)));
        match found {
            Some(Restored { key, part }) => {
                let checkpoint = checkpoint.clone();
                store_with(node, "value", move || checkpoint.tensor(&key, part.as_ref()));
            }
            None => store_with(node, "value", move || {
                Err(Error::not_found(format!("the checkpoint has no value for the variable `{shared}`")))
            }),
        }
    }

    fn table(&self, node: &mut SourceNode, store: &Store) {
        match self.initial.tables.get(node.name.as_str()) {
            None => {}
            Some(Filling::Pairs(keys, values)) => {
                for (name, content) in [("keys", keys), ("values", values)] {
                    let read = tensor(content, store);
                    store_with(node, name, move || read.clone());
                }
            }
            Some(Filling::File(file)) => {
                let file = Rc::new(TableFile::of(file, node, &self.assets, store));
                let keys = file.clone();
                store_with(node, "keys", move || keys.keys());
                store_with(node, "values", move || file.values());
            }
        }
    }
}

// A tensor of the node's own, as its next input.
fn store_with(
    node: &mut SourceNode,
    what: &str,
    read: impl Fn() -> carafe_graph::Result<carafe_tensor::Tensor> + 'static,
) {
    let name = format!("{}{MARK}{what}", node.name);
    node.inputs.push(name.clone());
    node.stored.push(SourceTensor::lazy(name, read));
}
