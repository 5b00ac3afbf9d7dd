//! One node in its scope: who handles it, what it gives, and what is reported about it.

use crate::explain::Explained;
use crate::functions;
use crate::item::Item;
use crate::node_cx::{Host, NodeCx, Outputs};
use crate::rule::Origin;
use crate::scope::{MAX_DEPTH, Scope};
use crate::source::{Held, SourceNode, shown};
use crate::trace::{trace_inputs, trace_outputs};
use crate::unknown;
use carafe_graph::{Error, ErrorKind, ItemType, Result, Value};
use std::borrow::Cow;
use std::collections::HashMap;

impl Scope<'_, '_> {
    /// Translates a node and binds the names of its outputs.
    pub(crate) fn node(&mut self, node: &SourceNode) -> Result<()> {
        let cx = self.cx;
        // Names grow with every call around them.
        cx.budget.spend_bytes(64 + node.name.len())?;
        self.enter(node)?;
        let found = cx.dialect.find(cx.rules, node);
        // A user's rule stands in front of the model's own function of that name, a built-in rule behind it.
        if cx.functions.get(node).is_some() && !cx.rules.is_user(&node.domain, &node.op_type) {
            return self.call(node);
        }
        let mut node = Cow::Borrowed(node);
        if let Some(first) = found.as_ref().and_then(|f| f.newer) {
            cx.warn_of_newer(&node, first);
            node.to_mut().version = first;
        }
        let origin = found.as_ref().map(|f| f.origin);
        cx.dialect.check_node(&node, origin.as_ref(), &cx.request.log)?;
        let before = self.model.slots();
        self.trace(&node, origin.as_ref());
        let outputs = match found {
            Some(found) => {
                let mut n = NodeCx::new(self, &node);
                (found.translate)(&mut n).and_then(|outputs| {
                    if found.origin == Origin::BuiltIn && cx.dialect.checks_inputs() {
                        n.check_inputs()?;
                    }
                    let mut left = n.finish(&outputs);
                    left.retain(|name| !cx.dialect.is_annotation(&node, name));
                    cx.unread.judge(&node, &found.origin, &left).map(|()| outputs)
                })
            }
            None => Err(Error::unsupported(format!("there is no rule for this {}", cx.dialect.words().operation))),
        };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            // Behind an unknown operation a rule often fails for want of a shape; its node is shown all the same.
            Err(e) if cx.request.keep_unknown && (cx.kept.get() || e.kind() == ErrorKind::Unsupported) => {
                self.keep(&node, before)?
            }
            Err(e) => return Err(cx.dialect.node_failed(&node, e)),
        };
        trace_outputs(&cx.request.log, &self.model, &node, &outputs.0);
        let passed_on = match outputs.0.first() {
            Some(Item::Tensor(v)) if (v.node.0 as usize) < before => Some(*v),
            _ => None,
        };
        if cx.request.explain {
            self.explain(&node, origin, before, passed_on, outputs.0.is_empty());
        }
        self.bind(&node, outputs)?;
        if let (Some(v), Some(name)) = (passed_on, cx.dialect.passed_on(&node)) {
            self.model.add_tensor_name(v, name);
        }
        Ok(())
    }

    // What the node has besides inputs and values; an error where something is wrong with it.
    fn enter(&mut self, node: &SourceNode) -> Result<()> {
        if let Some(fault) = &node.fault {
            return Err(fault.clone());
        }
        self.graphs.clear();
        for (name, held) in &node.held {
            match held {
                Held::Graph(graph) => self.graphs.push((name.clone(), graph.clone())),
                Held::Broken(e) => return Err(e.clone()),
                Held::Reference(of) => {
                    return Err(Error::invalid(format!(
                        "attribute `{name}` is `{of}` of the function around it, and there is none"
                    )));
                }
            }
        }
        self.stored = node.stored.iter().map(|t| (t.clone(), None)).collect();
        Ok(())
    }

    fn trace(&mut self, node: &SourceNode, origin: Option<&Origin<'_>>) {
        let log = &self.cx.request.log;
        if log.is_debug() {
            // Stored tensors are shown as well; one that is broken is reported by the rule that reads it.
            node.stored.iter().for_each(|t| drop(self.resolve(&t.name)));
        }
        let stored = |name: &str| self.stored.iter().find(|(t, _)| t.name == name).and_then(|(_, made)| made.as_ref());
        trace_inputs(log, &self.model, node, origin, |name| stored(name).or(self.names.get(name)));
    }

    fn explain(
        &mut self,
        node: &SourceNode,
        origin: Option<Origin<'_>>,
        first_slot: usize,
        passed_on: Option<Value>,
        is_empty: bool,
    ) {
        let mut origin = origin.unwrap_or(Origin::Nobody);
        if let (Some(_), Origin::User { hides, .. }) = (self.cx.functions.get(node), &mut origin) {
            *hides = Some("the model's own function");
        }
        let mut told = Explained::new(node.label(), &node.full_type(), &origin);
        told.attach(&mut self.model, first_slot);
        let nothing = match (passed_on, is_empty) {
            (Some(_), _) => "becomes nothing, what it reads is passed on",
            (None, true) => "becomes nothing",
            (None, false) => return,
        };
        if self.outer.is_some() || self.calls > 0 {
            return;
        }
        told.why = if told.why.is_empty() { nothing.to_string() } else { format!("{}; {nothing}", told.why) };
        told.attach_gone(&mut self.model, &self.previous);
    }

    fn keep(&mut self, node: &SourceNode, first_slot: usize) -> Result<Outputs> {
        self.cx.kept.set(true);
        self.stored.iter_mut().for_each(|(_, made)| *made = None);
        unknown::forget(&mut self.model, first_slot, self.names.values())?;
        let inputs = node.inputs.iter().filter(|n| !n.is_empty());
        let found = inputs.map(|name| {
            let item = self.resolve(name)?;
            item.ok_or_else(|| Error::invalid(format!("reads `{}`, which nothing produces", shown(name))))
        });
        let items = found.collect::<Result<Vec<_>>>()?;
        let outputs = node.outputs.iter().map(|name| self.declared.get(name).cloned());
        let outputs = outputs.map(|ty| ty.unwrap_or(ItemType::Unknown)).collect();
        unknown::keep(&mut self.model, node, self.cx.dialect.words().domain, &items, outputs)
    }

    fn bind(&mut self, node: &SourceNode, outputs: Outputs) -> Result<()> {
        let wanted = node.outputs.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1);
        let given = outputs.0.len();
        if given < wanted {
            let words = self.cx.dialect.words();
            let (output, wants) = (words.output, words.wants);
            return Err(Error::unsupported(format!("gives {given} {output}s, {wants} {wanted}")));
        }
        for (name, item) in node.outputs.iter().zip(outputs.0).filter(|(n, _)| !n.is_empty()) {
            // The name belongs to the latest.
            let old = node.in_place_of(name).and_then(|input| self.names.get(input));
            if let Some(Item::Tensor(old) | Item::Packed { value: old, .. }) = old {
                let mut names = self.model.output(*old).names.clone();
                names.remove(shown(name));
                self.model.set_tensor_names(*old, names);
            }
            if let Item::Tensor(value) | Item::Packed { value, .. } = item
                && !shown(name).is_empty()
            {
                self.model.add_tensor_name(value, shown(name));
                self.second_names.get(name).into_iter().flatten().for_each(|n| self.model.add_tensor_name(value, n));
            }
            self.names.insert(name.clone(), item);
        }
        Ok(())
    }

    // Translates the body of a function of the model in place of its call.
    fn call(&mut self, node: &SourceNode) -> Result<()> {
        let Some(function) = self.cx.functions.get(node) else { return Ok(()) };
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!("functions call each other deeper than {MAX_DEPTH}")));
        }
        self.cx.budget.spend_bytes(function.graph.weight())?;
        let formals: Vec<&str> = function.graph.inputs.iter().map(|i| i.name.as_str()).collect();
        let mut names = HashMap::new();
        for (i, formal) in formals.iter().enumerate() {
            let item = match node.inputs.get(i).map(String::as_str) {
                None | Some("") => Some(Item::Nothing),
                Some(actual) => self.resolve(actual)?,
            };
            let item = item.ok_or_else(|| {
                let actual = shown(&node.inputs[i]);
                Error::invalid(format!("reads `{actual}`, which nothing produces"))
            })?;
            names.insert(formal.to_string(), item);
        }
        let prefix = if node.name.is_empty() { &node.op_type } else { &node.name };
        let nodes = functions::bound(function, node, prefix);
        let names = std::mem::replace(&mut self.names, names);
        self.calls += 1;
        self.depth += 1;
        let done = self.tensors(&function.graph.tensors).and_then(|()| self.nodes(&function.graph, &nodes));
        self.depth -= 1;
        self.calls -= 1;
        let inner = std::mem::replace(&mut self.names, names);
        done?;
        let outputs = function.graph.outputs.iter().flatten().take(node.outputs.len()).map(|o| {
            let name = &o.name;
            inner.get(name).cloned().ok_or_else(|| Error::invalid(format!("function output `{name}` is not produced")))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        self.bind(node, Outputs(outputs))
    }
}
