//! Constants on the device: as they are, or in the form that a kernel wants. Each is made once and used by all plans, requests
//! and streams of a compiled model; what no plan uses any more is freed.

use crate::machine::Machine;
use carafe_graph::{Constant, Model, Result};
use carafe_opencl::{Buffer, Context};
use carafe_tensor::{ElementType, Hash128, Tensor};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Where bytes come from: a constant of the model by its address, another one by its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Lasting(usize, usize),
    Made(u128),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    form: String,
    origins: Vec<Origin>,
}

/// Constants of one compiled model on its device.
#[derive(Debug)]
pub(crate) struct Weights {
    machine: Arc<Machine>,
    /// Where the constants of the model and of its bodies lie.
    lasting: HashSet<(usize, usize)>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<Key, Weak<Buffer>>,
    /// So many entries are let be before those without a user are looked for.
    sweep_at: usize,
}

fn address(tensor: &Tensor) -> (usize, usize) {
    (tensor.storage_ptr(), tensor.byte_len())
}

fn gather_lasting(model: &Model, lasting: &mut HashSet<(usize, usize)>) {
    for (_, node) in model.nodes() {
        if let Some(tensor) = node.outputs().first().and_then(|o| o.fact.tensor())
            && node.op().is::<Constant>()
            && tensor.element_type() != ElementType::String
        {
            lasting.insert(address(tensor));
        }
        node.op().bodies().iter().for_each(|(_, body)| gather_lasting(&body.model, lasting));
    }
}

impl Weights {
    /// For a model that is kept, unchanged, for as long as these are.
    pub(crate) fn of(model: &Model, machine: &Arc<Machine>) -> Weights {
        let mut lasting = HashSet::new();
        gather_lasting(model, &mut lasting);
        Weights { machine: machine.clone(), lasting, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn key(&self, form: &str, constants: &[&Tensor]) -> Key {
        let origin = |tensor: &&Tensor| {
            let (at, bytes) = address(tensor);
            if self.lasting.contains(&(at, bytes)) {
                return Origin::Lasting(at, bytes);
            }
            let mut hash = Hash128::default();
            hash.bytes(tensor.bytes());
            Origin::Made(hash.finish())
        };
        let shape = |t: &&Tensor| format!("|{}{:?}", t.element_type(), t.shape());
        let form = constants.iter().map(shape).fold(form.to_string(), |form, shape| form + &shape);
        Key { form, origins: constants.iter().map(origin).collect() }
    }

    /// A form of constants, made by `bytes` if it is not there. `form` says all that it depends on besides the constants.
    pub(crate) fn get(
        &self,
        form: &str,
        constants: &[&Tensor],
        bytes: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<Buffer>> {
        self.find(form, constants, || self.machine.upload(&bytes()?))
    }

    /// A constant as it is.
    pub(crate) fn plain(&self, tensor: &Tensor) -> Result<Arc<Buffer>> {
        self.find("plain", &[tensor], || self.machine.upload(tensor.bytes()))
    }

    fn find(
        &self,
        form: &str,
        constants: &[&Tensor],
        make: impl FnOnce() -> Result<Arc<Buffer>>,
    ) -> Result<Arc<Buffer>> {
        let key = self.key(form, constants);
        let there = |kept: &Kept| kept.by_key.get(&key).and_then(Weak::upgrade);
        if let Some(buffer) = there(&self.lock()) {
            return Ok(buffer);
        }
        let made = make()?;
        let mut kept = self.lock();
        // Another inference may have been quicker; then both use what it made.
        if let Some(buffer) = there(&kept) {
            return Ok(buffer);
        }
        if kept.by_key.len() >= kept.sweep_at {
            kept.by_key.retain(|_, buffer| buffer.strong_count() > 0);
            kept.sweep_at = 2 * kept.by_key.len().max(16);
        }
        kept.by_key.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    /// Where buffers are made.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.machine.context
    }

    /// Bytes of all that is in use.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().by_key.values().filter_map(Weak::upgrade).map(|b| b.len()).sum()
    }
}
