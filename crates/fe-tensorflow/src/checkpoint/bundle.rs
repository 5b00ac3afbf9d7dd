//! Checkpoints of version 2: an index, which is a table, and shards with the bytes of tensors. A tensor is a view of its mapped
//! shard; only one that was stored in parts, or that is text, is copied.

use super::slice::Slice;
use super::wire::{BundleEntryProto, BundleHeaderProto, TrackableObjectGraph};
use super::{crc32c, table};
use crate::recognise::varint;
use crate::store::Store;
use crate::types::{self, DataType};
use bytes::Bytes;
use carafe_frontend::Content;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use prost::Message;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Tensors larger than this are used without a look at their checksum: that would load them.
const MOST_CHECKED: usize = 1 << 20;
/// Where the names of variables are told.
const OBJECT_GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// An opened checkpoint.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// Path without `.index`.
    prefix: PathBuf,
    num_shards: i32,
    entries: HashMap<Vec<u8>, Bytes>,
    shards: RefCell<HashMap<i32, SharedBytes>>,
    /// Keys by the names of variables, where the checkpoint says so.
    by_name: HashMap<String, String>,
}

impl Bundle {
    /// Opens `prefix.index`.
    pub(crate) fn open(prefix: &Path) -> Result<Bundle> {
        let path = with_ending(prefix, ".index");
        let read = || -> Result<Bundle> {
            let store = Store::new(Content::File(&path).map()?);
            let entries: HashMap<Vec<u8>, Bytes> = table::entries(&store)?.into_iter().collect();
            let header = entries.get(&b""[..]).ok_or_else(|| Error::invalid("it has no header"))?;
            let header = BundleHeaderProto::decode(header.clone())
                .map_err(|e| Error::invalid(format!("its header is damaged: {e}")))?;
            if header.endianness != 0 {
                return Err(Error::unsupported("it was written on a machine of the other byte order"));
            }
            let num_shards = header.num_shards;
            let prefix = prefix.to_path_buf();
            Ok(Bundle { prefix, num_shards, entries, shards: RefCell::default(), by_name: HashMap::new() })
        };
        let mut bundle = read().map_err(|e| e.at(format!("checkpoint `{}`", path.display())))?;
        bundle.by_name = bundle.object_graph().map_err(|e| bundle.at(e))?;
        Ok(bundle)
    }

    fn at(&self, e: Error) -> Error {
        e.at(format!("checkpoint `{}`", self.prefix.display()))
    }

    /// Whether there is a tensor of this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key.as_bytes())
    }
    /// The key of the variable of this name.
    pub(crate) fn key_of(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// The tensor of a key, or a part of it.
    pub(crate) fn tensor(&self, key: &str, part: Option<&Slice>) -> Result<Tensor> {
        self.read(key, part).map_err(|e| self.at(e.at(format!("tensor `{key}`"))))
    }

    fn read(&self, key: &str, part: Option<&Slice>) -> Result<Tensor> {
        let entry = self.entry(key.as_bytes())?.ok_or_else(|| Error::invalid("the checkpoint does not have it"))?;
        if entry.slices.is_empty() {
            let whole = self.stored(&entry)?;
            return match part {
                None => Ok(whole),
                Some(part) => cut(whole, part),
            };
        }
        // A part that was stored as such needs no copy.
        let stored = entry.slices.iter().map(Slice::of).collect::<Result<Vec<_>>>()?;
        let read = |slice: &Slice| {
            let entry = self.entry(&slice.key(key))?;
            self.stored(&entry.ok_or_else(|| Error::invalid("one of its parts is missing"))?)
        };
        if let Some(same) = part.and_then(|part| stored.iter().find(|s| *s == part)) {
            return read(same);
        }
        let (ty, shape) = fact(&entry)?;
        let mut whole = Tensor::zeros(ty, &shape)?;
        for slice in &stored {
            slice.copy(&mut whole, &mut read(slice)?, true)?;
        }
        part.map_or(Ok(whole.clone()), |part| cut(whole, part))
    }

    fn entry(&self, key: &[u8]) -> Result<Option<BundleEntryProto>> {
        let entry = self.entries.get(key).map(|bytes| BundleEntryProto::decode(bytes.clone()));
        entry.transpose().map_err(|e| Error::invalid(format!("its entry is damaged: {e}")))
    }

    // The tensor of one entry.
    fn stored(&self, entry: &BundleEntryProto) -> Result<Tensor> {
        let (ty, shape) = fact(entry)?;
        let (offset, size) = (usize::try_from(entry.offset).ok(), usize::try_from(entry.size).ok());
        let (Some(offset), Some(size)) = (offset, size) else { return Err(Error::invalid("its entry is damaged")) };
        let shard = self.shard(entry.shard_id)?;
        let bytes = offset.checked_add(size).and_then(|end| shard.as_slice().get(offset..end)).ok_or_else(|| {
            Error::invalid(format!("{size} bytes at {offset} are needed, the shard has {}", shard.len()))
        })?;
        if ty == ElementType::String {
            return strings(bytes, &shape);
        }
        let wanted = carafe_tensor::elements(&shape).and_then(|n| ty.least_byte_len(n));
        if wanted != Some(size) {
            return Err(Error::invalid(format!("{ty}{shape:?} does not take {size} bytes")));
        }
        if size <= MOST_CHECKED && entry.crc32c != 0 && !crc32c::is_right(&[bytes], entry.crc32c) {
            return Err(Error::invalid("its checksum is wrong"));
        }
        Ok(Tensor::view(ty, &shape, &shard, offset, size)?)
    }

    fn shard(&self, id: i32) -> Result<SharedBytes> {
        if let Some(shard) = self.shards.borrow().get(&id) {
            return Ok(shard.clone());
        }
        let path = with_ending(&self.prefix, &format!(".data-{id:05}-of-{:05}", self.num_shards));
        let shard = Content::File(&path).map()?;
        self.shards.borrow_mut().insert(id, shard.clone());
        Ok(shard)
    }

    // Checkpoints of objects say which variable is behind a key. A name that several have says nothing.
    fn object_graph(&self) -> Result<HashMap<String, String>> {
        let Some(entry) = self.entry(OBJECT_GRAPH.as_bytes())? else { return Ok(HashMap::new()) };
        let shard = self.shard(entry.shard_id)?;
        let (offset, size) =
            (usize::try_from(entry.offset).unwrap_or(usize::MAX), usize::try_from(entry.size).unwrap_or(0));
        let bytes = offset.checked_add(size).and_then(|end| shard.as_slice().get(offset..end));
        let bytes = bytes.ok_or_else(|| Error::invalid("the graph of objects lies behind the end of its shard"))?;
        let text = texts(bytes, 1)?.remove(0);
        let graph = TrackableObjectGraph::decode(text)
            .map_err(|e| Error::invalid(format!("the graph of objects is damaged: {e}")))?;
        let mut by_name: HashMap<String, Option<String>> = HashMap::new();
        for a in graph.nodes.into_iter().flat_map(|n| n.attributes).filter(|a| !a.full_name.is_empty()) {
            let key = a.checkpoint_key;
            by_name.entry(a.full_name).and_modify(|k| *k = k.take().filter(|k| *k == key)).or_insert(Some(key.clone()));
        }
        Ok(by_name.into_iter().filter_map(|(name, key)| Some((name, key?))).collect())
    }
}

/// A path with something behind its name.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// A part of a tensor as one of its own.
pub(super) fn cut(mut whole: Tensor, part: &Slice) -> Result<Tensor> {
    let mut cut = Tensor::zeros(whole.element_type(), &part.shape(whole.shape())?)?;
    part.copy(&mut whole, &mut cut, false)?;
    Ok(cut)
}

fn fact(entry: &BundleEntryProto) -> Result<(ElementType, Vec<usize>)> {
    let shape = entry.shape.as_ref().map_or(Ok(Some(vec![])), |s| types::shape(s).map(|s| s.to_static()))?;
    let mut shape = shape.ok_or_else(|| Error::invalid("its shape is not fixed"))?;
    Ok(match DataType::of(entry.dtype)? {
        DataType::Plain(ty) => (ty, shape),
        DataType::Complex(ty) => {
            shape.push(2);
            (ty, shape)
        }
        DataType::Opaque(name) => return Err(Error::unsupported(format!("tensors of type {name} are not supported"))),
    })
}

// Lengths, a checksum of them, then the bytes.
fn texts(bytes: &[u8], count: usize) -> Result<Vec<Bytes>> {
    let bad = || Error::invalid("its texts are damaged");
    let (mut at, mut lengths) = (0, vec![]);
    if count > bytes.len() {
        return Err(bad());
    }
    for _ in 0..count {
        let (n, used) = varint(bytes.get(at..).ok_or_else(bad)?).ok_or_else(bad)?;
        at += used;
        lengths.push(usize::try_from(n).map_err(|_| bad())?);
    }
    at += 4;
    let mut all = vec![];
    for length in lengths {
        let end = at.checked_add(length).ok_or_else(bad)?;
        all.push(Bytes::copy_from_slice(bytes.get(at..end).ok_or_else(bad)?));
        at = end;
    }
    Ok(all)
}

fn strings(bytes: &[u8], shape: &[usize]) -> Result<Tensor> {
    let count = carafe_tensor::elements(shape).ok_or_else(|| Error::invalid(format!("{shape:?} is too large")))?;
    let texts = texts(bytes, count)?;
    Ok(Tensor::from_strings(shape, texts.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect())?)
}
