//! Which rule answers for a layer type: one of that exact name, else one whose name differs only in case and underscores. This
//! is the one place where layer types and rules meet.

use crate::names::plain;
use crate::net::Layer;
use carafe_frontend::{Found, RuleSet};
use carafe_textproto::Value;
use std::collections::HashMap;

pub(crate) struct Lookup<'r> {
    rules: &'r RuleSet,
    /// Names of rules by their plain form; a user's name goes before a built-in one.
    names: HashMap<String, String>,
}

impl<'r> Lookup<'r> {
    pub(crate) fn new(rules: &'r RuleSet) -> Lookup<'r> {
        let mut names: HashMap<String, String> = HashMap::new();
        for name in rules.names() {
            let other = names.entry(plain(name)).or_insert_with(|| name.to_string());
            if rules.is_user("", name) {
                *other = name.to_string();
            }
        }
        Lookup { rules, names }
    }

    /// The type that rules are written for: a Python layer's is `module.layer`.
    pub(crate) fn type_of(&self, layer: &Layer) -> String {
        let python = layer.message("python_param").filter(|_| layer.ty == "Python");
        let Some(m) = python else { return layer.ty.clone() };
        let part = |name: &str| m.get(name).and_then(Value::as_str).unwrap_or("");
        match (part("module"), part("layer")) {
            ("", layer) => layer.to_string(),
            (module, layer) => format!("{module}.{layer}"),
        }
    }

    /// The rule for a layer type.
    pub(crate) fn find(&self, ty: &str) -> Option<Found<'r>> {
        let exact = self.rules.find("", ty, 1);
        exact.or_else(|| self.rules.find("", self.names.get(&plain(ty))?, 1))
    }

    /// Whether a user's rule answers.
    pub(crate) fn is_user(&self, ty: &str) -> bool {
        self.rules.is_user("", ty) || self.names.get(&plain(ty)).is_some_and(|n| self.rules.is_user("", n))
    }
}
