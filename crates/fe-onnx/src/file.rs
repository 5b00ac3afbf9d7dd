//! The file itself: mapped bytes, and the external data files beside it. A location outside of the model's folder is
//! refused, be it by `..`, an absolute path or a link.

use crate::wire::StringStringEntryProto;
use bytes::Bytes;
use carafe_frontend::Content;
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Where tensors may lie.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Folder of the model; `None` for a model that came as bytes.
    folder: Option<PathBuf>,
    /// The model itself, where it is a mapped file.
    whole: Option<SharedBytes>,
    mapped: RefCell<HashMap<PathBuf, SharedBytes>>,
    /// What was noticed about tensors, for the log.
    notes: RefCell<BTreeSet<String>>,
}

/// Bytes of the model as `prost` slices them, and the position of external data.
pub(crate) fn open(model: Content<'_>) -> Result<(Bytes, Files)> {
    let bytes = model.map()?;
    let folder = model.path().and_then(Path::parent);
    let folder = folder.map(|p| if p.as_os_str().is_empty() { PathBuf::from(".") } else { p.to_path_buf() });
    let files = Files { folder, whole: Some(bytes.clone()), ..Files::default() };
    Ok((Bytes::from_owner(Owner(bytes)), files))
}

struct Owner(SharedBytes);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Files {
    /// The store that a slice of the model is part of, and where it begins there.
    pub(crate) fn store_of(&self, slice: &Bytes) -> (SharedBytes, usize) {
        if let Some(whole) = &self.whole {
            let start = (slice.as_ptr() as usize).wrapping_sub(whole.as_slice().as_ptr() as usize);
            if start.checked_add(slice.len()).is_some_and(|end| end <= whole.len()) {
                return (whole.clone(), start);
            }
        }
        (SharedBytes::from_owner(Arc::new(slice.clone())), 0)
    }

    /// Keeps a warning about a tensor for the log.
    pub(crate) fn note(&self, text: String) {
        self.notes.borrow_mut().insert(text);
    }
    /// The warnings so far, each once.
    pub(crate) fn take_notes(&self) -> BTreeSet<String> {
        self.notes.take()
    }

    /// Bytes, offset and length of an external tensor. Without a length the rest of the file belongs to it, as far as it
    /// needs that.
    pub(crate) fn external(
        &self,
        entries: &[StringStringEntryProto],
        needed: Option<usize>,
    ) -> Result<(SharedBytes, usize, usize)> {
        let get = |key: &str| entries.iter().find(|e| e.key.as_deref() == Some(key)).and_then(|e| e.value.as_deref());
        let location = get("location").ok_or_else(|| Error::invalid("external data has no `location`"))?;
        let number = |key: &str| match get(key) {
            None => Ok(None),
            Some(text) => text.trim().parse::<usize>().map(Some).map_err(|_| {
                Error::invalid(format!("external data `{location}`: `{key}` must be a number, found `{text}`"))
            }),
        };
        let offset = number("offset")?.unwrap_or(0);
        let bytes = self.mapped(location)?;
        let left = bytes.len().checked_sub(offset).ok_or_else(|| {
            Error::invalid(format!(
                "external data `{location}` has {} bytes, offset {offset} is past its end",
                bytes.len()
            ))
        })?;
        let length = match number("length")?.filter(|n| *n > 0) {
            Some(length) => length,
            None => {
                let length = needed.filter(|n| *n < left).unwrap_or(left);
                if length < left && needed != Some(0) {
                    let more = left - length;
                    self.note(format!(
                        "external data `{location}`: a tensor without length leaves {more} bytes behind it"
                    ));
                }
                length
            }
        };
        if length > left {
            return Err(Error::invalid(format!(
                "external data `{location}` is too short: {length} bytes at {offset} needed, the file has {}",
                bytes.len()
            )));
        }
        Ok((bytes, offset, length))
    }

    fn mapped(&self, location: &str) -> Result<SharedBytes> {
        let relative = Path::new(location);
        if let Some(bytes) = self.mapped.borrow().get(relative) {
            return Ok(bytes.clone());
        }
        let folder = self.folder.as_ref().ok_or_else(|| {
            Error::invalid(format!("external data `{location}` needs the model as a file, not as bytes"))
        })?;
        let outside = || Error::invalid(format!("external data `{location}` lies outside of the model's folder"));
        if relative.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        let path = folder.join(relative);
        let real = path.canonicalize().map_err(|e| Error::io(format!("external data `{location}`"), &e))?;
        let base = folder.canonicalize().map_err(|e| Error::io(format!("folder `{}`", folder.display()), &e))?;
        if !real.starts_with(&base) {
            return Err(outside());
        }
        let bytes = Content::File(&real).map()?;
        self.mapped.borrow_mut().insert(relative.to_path_buf(), bytes.clone());
        Ok(bytes)
    }
}
