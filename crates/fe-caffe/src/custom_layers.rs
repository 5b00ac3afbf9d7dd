//! `CustomLayersMapping.xml`: layers that go into the IR as they are, with the parameters of one of their messages as
//! attributes. An entry is asked last, behind extensions and standard layers. Caffe itself knew the shape of every blob; here
//! `outputShape` says it, or the command line, or a registered operation of the layer's name.

use crate::names::same;
use crate::net::Layer;
use crate::schema::{FieldKind, FieldType, Schema};
use crate::shape_rule::ShapeExpression;
use carafe_frontend::{Log, ReadRequest};
use carafe_graph::{AttrMap, AttrValue, Error, Result};
use carafe_tensor::PartialShape;
use carafe_textproto::{Message, Value};
use std::collections::HashSet;
use std::path::Path;

/// The entries of a file, and how their parameters are written.
#[derive(Clone, Debug, Default)]
pub struct CustomLayers {
    /// Path of the file, for messages.
    file: String,
    entries: Vec<Entry>,
    /// Output shapes that the user gives for single layers, or for all of a type.
    shapes: Vec<(String, Vec<PartialShape>)>,
    /// Write optional parameters that are not set and have no default, too.
    pub keep_optional: bool,
    /// Name parameters inside of others `outer__inner` instead of `inner`.
    pub flatten: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) native_type: String,
    /// The message with its parameters.
    message: Option<String>,
    pub(crate) output_shape: Option<ShapeExpression>,
}

impl CustomLayers {
    /// What the options of a request say of custom layers.
    pub(crate) fn of(request: &ReadRequest<'_>) -> Result<Option<CustomLayers>> {
        let mut custom = match (request.option("custom_layers"), request.option("layer_shapes")) {
            (Some(file), _) => CustomLayers::read_file(Path::new(file), &request.log)?,
            // Without entries nobody asks for shapes, which is reported.
            (None, Some(_)) => CustomLayers::default(),
            (None, None) => return Ok(None),
        };
        custom.keep_optional = request.flag("disable_omitting_optional")?;
        custom.flatten = request.flag("enable_flattening_nested_params")?;
        if let Some(text) = request.option("layer_shapes") {
            custom.add_shapes(text).map_err(|e| e.at("option `--layer_shapes`"))?;
        }
        Ok(Some(custom))
    }

    pub fn read_file(path: &Path, log: &Log<'_>) -> Result<CustomLayers> {
        let location = || format!("custom layers `{}`", path.display());
        let text = carafe_tensor::files::read_text(path).map_err(|e| Error::io("cannot read", &e).at(location()))?;
        let named = CustomLayers { file: path.display().to_string(), ..CustomLayers::default() };
        named.parsed(&text, log).map_err(|e| e.at(location()))
    }

    pub fn parse(text: &str, log: &Log<'_>) -> Result<CustomLayers> {
        CustomLayers::default().parsed(text, log)
    }

    fn parsed(mut self, text: &str, log: &Log<'_>) -> Result<CustomLayers> {
        let options = roxmltree::ParsingOptions { nodes_limit: 1 << 20, ..Default::default() };
        let xml = roxmltree::Document::parse_with_options(text, options)
            .map_err(|e| Error::invalid(format!("not valid XML: {e}")))?;
        for node in xml.root_element().children().filter(|n| n.is_element()) {
            let line = xml.text_pos_at(node.range().start).row;
            if node.tag_name().name() != "CustomLayer" {
                log.warn(format!("{}, line {line}: <{}> is not read", self.location(), node.tag_name().name()));
                continue;
            }
            let entry = Entry::read(&node).map_err(|e| e.at(format!("line {line}")))?;
            if self.entry(&entry.native_type).is_some() {
                let (location, ty) = (self.location(), &entry.native_type);
                log.warn(format!("{location}, line {line}: a second entry for `{ty}` is not read"));
                continue;
            }
            self.entries.push(entry);
        }
        Ok(self)
    }

    /// Adds shapes as the command line has them: `name[1,3,8,8],other[1,2][1,4]`.
    pub fn add_shapes(&mut self, text: &str) -> Result<()> {
        let wrong = || Error::usage(format!("`{text}` must have the form NAME[1,3,8,8],OTHER[1,2][1,4]"));
        let mut left = text.trim();
        while !left.is_empty() {
            let open = left.find('[').ok_or_else(wrong)?;
            let name = left[..open].trim();
            if name.is_empty() {
                return Err(wrong());
            }
            left = &left[open..];
            let mut shapes = vec![];
            while left.starts_with('[') {
                let close = left.find(']').ok_or_else(wrong)?;
                let shape = left[1..close].replace("-1", "?");
                shapes.push(shape.parse().map_err(|_| wrong())?);
                left = left[close + 1..].trim_start();
            }
            self.shapes.push((name.to_string(), shapes));
            left = match left.strip_prefix(',') {
                Some(rest) if !rest.trim().is_empty() => rest.trim_start(),
                None if left.is_empty() => left,
                _ => return Err(wrong()),
            };
        }
        Ok(())
    }

    /// What messages call the file.
    pub(crate) fn location(&self) -> String {
        match self.file.as_str() {
            "" => "custom layers".to_string(),
            file => format!("custom layers `{file}`"),
        }
    }

    pub(crate) fn entry(&self, layer_type: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| same(&e.native_type, layer_type))
    }

    /// Types it speaks of.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.native_type.as_str())
    }

    /// The shapes that the user gives for a layer.
    pub(crate) fn shapes_of(&self, layer: &Layer) -> Option<&[PartialShape]> {
        let of = |name: &str| self.shapes.iter().find(|(n, _)| n == name).map(|(_, s)| s.as_slice());
        of(&layer.name).or_else(|| of(&layer.ty))
    }

    /// Shapes that the user gives for names that are neither those of custom layers nor of their types, in words.
    pub(crate) fn idle_shapes(&self, layers: &[Layer], winner: impl Fn(&Layer) -> Option<String>) -> Vec<String> {
        let idle = self.shapes.iter().filter_map(|(name, _)| {
            let by_name: Vec<&Layer> = layers.iter().filter(|l| l.name == *name).collect();
            let meant = match by_name.is_empty() {
                true => layers.iter().filter(|l| l.ty == *name).collect(),
                false => by_name,
            };
            let Some(layer) = meant.first() else {
                return Some(format!("--layer_shapes: the net has no layer and no layer type `{name}`"));
            };
            let winner = winner(layer)?;
            Some(format!("--layer_shapes: the shape of `{name}` is not used, {winner} comes first"))
        });
        idle.collect()
    }

    /// What the layer's message says, as the texts of the IR.
    pub(crate) fn attributes(
        &self,
        entry: &Entry,
        layer: &Layer,
        schema: &Schema,
        warn: &dyn Fn(&str),
    ) -> Result<AttrMap> {
        let mut writer = Writer { all: self, schema, warn, layer, attrs: AttrMap::new(), set: HashSet::new() };
        let Some(name) = &entry.message else { return Ok(writer.attrs) };
        let declared = schema.layer_field(name);
        let message = layer.message(name);
        if declared.is_none() && message.is_none() {
            let location = self.location();
            return Err(Error::invalid(format!(
                "{location} says that its parameters are `{name}`, which neither the layer has nor anybody \
                 declared; is the name right?"
            )));
        }
        let ty = match declared.map(|f| &f.kind) {
            Some(FieldKind::Message(ty)) => Some(ty.as_str()),
            _ => None,
        };
        writer.message(ty, message.unwrap_or(&Message::default()), "");
        Ok(writer.attrs)
    }
}

impl Entry {
    fn read(node: &roxmltree::Node<'_, '_>) -> Result<Entry> {
        let needed = |name: &str| {
            let value = node.attribute(name).map(str::trim).filter(|v| !v.is_empty());
            value.ok_or_else(|| Error::invalid(format!("<CustomLayer> needs `{name}`")))
        };
        let native_type = needed("NativeType")?.to_string();
        let has = needed("hasParam")?;
        let message = match has.to_ascii_lowercase().as_str() {
            "true" => Some(needed("protoParamName").map_err(|e| e.at(format!("`{native_type}`")))?.to_string()),
            "false" => None,
            _ => return Err(Error::invalid(format!("`{native_type}`: hasParam is `{has}`; it is true or false"))),
        };
        let output_shape = node.attribute("outputShape").map(ShapeExpression::parse).transpose();
        let output_shape = output_shape.map_err(|e| e.at(format!("`{native_type}`")))?;
        Ok(Entry { native_type, message, output_shape })
    }
}

struct Writer<'a> {
    all: &'a CustomLayers,
    schema: &'a Schema,
    warn: &'a dyn Fn(&str),
    layer: &'a Layer,
    attrs: AttrMap,
    set: HashSet<String>,
}

impl Writer<'_> {
    fn message(&mut self, ty: Option<&str>, m: &Message, prefix: &str) {
        let schema = self.schema;
        let fields = ty.and_then(|ty| schema.message(ty)).map_or(&[][..], |ty| ty.fields.as_slice());
        for field in fields {
            let values = values_of(m, &field.name);
            match &field.kind {
                FieldKind::Message(inner) => self.nested(Some(inner), &values, &field.name),
                _ if field.repeated => self.list(prefix, &field.name, &values, Some(field)),
                _ => self.single(prefix, field, values.last().copied()),
            }
        }
        let mut seen = HashSet::new();
        for field in &m.fields {
            // What nobody declared is kept, not lost.
            if fields.iter().any(|f| f.name == field.name) || !seen.insert(&field.name) {
                continue;
            }
            let values = values_of(m, &field.name);
            match values.iter().any(|v| matches!(v, Value::Message(_))) {
                true => self.nested(None, &values, &field.name),
                false => self.list(prefix, &field.name, &values, None),
            }
        }
    }
    fn nested(&mut self, ty: Option<&str>, values: &[&Value], outer: &str) {
        let prefix = if self.all.flatten { format!("{outer}__") } else { String::new() };
        for v in values {
            if let Value::Message(m) = v {
                self.message(ty, m, &prefix);
            }
        }
    }
    fn single(&mut self, prefix: &str, field: &FieldType, value: Option<&Value>) {
        let text = match (value, &field.default) {
            (Some(v), _) => self.text(v, Some(field)),
            (None, Some(default)) => match &field.kind {
                FieldKind::Bool => bool_text(default == "true"),
                FieldKind::Enum(of) => format!("caffe.{}.{default}", owner(of)),
                _ => default.clone(),
            },
            (None, None) if self.all.keep_optional => match &field.kind {
                FieldKind::Str => String::new(),
                FieldKind::Enum(of) => match self.schema.enums.get(of).and_then(|e| e.values.first()) {
                    Some((word, _)) => format!("caffe.{}.{word}", owner(of)),
                    None => return,
                },
                _ => "0".into(),
            },
            (None, None) => return,
        };
        self.put(format!("{prefix}{}", field.name), text);
    }
    fn list(&mut self, prefix: &str, name: &str, values: &[&Value], field: Option<&FieldType>) {
        let texts: Vec<String> = values.iter().map(|v| self.text(v, field)).collect();
        if !texts.is_empty() {
            self.put(format!("{prefix}{name}"), texts.join(","));
        }
    }
    fn text(&self, v: &Value, field: Option<&FieldType>) -> String {
        match (v, field.map(|f| &f.kind)) {
            (Value::Word(w), Some(FieldKind::Enum(of))) => format!("caffe.{}.{w}", owner(of)),
            (Value::Int(n), Some(FieldKind::Enum(of))) => {
                let word = i64::try_from(*n).ok().and_then(|n| self.schema.word(of, n));
                word.map_or_else(|| n.to_string(), |w| format!("caffe.{}.{w}", owner(of)))
            }
            (v, Some(FieldKind::Bool)) => v.as_bool().map_or_else(|| plain_text(v), bool_text),
            (Value::Word(w), _) if w == "true" || w == "false" => bool_text(w == "true"),
            (v, _) => plain_text(v),
        }
    }
    fn put(&mut self, name: String, text: String) {
        if !self.set.insert(name.clone()) {
            let layer = &self.layer.name;
            (self.warn)(&format!(
                "layer `{layer}`: two parameters are named `{name}`, the last one counts; \
                 --enable_flattening_nested_params tells them apart"
            ));
        }
        self.attrs.set(name, AttrValue::Text(text));
    }
}

fn values_of<'m>(m: &'m Message, name: &'m str) -> Vec<&'m Value> {
    m.all(name).map(|(_, v)| v).collect()
}

// The message an enum stands in; one that stands alone is its own.
fn owner(of: &str) -> &str {
    of.rsplit_once('.').map_or(of, |(owner, _)| owner)
}

fn bool_text(b: bool) -> String {
    if b { "1".into() } else { "0".into() }
}

fn plain_text(v: &Value) -> String {
    match v {
        Value::Str(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Word(w) => w.clone(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Message(_) | Value::List(_) => v.describe(),
    }
}
