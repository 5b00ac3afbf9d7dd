//! Weights in the form kernels want them, made once for a compiled model: plans of other shapes, requests and streams share
//! them, and an exported model carries them, to be used where they lie in the mapped file.

use carafe_graph::{Error, Result};
use carafe_kernels::{Buffer, Exec, Isa, Pool, PoolOptions, Scratch};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The floats of a constant for packing. Bytes at an odd address are copied for that alone: a copy inside of the tensor
/// would stay as long as the model.
pub(crate) fn floats_of(tensor: &Tensor) -> Result<Cow<'_, [f32]>> {
    if tensor.element_type() != ElementType::F32 {
        return Err(Error::invalid(format!("weights of {}, not f32", tensor.element_type())));
    }
    let bytes = tensor.bytes();
    Ok(match bytemuck::try_cast_slice(bytes) {
        Ok(floats) => Cow::Borrowed(floats),
        Err(_) => Cow::Owned(bytes.as_chunks().0.iter().map(|b| f32::from_ne_bytes(*b)).collect()),
    })
}

/// Packed floats.
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    Made(Arc<Buffer>),
    /// In an imported model; starts at a multiple of 64.
    Found(SharedBytes),
}

impl Packed {
    pub(crate) fn floats(&self) -> &[f32] {
        match self {
            Packed::Made(buffer) => buffer.as_floats(),
            Packed::Found(bytes) => bytemuck::cast_slice(bytes.as_slice()),
        }
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Packed::Made(buffer) => buffer.as_bytes(),
            Packed::Found(bytes) => bytes.as_slice(),
        }
    }
}

/// Threads that pack weights together. They start when there is something to pack: a plan for other shapes finds all packed.
pub(crate) struct Packers {
    threads: usize,
    started: OnceCell<Option<(Pool, Scratch)>>,
}

impl Packers {
    pub(crate) fn new(threads: usize) -> Packers {
        Packers { threads, started: OnceCell::new() }
    }
    /// `None` without memory to start them.
    pub(crate) fn exec(&self) -> Option<Exec<'_>> {
        let start = || Some((Pool::new(PoolOptions::threads(self.threads)), Scratch::new(self.threads, 0)?));
        let (pool, scratch) = self.started.get_or_init(start).as_ref()?;
        Some(Exec::new(pool, Isa::best(), scratch))
    }
}

/// All packed weights, by a key that says node, kernel and form.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    packed: Mutex<BTreeMap<String, Packed>>,
}

impl Weights {
    /// Takes what an imported model brought.
    pub(crate) fn with(found: BTreeMap<String, Packed>) -> Weights {
        Weights { packed: Mutex::new(found) }
    }
    /// The packed form under `key`, made by `fill` if it is not there. A form of another length is made anew.
    pub(crate) fn get(&self, key: &str, floats: usize, fill: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<Packed> {
        let there = self.packed.lock().unwrap_or_else(|e| e.into_inner()).get(key).cloned();
        if let Some(packed) = there.filter(|p| p.bytes().len() == floats * 4) {
            return Ok(packed);
        }
        let no_memory = || Error::invalid(format!("no memory for {floats} floats of packed weights"));
        let mut buffer = Buffer::floats(floats).ok_or_else(no_memory)?;
        fill(buffer.as_floats_mut())?;
        let packed = Packed::Made(Arc::new(buffer));
        self.packed.lock().unwrap_or_else(|e| e.into_inner()).insert(key.to_string(), packed.clone());
        Ok(packed)
    }
    /// Everything, for export.
    pub(crate) fn all(&self) -> BTreeMap<String, Packed> {
        self.packed.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}
