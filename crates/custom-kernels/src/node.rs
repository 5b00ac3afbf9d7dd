//! What the binding of a kernel asks of a node: attributes, types and shapes.

use carafe_graph::AttrMap;
use carafe_tensor::ElementType;

/// One input or output of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PortView {
    /// Name of the port, as its operation declares it; may be empty.
    pub name: String,
    /// Type in which the kernel gets it.
    pub ty: ElementType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Whether its elements are known before anything runs.
    pub is_constant: bool,
}

/// A node with exact shapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeView {
    /// Attributes by name.
    pub attrs: AttrMap,
    /// Its inputs.
    pub inputs: Vec<PortView>,
    /// Its outputs.
    pub outputs: Vec<PortView>,
}

impl NodeView {
    /// The input that a `Data` element means: a port by name or number, or, as in old models, `weights` for the first constant
    /// input and `biases` for the second.
    pub fn data_port(&self, name: &str) -> Option<usize> {
        let named = self.inputs.iter().position(|p| !p.name.is_empty() && p.name.eq_ignore_ascii_case(name));
        let numbered = || name.parse().ok().filter(|n: &usize| *n < self.inputs.len());
        let legacy = || {
            let nth = ["weights", "biases"].iter().position(|n| n.eq_ignore_ascii_case(name))?;
            self.inputs.iter().enumerate().filter(|(_, p)| p.is_constant).nth(nth).map(|(i, _)| i)
        };
        named.or_else(numbered).or_else(legacy)
    }
    /// What `data_port` finds, in words.
    pub fn data_names(&self) -> String {
        let names = self.inputs.iter().enumerate().map(|(i, p)| match p.name.is_empty() {
            true => i.to_string(),
            false => format!("`{}` ({i})", p.name),
        });
        let names: Vec<String> = names.collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, is_constant: bool) -> PortView {
        PortView { name: name.into(), ty: ElementType::F32, shape: vec![1], is_constant }
    }

    #[test]
    fn data_is_found_by_port_number_and_old_name() {
        let node = NodeView {
            inputs: vec![port("data", false), port("filters", true), port("", true)],
            ..NodeView::default()
        };
        assert_eq!(node.data_port("Filters"), Some(1));
        assert_eq!((node.data_port("2"), node.data_port("3")), (Some(2), None));
        assert_eq!((node.data_port("weights"), node.data_port("biases")), (Some(1), Some(2)));
        assert_eq!((node.data_port("custom"), node.data_names()), (None, "`data` (0), `filters` (1), 2".into()));
    }
}
