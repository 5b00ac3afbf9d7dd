//! A model of the other side, as a rewrite or a device of a library sees it. What it hands out are copies.

use crate::convert::{Arena, attrs_code, attrs_of, fact_of, tensor_code, tensor_of};
use crate::op_export::from_host;
use crate::tables::*;
use crate::text::{items, slice, text};
use carafe_graph::{AttrMap, Fact, NodeId, Result, Value};
use carafe_tensor::Tensor;

/// A model on the engine's side.
#[derive(Debug)]
pub struct Graph<'a> {
    g: *mut CarafeGraph,
    _life: std::marker::PhantomData<&'a mut CarafeGraph>,
}

/// A node as a library sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    pub name: String,
    pub op_type: String,
    pub opset: String,
    pub n_inputs: usize,
    pub n_outputs: usize,
}

pub(crate) fn value_of(v: CarafeValue) -> Value {
    Value { node: NodeId(v.node), port: v.port as usize }
}

pub(crate) fn code_of(v: Value) -> CarafeValue {
    CarafeValue { node: v.node.0, port: v.port as u32 }
}

impl Graph<'_> {
    /// # Safety
    /// `g` must be a live graph that nothing else uses while this lives.
    pub(crate) unsafe fn new<'a>(g: *mut CarafeGraph) -> Graph<'a> {
        Graph { g, _life: std::marker::PhantomData }
    }
    fn fns(&self) -> &CarafeGraphFns {
        // SAFETY: a live graph has its functions; so in every call below.
        unsafe { &*(*self.g).fns }
    }
    fn ids(
        &self,
        f: unsafe extern "C" fn(*mut CarafeGraph, *mut *const u32, *mut usize) -> CarafeStatus,
    ) -> Result<Vec<NodeId>> {
        let (mut p, mut n) = (std::ptr::null(), 0);
        // SAFETY: as in `fns`; what comes back is copied at once, here and below.
        unsafe {
            from_host(f(self.g, &mut p, &mut n))?;
            Ok(slice(p, n, "ids")?.iter().map(|id| NodeId(*id)).collect())
        }
    }
    /// All nodes, producers before consumers.
    pub fn nodes(&self) -> Result<Vec<NodeId>> {
        self.ids(self.fns().nodes)
    }
    pub fn parameters(&self) -> Result<Vec<NodeId>> {
        self.ids(self.fns().parameters)
    }
    pub fn results(&self) -> Result<Vec<NodeId>> {
        self.ids(self.fns().results)
    }
    pub fn node(&self, id: NodeId) -> Result<GraphNode> {
        let mut info = CarafeNodeInfo {
            name: CarafeStr::EMPTY,
            op_type: CarafeStr::EMPTY,
            opset: CarafeStr::EMPTY,
            n_inputs: 0,
            n_outputs: 0,
        };
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            from_host((self.fns().node)(self.g, id.0, &mut info))?;
            Ok(GraphNode {
                name: text(info.name, "the name of a node")?.to_string(),
                op_type: text(info.op_type, "the type of a node")?.to_string(),
                opset: text(info.opset, "the opset of a node")?.to_string(),
                n_inputs: info.n_inputs,
                n_outputs: info.n_outputs,
            })
        }
    }
    pub fn attrs(&self, id: NodeId) -> Result<AttrMap> {
        let mut attrs = CarafeAttrs::EMPTY;
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            from_host((self.fns().attrs)(self.g, id.0, &mut attrs))?;
            attrs_of(attrs)
        }
    }
    pub fn input(&self, id: NodeId, input: usize) -> Result<Value> {
        let mut value = CarafeValue { node: 0, port: 0 };
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().input)(self.g, id.0, input, &mut value) })?;
        Ok(value_of(value))
    }
    pub fn fact(&self, v: Value) -> Result<Fact> {
        let mut fact = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            from_host((self.fns().fact)(self.g, code_of(v), &mut fact))?;
            fact_of(&fact)
        }
    }
    /// The tensor of a constant.
    pub fn constant_of(&self, v: Value) -> Result<Option<Tensor>> {
        let mut tensor = CarafeAttr::EMPTY.tensor;
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            match (self.fns().constant_of)(self.g, code_of(v), &mut tensor) {
                CARAFE_NOT_FOUND => Ok(None),
                status => {
                    from_host(status)?;
                    tensor_of(&tensor).map(Some)
                }
            }
        }
    }
    /// Who reads a value: node and input.
    pub fn users(&self, v: Value) -> Result<Vec<(NodeId, usize)>> {
        let (mut p, mut n) = (std::ptr::null(), 0);
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            from_host((self.fns().users)(self.g, code_of(v), &mut p, &mut n))?;
            Ok(items(p, n, "users")?.iter().map(|u| (NodeId(u.node), u.input as usize)).collect())
        }
    }
    /// A text of the node's runtime information.
    pub fn info(&self, id: NodeId, key: &str) -> Result<Option<String>> {
        let mut s = CarafeStr::EMPTY;
        // SAFETY: as in `fns` and `ids`.
        unsafe {
            match (self.fns().info)(self.g, id.0, CarafeStr::of(key), &mut s) {
                CARAFE_NOT_FOUND => Ok(None),
                status => {
                    from_host(status)?;
                    Ok(Some(text(s, "information")?.to_string()))
                }
            }
        }
    }
    pub fn set_info(&mut self, id: NodeId, key: &str, value: &str) -> Result<()> {
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().set_info)(self.g, id.0, CarafeStr::of(key), CarafeStr::of(value)) })
    }
    /// Adds a node; `op` is `Type`, `opsetN::Type` or `name::Type`.
    pub fn add(&mut self, name: &str, op: &str, attrs: &AttrMap, inputs: &[Value]) -> Result<NodeId> {
        let mut arena = Arena::default();
        let codes = attrs_code(attrs.iter(), &mut arena)?;
        let inputs: Vec<CarafeValue> = inputs.iter().map(|v| code_of(*v)).collect();
        let (name, op) = (CarafeStr::of(name), CarafeStr::of(op));
        let mut id = 0;
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().add)(self.g, name, op, inputs.as_ptr(), inputs.len(), codes, &mut id) })?;
        Ok(NodeId(id))
    }
    pub fn add_constant(&mut self, name: &str, tensor: &Tensor) -> Result<Value> {
        let mut arena = Arena::default();
        let code = tensor_code(tensor, &mut arena);
        let mut value = CarafeValue { node: 0, port: 0 };
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().add_constant)(self.g, CarafeStr::of(name), &code, &mut value) })?;
        Ok(value_of(value))
    }
    /// Lets every user of `old` read `new`.
    pub fn replace(&mut self, old: Value, new: Value) -> Result<()> {
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().replace)(self.g, code_of(old), code_of(new)) })
    }
    pub fn set_input(&mut self, id: NodeId, input: usize, v: Value) -> Result<()> {
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().set_input)(self.g, id.0, input, code_of(v)) })
    }
    pub fn set_name(&mut self, id: NodeId, name: &str) -> Result<()> {
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().set_name)(self.g, id.0, CarafeStr::of(name)) })
    }
    /// Removes a node that nothing uses.
    pub fn remove(&mut self, id: NodeId) -> Result<()> {
        // SAFETY: as in `fns`.
        from_host(unsafe { (self.fns().remove)(self.g, id.0) })
    }
}
