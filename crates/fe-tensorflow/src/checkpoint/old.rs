//! Checkpoints of version 1: one table or several, which hold the tensors themselves as messages.

use super::slice::Slice;
use super::wire::{SavedSliceMeta, SavedTensorSlices};
use super::{bundle, table};
use crate::store::Store;
use crate::tensor::tensor;
use crate::types;
use crate::wire::{DimProto, TensorProto, TensorShapeProto};
use bytes::Bytes;
use carafe_frontend::Content;
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use prost::Message;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// An opened checkpoint.
#[derive(Debug)]
pub(crate) struct Tables {
    path: PathBuf,
    tables: Vec<Store>,
    /// The number of the table, and the bytes of the message.
    entries: HashMap<Vec<u8>, (usize, Bytes)>,
    tensors: HashMap<String, SavedSliceMeta>,
}

impl Tables {
    /// Opens these files, which together are the checkpoint `path`.
    pub(crate) fn open(path: &Path, files: &[PathBuf]) -> Result<Tables> {
        let path = path.to_path_buf();
        let mut all = Tables { path, tables: vec![], entries: HashMap::new(), tensors: HashMap::new() };
        for file in files {
            all.add(file).map_err(|e| e.at(format!("checkpoint `{}`", file.display())))?;
        }
        Ok(all)
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        let store = Store::new(Content::File(file).map()?);
        for (key, value) in table::entries(&store)? {
            if !key.is_empty() {
                self.entries.insert(key, (self.tables.len(), value));
                continue;
            }
            let head = SavedTensorSlices::decode(value)
                .map_err(|e| Error::invalid(format!("its list of tensors is damaged: {e}")))?;
            for t in head.meta.into_iter().flat_map(|m| m.tensor) {
                match self.tensors.get_mut(&t.name) {
                    Some(known) => known.slice.extend(t.slice),
                    None => drop(self.tensors.insert(t.name.clone(), t)),
                }
            }
        }
        self.tables.push(store);
        Ok(())
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The tensor of a name, or a part of it.
    pub(crate) fn tensor(&self, name: &str, part: Option<&Slice>) -> Result<Tensor> {
        let read = || -> Result<Tensor> {
            let meta = self.tensors.get(name).ok_or_else(|| Error::invalid("the checkpoint does not have it"))?;
            let shape = meta.shape.as_ref().map_or(Ok(Some(vec![])), |s| types::shape(s).map(|s| s.to_static()))?;
            let shape = shape.ok_or_else(|| Error::invalid("its shape is not fixed"))?;
            let stored = meta.slice.iter().map(Slice::of).collect::<Result<Vec<_>>>()?;
            if let Some(same) = part.and_then(|part| stored.iter().find(|s| *s == part)) {
                return self.stored(meta, &shape, same);
            }
            let whole = match &stored[..] {
                [one] if one.shape(&shape)? == shape => self.stored(meta, &shape, one)?,
                parts => {
                    let first = parts.first().ok_or_else(|| Error::invalid("it has no parts"))?;
                    let mut whole = Tensor::zeros(self.stored(meta, &shape, first)?.element_type(), &shape)?;
                    for part in parts {
                        part.copy(&mut whole, &mut self.stored(meta, &shape, part)?, true)?;
                    }
                    whole
                }
            };
            part.map_or(Ok(whole.clone()), |part| bundle::cut(whole, part))
        };
        let at = |e: Error| e.at(format!("tensor `{name}`")).at(format!("checkpoint `{}`", self.path.display()));
        read().map_err(at)
    }

    // A part by itself. Its message has neither type nor shape.
    fn stored(&self, meta: &SavedSliceMeta, shape: &[usize], part: &Slice) -> Result<Tensor> {
        let missing = || Error::invalid("one of its parts is missing");
        let (table, bytes) = self.entries.get(&part.key(&meta.name)).ok_or_else(missing)?;
        let message = SavedTensorSlices::decode(bytes.clone())
            .map_err(|e| Error::invalid(format!("its message is damaged: {e}")))?;
        let data = message.data.and_then(|d| d.data).ok_or_else(missing)?;
        let dim = part.shape(shape)?.into_iter().map(|n| DimProto { size: n as i64 }).collect();
        let tensor_shape = Some(TensorShapeProto { dim, unknown_rank: false });
        tensor(&TensorProto { dtype: meta.r#type, tensor_shape, ..data }, &self.tables[*table])
    }
}
