//! Weights in the form kernels want them, made once for a compiled model: plans of other shapes, requests and streams share
//! them, and an exported model carries them, to be used where they lie in the mapped file.

use carafe_graph::{Constant, Error, Model, Result};
use carafe_kernels::{Buffer, Exec, Isa, Pool, PoolOptions, Scratch};
use carafe_tensor::{Element, ElementType, Hash128, SharedBytes, Tensor};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

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

/// Packed weights: bytes at a multiple of 64, whose element type the kernel knows that packed them.
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    Made(Arc<Buffer>),
    /// In an imported model.
    Found(SharedBytes),
}

impl Packed {
    /// The elements, in the type in which they were packed.
    pub(crate) fn as_slice<T: Element>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Packed::Made(buffer) => buffer.as_bytes(),
            Packed::Found(bytes) => bytes.as_slice(),
        }
    }
}

/// Threads that pack weights together. They start when there is something to pack: a plan for other shapes finds all packed.
#[derive(Debug)]
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

/// What a packed form was made of and how. Nodes have no part in it: one constant packed alike for two of them is packed once,
/// and a node whose weights differ from plan to plan finds each plan's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Kernel and form, with types and shapes of the constants.
    form: String,
    sources: Vec<Source>,
}

/// A constant, as far as packing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// A constant of the model, which lasts as long as the packed weights: address and length of its bytes say which. So
    /// weights that stay mapped are not read again for another plan.
    Lasting(usize, usize),
    /// A constant that one plan made: a hash of its bytes.
    Made(u128),
}

/// All packed weights. Those that steps use are shared; what no plan uses any more is gone, so weights that depend on shapes
/// take no more memory than the plans that are kept.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// Where the constants of the model and of its bodies lie.
    lasting: HashSet<(usize, usize)>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<Key, Entry>,
    /// So many entries are let be before those without a user are looked for.
    sweep_at: usize,
}

#[derive(Debug)]
enum Entry {
    Made(Weak<Buffer>),
    Found(SharedBytes),
}

impl Entry {
    fn packed(&self) -> Option<Packed> {
        match self {
            Entry::Made(buffer) => buffer.upgrade().map(Packed::Made),
            Entry::Found(bytes) => Some(Packed::Found(bytes.clone())),
        }
    }
}

/// A packed form in an exported model: kernel and form, the names of the constants, the packed bytes.
#[derive(Debug)]
pub(crate) struct Exported<B> {
    pub(crate) form: String,
    pub(crate) constants: Vec<String>,
    pub(crate) bytes: B,
}

fn address(tensor: &Tensor) -> (usize, usize) {
    (tensor.storage_ptr(), tensor.byte_len())
}

// Constants of a model that have bytes, with their nodes' names.
fn constants(model: &Model) -> impl Iterator<Item = (&str, &Tensor)> {
    model.nodes().filter(|(_, node)| node.op().is::<Constant>()).filter_map(|(_, node)| {
        let tensor = node.outputs()[0].fact.tensor()?;
        (tensor.element_type() != ElementType::String).then_some((node.name(), tensor))
    })
}

fn gather_lasting(model: &Model, lasting: &mut HashSet<(usize, usize)>) {
    lasting.extend(constants(model).map(|(_, tensor)| address(tensor)));
    for (_, node) in model.nodes() {
        node.op().bodies().iter().for_each(|(_, body)| gather_lasting(&body.model, lasting));
    }
}

// The constants whose name no other has, by name.
fn by_name(model: &Model) -> HashMap<&str, &Tensor> {
    let mut named: HashMap<&str, Option<&Tensor>> = HashMap::new();
    for (name, tensor) in constants(model) {
        named.entry(name).and_modify(|t| *t = None).or_insert(Some(tensor));
    }
    named.into_iter().filter_map(|(name, tensor)| Some((name, tensor?))).collect()
}

impl Weights {
    /// For a model that is kept, unchanged, for as long as these are.
    pub(crate) fn of(model: &Model) -> Weights {
        let mut lasting = HashSet::new();
        gather_lasting(model, &mut lasting);
        Weights { lasting, kept: Mutex::default() }
    }

    /// The same with what an imported model brought. A form whose constants the model does not have is left out.
    pub(crate) fn with(model: &Model, found: Vec<Exported<SharedBytes>>) -> Weights {
        let weights = Weights::of(model);
        let named = by_name(model);
        let source = |name: &String| named.get(name.as_str()).map(|t| address(t)).map(|(at, n)| Source::Lasting(at, n));
        for Exported { form, constants, bytes } in found {
            let sources: Option<Vec<Source>> = constants.iter().map(source).collect();
            if let Some(sources) = sources.filter(|s| !s.is_empty()) {
                weights.lock().by_key.insert(Key { form, sources }, Entry::Found(bytes));
            }
        }
        weights
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn key(&self, form: &str, constants: &[&Tensor]) -> Key {
        let source = |tensor: &&Tensor| {
            let (at, bytes) = address(tensor);
            if self.lasting.contains(&(at, bytes)) {
                return Source::Lasting(at, bytes);
            }
            let mut hash = Hash128::default();
            hash.bytes(tensor.bytes());
            Source::Made(hash.finish())
        };
        let shape = |t: &&Tensor| format!("|{}{:?}", t.element_type(), t.shape());
        let form = constants.iter().map(shape).fold(form.to_string(), |form, shape| form + &shape);
        Key { form, sources: constants.iter().map(source).collect() }
    }

    /// The packed form of constants, so many elements made by `fill` if it is not there. `form` says all that packing depends
    /// on besides the constants and the type of the packed elements. A form of another length is made anew.
    pub(crate) fn get<T: Element>(
        &self,
        form: &str,
        constants: &[&Tensor],
        len: usize,
        fill: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Packed> {
        let key = self.key(&format!("{form}|{}", T::TYPE), constants);
        let bytes = len * size_of::<T>();
        let there = |kept: &Kept| {
            let packed = kept.by_key.get(&key).and_then(Entry::packed);
            packed.filter(|p| p.bytes().len() == bytes)
        };
        if let Some(packed) = there(&self.lock()) {
            return Ok(packed);
        }
        let no_memory = || Error::invalid(format!("no memory for {bytes} bytes of packed weights"));
        let mut buffer = Buffer::zeroed(bytes).ok_or_else(no_memory)?;
        fill(bytemuck::cast_slice_mut(buffer.as_bytes_mut()))?;
        let mut kept = self.lock();
        // Another inference may have been quicker; then both use what it made.
        if let Some(packed) = there(&kept) {
            return Ok(packed);
        }
        if kept.by_key.len() >= kept.sweep_at {
            kept.by_key.retain(|_, entry| entry.packed().is_some());
            kept.sweep_at = 2 * kept.by_key.len().max(16);
        }
        let buffer = Arc::new(buffer);
        kept.by_key.insert(key, Entry::Made(Arc::downgrade(&buffer)));
        Ok(Packed::Made(buffer))
    }

    /// Bytes of all that is in use.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().by_key.values().filter_map(Entry::packed).map(|p| p.bytes().len()).sum()
    }

    /// Packed forms of the model's own constants, for export, in an order that does not change. What one plan made is left
    /// out, and what only bodies have: both are packed anew.
    pub(crate) fn exported(&self, model: &Model) -> Vec<Exported<Packed>> {
        // Several constants may be the same bytes; the first of their names is as good as any.
        let mut names: HashMap<Source, &str> = HashMap::new();
        for (name, tensor) in by_name(model) {
            let (at, bytes) = address(tensor);
            names.entry(Source::Lasting(at, bytes)).and_modify(|n| *n = name.min(*n)).or_insert(name);
        }
        let named = |(key, entry): (&Key, &Entry)| {
            let constants: Option<Vec<String>> = key.sources.iter().map(|s| Some(names.get(s)?.to_string())).collect();
            Some(Exported { form: key.form.clone(), constants: constants?, bytes: entry.packed()? })
        };
        let mut all: Vec<Exported<Packed>> = self.lock().by_key.iter().filter_map(named).collect();
        carafe_graph::sort_by(&mut all, |a, b| (&a.constants, &a.form).cmp(&(&b.constants, &b.form)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(model: &mut Model, name: &str, values: &[f32]) -> Tensor {
        let tensor = Tensor::from_slice(&[values.len()], values).unwrap();
        model.constant(name, tensor.clone()).unwrap();
        tensor
    }

    fn packed(weights: &Weights, form: &str, from: &Tensor) -> Packed {
        let fill = |to: &mut [f32]| {
            to.copy_from_slice(&floats_of(from)?);
            Ok(())
        };
        weights.get(form, &[from], from.len(), fill).unwrap()
    }

    #[test]
    fn equal_bytes_of_two_plans_are_packed_once_and_others_are_not() {
        let weights = Weights::of(&Model::new("m"));
        let tensor = |v: f32| Tensor::from_slice(&[2], &[v, 1.0]).unwrap();
        let (one, same, other) = (tensor(3.0), tensor(3.0), tensor(4.0));
        let first = packed(&weights, "gemm", &one);
        assert_eq!(packed(&weights, "gemm", &same).as_slice::<f32>().as_ptr(), first.as_slice::<f32>().as_ptr());
        assert_eq!(packed(&weights, "gemm", &other).as_slice::<f32>(), [4.0, 1.0]);
        assert_ne!(packed(&weights, "conv", &one).as_slice::<f32>().as_ptr(), first.as_slice::<f32>().as_ptr());
    }

    #[test]
    fn another_shape_of_the_same_bytes_is_another_form() {
        let weights = Weights::of(&Model::new("m"));
        let row = Tensor::from_slice(&[1, 2], &[1f32, 2.0]).unwrap();
        let column = row.reshaped(&[2, 1]).unwrap();
        let (a, b) = (packed(&weights, "gemm", &row), packed(&weights, "gemm", &column));
        assert_ne!(a.as_slice::<f32>().as_ptr(), b.as_slice::<f32>().as_ptr());
    }

    #[test]
    fn what_nobody_uses_takes_no_memory() {
        let weights = Weights::of(&Model::new("m"));
        for v in 0..1000 {
            packed(&weights, "gemm", &Tensor::from_slice(&[1], &[v as f32]).unwrap());
        }
        assert_eq!(weights.bytes(), 0);
        assert!(weights.lock().by_key.len() <= 32);
    }

    #[test]
    fn constants_of_the_model_are_exported_by_name_and_those_of_a_plan_are_not() {
        let mut model = Model::new("m");
        let own = constant(&mut model, "w", &[1.0, 2.0]);
        let weights = Weights::of(&model);
        let made = Tensor::from_slice(&[1], &[5f32]).unwrap();
        let _kept = (packed(&weights, "gemm", &own), packed(&weights, "gemm", &made));
        let [only] = &weights.exported(&model)[..] else { panic!("{:?}", weights.exported(&model)) };
        assert_eq!((only.form.as_str(), &only.constants[..]), ("gemm|f32|f32[2]", &["w".to_string()][..]));
        let bytes = SharedBytes::from_vec(bytemuck::cast_slice(&[7f32, 8.0]).to_vec());
        let found = Exported { form: only.form.clone(), constants: only.constants.clone(), bytes };
        let imported = Weights::with(&model, vec![found]);
        assert!(matches!(packed(&imported, "gemm", &own), Packed::Found(_)));
    }
}
