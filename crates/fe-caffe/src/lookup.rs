//! Which rule answers for a layer type: one of that exact name, else one whose name differs only in case and underscores. This
//! is the one place where layer types and rules meet.

use crate::custom_layers::{CustomLayers, Entry};
use crate::input;
use crate::names::plain;
use crate::net::Layer;
use carafe_frontend::{Found, Origin, RuleSet};
use carafe_textproto::Value;
use std::collections::HashMap;

/// Who handles a layer.
pub(crate) enum Handler<'r> {
    Rule(Found<'r>),
    Custom(&'r CustomLayers, &'r Entry),
}

impl<'r> Handler<'r> {
    pub(crate) fn origin(&self) -> Origin<'r> {
        match self {
            Handler::Rule(found) => found.origin,
            Handler::Custom(..) => Origin::CustomLayers,
        }
    }
}

pub(crate) struct Lookup<'r> {
    rules: &'r RuleSet,
    custom: Option<&'r CustomLayers>,
    /// Names of rules by their plain form; a user's name goes before a built-in one.
    names: HashMap<String, String>,
}

impl<'r> Lookup<'r> {
    pub(crate) fn new(rules: &'r RuleSet, custom: Option<&'r CustomLayers>) -> Lookup<'r> {
        let mut names: HashMap<String, String> = HashMap::new();
        for name in rules.names() {
            let other = names.entry(plain(name)).or_insert_with(|| name.to_string());
            if rules.is_user("", name) {
                *other = name.to_string();
            }
        }
        Lookup { rules, custom, names }
    }

    /// The type that rules are written for: a Python layer's is `module.layer`.
    pub(crate) fn type_of(&self, layer: &Layer) -> String {
        let python = layer.message("python_param").filter(|_| layer.ty == "Python");
        let Some(m) = python else { return layer.ty.clone() };
        let part = |name: &str| m.get(name).and_then(Value::as_str).unwrap_or("");
        match (part("module"), part("layer")) {
            ("", "") => layer.ty.clone(),
            ("", layer) => layer.to_string(),
            (module, layer) => format!("{module}.{layer}"),
        }
    }

    /// Who answers for a layer: an extension's rule, a standard layer, an entry of the list of custom layers, and at last
    /// an operation of an extension that has the layer's name and came without a rule.
    pub(crate) fn find(&self, layer: &Layer) -> Option<Handler<'r>> {
        let ty = self.type_of(layer);
        let domain = layer.made.as_ref().map_or("", |(_, domain)| domain);
        let exact = self.rules.find(domain, &ty, 1);
        let rule = exact.or_else(|| self.rules.find(domain, self.names.get(&plain(&ty))?, 1));
        let entry = self.custom.and_then(|c| c.entry(&ty).map(|e| (c, e)));
        match (rule, entry) {
            (Some(found), Some((all, entry))) if matches!(found.origin, Origin::EqualName { .. }) => {
                Some(Handler::Custom(all, entry))
            }
            (Some(found), _) => Some(Handler::Rule(found)),
            (None, Some((all, entry))) => Some(Handler::Custom(all, entry)),
            (None, None) => None,
        }
    }

    /// Entries of custom layers that are never asked because another handles layers of their type, in words.
    pub(crate) fn shadowed(&self) -> Vec<String> {
        let Some(custom) = self.custom else { return vec![] };
        let told = custom.types().filter_map(|ty| {
            let winner = self.winner(&Layer { ty: ty.to_string(), ..Layer::default() })?;
            Some(format!("{}: the entry for `{ty}` is not used, {winner} comes first", custom.place()))
        });
        told.collect()
    }

    /// Who handles a layer before its entry of the custom layers is asked, in words.
    pub(crate) fn winner(&self, layer: &Layer) -> Option<String> {
        if input::is_input(&layer.ty) && !self.is_user(&layer.ty) {
            return Some("the standard layer of that type".to_string());
        }
        match self.find(layer)? {
            Handler::Rule(Found { origin: Origin::BuiltIn, .. }) => Some("the standard layer of that type".to_string()),
            Handler::Rule(found) => Some(found.origin.words().0),
            Handler::Custom(..) => None,
        }
    }

    /// Whether a user's rule answers.
    pub(crate) fn is_user(&self, ty: &str) -> bool {
        self.rules.is_user("", ty) || self.names.get(&plain(ty)).is_some_and(|n| self.rules.is_user("", n))
    }
}
