//! A rule of this side as a table for the other. The rule builds into a small model of its own, whose inputs stand for
//! those of the source node; what it built is then emitted on the other side, node by node. An operation that only the other
//! side knows is emitted there at once, with all that it reads; here a node without content stands for it.

use crate::convert::{Arena, attrs_code, attrs_of, fact_of, tensor_code, tensor_of};
use crate::host::tell;
use crate::op_export::{c_leak, from_host};
use crate::status::guard_into;
use crate::tables::*;
use carafe_frontend::{Host, Item, NodeCx, Outputs, Rule, SourceNode, SubModel, split_name};
use carafe_graph::{AttrMap, Constant, Error, Fact, FrameworkNode, Model, NodeId, OpFactory, Registry, Result, Value};
use carafe_tensor::Tensor;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::RwLock;

/// Operations that rules may emit by name: those of this library. Filled by the author's list.
static OWN_OPS: RwLock<Vec<OpFactory>> = RwLock::new(Vec::new());

pub(crate) fn remember_op(factory: OpFactory) {
    let mut ops = OWN_OPS.write().unwrap_or_else(|e| e.into_inner());
    if !ops.iter().any(|f| std::ptr::eq(f.info, factory.info)) {
        ops.push(factory);
    }
}

pub(crate) fn rule_table(rule: Rule) -> CarafeRule {
    let opt = |s: &Option<String>| s.as_deref().map_or(std::ptr::null(), c_leak);
    CarafeRule {
        size: size_of::<CarafeRule>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        framework: opt(&rule.framework),
        domain: opt(&rule.domain),
        op_type: c_leak(&rule.op_type),
        since: rule.since,
        user: Box::into_raw(Box::new(rule)).cast(),
        convert: Some(convert),
    }
}

unsafe extern "C" fn convert(user: *mut c_void, cx: *mut CarafeNode) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: `user` is the rule, which is never freed; the contract passes a live node.
            let (rule, mut side) = unsafe { (&*user.cast::<Rule>(), Side::new(cx)?) };
            let node = std::mem::take(&mut side.node);
            let mut n = NodeCx::new(&mut side, &node);
            let outputs = (rule.translate)(&mut n)?;
            let unread = n.finish(&outputs);
            // SAFETY: as above.
            unsafe {
                side.leave(&unread)?;
                side.replay(&outputs)
            }
        },
        tell,
    )
}

/// The small model, and where its inputs come from.
struct Side {
    cx: *mut CarafeNode,
    node: SourceNode,
    model: Model,
    inputs: HashMap<String, Value>,
    /// What stands on the other side for values of the model: the inputs, and what was emitted there.
    sent: HashMap<Value, CarafeValue>,
    registry: Registry,
}

impl Side {
    /// # Safety
    /// `cx` must be a live node.
    unsafe fn new(cx: *mut CarafeNode) -> Result<Side> {
        // SAFETY: a live node has its functions; so in every call below.
        let fns = unsafe { &*(*cx).fns };
        let text = |f: unsafe extern "C" fn(*mut CarafeNode, *mut CarafeStr) -> CarafeStatus| {
            let mut s = CarafeStr::EMPTY;
            // SAFETY: as above.
            unsafe {
                from_host(f(cx, &mut s))?;
                Ok::<String, Error>(crate::text::text(s, "a text of the node")?.to_string())
            }
        };
        let mut node = SourceNode {
            name: text(fns.name)?,
            op_type: text(fns.op_type)?,
            domain: text(fns.domain)?,
            // SAFETY: as above.
            version: unsafe { (fns.version)(cx) },
            ..SourceNode::default()
        };
        let mut attrs = CarafeAttrs::EMPTY;
        // SAFETY: as above; what comes back is copied at once.
        unsafe {
            from_host((fns.attrs)(cx, &mut attrs))?;
            node.attrs = attrs_of(attrs)?;
        }
        let mut registry = Registry::new();
        registry.add_all(OWN_OPS.read().unwrap_or_else(|e| e.into_inner()).iter().cloned());
        let mut side = Side { cx, node, model: Model::new(""), inputs: HashMap::new(), sent: HashMap::new(), registry };
        // SAFETY: as above.
        for i in 0..unsafe { (fns.n_inputs)(cx) } {
            let mut value = CarafeValue { node: 0, port: 0 };
            // SAFETY: as above.
            match unsafe { (fns.input)(cx, i, &mut value) } {
                CARAFE_NOT_FOUND => side.node.inputs.push(String::new()),
                status => {
                    from_host(status)?;
                    // SAFETY: as above.
                    let own = unsafe { side.stand_in(fns, i, value)? };
                    side.sent.insert(own, value);
                    side.inputs.insert(format!("input{i}"), own);
                    side.node.inputs.push(format!("input{i}"));
                }
            }
        }
        // SAFETY: as above.
        for i in 0..unsafe { (fns.n_outputs)(cx) } {
            let mut s = CarafeStr::EMPTY;
            // SAFETY: as above.
            side.node.outputs.push(unsafe {
                from_host((fns.output_name)(cx, i, &mut s))?;
                crate::text::text(s, "the name of an output")?.to_string()
            });
        }
        Ok(side)
    }

    /// What is known of an input: a constant when its elements are, otherwise a parameter of its type and shape.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn stand_in(&mut self, fns: &CarafeNodeFns, i: usize, value: CarafeValue) -> Result<Value> {
        let mut tensor = CarafeAttr::EMPTY.tensor;
        // SAFETY: passed on from the caller; so below.
        if unsafe { (fns.constant_of)(self.cx, value, &mut tensor) } == CARAFE_OK {
            // SAFETY: as above.
            return self.model.constant(&format!("input{i}"), unsafe { tensor_of(&tensor)? });
        }
        let mut fact = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
        // SAFETY: as above.
        let fact = unsafe {
            from_host((fns.fact)(self.cx, value, &mut fact))?;
            fact_of(&fact)?
        };
        self.model.parameter(&format!("input{i}"), fact.ty, fact.shape)
    }

    /// Says which attributes the rule did not read; the engine took all of them as read when this side asked for them.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn leave(&self, unread: &[String]) -> Result<()> {
        // SAFETY: passed on from the caller; the field is looked at only where the table of the engine has it.
        let leave = unsafe {
            let fns = (*self.cx).fns;
            let has = (*fns).size >= std::mem::offset_of!(CarafeNodeFns, leave_attr) + size_of::<usize>();
            if has { (*fns).leave_attr } else { None }
        };
        let Some(leave) = leave else { return Ok(()) };
        for name in unread {
            // SAFETY: as above.
            from_host(unsafe { leave(self.cx, CarafeStr::of(name)) })?;
        }
        Ok(())
    }

    /// Emits what the rule built, and says the outputs.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn replay(&mut self, outputs: &Outputs) -> Result<()> {
        let tensor = |item: &Item| if let Item::Tensor(v) = item { Some(*v) } else { None };
        let wanted: Vec<Value> = outputs.0.iter().filter_map(tensor).collect();
        // SAFETY: passed on from the caller; so below.
        let fns = unsafe {
            self.send(&wanted)?;
            &*(*self.cx).fns
        };
        for (i, item) in outputs.0.iter().enumerate() {
            match item {
                // SAFETY: as above.
                Item::Tensor(v) => from_host(unsafe { (fns.set_output)(self.cx, i, self.sent[v]) })?,
                Item::Nothing => {}
                _ => return Err(Error::unsupported(format!("output {i} is not a tensor, which stays on its side"))),
            }
        }
        Ok(())
    }

    /// Emits on the other side what these values depend on and is not there yet.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn send(&mut self, values: &[Value]) -> Result<()> {
        if values.iter().all(|v| self.sent.contains_key(v)) {
            return Ok(());
        }
        let needed = needed_by(&self.model, values);
        for id in self.model.topological_order()? {
            if self.sent.contains_key(&id.into()) || !needed[id.0 as usize] {
                continue;
            }
            let node = self.model.node(id);
            // SAFETY: passed on from the caller; so below.
            let first = unsafe {
                if let Some(c) = node.op().get::<Constant>() {
                    self.send_constant(c.tensor())?
                } else {
                    if node.op().has_body() {
                        let why = Error::unsupported("an operation with a sub-graph stays on its side");
                        return Err(why.at(node.location()));
                    }
                    let attrs = node.op().attrs().into_iter().map(|(n, v)| (n.into_owned(), v)).collect();
                    let op = format!("{}::{}", node.op().opset(), node.op().type_name());
                    self.send_op(&op, &attrs, node.inputs())?
                }
            };
            for port in 0..node.outputs().len() {
                let value = CarafeValue { node: first.node, port: first.port + port as u32 };
                self.sent.insert(Value { node: id, port }, value);
            }
        }
        Ok(())
    }

    /// # Safety
    /// The node must be live.
    unsafe fn send_constant(&self, tensor: &Tensor) -> Result<CarafeValue> {
        let (mut arena, mut first) = (Arena::default(), CarafeValue { node: 0, port: 0 });
        // SAFETY: passed on from the caller; the tensor lives until the call returns.
        from_host(unsafe { ((*(*self.cx).fns).constant)(self.cx, &tensor_code(tensor, &mut arena), &mut first) })?;
        Ok(first)
    }

    /// Emits one operation whose inputs are there already, and gives its first output.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn send_op(&self, op: &str, attrs: &AttrMap, inputs: &[Value]) -> Result<CarafeValue> {
        let (mut arena, mut first) = (Arena::default(), CarafeValue { node: 0, port: 0 });
        let attrs = attrs_code(attrs.iter(), &mut arena)?;
        let inputs: Vec<CarafeValue> = inputs.iter().map(|v| self.sent[v]).collect();
        let op = CarafeStr::of(op);
        // SAFETY: passed on from the caller; lists and texts live until the call returns.
        from_host(unsafe { ((*(*self.cx).fns).emit)(self.cx, op, inputs.as_ptr(), inputs.len(), attrs, &mut first) })?;
        Ok(first)
    }

    /// What the other side knows of the outputs of a node that it made.
    ///
    /// # Safety
    /// The node must be live.
    unsafe fn facts_of(&self, first: CarafeValue) -> Result<Vec<Fact>> {
        let mut facts = Vec::new();
        loop {
            let value = CarafeValue { node: first.node, port: first.port + facts.len() as u32 };
            let mut fact = CarafeFact { element_type: 0, rank: -1, dims: std::ptr::null() };
            // SAFETY: passed on from the caller; what comes back is copied at once.
            unsafe {
                match ((*(*self.cx).fns).fact)(self.cx, value, &mut fact) {
                    CARAFE_OK => facts.push(fact_of(&fact)?),
                    // A port behind the last one.
                    _ if !facts.is_empty() => return Ok(facts),
                    status => return from_host(status).map(|()| facts),
                }
            }
        }
    }
}

// Which nodes the values depend on, by id.
fn needed_by(model: &Model, values: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; model.slots()];
    let mut stack: Vec<_> = values.iter().map(|v| v.node).collect();
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut needed[id.0 as usize], true) {
            stack.extend(model.node(id).inputs().iter().map(|v| v.node));
        }
    }
    needed
}

impl Host for Side {
    fn model(&self) -> &Model {
        &self.model
    }
    fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }
    fn resolve(&mut self, name: &str) -> Result<Option<Item>> {
        Ok(self.inputs.get(name).map(|v| Item::Tensor(*v)))
    }
    fn body(&mut self, attribute: &str, _: &[Fact]) -> Result<SubModel> {
        Err(Error::unsupported(format!(
            "sub-graph `{attribute}` stays on the engine's side; link the rule into the program instead of a library"
        )))
    }
    fn registry(&self) -> Option<&Registry> {
        Some(&self.registry)
    }
    fn emit_elsewhere(&mut self, op: &str, attrs: &AttrMap, inputs: &[Value]) -> Result<Option<NodeId>> {
        // SAFETY: the node is live while the rule runs, and this with it.
        let (first, facts) = unsafe {
            self.send(inputs)?;
            let first = self.send_op(op, attrs, inputs)?;
            (first, self.facts_of(first)?)
        };
        let (opset, name) = split_name(op)?;
        let stand_in = FrameworkNode {
            outputs: facts.into_iter().map(|f| (f.ty, f.shape)).collect(),
            ..FrameworkNode::new(opset.unwrap_or_default(), name)
        };
        let id = self.model.add(format!("{name}_{}", self.model.slots()), stand_in, inputs)?;
        for port in 0..self.model.node(id).outputs().len() {
            let value = CarafeValue { node: first.node, port: first.port + port as u32 };
            self.sent.insert(Value { node: id, port }, value);
        }
        Ok(Some(id))
    }
}
