//! Inputs and outputs of a compiled model, and how a user names one.

use carafe_graph::{Error, Model, NodeId, Result};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::BTreeSet;
use std::fmt;

/// An input or output of a compiled model.
#[derive(Clone, Debug)]
pub struct Port {
    /// The name a user would call it by.
    pub name: String,
    /// Every name of its tensor.
    pub names: BTreeSet<String>,
    /// Element type; dynamic where the model does not know it.
    pub ty: ElementType,
    /// Shape, with open dimensions where the model does not know them.
    pub shape: PartialShape,
}

impl Port {
    /// Inputs of a model, in order.
    pub fn inputs_of(model: &Model) -> Vec<Port> {
        let port = |&p: &NodeId| {
            let out = &model.node(p).outputs()[0];
            let (ty, shape) = (out.fact.ty, out.fact.shape.clone());
            Port { name: model.parameter_name(p), names: out.names.clone(), ty, shape }
        };
        model.parameters().iter().map(port).collect()
    }
    /// Outputs of a model, in order.
    pub fn outputs_of(model: &Model) -> Vec<Port> {
        let port = |&r: &NodeId| {
            let fact = model.fact(model.result_value(r));
            let (ty, shape) = (fact.ty, fact.shape.clone());
            Port { name: model.result_name(r), names: model.result_names(r), ty, shape }
        };
        model.results().iter().map(port).collect()
    }
    /// Whether a tensor may be bound here; the error says what was expected and found.
    pub fn check(&self, tensor: &Tensor) -> Result<()> {
        let fits = self.ty.is_dynamic() || self.ty == tensor.element_type();
        if fits && self.shape.accepts(tensor.shape()) {
            return Ok(());
        }
        Err(Error::usage(format!(
            "`{}` takes {}[{}], found {}{:?}",
            self.name,
            self.ty,
            self.shape,
            tensor.element_type(),
            tensor.shape()
        )))
    }
}

/// How an input or output is named: by index, by any name of its tensor, or by the port itself. Made `From` each of them.
#[derive(Clone, Copy, Debug)]
pub enum PortKey<'a> {
    /// In the order of the model.
    Index(usize),
    /// One of [`Port::names`], or [`Port::name`].
    Name(&'a str),
    /// One of `CompiledModel::inputs` or `outputs`.
    Port(&'a Port),
}

impl PortKey<'_> {
    /// Where the port is among `ports`, which are of the side `what` (`input` or `output`).
    pub fn find(&self, ports: &[Port], what: &str) -> Result<usize> {
        let by_name = |name: &str| {
            let known = || ports.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
            let found = ports.iter().position(|p| p.name == name || p.names.contains(name));
            found.ok_or_else(|| Error::usage(format!("the model has no {what} `{name}`; it has: {}", known())))
        };
        match self {
            PortKey::Index(i) if *i < ports.len() => Ok(*i),
            PortKey::Index(i) => Err(Error::usage(format!("there is no {what} {i}; the model has {}", ports.len()))),
            PortKey::Name(name) => by_name(name),
            PortKey::Port(port) => {
                // Two outputs may have one name; a port of these very ports is exact.
                ports.iter().position(|p| std::ptr::eq(p, *port)).map_or_else(|| by_name(&port.name), Ok)
            }
        }
    }
}

impl From<usize> for PortKey<'_> {
    fn from(index: usize) -> Self {
        PortKey::Index(index)
    }
}
impl<'a> From<&'a str> for PortKey<'a> {
    fn from(name: &'a str) -> Self {
        PortKey::Name(name)
    }
}
impl<'a> From<&'a String> for PortKey<'a> {
    fn from(name: &'a String) -> Self {
        PortKey::Name(name)
    }
}
impl<'a> From<&'a Port> for PortKey<'a> {
    fn from(port: &'a Port) -> Self {
        PortKey::Port(port)
    }
}

impl fmt::Display for PortKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortKey::Index(i) => write!(f, "{i}"),
            PortKey::Name(name) => write!(f, "`{name}`"),
            PortKey::Port(port) => write!(f, "`{}`", port.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports() -> Vec<Port> {
        let port = |name: &str| Port {
            name: name.into(),
            names: [name.to_string(), format!("{name}:0")].into(),
            ty: ElementType::F32,
            shape: PartialShape::dynamic(),
        };
        vec![port("a"), port("b"), port("b")]
    }

    #[test]
    fn a_port_is_found_by_index_name_and_itself() {
        let ports = ports();
        assert_eq!(PortKey::from(1).find(&ports, "input").unwrap(), 1);
        assert_eq!(PortKey::from("b:0").find(&ports, "input").unwrap(), 1);
        assert_eq!(PortKey::from(&ports[2]).find(&ports, "input").unwrap(), 2);
        assert_eq!(PortKey::from(&ports[2].clone()).find(&ports, "input").unwrap(), 1);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_what_is() {
        let text = |key: PortKey<'_>| key.find(&ports(), "output").unwrap_err().to_string();
        assert_eq!(text("c".into()), "the model has no output `c`; it has: a, b, b");
        assert_eq!(text(7.into()), "there is no output 7; the model has 3");
    }
}
