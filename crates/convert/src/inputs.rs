//! `--input`, `--input_shape`, `--freeze_placeholder_with_value` and `--batch`: shapes and types of inputs, cuts inside the graph and inputs frozen to a value.
//! All names are looked up in the model as it was read, before anything is edited. An input given another element type
//! keeps computing in the old one: a Convert stands behind it. Listing inputs does not change their order in the model.

use super::layout::Layouts;
use super::literal::Literal;
use super::places::{self, Place};
use super::{ConversionOptions, NamedInput, syntax};
use carafe_frontend::InputShape;
use carafe_graph::{Constant, Error, Model, NodeId, Parameter, Result, Use, Value};
use carafe_preprocess::nodes::{self, redirect};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::sync::Arc;

/// One item of `--input`.
#[derive(Clone, Debug)]
pub(super) struct Item {
    name: String,
    target: Target,
    shape: Option<PartialShape>,
    ty: Option<ElementType>,
    value: Option<Literal>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Parameter(NodeId),
    /// Everybody who reads this value.
    Output(Value),
    /// One reader.
    Input(Use),
}

/// Reads `--input` and `--input_shape` against the model.
pub(super) fn read(model: &Model, options: &ConversionOptions) -> Result<Vec<Item>> {
    let mut items = match &options.input {
        Some(text) => items(model, text).map_err(|e| e.at("option `--input`"))?,
        None => Vec::new(),
    };
    let frozen = match &options.freeze_placeholder_with_value {
        Some(text) => frozen(model, text).map_err(|e| e.at("option `--freeze_placeholder_with_value`"))?,
        None => Vec::new(),
    };
    let shaped = items.iter().find(|i| i.shape.is_some() && i.value.is_none());
    if let Some(item) = shaped.filter(|_| options.batch.is_some()) {
        return Err(Error::usage(format!("--batch and the shape of `{}` in --input both set its shape", item.name)));
    }
    if let Some(text) = &options.input_shape {
        if let Some(item) = items.iter().find(|i| i.shape.is_some()) {
            return Err(Error::usage(format!(
                "--input_shape and the shape of `{}` in --input both set shapes; give them all in one of the two",
                item.name
            )));
        }
        let shapes = shapes(text).map_err(|e| e.at("option `--input_shape`"))?;
        bind_shapes(model, &mut items, &frozen, shapes).map_err(|e| e.at("option `--input_shape`"))?;
    }
    for item in frozen {
        match items.iter_mut().find(|i| i.target == item.target) {
            None => items.push(item),
            Some(listed) if listed.value.is_none() => listed.value = item.value,
            Some(listed) => {
                let name = &listed.name;
                let text = format!("--input and --freeze_placeholder_with_value both give `{name}` a value");
                return Err(Error::usage(text));
            }
        }
    }
    Ok(items)
}

// Items of `--freeze_placeholder_with_value`: each is `name->value`.
fn frozen(model: &Model, text: &str) -> Result<Vec<Item>> {
    let items = items(model, text)?;
    match items.iter().find(|i| i.value.is_none()) {
        Some(item) => Err(Error::usage(format!("`{}` has no value; write it as `{0}->VALUE`", item.name))),
        None => Ok(items),
    }
}

fn items(model: &Model, text: &str) -> Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    for (at, part) in syntax::list(text)?.into_iter().enumerate() {
        let item = item(model, part, at)?;
        if let Some(other) = items.iter().find(|i| i.target == item.target) {
            return Err(Error::usage(format!("`{}` and `{}` name the same place", other.name, item.name)));
        }
        items.push(item);
    }
    Ok(items)
}

/// Names in `--input`, as far as it can be read without the model.
pub(super) fn names(text: &str) -> Vec<String> {
    let name = |part: &str| {
        let left = part.split_once("->").map_or(part, |(left, _)| left);
        left.split(['[', '{']).next().unwrap_or("").trim().to_string()
    };
    let parts = syntax::list(text).unwrap_or_default();
    parts.into_iter().map(name).filter(|n| !n.is_empty()).collect()
}

/// What the options say of the shapes of inputs, before there is a model: readers whose layers compute with sizes take it
/// into account. Places inside of the graph are among it, which readers do not find among their inputs.
pub(super) fn foreseen(options: &ConversionOptions) -> Result<Vec<InputShape>> {
    let input = options.input.as_deref();
    let parts = input.map_or(Ok(vec![]), |text| syntax::list(text)?.into_iter().map(written).collect());
    let parts: Vec<Written<'_>> = parts.map_err(|e: Error| e.at("option `--input`"))?;
    let given = options.input_shape.as_deref().map_or(Ok(vec![]), shapes);
    let given = given.map_err(|e| e.at("option `--input_shape`"))?;
    if parts.is_empty() {
        return Ok(given.into_iter().map(|shape| InputShape { name: None, shape }).collect());
    }
    // Lists that do not fit are reported when the model is there.
    let by_list = |at: usize| given.get(at).filter(|_| given.len() == parts.len()).cloned();
    let all = parts.iter().enumerate().map(|(at, p)| InputShape {
        name: Some(p.name.to_string()).filter(|n| !n.is_empty()),
        shape: p.shape.clone().or_else(|| by_list(at)).unwrap_or_else(PartialShape::dynamic),
    });
    let all: Vec<InputShape> = all.collect();
    // Without names the whole list counts by places, so that none may be left out.
    let by_place = all.iter().all(|s| s.name.is_none());
    let is_said = |s: &InputShape| s.shape.rank().is_some() && (s.name.is_some() || by_place);
    Ok(if by_place && !all.iter().all(is_said) { vec![] } else { all.into_iter().filter(is_said).collect() })
}

/// An item of `--input` as it is written.
struct Written<'a> {
    /// Empty when the item has none.
    name: &'a str,
    shape: Option<PartialShape>,
    ty: Option<ElementType>,
    value: Option<Literal>,
}

// `name[shape]{type}->value`.
fn written(part: &str) -> Result<Written<'_>> {
    let (mut rest, value) = match part.split_once("->") {
        Some((left, right)) => (left.trim(), Some(Literal::read(right)?)),
        None => (part, None),
    };
    let (mut shape, mut ty) = (None, None);
    loop {
        if let Some(at) = rest.ends_with(']').then(|| rest.rfind('[')).flatten().filter(|_| shape.is_none()) {
            shape = Some(syntax::shape(&rest[at + 1..rest.len() - 1])?);
            rest = rest[..at].trim_end();
        } else if let Some(at) = rest.ends_with('}').then(|| rest.rfind('{')).flatten().filter(|_| ty.is_none()) {
            ty = Some(element_type(&rest[at + 1..rest.len() - 1])?);
            rest = rest[..at].trim_end();
        } else {
            break;
        }
    }
    Ok(Written { name: rest, shape, ty, value })
}

// Without a name the item means the input of its position.
fn item(model: &Model, part: &str, position: usize) -> Result<Item> {
    let Written { name, shape, ty, value } = written(part)?;
    let (name, target) = if name.is_empty() {
        let n = model.parameters().len();
        let id = *model.parameters().get(position).ok_or_else(|| {
            Error::usage(format!("item {} (`{part}`) has no name, and the model has {n} inputs", position + 1))
        })?;
        (model.parameter_name(id), Target::Parameter(id))
    } else {
        (name.to_string(), target(model, name)?)
    };
    Ok(Item { name, target, shape, ty, value })
}

fn element_type(text: &str) -> Result<ElementType> {
    let lower = text.trim().to_ascii_lowercase();
    let spelled = match lower.as_str() {
        "float" | "fp32" => "f32",
        "half" | "fp16" => "f16",
        "double" | "fp64" => "f64",
        "bool" => "boolean",
        other => other,
    };
    spelled.parse().map_err(|_| {
        Error::usage(format!("`{{{text}}}` is no element type; expected such as f32, f16, i64, i32, u8 or boolean"))
    })
}

fn target(model: &Model, name: &str) -> Result<Target> {
    let of_value = |v: Value| match model.node(v.node).op().is::<Parameter>() {
        true => Target::Parameter(v.node),
        false => Target::Output(v),
    };
    match places::find(model, name)? {
        Place::Tensor(v) | Place::Output(v) => Ok(of_value(v)),
        Place::Input(u) => Ok(Target::Input(u)),
        Place::Node(node) if model.node(node).op().is::<Parameter>() => Ok(Target::Parameter(node)),
        Place::Node(node) => {
            // The inputs of the node are meant; weights are no input in the eyes of a user.
            let n = model.node(node);
            let data: Vec<usize> =
                (0..n.inputs().len()).filter(|&i| model.fact(n.inputs()[i]).tensor().is_none()).collect();
            match data.as_slice() {
                [input] => Ok(Target::Input(Use { node, input: *input })),
                [] => Ok(Target::Output(node.into())),
                many => {
                    let ports: Vec<String> = many.iter().map(|i| format!("`{i}:{name}`")).collect();
                    Err(Error::usage(format!(
                        "{} has {} inputs; say which: {}, or `{name}:0` for its output",
                        n.location(),
                        many.len(),
                        ports.join(", ")
                    )))
                }
            }
        }
    }
}

fn shapes(text: &str) -> Result<Vec<PartialShape>> {
    let one = |part: &&str| {
        let inside = [('[', ']'), ('(', ')')]
            .iter()
            .find_map(|&(open, close)| part.strip_prefix(open)?.strip_suffix(close))
            .ok_or_else(|| {
                Error::usage(format!("`{part}` is no shape; write shapes in brackets, such as [1,3,224,224],[1,10]"))
            })?;
        syntax::shape(inside)
    };
    syntax::list(text)?.iter().map(one).collect()
}

fn bind_shapes(model: &Model, items: &mut Vec<Item>, frozen: &[Item], shapes: Vec<PartialShape>) -> Result<()> {
    if items.is_empty() {
        let is_frozen = |id: &NodeId| frozen.iter().any(|f| f.target == Target::Parameter(*id));
        *items = model
            .parameters()
            .iter()
            .filter(|id| !is_frozen(id))
            .map(|&id| Item {
                name: model.parameter_name(id),
                target: Target::Parameter(id),
                shape: None,
                ty: None,
                value: None,
            })
            .collect();
    }
    if items.len() != shapes.len() {
        let names: Vec<String> = items.iter().map(|i| i.name.clone()).collect();
        return Err(Error::usage(format!(
            "found {} shapes for {} inputs ({}); give one shape an input, or name the inputs with --input",
            shapes.len(),
            items.len(),
            places::some_of(&names)
        )));
    }
    for (item, shape) in items.iter_mut().zip(shapes) {
        item.shape = Some(shape);
    }
    Ok(())
}

/// Whether an item takes something out of the graph.
pub(super) fn cuts(items: &[Item]) -> bool {
    items.iter().any(|i| i.value.is_some() || !matches!(i.target, Target::Parameter(_)))
}

/// Edits the model; gives the inputs the items became, frozen ones left out.
pub(super) fn apply(model: &mut Model, items: &[Item]) -> Result<Vec<NamedInput>> {
    let mut named = Vec::new();
    for item in items {
        let at = |e: Error| e.at(format!("`{}`", item.name));
        if item.value.is_some() {
            freeze(model, item).map_err(at)?;
            continue;
        }
        let cut = !matches!(item.target, Target::Parameter(_));
        let parameter = match item.target {
            Target::Parameter(id) => change(model, id, item).map_err(at)?,
            _ => place(model, item).map_err(at)?,
        };
        named.push(NamedInput { name: item.name.clone(), parameter, cut });
    }
    Ok(named)
}

// An input of the model with another shape or type.
fn change(model: &mut Model, id: NodeId, item: &Item) -> Result<NodeId> {
    let old = model.node(id).op().get::<Parameter>().cloned().ok_or_else(|| Error::invalid("is no input"))?;
    let shape = item.shape.clone().unwrap_or_else(|| old.shape.clone());
    let element_type = item.ty.unwrap_or(old.element_type);
    let readers = model.users(id.into()).to_vec();
    model.set_op(id, Arc::new(Parameter { shape, element_type }))?;
    let given = widen(model, id.into(), old.element_type)?;
    redirect(model, &readers, given);
    Ok(id)
}

// A new input where the graph is cut.
fn place(model: &mut Model, item: &Item) -> Result<NodeId> {
    let (value, name) = cut_value(model, item);
    let fact = model.fact(value).clone();
    let known = if fact.ty.is_dynamic() { ElementType::F32 } else { fact.ty };
    let shape = item.shape.clone().unwrap_or_else(|| without_symbols(&fact.shape));
    let parameter = Parameter { shape, element_type: item.ty.unwrap_or(known) };
    let id = model.add(&name, parameter, &[])?;
    connect(model, item.target, id.into(), known)?;
    // Users may go on calling it what they called it here.
    model.add_tensor_name(id.into(), item.name.clone());
    Ok(id)
}

// A constant in place of an input or of a tensor inside.
fn freeze(model: &mut Model, item: &Item) -> Result<()> {
    let Some(literal) = &item.value else { return Ok(()) };
    let (value, name) = cut_value(model, item);
    let fact = model.fact(value).clone();
    let known = if fact.ty.is_dynamic() { item.ty.unwrap_or(ElementType::F32) } else { fact.ty };
    let shape = item.shape.as_ref().unwrap_or(&fact.shape);
    let tensor = literal.tensor(item.ty.unwrap_or(known), shape)?;
    let id = model.add(format!("{name}/frozen"), Constant::new(tensor), &[])?;
    connect(model, item.target, id.into(), known)?;
    if let Target::Parameter(old) = item.target {
        model.remove(old)?;
        model.set_name(id, name);
    }
    Ok(())
}

// The value that is replaced, and the name of what replaces it.
fn cut_value(model: &Model, item: &Item) -> (Value, String) {
    let node_name = |id: NodeId| model.node(id).name();
    match item.target {
        Target::Parameter(id) => (id.into(), node_name(id).to_string()),
        Target::Output(v) if model.output(v).names.contains(&item.name) => (v, item.name.clone()),
        Target::Output(v) => (v, format!("{}/placeholder_out_port_{}", node_name(v.node), v.port)),
        Target::Input(u) => {
            (model.node(u.node).inputs()[u.input], format!("{}/placeholder_port_{}", node_name(u.node), u.input))
        }
    }
}

fn connect(model: &mut Model, target: Target, new: Value, ty: ElementType) -> Result<()> {
    let readers = match target {
        Target::Parameter(id) => model.users(id.into()).to_vec(),
        Target::Output(v) => model.users(v).to_vec(),
        Target::Input(u) => vec![u],
    };
    // Tensor names go with the value, so that users still find it.
    let replaced = match target {
        Target::Parameter(id) => Some(id.into()),
        Target::Output(v) => Some(v),
        Target::Input(u) => Some(model.node(u.node).inputs()[u.input]).filter(|v| model.users(*v) == [u]),
    };
    if let Some(old) = replaced {
        let names = model.output(old).names.clone();
        model.set_tensor_names(new, names);
        model.set_tensor_names(old, Default::default());
    }
    let given = widen(model, new, ty)?;
    redirect(model, &readers, given);
    Ok(())
}

// Converts to the type that the readers expect.
fn widen(model: &mut Model, v: Value, ty: ElementType) -> Result<Value> {
    if ty.is_dynamic() || model.fact(v).ty == ty {
        return Ok(v);
    }
    let name = format!("{}/to_{ty}", model.node(v.node).name());
    nodes::convert(model, &name, v, ty)
}

fn without_symbols(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some(dims) => PartialShape::new(dims.iter().map(|d| Dim::range(d.min().max(0), d.max()))),
        None => PartialShape::dynamic(),
    }
}

/// Sets the batch axis of every input: the one its layout calls N, else the first.
pub(super) fn set_batch(model: &mut Model, batch: i64, layouts: &Layouts) -> Result<()> {
    if batch < 1 {
        return Err(Error::usage(format!("expected a size of 1 or more, found {batch}")));
    }
    for id in model.parameters().to_vec() {
        let name = model.parameter_name(id);
        let Some(old) = model.node(id).op().get::<Parameter>().cloned() else { continue };
        let Some(rank) = old.shape.rank() else {
            let text = format!("the rank of input `{name}` is not known; use --input_shape");
            return Err(Error::usage(text).with_code(16));
        };
        let axis = match layouts.axis(model, id, "N")? {
            Some(axis) => axis,
            None if rank == 0 || layouts.has(model, id) => continue,
            None => {
                let dim = old.shape.dim(0);
                if dim.get().is_some_and(|n| n > 1) {
                    return Err(Error::usage(format!(
                        "input `{name}` has shape [{}], whose first size {dim} is no batch of 1 or ?; name its batch \
                         axis N with --layout, or use --input_shape",
                        old.shape
                    )));
                }
                0
            }
        };
        let mut shape = old.shape.clone();
        if let Some(dim) = shape.dims_mut().and_then(|dims| dims.get_mut(axis)) {
            *dim = Dim::known(batch);
        }
        model.set_op(id, Arc::new(Parameter { shape, element_type: old.element_type }))?;
    }
    model.infer()
}
