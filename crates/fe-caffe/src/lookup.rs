//! Who handles a layer type: a rule of that exact name, else one whose name differs only in case and underscores, else an entry
//! of the list of custom layers. This is the one place where layer types and rules meet.

use crate::custom_layers::{CustomLayers, Entry};
use crate::dialect::CaffeDialect;
use crate::input;
use crate::names::plain;
use crate::net::Layer;
use carafe_frontend::{Found, NodeCx, Origin, Outputs, RuleSet, SourceNode};
use carafe_graph::{AttrMap, Error, FrameworkNode, Op, OpRef, Result, ShapeRule};
use carafe_tensor::{ElementType, PartialShape};
use carafe_textproto::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The type that rules are written for: a Python layer's is `module.layer`.
pub(crate) fn type_of(layer: &Layer) -> String {
    let python = layer.message("python_param").filter(|_| layer.ty == "Python");
    let Some(m) = python else { return layer.ty.clone() };
    let part = |name: &str| m.get(name).and_then(Value::as_str).unwrap_or("");
    match (part("module"), part("layer")) {
        ("", "") => layer.ty.clone(),
        ("", layer) => layer.to_string(),
        (module, layer) => format!("{module}.{layer}"),
    }
}

impl CaffeDialect {
    // Names of rules by their plain form; a user's name goes before a built-in one.
    fn names(&self, rules: &RuleSet) -> &HashMap<String, String> {
        self.names.get_or_init(|| {
            let mut names: HashMap<String, String> = HashMap::new();
            for name in rules.names() {
                let other = names.entry(plain(name)).or_insert_with(|| name.to_string());
                if rules.is_user("", name) {
                    *other = name.to_string();
                }
            }
            names
        })
    }

    // The rule for a type, and the entry of the custom layers where that comes first: behind an extension's rule and a standard
    // layer, before an operation of an extension that has the layer's name and came without a rule.
    fn rule_or_entry<'r>(
        &'r self,
        rules: &'r RuleSet,
        domain: &str,
        ty: &str,
    ) -> (Option<Found<'r>>, Option<(&'r CustomLayers, &'r Entry)>) {
        let exact = rules.find(domain, ty, 1);
        let rule = exact.or_else(|| rules.find(domain, self.names(rules).get(&plain(ty))?, 1));
        let entry = self.custom.as_ref().and_then(|c| Some((c, c.entry(ty)?)));
        match rule {
            Some(found) if entry.is_none() || !matches!(found.origin, Origin::EqualName { .. }) => (Some(found), None),
            _ => (None, entry),
        }
    }

    /// Who answers for a node.
    pub(crate) fn handler<'r>(&'r self, rules: &'r RuleSet, node: &SourceNode) -> Option<Found<'r>> {
        let (rule, entry) = self.rule_or_entry(rules, &node.domain, &node.op_type);
        rule.or_else(|| {
            let (all, entry) = entry?;
            let layer = self.layer(node);
            let translate = Rc::new(move |n: &mut NodeCx<'_>| self.custom_layer(all, entry, &layer, n));
            Some(Found { translate, origin: Origin::CustomLayers, newer: None })
        })
    }

    /// Entries of custom layers that are never asked because another handles layers of their type, in words.
    pub(crate) fn shadowed(&self, rules: &RuleSet) -> Vec<String> {
        let Some(custom) = &self.custom else { return vec![] };
        let told = custom.types().filter_map(|ty| {
            let winner = self.winner(rules, &Layer { ty: ty.to_string(), ..Layer::default() })?;
            Some(format!("{}: the entry for `{ty}` is not used, {winner} comes first", custom.location()))
        });
        told.collect()
    }

    /// Who handles a layer before its entry of the custom layers is asked, in words.
    pub(crate) fn winner(&self, rules: &RuleSet, layer: &Layer) -> Option<String> {
        let standard = || Some("the standard layer of that type".to_string());
        if input::is_input(&layer.ty) && !self.is_user(rules, &layer.ty) {
            return standard();
        }
        match self.rule_or_entry(rules, "", &type_of(layer)).0?.origin {
            Origin::BuiltIn => standard(),
            origin => Some(origin.words().0),
        }
    }

    /// Whether a user's rule answers.
    pub(crate) fn is_user(&self, rules: &RuleSet, ty: &str) -> bool {
        rules.is_user("", ty) || self.names(rules).get(&plain(ty)).is_some_and(|n| rules.is_user("", n))
    }

    // The layer as it is, with the attributes that its entry asks for.
    fn custom_layer(&self, all: &CustomLayers, entry: &Entry, layer: &Layer, n: &mut NodeCx<'_>) -> Result<Outputs> {
        // What the entry does not ask for has no effect.
        n.attrs();
        let attrs = all.attributes(entry, layer, &self.schema, &|text| n.report(text))?;
        let inputs = n.inputs()?;
        let class = n.registry().and_then(|r| r.newest(n.op_type())).cloned();
        let op: OpRef = match class {
            Some(class) => {
                let op = class.create(&attrs)?;
                self.unheard(all, entry, layer, &*op, &attrs, n);
                op
            }
            None => Arc::new(opaque(all, entry, layer, attrs, n)?),
        };
        Ok(n.emit_ref(op, &inputs)?.into())
    }

    // An operation of the layer's name has its own attributes and shapes; what else was given is reported.
    fn unheard(&self, all: &CustomLayers, entry: &Entry, layer: &Layer, op: &dyn Op, attrs: &AttrMap, n: &NodeCx<'_>) {
        let name = format!("the operation `{}::{}`", op.opset(), op.type_name());
        let own = op.attrs();
        let is_known = |n: &str| op.info().attrs.iter().any(|a| a.name == n) || own.iter().any(|(o, _)| o == n);
        let lost: Vec<String> = attrs.iter().filter(|(n, _)| !is_known(n)).map(|(n, _)| format!("`{n}`")).collect();
        if !lost.is_empty() {
            let (layer, lost) = (&layer.name, lost.join(", "));
            n.report(&format!("layer `{layer}`: {name} does not declare {lost}, which are not written"));
        }
        let first = "infers the shape itself and comes first";
        if all.shapes_of(layer).is_some() {
            n.report(&format!("--layer_shapes: the shape of `{}` is not used, {name} {first}", layer.name));
        }
        if entry.output_shape.is_some() && self.told.borrow_mut().insert(entry.native_type.clone()) {
            let (location, ty) = (all.location(), &entry.native_type);
            n.report(&format!("{location}: the outputShape for `{ty}` is not used, {name} {first}"));
        }
    }
}

// A node that nobody runs here, with the shapes that its entry or the user gives.
fn opaque(all: &CustomLayers, entry: &Entry, layer: &Layer, attrs: AttrMap, n: &NodeCx<'_>) -> Result<FrameworkNode> {
    let (ty, tops) = (n.op_type(), n.n_outputs());
    let known = all.shapes_of(layer);
    let rule = match (known, &entry.output_shape) {
        (None, None) => {
            return Err(Error::unsupported(format!(
                "{} has it, but nothing says its output shape: add outputShape=\"...\" to its \
                 entry (`in0` for that of its input), give --layer_shapes '{}[...]', or load an extension with an \
                 operation named `{ty}`",
                all.location(),
                n.name()
            )));
        }
        (Some(known), _) if known.len() != tops => {
            let text = format!("has {tops} tops, --layer_shapes gives {} shapes", known.len());
            return Err(Error::usage(text));
        }
        (Some(_), _) => None,
        (None, Some(expression)) if expression.len() != tops => {
            let (location, shapes) = (all.location(), expression.len());
            return Err(Error::invalid(format!("has {tops} tops, its outputShape in {location} has {shapes} shapes")));
        }
        (None, Some(expression)) => {
            let (expression, attrs) = (expression.clone(), attrs.clone());
            Some(ShapeRule(Arc::new(move |inputs| expression.shapes(inputs, &attrs))))
        }
    };
    let shape = |i: usize| known.and_then(|k| k.get(i)).cloned().unwrap_or_else(PartialShape::dynamic);
    let outputs = (0..tops).map(|i| (ElementType::F32, shape(i))).collect();
    Ok(FrameworkNode { type_name: ty.to_string(), opset: "extension".to_string(), attrs, outputs, rule })
}
