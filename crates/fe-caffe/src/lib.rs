//! Caffe models into graphs. The topology is a text (`.prototxt`) read by the names of its fields, or lies in the bytes of a
//! `.caffemodel` and is read by their numbers; the weights come from the `.caffemodel`, joined by the names of layers. `net`
//! brings every version of the format to one list of layers, `scope` walks over it, and the rules in `layers` translate one
//! layer each.

#![forbid(unsafe_code)]

mod attributes;
mod binary;
mod blob;
mod custom_layers;
mod cut;
mod decoded;
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
mod scope;
mod shape_rule;
mod sharing;
mod telemetry;
mod undeclared;
mod wire;

use binary::Decoded;
use carafe_frontend::{Missing, ReadOptions, RuleSet, Unread, send_error};
use carafe_graph::{Error, Model, Result};
use carafe_tensor::{PartialShape, SharedBytes, files};
use lookup::Lookup;
use net::{Layer, Net};
use scope::{Context, Scope};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use blob::{read_mean, read_mean_bytes};
pub use custom_layers::CustomLayers;
pub use recognise::is_caffe;
pub use schema::{Coding, EnumType, FieldKind, FieldType, MessageType, Schema};

/// All built-in rules.
pub fn rules() -> RuleSet {
    RuleSet::new(layers::all())
}

/// What a reader of Caffe takes beyond the file itself.
#[derive(Clone, Debug, Default)]
pub struct CaffeOptions {
    /// The `.caffemodel` of a topology; without it one of the same name is taken where there is one beside the topology.
    pub weights: Option<PathBuf>,
    /// The `.prototxt` of a `.caffemodel`; without it one of the same name is taken where there is one beside the model, else
    /// the topology in the model itself.
    pub topology: Option<PathBuf>,
    /// A `.proto` file with the messages of a fork of Caffe.
    pub proto: Option<PathBuf>,
    /// Layers that go into the model as they are, when nobody else handles them.
    pub custom: Option<CustomLayers>,
    /// Shapes that inputs have in place of what the topology says, by name; or, all without a name, those of all inputs in
    /// order.
    pub input_shapes: Vec<(Option<String>, PartialShape)>,
}

/// Reads a model with these rules.
pub fn read_file(path: &Path, rules: &RuleSet) -> Result<Model> {
    read_file_with(path, rules, &ReadOptions::default(), &CaffeOptions::default())
}

/// Reads a model with these rules and options. The file is a `.prototxt` or a `.caffemodel`.
pub fn read_file_with(path: &Path, rules: &RuleSet, options: &ReadOptions<'_>, caffe: &CaffeOptions) -> Result<Model> {
    let (net, schema) = read_net(path, options, caffe)?;
    translate(net, rules, options, &schema, caffe.custom.as_ref())
}

/// The net of a file as a graph of its layers, nothing translated.
pub fn read_decoded(path: &Path, caffe: &CaffeOptions) -> Result<Model> {
    let (net, schema) = read_net(path, &ReadOptions::default(), caffe)?;
    decoded::model(&net, &schema)
}

fn read_net(path: &Path, options: &ReadOptions<'_>, caffe: &CaffeOptions) -> Result<(Net, Cow<'static, Schema>)> {
    let schema = match &caffe.proto {
        None => Cow::Borrowed(Schema::built_in()),
        Some(path) => Cow::Owned(own_schema(path)?),
    };
    let given = map(path)?;
    let is_text = looks_like_text(&given);
    let sibling = |extension: &str| Some(path.with_extension(extension)).filter(|p| p.is_file() && p != path);
    let (topology, weights) = if is_text {
        let weights = caffe.weights.clone().or_else(|| sibling("caffemodel"));
        ((path.to_path_buf(), given), weights.map(|p| map(&p).map(|b| (p, b))).transpose()?)
    } else {
        match caffe.topology.clone().or_else(|| sibling("prototxt")) {
            Some(topology) => {
                let bytes = map(&topology)?;
                ((topology, bytes), Some((path.to_path_buf(), given)))
            }
            None => {
                let weights = caffe.weights.clone().map(|p| map(&p).map(|b| (p, b))).transpose()?;
                ((path.to_path_buf(), given), weights)
            }
        }
    };
    let named = |e: Error, path: &Path| e.at(format!("`{}`", path.display()));
    let read = parse(&topology.1, &schema).and_then(Net::of).map_err(|e| match is_text || topology.0 != path {
        true => e,
        false => Error::new(
            e.kind(),
            format!(
                "{e}; a .caffemodel often holds weights alone: give its .prototxt with --input_proto, or put it beside \
                 the model under the same name"
            ),
        ),
    });
    let mut net = read.map_err(|e| named(e, &topology.0))?;
    let bytes = weights.as_ref().map(|(_, bytes)| bytes);
    let place = weights.as_ref().map_or(&topology.0, |(path, _)| path);
    join(&mut net, bytes, &schema, options).map_err(|e| named(e, place))?;
    input::give_shapes(&mut net, &caffe.input_shapes);
    Ok((net, schema))
}

/// Reads a model from the bytes of its topology and, if there are any, of its weights.
pub fn read_bytes(topology: Vec<u8>, weights: Option<Vec<u8>>, rules: &RuleSet) -> Result<Model> {
    read_bytes_with(topology, weights, rules, &ReadOptions::default(), Schema::built_in())
}

/// Reads a model from bytes with these options and this schema.
pub fn read_bytes_with(
    topology: Vec<u8>,
    weights: Option<Vec<u8>>,
    rules: &RuleSet,
    options: &ReadOptions<'_>,
    schema: &Schema,
) -> Result<Model> {
    let mut net = parse(&SharedBytes::from_vec(topology), schema).and_then(Net::of)?;
    let weights = weights.map(SharedBytes::from_vec);
    join(&mut net, weights.as_ref(), schema, options).map_err(|e| e.at("the weights"))?;
    translate(net, rules, options, schema, None)
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

fn map(path: &Path) -> Result<SharedBytes> {
    let failed = |e: &std::io::Error| Error::io(format!("cannot open `{}`", path.display()), e);
    files::map(path).map_err(|e| failed(&e))
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

// Text or bytes to a tree. Text that is no net is still told as text, with the place of the first slip.
fn parse(bytes: &SharedBytes, schema: &Schema) -> Result<Decoded> {
    if looks_like_text(bytes) {
        let text = std::str::from_utf8(bytes.as_slice()).map_err(|e| not_utf8(bytes.as_slice(), e.valid_up_to()))?;
        let tree = carafe_textproto::parse_text(text).map_err(|e| Error::invalid(e.to_string()))?;
        return Ok(Decoded { tree, ..Decoded::default() });
    }
    binary::decode(bytes, schema).map_err(|e| e.at("not a valid caffemodel"))
}

// Gives layers the blobs of the first layer of their name, and those that they share.
fn join(net: &mut Net, weights: Option<&SharedBytes>, schema: &Schema, options: &ReadOptions<'_>) -> Result<()> {
    let mut order = HashMap::new();
    if let Some(weights) = weights {
        order = join_by_name(net, weights, schema, options)?;
    }
    sharing::share(net, &order, &options.log);
    Ok(())
}

// Answers with the place of each name in the file.
fn join_by_name(
    net: &mut Net,
    weights: &SharedBytes,
    schema: &Schema,
    options: &ReadOptions<'_>,
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
            let place = layer.place();
            options.log.warn(format!(
                "{place}: the weights were stored by a layer of type `{ty}`; they are used all the same"
            ));
        }
    }
    if joined == 0 {
        options.log.warn("no layer of the weights has the name of a layer of the net; do the files belong together?");
    }
    Ok(order)
}

fn translate(
    mut net: Net,
    rules: &RuleSet,
    options: &ReadOptions<'_>,
    schema: &Schema,
    custom: Option<&CustomLayers>,
) -> Result<Model> {
    if !options.decoded.is_empty() {
        net = decoded::rewrite(net, schema, options)?;
    }
    let lookup = Lookup::new(rules, custom);
    lookup.shadowed().iter().for_each(|text| options.log.warn(text));
    let idle = custom.map(|c| c.idle_shapes(&net.layers, &lookup)).unwrap_or_default();
    idle.iter().for_each(|text| options.log.warn(text));
    if !options.wanted.is_empty() {
        cut::cut(&mut net, options.wanted);
    }
    telemetry::count(options, &net, &lookup);
    if !net.undeclared.is_empty() {
        options.log.warn(format!("the net: {}", net.undeclared.words()));
    }
    let checked = if options.keep_unknown { Ok(()) } else { check_types(&net, &lookup, rules, options) };
    options.log.debug(|| "stage extract".to_string());
    let cx = Context { lookup: &lookup, schema, options, unread: Unread::default() };
    let done = checked.and_then(|()| Scope::new(&cx).net(&net));
    cx.unread.warn(&options.log);
    done.inspect_err(|e| send_error(options, e))
}

// Everything that has no rule, told at once.
fn check_types(net: &Net, lookup: &Lookup<'_>, rules: &RuleSet, options: &ReadOptions<'_>) -> Result<()> {
    let mut missing = Missing::default();
    let mut training: Vec<&Layer> = vec![];
    let mut nameless_python = false;
    for layer in net.layers.iter().filter(|l| !input::is_input(&l.ty)) {
        let ty = lookup.type_of(layer);
        match lookup.find(layer) {
            Some(_) => {}
            None if input::is_training(&ty) => training.push(layer),
            None => {
                nameless_python |= ty == "Python";
                missing.add("", &ty, 1, &layer.name);
            }
        }
    }
    telemetry::missing(options, &missing);
    missing.tell(&options.log);
    input::check_training(&training)?;
    missing.check("caffe", rules, options.registry).map_err(|e| {
        let hint = "a layer that shall go into the IR as it is may also be listed in a CustomLayersMapping.xml (-k)";
        let python = match nameless_python {
            true => {
                "; a Python layer needs `python_param { module: \"m\" layer: \"C\" }`, and an extension a rule for `m.C`"
            }
            false => "",
        };
        Error::unsupported(format!("{e}; {hint}{python}"))
    })
}
