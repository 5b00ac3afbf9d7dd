//! Layers that a user wants in float: by name, by type, by a regular expression over names.

use carafe_graph::{Error, Model, Node, Result};
use regex::Regex;

/// Names, types and patterns of nodes to leave as they are.
#[derive(Clone, Debug, Default)]
pub struct IgnoredScope {
    names: Vec<String>,
    types: Vec<String>,
    patterns: Vec<Regex>,
}

impl IgnoredScope {
    /// One entry: `name`, `type:Convolution` or `regex:block1/.*`, which must match a whole name.
    pub fn add(&mut self, text: &str) -> Result<()> {
        match text.split_once(':') {
            Some(("type", name)) => self.types.push(name.trim().to_string()),
            Some(("regex", pattern)) => {
                let whole = Regex::new(&format!("^(?:{})$", pattern.trim()));
                let whole = whole.map_err(|e| Error::usage(format!("ignored scope `{text}` is no pattern: {e}")))?;
                self.patterns.push(whole);
            }
            Some(("name", name)) => self.names.push(name.trim().to_string()),
            _ => self.names.push(text.trim().to_string()),
        }
        Ok(())
    }

    /// An entry that nothing in the model answers to is a mistake of whoever wrote it.
    pub(crate) fn check(&self, model: &Model) -> Result<()> {
        let missing = |what: String| {
            Err(Error::usage(format!("ignored scope: {what}; `carafe inspect MODEL --graph` lists all nodes")))
        };
        for name in &self.names {
            if model.find_node(name).is_none() {
                return missing(format!("the model has no node `{name}` after conversion"));
            }
        }
        for name in &self.types {
            if !model.nodes().any(|(_, n)| n.op().type_name() == name) {
                return missing(format!("the model has no operation of type `{name}`"));
            }
        }
        for pattern in &self.patterns {
            if !model.nodes().any(|(_, n)| pattern.is_match(n.name())) {
                return missing(format!("no node matches `{pattern}`"));
            }
        }
        Ok(())
    }

    /// Why the node is left alone, if it is.
    pub(crate) fn reason(&self, node: &Node) -> Option<String> {
        let (name, ty) = (node.name(), node.op().type_name());
        if self.names.iter().any(|n| n == name) {
            return Some("ignored by name".to_string());
        }
        if self.types.iter().any(|t| t == ty) {
            return Some(format!("ignored by type {ty}"));
        }
        self.patterns.iter().any(|p| p.is_match(name)).then(|| "ignored by pattern".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_ops::activation::Relu;
    use carafe_tensor::{ElementType, PartialShape};

    fn model() -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2])).unwrap();
        let y = m.add("block1/relu", Relu {}, &[x]).unwrap();
        m.result("r", y.into()).unwrap();
        m
    }

    #[test]
    fn an_entry_is_a_name_a_type_or_a_pattern() {
        let m = model();
        let relu = m.node(m.find_node("block1/relu").unwrap());
        for text in ["block1/relu", "name:block1/relu", "type:ReLU", "regex:block1/.*"] {
            let mut scope = IgnoredScope::default();
            scope.add(text).unwrap();
            scope.check(&m).unwrap();
            assert!(scope.reason(relu).is_some(), "{text}");
        }
        let mut scope = IgnoredScope::default();
        scope.add("regex:block").unwrap();
        assert!(scope.reason(relu).is_none() && scope.check(&m).is_err());
    }

    #[test]
    fn an_entry_that_matches_nothing_is_an_error() {
        for text in ["nobody", "type:Nothing", "regex:nobody.*"] {
            let mut scope = IgnoredScope::default();
            scope.add(text).unwrap();
            let e = scope.check(&model()).unwrap_err();
            assert!(e.to_string().contains("ignored scope"), "{e}");
        }
        assert!(IgnoredScope::default().add("regex:(").is_err());
    }
}
