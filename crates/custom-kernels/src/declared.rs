//! Operations that a kernel file declares by itself: `<Output>` elements say types and shapes of the outputs, so that a model with
//! an operation that nobody knows can be read, without compiled code.

use crate::attributes;
use crate::expression::{Expression, Number};
use crate::xml::{Element, Location};
use carafe_graph::{AttrMap, AttrValue, Error, Fact, InferCx, Op, OpDecl, OpFactory, OpInfo, PortInfo, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Opset of operations that say none.
const OPSET: &str = "extension";
const MOST_OUTPUTS: usize = 64;

/// An operation as a kernel file declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its type.
    pub name: String,
    /// Opsets that it is of, the first one its own.
    pub opsets: Vec<String>,
    /// How many inputs it needs.
    pub inputs: usize,
    /// Its outputs.
    pub outputs: Vec<OutputRule>,
    /// Attributes that nodes may leave out.
    pub defaults: AttrMap,
}

/// Type and shape of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputRule {
    /// Where it stands.
    pub location: Location,
    ty: TypeRule,
    shape: ShapeRule,
    /// Input that B, F, Y and X are of.
    letters: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum TypeRule {
    OfInput(usize),
    Fixed(ElementType),
}

#[derive(Clone, Debug, PartialEq)]
enum ShapeRule {
    OfInput(usize),
    Axes(Vec<Expression>),
}

impl Declaration {
    /// What a `<CustomLayer>` declares; `None` when it has no `<Output>`.
    pub(crate) fn read(
        layer: Element<'_>,
        name: &str,
        inputs: usize,
        defaults: AttrMap,
    ) -> Result<Option<Declaration>> {
        let mut found: BTreeMap<usize, OutputRule> = BTreeMap::new();
        let mut needed = inputs;
        for element in layer.all("Output") {
            let port = if element.get("port-index").is_some() { element.index("port-index")? } else { 0 };
            if port >= MOST_OUTPUTS {
                return Err(
                    element.fail_at("port-index", &format!("expected a port below {MOST_OUTPUTS}, found {port}"))
                );
            }
            let rule = OutputRule::read(element)?;
            needed = needed.max(rule.needed_inputs());
            if found.insert(port, rule).is_some() {
                return Err(element.fail(format!("output {port} is declared twice")));
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        if let Some(missing) = (0..found.len()).find(|i| !found.contains_key(i)) {
            return Err(
                layer.fail(format!("<Output> elements declare {} outputs, but not output {missing}", found.len()))
            );
        }
        let opsets = layer.get("opset").unwrap_or(OPSET).split([',', ' ']).map(str::trim).filter(|o| !o.is_empty());
        let mut opsets: Vec<String> = opsets.map(str::to_string).collect();
        if opsets.is_empty() {
            opsets.push(OPSET.into());
        }
        let outputs = found.into_values().collect();
        Ok(Some(Declaration { name: name.into(), opsets, inputs: needed, outputs, defaults }))
    }

    /// Makes operations of this declaration.
    pub fn factory(&self) -> OpFactory {
        let class = Arc::new(Class { info: self.info(), declaration: self.clone() });
        OpFactory::from_fn(class.info, move |attrs| {
            Ok(Arc::new(DeclaredOp { class: class.clone(), attrs: attrs.clone() }))
        })
    }

    // Declarations of operations live as long as the process; equal ones are kept once.
    fn info(&self) -> &'static OpInfo {
        static KEPT: Mutex<BTreeMap<String, &'static OpInfo>> = Mutex::new(BTreeMap::new());
        // A registry knows operations by their declarations, so another rule is another one.
        let key = format!("{self:?}");
        let mut kept = KEPT.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(info) = kept.get(&key) {
            return info;
        }
        let text = |s: &str| -> &'static str { Box::leak(s.to_string().into_boxed_str()) };
        let name = text(&self.name);
        let ports = |n: usize, word: &str| (0..n).map(|i| port(text(&format!("{word}{i}")), false)).collect::<Vec<_>>();
        let mut inputs = ports(self.inputs, "input");
        inputs.push(port("more", true));
        let also: Vec<&'static str> = self.opsets[1..].iter().map(|o| text(o)).collect();
        let info = OpInfo {
            name,
            xml_name: name,
            opset: text(&self.opsets[0]),
            also: Box::leak(also.into_boxed_slice()),
            inputs: Box::leak(inputs.into_boxed_slice()),
            outputs: Box::leak(ports(self.outputs.len(), "output").into_boxed_slice()),
            doc: "An operation that a custom kernel file declares.",
            any_attrs: true,
            no_eval: true,
            ..OpInfo::PLAIN
        };
        let info: &'static OpInfo = Box::leak(Box::new(info));
        kept.insert(key, info);
        info
    }
}

fn port(name: &'static str, variadic: bool) -> PortInfo {
    PortInfo { name, optional: variadic, variadic }
}

impl OutputRule {
    fn read(element: Element<'_>) -> Result<OutputRule> {
        let ty = match element.get("type") {
            None => TypeRule::OfInput(0),
            Some(text) => match input_port(text) {
                Some(port) => TypeRule::OfInput(port.map_err(|e| element.fail_at("type", &e))?),
                None => TypeRule::Fixed(text.trim().parse().map_err(|_| {
                    let shown = crate::expression::shorten(text);
                    element.fail_at(
                        "type",
                        &format!("expected an element type such as f32, or `input,N`, found `{shown}`"),
                    )
                })?),
            },
        };
        let shape = match element.get("shape") {
            None => ShapeRule::OfInput(0),
            Some(text) => match input_port(text) {
                Some(port) => ShapeRule::OfInput(port.map_err(|e| element.fail_at("shape", &e))?),
                None if text.trim().is_empty() => ShapeRule::Axes(vec![]),
                None => {
                    let axes = text.split(',').map(Expression::of_names).collect::<Result<Vec<_>>>();
                    ShapeRule::Axes(axes.map_err(|e| element.wrap("shape", e))?)
                }
            },
        };
        let letters = match element.get("dim") {
            None => 0,
            Some(text) => {
                let wrong = || {
                    element.fail_at("dim", &format!("expected `input,N`, found `{}`", crate::expression::shorten(text)))
                };
                input_port(text).ok_or_else(wrong)?.map_err(|e| element.fail_at("dim", &e))?
            }
        };
        Ok(OutputRule { location: element.location(), ty, shape, letters })
    }

    fn needed_inputs(&self) -> usize {
        let ty = if let TypeRule::OfInput(i) = self.ty { i + 1 } else { 0 };
        let shape = match &self.shape {
            ShapeRule::OfInput(i) => i + 1,
            ShapeRule::Axes(axes) => {
                let needs = |name: &String| {
                    dims_of(name).map(|(i, _)| i + 1).or_else(|| letter(name).map(|_| self.letters + 1))
                };
                axes.iter().flat_map(Expression::names).filter_map(needs).max().unwrap_or(0)
            }
        };
        ty.max(shape)
    }

    /// Type and shape for these inputs and attributes. Sizes that follow from unknown ones are unknown.
    pub fn infer(&self, inputs: &[(ElementType, PartialShape)], attrs: &AttrMap) -> Result<Fact> {
        let at = |i: usize| {
            let n = inputs.len();
            inputs.get(i).ok_or_else(|| Error::invalid(format!("<Output> asks for input {i}, the node has {n}")))
        };
        let ty = match self.ty {
            TypeRule::Fixed(ty) => ty,
            TypeRule::OfInput(i) => at(i)?.0,
        };
        let shape = match &self.shape {
            ShapeRule::OfInput(i) => at(*i)?.1.clone(),
            ShapeRule::Axes(axes) => {
                let dims = axes.iter().map(|e| self.axis(e, inputs, attrs)).collect::<Result<Vec<_>>>()?;
                PartialShape::new(dims)
            }
        };
        Ok(Fact::new(ty, shape))
    }

    fn axis(&self, e: &Expression, inputs: &[(ElementType, PartialShape)], attrs: &AttrMap) -> Result<Dim> {
        let dim = |name: &str| -> Result<Option<Dim>> {
            let (input, axis, is_letter) = match (dims_of(name), letter(name)) {
                (Some((input, axis)), _) => (input, axis, false),
                (None, Some(axis)) if attrs.get(name).is_none() => (self.letters, axis, true),
                _ => return Ok(None),
            };
            let missing = || Error::invalid(format!("`{name}`: the node has {} inputs", inputs.len()));
            let (_, shape) = inputs.get(input).ok_or_else(missing)?;
            match shape.rank() {
                // Tensors of a kernel have four axes; ones stand behind short shapes.
                Some(rank) if axis >= rank && is_letter => Ok(Some(Dim::known(1))),
                Some(rank) if axis >= rank => Err(Error::invalid(format!("`{name}`: the input has {rank} axes"))),
                _ => Ok(Some(shape.dim(axis))),
            }
        };
        if let Some(name) = e.as_name()
            && let Some(found) = dim(name)?
        {
            return Ok(found);
        }
        for name in e.names() {
            if dim(name)?.is_some_and(|d| d.get().is_none()) {
                return Ok(Dim::ANY);
            }
        }
        let lookup = |name: &str| match dim(name) {
            Ok(Some(d)) => d.get().map(Number::Int),
            _ => attributes::number(attrs, name),
        };
        let size = e.value(lookup)?;
        match size < 0 {
            true => Err(Error::invalid(format!("expression `{}` gives the size {size}", e.text()))),
            false => Ok(Dim::known(size)),
        }
    }
}

// `input` or `input,N`; `None` for any other text.
fn input_port(text: &str) -> Option<Result<usize, String>> {
    let text = text.trim();
    if text == "input" {
        return Some(Ok(0));
    }
    let number = text.strip_prefix("input,")?.trim();
    Some(number.parse::<u16>().map(usize::from).map_err(|_| format!("expected `input,N`, found `{text}`")))
}

/// The axis of B, F, Y, X.
pub(crate) fn letter(name: &str) -> Option<usize> {
    ["B", "F", "Y", "X"].iter().position(|l| l.eq_ignore_ascii_case(name))
}

/// Input and axis of `INPUT0_DIMS[1]`.
pub(crate) fn dims_of(name: &str) -> Option<(usize, usize)> {
    let (input, axis) = name.strip_prefix("INPUT")?.strip_suffix(']')?.split_once("_DIMS[")?;
    Some((input.parse::<u16>().ok()?.into(), axis.parse::<u16>().ok()?.into()))
}

struct Class {
    info: &'static OpInfo,
    declaration: Declaration,
}

/// A node of a declared operation. Only a kernel runs it.
#[derive(Clone)]
struct DeclaredOp {
    class: Arc<Class>,
    attrs: AttrMap,
}

impl std::fmt::Debug for DeclaredOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of a kernel file", self.class.info.name)
    }
}

impl Op for DeclaredOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let inputs: Vec<_> = (0..cx.n_inputs()).map(|i| (cx.ty(i), cx.shape(i).clone())).collect();
        let mut attrs = self.class.declaration.defaults.clone();
        self.attrs.iter().for_each(|(name, value)| attrs.set(name, value.clone()));
        for (i, rule) in self.class.declaration.outputs.iter().enumerate() {
            let fact = rule.infer(&inputs, &attrs).map_err(|e| e.at(format!("<Output> at {}", rule.location)))?;
            cx.set_fact(i, fact);
        }
        Ok(())
    }
}

impl OpDecl for DeclaredOp {
    fn info(&self) -> &'static OpInfo {
        self.class.info
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.attrs.iter().map(|(n, v)| (n.to_string().into(), v.clone())).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        let same = |o: &DeclaredOp| self.class.declaration == o.class.declaration && self.attrs == o.attrs;
        other.get::<DeclaredOp>().is_some_and(same)
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}
