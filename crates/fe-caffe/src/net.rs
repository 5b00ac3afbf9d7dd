//! A net as a list of layers, whatever format version it was written in. Layers of other phases are gone, the old forms of
//! layers and inputs are brought to the current one; nothing is known here of what a layer type does.

use crate::binary::Decoded;
use crate::blob::Blob;
use crate::input;
use crate::old_types;
use crate::phase::State;
use crate::undeclared::Undeclared;
use carafe_frontend::LeftOut;
use carafe_graph::{Error, Result};
use carafe_tensor::PartialShape;
use carafe_textproto::{Field, Message, Position, Value};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Net {
    pub name: String,
    pub layers: Vec<Layer>,
    /// Layers of the file that are no part of what is translated.
    pub left_out: Vec<LeftOut>,
    /// What the net itself says that no schema has.
    pub undeclared: Undeclared,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub name: String,
    pub ty: String,
    pub bottoms: Vec<String>,
    pub tops: Vec<String>,
    /// Everything the layer says, its parameter messages among it.
    pub tree: Message,
    pub blobs: Vec<Blob>,
    /// What its bytes say that no schema has.
    pub undeclared: Undeclared,
    /// Of an input: shapes of its tops that take the place of what it says itself.
    pub given_shapes: HashMap<usize, PartialShape>,
    /// Line 0 in a net out of bytes.
    pub at: Position,
}

impl Layer {
    /// `layer `conv1` (Convolution, line 12)`, the way errors speak of it.
    pub(crate) fn location(&self) -> String {
        match self.at.line {
            0 => format!("layer `{}` ({})", self.name, self.ty),
            line => format!("layer `{}` ({}, line {line})", self.name, self.ty),
        }
    }
    /// The last message of this name.
    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.tree.get(name).and_then(Value::as_message)
    }
}

impl Net {
    /// The net that a tree and its blobs say.
    pub(crate) fn of(decoded: Decoded) -> Result<Net> {
        let Decoded { tree, layers: new_layers, old_layers, undeclared } = decoded;
        let name = tree.get("name").and_then(Value::as_str).unwrap_or("").to_string();
        let state = State::of(tree.get("state").and_then(Value::as_message))?;
        let mut layers = old_inputs(&tree)?;
        let has_new = tree.all("layer").next().is_some();
        if let Some((at, _)) = tree.all("layers").next().filter(|_| has_new) {
            return Err(misplaced(
                at,
                "the net has `layer` as well as `layers`, the old form; a net takes one of them, bring all to `layer`",
            ));
        }
        let (field, beside) = if has_new { ("layer", new_layers) } else { ("layers", old_layers) };
        let mut beside = beside.into_iter();
        let (mut any, mut after, mut left_out) = (false, String::new(), vec![]);
        for (at, value) in tree.all(field) {
            any = true;
            let Value::Message(m) = value else {
                return Err(misplaced(at, format!("`{field}` must be a message, found {}", value.describe())));
            };
            let mut layer = layer(m, at, !has_new)?;
            if let Some(beside) = beside.next() {
                (layer.blobs, layer.undeclared) = (beside.blobs, beside.undeclared);
            }
            let last = after.clone();
            if !input::is_input(&layer.ty) {
                after.clone_from(&layer.name);
            }
            if state.keeps(m).map_err(|e| e.at(layer.location()))? {
                layers.push(layer);
            } else {
                let why = "left out by its `include` and `exclude` rules; the phase is TEST";
                left_out.push(LeftOut { name: layer.name, op_type: layer.ty, after: last, why });
            }
        }
        if !any {
            return Err(no_layers(&tree));
        }
        Ok(Net { name, layers, left_out, undeclared })
    }
}

/// A layer of a file of weights.
pub(crate) struct Stored {
    pub name: String,
    /// Where the file has one.
    pub ty: Option<String>,
    pub blobs: Vec<Blob>,
}

/// Layers and the blobs stored with them, whatever their phases.
pub(crate) fn stored(decoded: Decoded) -> Result<Vec<Stored>> {
    let Decoded { tree, layers, old_layers, .. } = decoded;
    let mut all = vec![];
    for (field, beside) in [("layer", layers), ("layers", old_layers)] {
        let mut beside = beside.into_iter();
        for (_, value) in tree.all(field) {
            let Value::Message(m) = value else { continue };
            let name = strings(m, "name")?.pop().unwrap_or_default();
            let blobs = match beside.next() {
                Some(beside) => beside.blobs,
                None => blobs_in_text(m, &name)?,
            };
            let ty = match m.get("type") {
                Some(Value::Str(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
                Some(Value::Word(word)) => Some(old_types::by_word(word).map_or(word.clone(), str::to_string)),
                Some(Value::Int(n)) => old_types::by_number(*n).map(str::to_string),
                _ => None,
            };
            all.push(Stored { name, ty: ty.filter(|t| !t.is_empty()), blobs });
        }
    }
    if all.is_empty() { Err(no_layers(&tree)) } else { Ok(all) }
}

fn blobs_in_text(m: &Message, layer: &str) -> Result<Vec<Blob>> {
    let blob = |(at, v): (Position, &Value)| match v {
        Value::Message(m) => Blob::of_tree(m),
        v => Err(misplaced(at, format!("`blobs` must be a message, found {}", v.describe()))),
    };
    m.all("blobs").map(blob).collect::<Result<Vec<_>>>().map_err(|e| e.at(format!("layer `{layer}`")))
}

/// An error about a position in the text, if there is a text.
pub(crate) fn misplaced(at: Position, message: impl Into<String>) -> Error {
    match at.line {
        0 => Error::invalid(message),
        _ => Error::invalid(at.error(message).to_string()),
    }
}

fn no_layers(tree: &Message) -> Error {
    let solver = ["net", "train_net", "test_net", "base_lr", "lr_policy", "max_iter", "solver_mode"];
    if let Some(f) = tree.fields.iter().find(|f| solver.contains(&f.name.as_str())) {
        return Error::invalid(format!("this is a solver (it has `{}`), not a net; give the file of the net", f.name))
            .with_code(7);
    }
    Error::invalid("the net has no layers: there is neither `layer` nor `layers` in it").with_code(7)
}

fn strings(m: &Message, name: &str) -> Result<Vec<String>> {
    let text = |(at, v): (Position, &Value)| match v {
        Value::Str(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        v => Err(misplaced(at, format!("`{name}` must be a string, found {}", v.describe()))),
    };
    m.all(name).map(text).collect()
}

fn layer(m: &Message, at: Position, is_old: bool) -> Result<Layer> {
    if is_old && m.get("layer").is_some() {
        return Err(misplaced(
            at,
            "the net is in the first format of Caffe (`layers { layer { ... } }`), which is not read; bring it to the \
             current one with Caffe's `upgrade_net_proto_text` or `upgrade_net_proto_binary`",
        ));
    }
    let name = strings(m, "name")?.pop().unwrap_or_default();
    let ty = match m.get("type") {
        None => return Err(misplaced(at, format!("layer `{name}` has no `type`"))),
        Some(Value::Str(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::Word(word)) => old_types::by_word(word).map_or(word.clone(), str::to_string),
        Some(Value::Int(n)) => old_types::by_number(*n)
            .ok_or_else(|| misplaced(at, format!("layer `{name}`: there is no layer type {n}")))?
            .to_string(),
        Some(v) => {
            return Err(misplaced(at, format!("layer `{name}`: `type` must be a string, found {}", v.describe())));
        }
    };
    let (bottoms, tops) = (strings(m, "bottom")?, strings(m, "top")?);
    let name = if name.is_empty() { tops.first().unwrap_or(&ty).clone() } else { name };
    let blobs = blobs_in_text(m, &name)?;
    let fields = m.fields.iter().filter(|f| f.name != "blobs").cloned().collect();
    Ok(Layer { name, ty, bottoms, tops, tree: Message { fields }, blobs, at, ..Layer::default() })
}

// `input` with `input_shape` or `input_dim` as layers.
fn old_inputs(tree: &Message) -> Result<Vec<Layer>> {
    let names = strings(tree, "input")?;
    let shapes: Vec<Message> = tree
        .all("input_shape")
        .map(|(at, v)| match v {
            Value::Message(m) => Ok(m.clone()),
            v => Err(misplaced(at, format!("`input_shape` must be a message, found {}", v.describe()))),
        })
        .collect::<Result<_>>()?;
    let dims: Vec<(Position, Value)> = tree.all("input_dim").map(|(at, v)| (at, v.clone())).collect();
    if names.is_empty() {
        return Ok(vec![]);
    }
    let of_dims = |part: &[(Position, Value)]| {
        let dim = |(at, v): &(Position, Value)| Field { name: "dim".into(), at: *at, value: v.clone() };
        Message { fields: part.iter().map(dim).collect() }
    };
    let n = names.len();
    let shapes: Vec<Option<Message>> = if !shapes.is_empty() {
        // One shape serves all inputs, as with an Input layer.
        if shapes.len() != n && shapes.len() != 1 {
            return Err(Error::invalid(format!("the net has {n} inputs and {} of `input_shape`", shapes.len())));
        }
        (0..n).map(|i| shapes.get(i).or(shapes.first()).cloned()).collect()
    } else if dims.is_empty() {
        vec![None; n]
    } else if n == 1 {
        vec![Some(of_dims(&dims))]
    } else if dims.len() == 4 * n {
        dims.chunks(4).map(|part| Some(of_dims(part))).collect()
    } else {
        return Err(Error::invalid(format!(
            "the net has {n} inputs and {} of `input_dim`: 4 are needed for each; `input_shape` has no such limit",
            dims.len()
        )));
    };
    Ok(names.into_iter().zip(shapes).map(|(name, shape)| input(name, shape)).collect())
}

fn input(name: String, shape: Option<Message>) -> Layer {
    let field = |name: &str, m: Message| Field { name: name.into(), at: Position::default(), value: Value::Message(m) };
    let shape = shape.map(|s| field("shape", s)).into_iter().collect();
    let tree = Message { fields: vec![field("input_param", Message { fields: shape })] };
    Layer { ty: "Input".into(), tops: vec![name.clone()], name, tree, ..Layer::default() }
}
