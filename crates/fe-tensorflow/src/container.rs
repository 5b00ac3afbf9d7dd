//! What a user gives: a frozen graph, a graph or a MetaGraph with a checkpoint, or the folder of a SavedModel.

use crate::checkpoint::{Checkpoint, is_table};
use crate::dialect::TensorFlowDialect;
use crate::graph::{self, Ends, Sources};
use crate::initial::initial;
use crate::recognise::recognise;
use crate::resources::Resources;
use crate::signature;
use crate::store::Store;
use crate::text::{self, Kind};
use crate::wire::{GraphDef, MetaGraphDef, SavedModel};
use carafe_frontend::{Content, ReadRequest, Source};
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use prost::Message;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Names of the model inside the folder of a SavedModel.
const SAVED_MODEL: [&str; 2] = ["saved_model.pb", "saved_model.pbtxt"];
/// How much of a file says what it holds.
const HEAD_BYTES: usize = 64 * 1024;

/// The model inside the folder of a SavedModel, if it is one.
pub(crate) fn saved_model_in(folder: &Path) -> Option<PathBuf> {
    SAVED_MODEL.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Decodes whatever a request names.
pub(crate) fn decode(request: &ReadRequest<'_>, is_users: &dyn Fn(&str) -> bool) -> Result<Source> {
    let inside = match request.model.path().filter(|p| p.is_dir()) {
        None => None,
        Some(folder) => Some(saved_model_in(folder).ok_or_else(|| no_model(folder))?),
    };
    let model = inside.as_deref().map_or(request.model, Content::File);
    let bytes = model.map()?;
    let head = &bytes.as_slice()[..bytes.len().min(HEAD_BYTES)];
    let (kind, is_text) = recognised(head, &bytes, request)?;
    let store = match is_text {
        true => Store::new(SharedBytes::from_vec(text::to_binary(bytes.as_slice(), kind)?)),
        false => Store::new(bytes),
    };
    let opened = Opened { request, path: model.path(), store: &store, is_users };
    match kind {
        Kind::Graph => {
            let def = GraphDef::decode(store.bytes()).map_err(|e| damaged("graph", &e))?;
            opened.graph(&def, None)
        }
        Kind::MetaGraph => {
            let meta = MetaGraphDef::decode(store.bytes()).map_err(|e| damaged("MetaGraph", &e))?;
            opened.meta_graph(&meta)
        }
        Kind::SavedModel => {
            let saved = SavedModel::decode(store.bytes()).map_err(|e| damaged("SavedModel", &e))?;
            opened.saved_model(&saved)
        }
    }
}

fn damaged(what: &str, e: &prost::DecodeError) -> Error {
    Error::invalid(format!("not a valid TensorFlow {what}: {e}"))
}

fn no_model(folder: &Path) -> Error {
    Error::not_found(format!(
        "`{}` is no folder of a SavedModel: it holds neither `{}` nor `{}`",
        folder.display(),
        SAVED_MODEL[0],
        SAVED_MODEL[1]
    ))
}

/// What to say of files of Keras, which hold a model of Python objects rather than a graph.
pub(crate) fn keras_file(head: &[u8]) -> Option<&'static str> {
    let holds = |name: &[u8]| head.windows(name.len()).any(|w| w == name);
    if head.starts_with(b"\x89HDF\r\n\x1a\n") {
        return Some("an HDF5 file of Keras");
    }
    let is_keras = head.starts_with(b"PK\x03\x04") && holds(b"metadata.json") && holds(b"config.json");
    is_keras.then_some("a file of Keras")
}

// What the file holds, and whether as text. `--input_model_is_text` says so of a text that does not look like one.
fn recognised(head: &[u8], bytes: &SharedBytes, request: &ReadRequest<'_>) -> Result<(Kind, bool)> {
    if request.flag("input_model_is_text")? {
        return Ok((text::written(head).unwrap_or(Kind::Graph), true));
    }
    if let Some(what) = keras_file(head) {
        return Err(Error::unsupported(format!(
            "{what} holds no graph; write one in Python: `keras.models.load_model(FILE).export(FOLDER)` makes a SavedModel, \
             whose folder can be read"
        )));
    }
    if is_table(bytes.as_slice()) {
        return Err(Error::invalid(
            "this is a checkpoint, which holds only the values of variables; pass the graph as the model and the \
             checkpoint with `--input_checkpoint`",
        ));
    }
    // What is too broken to be recognised is reported by whoever decodes it.
    Ok(recognise(head).unwrap_or((Kind::Graph, false)))
}

/// A file that was opened, and how it shall be read.
struct Opened<'a> {
    request: &'a ReadRequest<'a>,
    path: Option<&'a Path>,
    store: &'a Store,
    is_users: &'a dyn Fn(&str) -> bool,
}

impl Opened<'_> {
    fn graph(&self, def: &GraphDef, beside: Option<&Path>) -> Result<Source> {
        let resources = self.resources(def, beside, HashMap::new())?;
        self.between(def, Ends::default(), resources)
    }

    fn meta_graph(&self, meta: &MetaGraphDef) -> Result<Source> {
        let def = meta.graph_def.as_ref().ok_or_else(|| Error::invalid("the MetaGraph has no graph"))?;
        let beside = self.path.map(|p| p.with_extension("")).filter(|p| Checkpoint::is_there(p));
        let ends = signature::ends(meta, self.request.option("signature"), &self.request.log)?;
        let resources = self.resources(def, beside.as_deref(), HashMap::new())?;
        self.between(def, ends, resources)
    }

    fn saved_model(&self, saved: &SavedModel) -> Result<Source> {
        if saved.saved_model_schema_version > 1 {
            let version = saved.saved_model_schema_version;
            self.request.log.warn(format!("the SavedModel has the version {version}, 1 is known"));
        }
        let meta = signature::choose(saved, self.request.option("saved_model_tags"))?;
        let def = meta.graph_def.as_ref().ok_or_else(|| Error::invalid("the SavedModel has no graph"))?;
        let folder = self.path.and_then(Path::parent);
        let folder = folder.map(|f| if f.as_os_str().is_empty() { Path::new(".") } else { f });
        let beside = folder.map(|f| f.join("variables/variables")).filter(|p| Checkpoint::is_there(p));
        let mut assets = HashMap::new();
        for asset in meta.assets() {
            let node = asset.tensor_info.as_ref().map_or("", |t| t.name.split(':').next().unwrap_or(""));
            if let (Some(folder), true) = (folder, is_plain(&asset.filename)) {
                assets.insert(node.to_string(), folder.join("assets").join(&asset.filename));
            }
        }
        let ends = signature::ends(meta, self.request.option("signature"), &self.request.log)?;
        let resources = self.resources(def, beside.as_deref(), assets)?;
        self.between(def, ends, resources)
    }

    fn between(&self, def: &GraphDef, ends: Ends, resources: Resources<'_>) -> Result<Source> {
        let sources = Sources { store: self.store, resources, is_users: self.is_users };
        let mut graph = graph::of_graph(def, ends, &sources, self.request)?;
        let name = self.request.model.path().and_then(Path::file_stem);
        graph.name = name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Source::Graph(Box::new(graph), Box::new(TensorFlowDialect)))
    }

    // The checkpoint that the user passed, else the one beside the model.
    fn resources<'d>(
        &self,
        def: &'d GraphDef,
        beside: Option<&Path>,
        assets: HashMap<String, PathBuf>,
    ) -> Result<Resources<'d>> {
        let given = self.request.option("input_checkpoint").map(Path::new);
        let weights = match self.request.weights {
            Some(Content::Bytes(_)) => return Err(Error::unsupported("a checkpoint must be a file, not bytes")),
            Some(Content::File(path)) => Some(path),
            None => None,
        };
        let path = given.or(weights).or(beside);
        let checkpoint = path.map(Checkpoint::open).transpose()?.map(Rc::new);
        let functions = graph::functions(def);
        Ok(Resources { checkpoint, initial: initial(&def.node, &functions, self.store), assets })
    }
}

// A name without folders: assets lie in one folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != ".."
}
