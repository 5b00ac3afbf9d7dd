//! One operation of a source format as one operation of ours, described by data alone: rename it, rename attributes, fix
//! attributes, take attributes from constant inputs, pick ports by name.

use crate::node_cx::{NodeCx, Outputs};
use crate::rule::Rule;
use carafe_graph::{AttrKind, AttrMap, AttrValue, Error, Result, Value};
use std::sync::Arc;

/// The data of a one-to-one rule.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// Format, such as `onnx`; `None` for all.
    pub framework: Option<String>,
    /// `None` for every domain.
    pub domain: Option<String>,
    /// Type in the source format; `None` when it is that of `op`.
    pub op_type: Option<String>,
    /// `Type`, `opsetN::Type`, `opsetN.Type` or `name::Type`.
    pub op: String,
    /// Our attribute, source attribute.
    pub attr_names: Vec<(String, String)>,
    /// Attributes with fixed values.
    pub attr_values: AttrMap,
    /// Attributes that come from constant inputs. Inputs from the first of them on are not inputs of our operation.
    pub input_attrs: Vec<(String, usize)>,
    /// Ports by name, for formats that have them.
    pub input_names: Vec<String>,
    /// Names of the output ports, where the format has such.
    pub output_names: Vec<String>,
}

impl Mapping {
    /// To the operation `op`, everything by equal names.
    pub fn new(op: impl Into<String>) -> Mapping {
        Mapping { op: op.into(), ..Mapping::default() }
    }
    /// From this type of the source format.
    #[must_use]
    pub fn from_type(mut self, op_type: impl Into<String>) -> Mapping {
        self.op_type = Some(op_type.into());
        self
    }
    /// For this format alone.
    #[must_use]
    pub fn framework(mut self, framework: &str) -> Mapping {
        self.framework = Some(framework.to_ascii_lowercase());
        self
    }
    /// For this domain alone.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Mapping {
        self.domain = Some(domain.into());
        self
    }
    /// Our attribute is this one of the source.
    #[must_use]
    pub fn attr(mut self, ours: &str, theirs: &str) -> Mapping {
        self.attr_names.push((ours.into(), theirs.into()));
        self
    }
    /// Our attribute has this value.
    #[must_use]
    pub fn value(mut self, ours: &str, value: AttrValue) -> Mapping {
        self.attr_values.set(ours, value);
        self
    }
    /// Our attribute is the constant at this input.
    #[must_use]
    pub fn attr_from_input(mut self, ours: &str, input: usize) -> Mapping {
        self.input_attrs.push((ours.into(), input));
        self
    }
    /// As a rule. What cannot work in any model is an error here.
    pub fn into_rule(self) -> Result<Rule> {
        let (_, op_type) = split_name(&self.op)?;
        let source = self.op_type.clone().unwrap_or_else(|| op_type.to_string());
        for (attr, _) in &self.input_attrs {
            if self.attr_values.get(attr).is_some() || self.attr_names.iter().any(|(ours, _)| ours == attr) {
                return Err(Error::usage(format!("mapping of `{source}`: attribute `{attr}` has two sources")));
            }
        }
        Ok(Rule {
            framework: self.framework.clone(),
            domain: self.domain.clone(),
            op_type: source,
            since: 0,
            translate: Arc::new(move |n: &mut NodeCx<'_>| self.translate(n)),
            origin: None,
        })
    }

    fn translate(&self, n: &mut NodeCx<'_>) -> Result<Outputs> {
        let info = n.class(&self.op)?;
        let inputs = self.inputs(n)?;
        let mut attrs = AttrMap::new();
        for a in info.attrs {
            if let Some(value) = self.attribute(n, a.name, a.kind)? {
                attrs.set(a.name, value);
            } else if a.default.is_none() {
                let theirs = self.source_name(a.name);
                return Err(n.fail(format!(
                    "attribute `{}` of {} comes from `{theirs}`, which the node does not have; it has {}; is the mapping right?",
                    a.name,
                    info.name,
                    n.attr_list()
                )));
            }
        }
        if info.any_attrs {
            let ours = |theirs: &str| self.attr_names.iter().find(|(_, t)| t == theirs).map(|(ours, _)| ours.clone());
            for (theirs, value) in n.attrs().iter() {
                let name = ours(theirs).unwrap_or_else(|| theirs.to_string());
                if attrs.get(&name).is_none() {
                    attrs.set(name, value.clone());
                }
            }
            // Fixed values may be of attributes that are not declared.
            for (name, value) in self.attr_values.iter() {
                attrs.set(name, value.clone());
            }
        }
        let outputs = n.emit_class(&self.op, &attrs, &inputs)?;
        self.arrange(n, outputs)
    }

    fn source_name<'a>(&'a self, ours: &'a str) -> &'a str {
        self.attr_names.iter().find(|(o, _)| o == ours).map_or(ours, |(_, theirs)| theirs)
    }

    fn attribute(&self, n: &mut NodeCx<'_>, name: &str, kind: AttrKind) -> Result<Option<AttrValue>> {
        if let Some(value) = self.attr_values.get(name) {
            return Ok(Some(value.clone()));
        }
        if let Some((_, input)) = self.input_attrs.iter().find(|(a, _)| a == name) {
            let v = n.input(*input)?;
            let Some(t) = n.tensor(v) else {
                return Err(n.unsupported(format!("attribute `{name}` needs input {input} to be a constant")));
            };
            let list = matches!(kind, AttrKind::Ints | AttrKind::Floats | AttrKind::Strs);
            let value = match (t.element_type().is_float(), t.strings()) {
                (_, Ok(strings)) if list => AttrValue::Strs(strings.to_vec()),
                (_, Ok(strings)) => AttrValue::Str(strings.first().cloned().unwrap_or_default()),
                (true, _) if list => AttrValue::Floats(t.to_vec::<f64>()?.into_owned()),
                (true, _) => AttrValue::Float(t.to_vec::<f64>()?.first().copied().unwrap_or(0.0)),
                (false, _) if list => AttrValue::Ints(t.to_vec::<i64>()?.into_owned()),
                (false, _) => AttrValue::Int(t.to_vec::<i64>()?.first().copied().unwrap_or(0)),
            };
            return Ok(Some(value));
        }
        let theirs = self.source_name(name);
        Ok(match (n.attr_value(theirs).cloned(), kind) {
            (Some(AttrValue::Int(code)), AttrKind::Type) => {
                let ty = n.element_type(code);
                Some(AttrValue::Type(ty.ok_or_else(|| n.fail(format!("`{theirs}` = {code} is no element type")))?))
            }
            (Some(AttrValue::Ints(codes)), AttrKind::Types) => {
                let types: Option<Vec<_>> = codes.iter().map(|c| n.element_type(*c)).collect();
                Some(AttrValue::Types(types.ok_or_else(|| n.fail(format!("`{theirs}` holds no element types")))?))
            }
            (value, _) => value,
        })
    }

    fn inputs(&self, n: &mut NodeCx<'_>) -> Result<Vec<Value>> {
        if !self.input_names.is_empty() {
            let mut all = Vec::new();
            for name in &self.input_names {
                all.extend(n.inputs_named(name)?);
            }
            return Ok(all);
        }
        let end = self.input_attrs.iter().map(|(_, i)| *i).min().unwrap_or(usize::MAX).min(n.n_inputs());
        // Inputs left out at the end are not there for our operation either.
        let end = (0..end).rev().find(|i| n.has(*i)).map_or(0, |i| i + 1);
        (0..end).map(|i| n.input(i)).collect()
    }

    fn arrange(&self, n: &mut NodeCx<'_>, outputs: Vec<Value>) -> Result<Outputs> {
        if self.output_names.is_empty() {
            return Ok(outputs.into());
        }
        if self.output_names.len() != outputs.len() {
            return Err(n.fail(format!(
                "the mapping names {} outputs, {} has {}",
                self.output_names.len(),
                self.op,
                outputs.len()
            )));
        }
        n.by_output_names(self.output_names.iter().map(String::as_str).zip(outputs))
    }
}

/// `opset8::Relu`, `opset8.Relu` or `Relu` as opset and type; an empty opset or `latest` means the newest.
pub fn split_name(op: &str) -> Result<(Option<&str>, &str)> {
    let bad = || Error::usage(format!("`{op}` names no operation; expected `Type`, `opsetN::Type` or `opsetN.Type`"));
    let (opset, name) = match (op.split_once("::"), op.split_once('.')) {
        (Some((opset, name)), _) => (Some(opset), name),
        (None, Some((opset, name))) => (Some(opset), name),
        (None, None) => (None, op),
    };
    if name.is_empty() || name.contains([':', '.', ' ']) {
        return Err(bad());
    }
    Ok((opset.filter(|o| !o.is_empty() && *o != "latest"), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations_come_apart() {
        assert_eq!(split_name("Relu").unwrap(), (None, "Relu"));
        assert_eq!(split_name("opset8::Relu").unwrap(), (Some("opset8"), "Relu"));
        assert_eq!(split_name("opset8.Relu").unwrap(), (Some("opset8"), "Relu"));
        assert_eq!(split_name("latest::Relu").unwrap(), (None, "Relu"));
        assert!(split_name("a::b::c").is_err() && split_name("a.").is_err() && split_name("").is_err());
    }

    #[test]
    fn an_attribute_with_two_sources_is_refused() {
        let m = Mapping::new("Relu").value("a", AttrValue::Int(1)).attr_from_input("a", 1);
        assert!(m.into_rule().unwrap_err().to_string().contains("two sources"));
    }
}
