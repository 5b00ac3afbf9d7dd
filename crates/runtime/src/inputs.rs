//! What goes into an inference and what comes out, by name, index or port.

use carafe_device::{CompiledModel, Port, PortKey};
use carafe_graph::Result;
use carafe_tensor::Tensor;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// What an inference takes: `()` for the tensors that are set already, a [`Tensor`] or a list of them for the inputs in order,
/// and lists or maps of tensors by name, index or port.
///
/// ```
/// # use carafe_runtime::{InferRequest, IntoInputs};
/// # use carafe_tensor::Tensor;
/// # fn run(request: &InferRequest, a: Tensor, b: Tensor) -> carafe_graph::Result<()> {
/// request.infer(&[("a", a.clone()), ("b", b.clone())])?;
/// request.infer([a.clone(), b.clone()])?;
/// request.set_input("a", a)?;
/// request.infer(())?;
/// # Ok(())
/// # }
/// ```
pub trait IntoInputs {
    /// Calls `set` with each input.
    fn each(self, set: &mut dyn FnMut(PortKey<'_>, Tensor) -> Result<()>) -> Result<()>;
}

type Set<'a> = &'a mut dyn FnMut(PortKey<'_>, Tensor) -> Result<()>;

impl IntoInputs for () {
    fn each(self, _: Set<'_>) -> Result<()> {
        Ok(())
    }
}
impl IntoInputs for Tensor {
    fn each(self, set: Set<'_>) -> Result<()> {
        set(PortKey::Index(0), self)
    }
}
impl IntoInputs for &Tensor {
    fn each(self, set: Set<'_>) -> Result<()> {
        set(PortKey::Index(0), self.clone())
    }
}
impl IntoInputs for &[Tensor] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.iter().enumerate().try_for_each(|(i, tensor)| set(PortKey::Index(i), tensor.clone()))
    }
}
impl<const N: usize> IntoInputs for &[Tensor; N] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.as_slice().each(set)
    }
}
impl<const N: usize> IntoInputs for [Tensor; N] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.into_iter().enumerate().try_for_each(|(i, tensor)| set(PortKey::Index(i), tensor))
    }
}
impl IntoInputs for Vec<Tensor> {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.into_iter().enumerate().try_for_each(|(i, tensor)| set(PortKey::Index(i), tensor))
    }
}
impl IntoInputs for &Vec<Tensor> {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.as_slice().each(set)
    }
}
impl<'k, K: Copy + Into<PortKey<'k>>> IntoInputs for &[(K, Tensor)] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.iter().try_for_each(|(key, tensor)| set((*key).into(), tensor.clone()))
    }
}
impl<'k, K: Copy + Into<PortKey<'k>>, const N: usize> IntoInputs for &[(K, Tensor); N] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.as_slice().each(set)
    }
}
impl<'k, K: Into<PortKey<'k>>, const N: usize> IntoInputs for [(K, Tensor); N] {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.into_iter().try_for_each(|(key, tensor)| set(key.into(), tensor))
    }
}
impl<'k, K: Into<PortKey<'k>>> IntoInputs for Vec<(K, Tensor)> {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.into_iter().try_for_each(|(key, tensor)| set(key.into(), tensor))
    }
}
impl IntoInputs for &BTreeMap<String, Tensor> {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.iter().try_for_each(|(name, tensor)| set(name.into(), tensor.clone()))
    }
}
impl IntoInputs for &HashMap<String, Tensor> {
    fn each(self, set: Set<'_>) -> Result<()> {
        self.iter().try_for_each(|(name, tensor)| set(name.into(), tensor.clone()))
    }
}

/// The outputs of one inference. They share the memory of the request: as long as one is held, the next inference of the
/// request writes into other memory.
#[derive(Clone)]
pub struct Outputs {
    model: Arc<dyn CompiledModel>,
    tensors: Vec<Tensor>,
}

impl Outputs {
    pub(crate) fn new(model: Arc<dyn CompiledModel>, tensors: Vec<Tensor>) -> Outputs {
        Outputs { model, tensors }
    }

    /// An output by name, index or port.
    pub fn get<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<&Tensor> {
        Ok(&self.tensors[key.into().find(self.model.outputs(), "output")?])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether the model has no outputs.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// All of them with their ports, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Port, &Tensor)> {
        self.model.outputs().iter().zip(&self.tensors)
    }

    /// The tensors alone, in order.
    pub fn into_vec(self) -> Vec<Tensor> {
        self.tensors
    }
}

/// Panics when there is no such output; [`Outputs::get`] gives an error.
impl<'k, K: Into<PortKey<'k>>> Index<K> for Outputs {
    type Output = Tensor;
    fn index(&self, key: K) -> &Tensor {
        self.get(key).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(port, tensor)| (&port.name, tensor))).finish()
    }
}
