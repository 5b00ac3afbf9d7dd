//! Translates a net layer by layer in the order of the file. A name means the latest blob of that name: a layer whose top is
//! one of its bottoms works in place, and what follows reads its result.

use crate::attributes;
use crate::blob::Blob;
use crate::custom_layers::{CustomLayers, Entry};
use crate::decoded;
use crate::input;
use crate::lookup::{Handler, Lookup};
use crate::misspelt;
use crate::net::{Layer, Net};
use crate::schema::Schema;
use crate::undeclared;
use carafe_frontend::{
    Explained, Host, Item, NodeCx, Origin, Outputs, ReadRequest, SourceNode, SubModel, Unread, mark_cut_off,
    trace_inputs, trace_outputs,
};
use carafe_graph::{
    AttrMap, AttrValue, Error, ErrorKind, Fact, FrameworkNode, Model, NodeId, Op, OpRef, Registry, Result, ShapeRule,
    Value,
};
use carafe_tensor::{ElementType, PartialShape};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What the translation of a net takes from outside.
pub(crate) struct Context<'f> {
    pub lookup: &'f Lookup<'f>,
    pub schema: &'f Schema,
    pub options: &'f ReadRequest<'f>,
    /// Attributes that users' rules left.
    pub unread: Unread,
}

pub(crate) struct Scope<'f> {
    cx: &'f Context<'f>,
    model: Model,
    names: HashMap<String, Bound>,
    /// Stored blobs of the layer at hand, by the names that its node knows them by. Constants are made when asked for.
    blobs: HashMap<String, (String, Blob, Option<Item>)>,
    /// Names of inputs of the model.
    inputs: HashMap<String, usize>,
    /// Inputs whose readers were all left out.
    cut_off: HashSet<String>,
    /// Name of the layer before the one at hand.
    previous: String,
    /// Types of custom layers whose unused output shape was told of.
    told: HashSet<String>,
    /// Whether any layer was kept for want of a rule.
    kept: bool,
}

/// A blob of the net.
#[derive(Clone, Debug)]
struct Bound {
    item: Item,
    producer: String,
    consumed: bool,
    is_input: bool,
    /// Number of its layer and of the top there.
    order: (usize, usize),
}

impl<'f> Scope<'f> {
    pub(crate) fn new(cx: &'f Context<'f>) -> Scope<'f> {
        Scope {
            cx,
            model: Model::default(),
            names: HashMap::new(),
            blobs: HashMap::new(),
            inputs: HashMap::new(),
            cut_off: HashSet::new(),
            previous: String::new(),
            told: HashSet::new(),
            kept: false,
        }
    }

    /// The whole net as a model.
    pub(crate) fn net(mut self, net: &Net) -> Result<Model> {
        self.model.name = net.name.clone();
        self.cut_off = net.cut_off.clone();
        let later: HashSet<&str> = net.layers.iter().flat_map(|l| &l.tops).map(String::as_str).collect();
        for c in &net.constants {
            let item = self.model.constant(&c.name, c.tensor.clone())?.into();
            let bound = Bound { item, producer: c.name.clone(), consumed: true, is_input: true, order: (0, 0) };
            self.names.insert(c.blob.clone(), bound);
        }
        let mut layer_names = HashMap::new();
        for (i, layer) in net.layers.iter().enumerate() {
            self.cx.options.progress.tell(i, net.layers.len(), "layers translated");
            let name = unique(&layer.name, &mut layer_names);
            let done = self.bottoms(layer, &later).and_then(|()| self.layer(layer, &name, i, &later));
            done.map_err(|e| e.at(layer.place()))?;
            if !input::is_input(&layer.ty) {
                self.previous.clone_from(&layer.name);
            }
        }
        if self.cx.options.explain {
            for l in &net.left_out {
                let (source, source_type, why) = (l.name.clone(), l.ty.clone(), l.why.to_string());
                Explained { source, source_type, rule: String::new(), why }.attach_gone(&mut self.model, &l.after);
            }
        }
        self.outputs()?;
        self.model.prune();
        Ok(self.model)
    }

    // Every bottom must have been produced before.
    fn bottoms(&mut self, layer: &Layer, later: &HashSet<&str>) -> Result<()> {
        for bottom in &layer.bottoms {
            match self.names.get_mut(bottom) {
                Some(bound) => bound.consumed = true,
                None if layer.tops.contains(bottom) => {
                    return Err(Error::invalid(format!(
                        "bottom `{bottom}` is its own top, and no layer before it produces `{bottom}`"
                    )));
                }
                None if later.contains(bottom.as_str()) => {
                    return Err(Error::invalid(format!(
                        "bottom `{bottom}` is produced by a later layer; layers stand behind those they read"
                    )));
                }
                None => return Err(Error::invalid(format!("bottom `{bottom}` is produced by no layer"))),
            }
        }
        Ok(())
    }

    fn layer(&mut self, layer: &Layer, name: &str, order: usize, tops: &HashSet<&str>) -> Result<()> {
        if input::is_input(&layer.ty) && !self.cx.lookup.is_user(&layer.ty) {
            for (t, (top, shape)) in layer.tops.iter().zip(input::shapes(layer)?).enumerate() {
                let own = if layer.tops.len() == 1 { name } else { top };
                let own = unique(own, &mut self.inputs);
                let v = self.model.parameter(&own, ElementType::F32, shape)?;
                self.model.set_tensor_names(v, Default::default());
                self.bind(layer, top, v.into(), (order, t), true)?;
                if self.cut_off.contains(top) {
                    mark_cut_off(&mut self.model, v.node);
                }
            }
            return Ok(());
        }
        let source = self.source_node(layer, name, tops)?;
        let before = self.model.slots();
        let found = self.cx.lookup.find(layer);
        let origin = found.as_ref().map(Handler::origin);
        undeclared::judge(layer, self.cx.schema, origin.as_ref(), &self.cx.options.log)?;
        self.guessed(layer);
        self.trace(&source, origin.as_ref());
        let unread = &self.cx.unread;
        let outputs = match found {
            Some(Handler::Custom(all, entry)) => self.custom(all, entry, layer, &source),
            Some(Handler::Rule(found)) => {
                let mut cx = NodeCx::new(self, &source);
                (found.translate)(&mut cx).and_then(|outputs| {
                    let left = cx.finish(&outputs);
                    unread.judge(&source, &found.origin, &left).map(|()| outputs)
                })
            }
            None => Err(Error::unsupported("there is no rule for this layer type")),
        };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            // Behind an unknown layer a rule often fails for want of a shape; its node is shown all the same.
            Err(e) if self.cx.options.keep_unknown && (self.kept || e.kind() == ErrorKind::Unsupported) => {
                self.keep(&source, before)?
            }
            Err(e) => return Err(misspelt::told(e, layer, self.cx.schema)),
        };
        trace_outputs(&self.cx.options.log, &self.model, &source, &outputs.0);
        let passed_on = match outputs.0.first() {
            Some(Item::Tensor(v)) if (v.node.0 as usize) < before => Some(*v),
            _ => None,
        };
        if self.cx.options.explain {
            let origin = origin.unwrap_or(Origin::Nobody);
            let mut told = Explained::new(&layer.name, &source.op_type, &origin);
            told.attach(&mut self.model, before);
            if passed_on.is_some() || outputs.0.is_empty() {
                let nothing =
                    if passed_on.is_some() { "becomes nothing, what it reads is passed on" } else { "becomes nothing" };
                told.why = [told.why.as_str(), nothing]
                    .iter()
                    .filter(|w| !w.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join("; ");
                told.attach_gone(&mut self.model, &self.previous);
            }
        }
        if outputs.0.len() < source.outputs.len() {
            let (given, wanted) = (outputs.0.len(), source.outputs.len());
            return Err(Error::unsupported(format!("gives {given} tops, the net names {wanted}")));
        }
        for (t, (top, item)) in layer.tops.iter().zip(outputs.0).enumerate() {
            self.bind(layer, top, item, (order, t), false)?;
        }
        // A layer that became nothing is still found by its name, unless that is the name of a blob.
        if let Some(v) = passed_on.filter(|_| !tops.contains(name) && !name.starts_with(decoded::NAMELESS)) {
            self.model.add_tensor_name(v, name);
        }
        Ok(())
    }

    // With a .proto of the user at hand, what it does not declare is worth a word.
    fn guessed(&self, layer: &Layer) {
        if layer.at.line == 0 || std::ptr::eq(self.cx.schema, Schema::built_in()) {
            return;
        }
        let all = misspelt::undeclared(layer, self.cx.schema);
        if !all.is_empty() {
            let all = all.join("; ");
            let text = "the .proto of --caffe_parser_path does not declare it, so its kind is guessed";
            self.cx.options.log.warn(format!("{}: {all}; {text}", layer.place()));
        }
    }

    fn trace(&mut self, source: &SourceNode, origin: Option<&Origin<'_>>) {
        let log = &self.cx.options.log;
        if log.is_debug() {
            // Stored blobs are shown as well; one that is broken is told by the rule that reads it.
            source.inputs.iter().for_each(|name| drop(self.resolve(name)));
        }
        let blob = |name: &str| self.blobs.get(name).and_then(|(.., made)| made.as_ref());
        trace_inputs(log, &self.model, source, origin, |name| blob(name).or(self.names.get(name).map(|b| &b.item)));
    }

    fn source_node(&mut self, layer: &Layer, name: &str, tops: &HashSet<&str>) -> Result<SourceNode> {
        let mut source = SourceNode {
            name: name.to_string(),
            op_type: self.cx.lookup.type_of(layer),
            version: 1,
            inputs: layer.bottoms.clone(),
            input_ports: vec!["bottom".into(); layer.bottoms.len()],
            outputs: layer.tops.clone(),
            output_ports: vec!["top".into(); layer.tops.len()],
            attrs: match &layer.made {
                Some((attrs, _)) => attrs.clone(),
                None => attributes::of(layer, self.cx.schema, &self.cx.options.log)?,
            },
            domain: layer.made.as_ref().map_or_else(String::new, |(_, domain)| domain.clone()),
            ..SourceNode::default()
        };
        self.blobs.clear();
        for (i, blob) in layer.blobs.iter().enumerate() {
            let constant = match i {
                0 => format!("{name}/weights"),
                1 => format!("{name}/biases"),
                i => format!("{name}/custom_{i}"),
            };
            // The node must not read a blob of the net by the name of a stored one.
            let mut key = constant.clone();
            while tops.contains(key.as_str()) {
                key.push('\'');
            }
            source.inputs.push(key.clone());
            source.input_ports.push("blob".into());
            self.blobs.insert(key, (constant, blob.clone(), None));
        }
        Ok(source)
    }

    fn bind(&mut self, layer: &Layer, top: &str, item: Item, order: (usize, usize), is_input: bool) -> Result<()> {
        if let Some(old) = self.names.get(top) {
            if !layer.bottoms.iter().any(|b| b == top) {
                return Err(Error::invalid(format!(
                    "top `{top}` was already produced by layer `{}`; only a layer that reads it may produce it again",
                    old.producer
                )));
            }
            // The name belongs to the latest.
            if let Item::Tensor(v) | Item::Packed { value: v, .. } = old.item {
                let mut names = self.model.output(v).names.clone();
                names.remove(top);
                self.model.set_tensor_names(v, names);
            }
        }
        if let Item::Tensor(v) | Item::Packed { value: v, .. } = item
            && !top.starts_with(decoded::NAMELESS)
        {
            self.model.add_tensor_name(v, top);
        }
        let producer = layer.name.clone();
        self.names.insert(top.to_string(), Bound { item, producer, consumed: false, is_input, order });
        Ok(())
    }

    // What no layer reads is an output, in the order of the file.
    fn outputs(&mut self) -> Result<()> {
        let has_name = |name: &str| !name.starts_with(decoded::NAMELESS);
        let ends = self.names.iter().filter(|(name, b)| !b.consumed && !b.is_input && has_name(name));
        let mut ends: Vec<_> = ends.map(|(name, b)| (b.order, name.clone(), b.item.clone())).collect();
        ends.sort_by_key(|(order, ..)| *order);
        for (_, name, item) in ends {
            let Item::Tensor(v) = item else { continue };
            let result = self.model.result(&format!("{name}/sink_port_0"), v)?;
            self.model.add_tensor_name(result.into(), &name);
        }
        match self.model.results().is_empty() {
            true => Err(Error::invalid("the net has no outputs: every blob is read by some layer")),
            false => Ok(()),
        }
    }

    // The layer as it is, with the attributes that its entry asks for.
    fn custom(&mut self, all: &CustomLayers, entry: &Entry, layer: &Layer, source: &SourceNode) -> Result<Outputs> {
        let attrs = all.attributes(entry, layer, self.cx.schema, &self.cx.options.log)?;
        let mut inputs = vec![];
        for name in &source.inputs {
            match self.resolve(name)? {
                Some(Item::Tensor(v)) => inputs.push(v),
                _ => return Err(Error::invalid(format!("reads `{name}`, which nothing produces"))),
            }
        }
        let registered = self.cx.options.registry.and_then(|r| r.newest(&source.op_type));
        let given = all.shapes_of(layer);
        let n = source.outputs.len();
        let op: OpRef = match (registered, given, &entry.output_shape) {
            (Some(class), ..) => {
                let op = class.create(&attrs)?;
                self.unheard(all, entry, layer, &*op, &attrs);
                op
            }
            (None, None, None) => {
                let ty = &source.op_type;
                return Err(Error::unsupported(format!(
                    "{} has it, but nothing says its output shape: add outputShape=\"...\" to its \
                     entry (`in0` for that of its input), give --layer_shapes '{}[...]', or load an extension with an \
                     operation named `{ty}`",
                    all.place(),
                    source.name
                )));
            }
            (None, given, expression) => {
                let rule = match (given, expression) {
                    (None, Some(expression)) => {
                        let (expression, attrs) = (expression.clone(), attrs.clone());
                        Some(ShapeRule(Arc::new(move |inputs| expression.shapes(inputs, &attrs))))
                    }
                    _ => None,
                };
                let known = given.map_or_else(Vec::new, <[_]>::to_vec);
                if rule.is_none() && known.len() != n {
                    let text = format!("has {n} tops, --layer_shapes gives {} shapes", known.len());
                    return Err(Error::usage(text));
                }
                if let Some(expression) = expression.as_ref().filter(|e| rule.is_some() && e.len() != n) {
                    let (place, shapes) = (all.place(), expression.len());
                    return Err(Error::invalid(format!(
                        "has {n} tops, its outputShape in {place} has {shapes} shapes"
                    )));
                }
                let outputs =
                    (0..n).map(|i| (ElementType::F32, known.get(i).cloned().unwrap_or_else(PartialShape::dynamic)));
                let outputs = outputs.collect();
                let (type_name, opset) = (source.op_type.clone(), "extension".to_string());
                Arc::new(FrameworkNode { type_name, opset, attrs, outputs, rule })
            }
        };
        let node = self.model.add_ref(&source.name, op, &inputs)?;
        let given = self.model.node(node).outputs().len();
        Ok((0..given).map(|port| Value { node, port }).collect::<Vec<_>>().into())
    }

    // An operation of the layer's name has its own attributes and shapes; what else was said is told of.
    fn unheard(&mut self, all: &CustomLayers, entry: &Entry, layer: &Layer, op: &dyn Op, attrs: &AttrMap) {
        let log = &self.cx.options.log;
        let name = format!("the operation `{}::{}`", op.opset(), op.type_name());
        let own = op.attrs();
        let is_known = |n: &str| op.info().attrs.iter().any(|a| a.name == n) || own.iter().any(|(o, _)| o == n);
        let lost: Vec<String> = attrs.iter().filter(|(n, _)| !is_known(n)).map(|(n, _)| format!("`{n}`")).collect();
        if !lost.is_empty() {
            let (layer, lost) = (&layer.name, lost.join(", "));
            log.warn(format!("layer `{layer}`: {name} does not declare {lost}, which are not written"));
        }
        let first = "infers the shape itself and comes first";
        if all.shapes_of(layer).is_some() {
            log.warn(format!("--layer_shapes: the shape of `{}` is not used, {name} {first}", layer.name));
        }
        if entry.output_shape.is_some() && self.told.insert(entry.native_type.clone()) {
            let (place, ty) = (all.place(), &entry.native_type);
            log.warn(format!("{place}: the outputShape for `{ty}` is not used, {name} {first}"));
        }
    }

    fn keep(&mut self, source: &SourceNode, first_slot: usize) -> Result<Outputs> {
        self.kept = true;
        self.blobs.values_mut().for_each(|(.., made)| *made = None);
        let emitted = self.model.nodes().map(|(id, _)| id).filter(|id| id.0 as usize >= first_slot);
        let mut emitted: Vec<NodeId> = emitted.collect();
        while let Some(id) = emitted.pop() {
            self.model.remove(id)?;
        }
        let mut inputs = vec![];
        for name in &source.inputs {
            match self.resolve(name)? {
                Some(Item::Tensor(v) | Item::Packed { value: v, .. }) => inputs.push(v),
                _ => return Err(Error::invalid(format!("reads `{name}`, which nothing produces"))),
            }
        }
        let shown = |v: &AttrValue| if v.to_text().is_some() { v.clone() } else { AttrValue::Text(v.to_string()) };
        let attrs: AttrMap = source.attrs.iter().map(|(n, v)| (n.to_string(), shown(v))).collect();
        let node = FrameworkNode { attrs, ..FrameworkNode::new("caffe", &source.op_type) };
        let id = self.model.add(&source.name, node.with_outputs(source.outputs.len()), &inputs)?;
        Ok((0..source.outputs.len()).map(|port| Value { node: id, port }).collect::<Vec<_>>().into())
    }
}

// The name, or the name with a number behind it. The map has the number that each name came to.
fn unique(name: &str, taken: &mut HashMap<String, usize>) -> String {
    let Some(n) = taken.get(name).copied() else {
        taken.insert(name.to_string(), 0);
        return name.to_string();
    };
    let mut n = n + 1;
    while taken.contains_key(&format!("{name}_{n}")) {
        n += 1;
    }
    taken.insert(name.to_string(), n);
    let own = format!("{name}_{n}");
    taken.insert(own.clone(), 0);
    own
}

impl Host for Scope<'_> {
    fn model(&self) -> &Model {
        &self.model
    }
    fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }
    fn resolve(&mut self, name: &str) -> Result<Option<Item>> {
        if let Some((constant, blob, made)) = self.blobs.get_mut(name) {
            if made.is_none() {
                let i = name.rsplit('/').next().unwrap_or("");
                let tensor = blob.tensor().map_err(|e| e.at(format!("stored blob `{i}`")))?;
                *made = Some(self.model.constant(constant, tensor)?.into());
            }
            return Ok(made.clone());
        }
        Ok(self.names.get(name).map(|b| b.item.clone()))
    }
    fn body(&mut self, attribute: &str, _: &[Fact]) -> Result<SubModel> {
        Err(Error::unsupported(format!("layers of Caffe have no sub-graphs, `{attribute}` is none")))
    }
    fn registry(&self) -> Option<&Registry> {
        self.cx.options.registry
    }
}
