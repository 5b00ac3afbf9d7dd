//! Caffe models into graphs. The topology is a text (`.prototxt`) read by the names of its fields, or lies in the bytes of a
//! `.caffemodel` and is read by their numbers; the weights come from the `.caffemodel`, joined by the names of layers. `net`
//! brings every version of the format to one list of layers, `graph` makes a `SourceGraph` of it, and the rules in `layers`
//! translate one layer each.

#![forbid(unsafe_code)]

mod attributes;
mod binary;
mod blob;
mod custom_layers;
mod dialect;
mod graph;
mod input;
mod layers;
mod lookup;
mod misspelt;
mod names;
mod net;
mod old_types;
mod phase;
mod proto_file;
mod python;
mod recognise;
mod schema;
mod shape_rule;
mod sharing;
mod undeclared;
mod wire;

use binary::Decoded;
use carafe_frontend::{Content, Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use carafe_tensor::{SharedBytes, files};
use dialect::CaffeDialect;
use net::{Layer, Net};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use blob::{read_mean, read_mean_bytes};
pub use custom_layers::CustomLayers;
pub use schema::{Coding, EnumType, FieldKind, FieldType, MessageType, Schema};

/// The format Caffe: a topology as text or in bytes, and weights.
#[derive(Clone, Debug, Default)]
pub struct Caffe {
    schema: Option<Schema>,
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(layers::all()));

impl Caffe {
    /// With the messages of a fork.
    pub fn with_schema(schema: Schema) -> Caffe {
        Caffe { schema: Some(schema) }
    }
    fn schema(&self, request: &ReadRequest<'_>) -> Result<Cow<'static, Schema>> {
        Ok(match (request.option("caffe_parser_path"), &self.schema) {
            (Some(path), _) => Cow::Owned(own_schema(Path::new(path))?),
            (None, Some(schema)) => Cow::Owned(schema.clone()),
            (None, None) => Cow::Borrowed(Schema::built_in()),
        })
    }
}

impl Format for Caffe {
    fn name(&self) -> &'static str {
        "Caffe"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        recognise::is_caffe(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let schema = self.schema(request)?;
        let mut net = read_net(request, &schema)?;
        let mut dialect = CaffeDialect {
            layers: vec![],
            schema,
            custom: CustomLayers::of(request)?,
            undeclared: std::mem::take(&mut net.undeclared),
            names: OnceCell::new(),
            told: RefCell::default(),
            tops: net.layers.iter().flat_map(|l| &l.tops).cloned().collect(),
        };
        let rules = RULES.with_user(self.framework(), request.rules, request.fallback);
        let is_input = |layer: &Layer| input::is_input(&layer.ty) && !dialect.is_user(&rules, &layer.ty);
        let (graph, layers) = graph::of_net(net, &dialect.schema, &request.log, is_input, lookup::type_of);
        dialect.layers = layers;
        Ok(Source::Graph(Box::new(graph), Box::new(dialect)))
    }
    fn framework(&self) -> &'static str {
        "caffe"
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn options(&self) -> &'static [&'static str] {
        &[
            "input_proto",
            "custom_layers",
            "layer_shapes",
            "caffe_parser_path",
            "disable_omitting_optional",
            "enable_flattening_nested_params",
        ]
    }
    fn endings(&self) -> &'static [&'static str] {
        &["prototxt", "caffemodel"]
    }
}

/// A file of a net, and its bytes.
struct Opened {
    bytes: SharedBytes,
    /// The way errors speak of it; empty for the model itself in memory.
    location: String,
}

impl Opened {
    fn of(content: Content<'_>) -> Result<Opened> {
        let location = content.path().map_or(String::new(), |path| format!("`{}`", path.display()));
        Ok(Opened { bytes: content.map()?, location })
    }
    fn at(&self, e: Error) -> Error {
        if self.location.is_empty() { e } else { e.at(&self.location) }
    }
}

// The topology and the weights: of a text its `.caffemodel`, of a `.caffemodel` its text, where one is given or lies beside it
// under the same name.
fn open(request: &ReadRequest<'_>) -> Result<(Opened, Option<Opened>)> {
    let given = Opened::of(request.model)?;
    let path = request.model.path();
    let sibling =
        |extension: &str| path.map(|p| p.with_extension(extension)).filter(|p| p.is_file() && Some(&**p) != path);
    let weights = || {
        let opened = request.weights.map(Opened::of).transpose()?;
        Ok::<_, Error>(
            opened.map(|w| if w.location.is_empty() { Opened { location: "the weights".into(), ..w } } else { w }),
        )
    };
    if looks_like_text(&given.bytes) {
        let weights = match (weights()?, sibling("caffemodel")) {
            (None, Some(path)) => Some(Opened::of(Content::File(&path))?),
            (weights, _) => weights,
        };
        return Ok((given, weights));
    }
    let topology = request.option("input_proto").map(PathBuf::from).or_else(|| sibling("prototxt"));
    match topology {
        Some(topology) => Ok((Opened::of(Content::File(&topology))?, Some(given))),
        None => Ok((given, weights()?)),
    }
}

fn read_net(request: &ReadRequest<'_>, schema: &Schema) -> Result<Net> {
    let (topology, weights) = open(request)?;
    let holds_itself = !looks_like_text(&topology.bytes) && request.model.path().is_some();
    let read = parse(&topology.bytes, schema).and_then(Net::of).map_err(|e| match holds_itself {
        false => e,
        true => Error::new(
            e.kind(),
            format!(
                "{e}; a .caffemodel often holds weights alone: give its .prototxt with --input_proto, or put it beside \
                 the model under the same name"
            ),
        )
        .with_code(103),
    });
    let mut net = read.map_err(|e| topology.at(e))?;
    let location = weights.as_ref().unwrap_or(&topology);
    join(&mut net, weights.as_ref().map(|w| &w.bytes), schema, request).map_err(|e| location.at(e))?;
    input::give_shapes(&mut net, request.input_shapes);
    Ok(net)
}

fn own_schema(path: &Path) -> Result<Schema> {
    let text = files::read_text(path).map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    let own = Schema::parse(&text).map_err(|e| e.at(format!("`{}`", path.display())))?;
    if own.message("LayerParameter").is_none() {
        return Err(Error::invalid(format!(
            "`{}` has no message `LayerParameter`; it should be the `caffe.proto` of the Caffe that made the model",
            path.display()
        )));
    }
    Ok(Schema::built_in().with(own))
}

fn head(bytes: &SharedBytes) -> &[u8] {
    &bytes.as_slice()[..bytes.len().min(64 * 1024)]
}

fn looks_like_text(bytes: &SharedBytes) -> bool {
    let head = head(bytes);
    let is_plain = |b: &u8| *b >= b' ' || matches!(b, b'\t' | b'\n' | b'\r' | 0x0c);
    recognise::is_text(head) || (!recognise::is_caffe(head) && head.iter().all(is_plain))
}

fn not_utf8(bytes: &[u8], at: usize) -> Error {
    let good = String::from_utf8_lossy(&bytes[..at]);
    let line = good.matches('\n').count() + 1;
    let column = good.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    let byte = bytes.get(at).copied().unwrap_or(0);
    let text = format!("line {line}, column {column}: the byte 0x{byte:02x} is no UTF-8; save the file as UTF-8");
    Error::invalid(text)
}

// Text or bytes to a tree. Text that is no net is still told as text, with the position of the first slip.
fn parse(bytes: &SharedBytes, schema: &Schema) -> Result<Decoded> {
    if looks_like_text(bytes) {
        let text = std::str::from_utf8(bytes.as_slice()).map_err(|e| not_utf8(bytes.as_slice(), e.valid_up_to()))?;
        let tree = carafe_textproto::parse_text(text).map_err(|e| Error::invalid(e.to_string()).with_code(11))?;
        return Ok(Decoded { tree, ..Decoded::default() });
    }
    binary::decode(bytes, schema).map_err(|e| e.at("not a valid caffemodel").with_code(103))
}

// Gives layers the blobs of the first layer of their name, and those that they share.
fn join(net: &mut Net, weights: Option<&SharedBytes>, schema: &Schema, options: &ReadRequest<'_>) -> Result<()> {
    let mut order = HashMap::new();
    if let Some(weights) = weights {
        order = join_by_name(net, weights, schema, options)?;
    }
    sharing::share(net, &order, &options.log);
    Ok(())
}

// Answers with the position of each name in the file.
fn join_by_name(
    net: &mut Net,
    weights: &SharedBytes,
    schema: &Schema,
    options: &ReadRequest<'_>,
) -> Result<HashMap<String, usize>> {
    let all = parse(weights, schema).and_then(net::stored)?;
    let mut order: HashMap<String, usize> = HashMap::new();
    for (i, stored) in all.iter().enumerate() {
        order.entry(stored.name.clone()).or_insert(i);
    }
    let mut joined = 0;
    for layer in &mut net.layers {
        let Some(stored) = order.get(&layer.name).map(|i| &all[*i]) else { continue };
        layer.blobs = stored.blobs.clone();
        for (i, blob) in layer.blobs.iter().enumerate() {
            blob.undeclared.iter().for_each(|n| layer.undeclared.number(&format!("blobs[{i}]"), *n));
        }
        joined += 1;
        // Caffe joins by names alone.
        if let Some(ty) = stored.ty.as_ref().filter(|ty| !layer.blobs.is_empty() && !names::same(ty, &layer.ty)) {
            let location = layer.location();
            options.log.warn(format!(
                "{location}: the weights were stored by a layer of type `{ty}`; they are used all the same"
            ));
        }
    }
    if joined == 0 {
        options.log.warn("no layer of the weights has the name of a layer of the net; do the files belong together?");
    }
    Ok(order)
}
