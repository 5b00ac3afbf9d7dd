//! Reads an IR in two steps: the text becomes checked layers and edges (`net`), and when every type in them is known, a
//! model (`build`). Shapes and types in the file are not trusted: they are inferred anew.

mod body;
mod build;
mod constant;
mod info;
mod lookup;
mod net;
mod old_api;

pub(crate) use body::beside;
pub use lookup::Problem;
pub(crate) use net::MAX_BODY_DEPTH;

use crate::ReadOptions;
use crate::xml::{self, Xml, child, required, shorten};
use carafe_graph::{Error, Model, Registry, Result};
use carafe_tensor::{SharedBytes, files};
use lookup::Problems;
use net::Net;
use std::path::{Path, PathBuf};

/// What every step of reading needs.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    registry: &'a Registry,
    options: &'a ReadOptions,
    weights: &'a Store,
    /// Where weights were looked for in vain.
    missing_weights: Option<PathBuf>,
    version: u32,
    problems: Problems,
}

/// Where weights lie: in one piece, or in pieces that each begin at a place of the whole.
#[derive(Debug)]
pub(crate) enum Store {
    Whole(SharedBytes),
    Parts(Vec<(u64, SharedBytes)>),
}

impl Store {
    fn none() -> Store {
        Store::Whole(SharedBytes::from_vec(vec![]))
    }
    /// The piece that holds these bytes, and where in it they begin.
    pub(crate) fn find(&self, offset: u64, size: u64) -> Option<(&SharedBytes, usize)> {
        let (start, bytes) = match self {
            Store::Whole(bytes) => (0, bytes),
            Store::Parts(parts) => {
                let at = parts.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
                (parts[at].0, &parts[at].1)
            }
        };
        let begin = usize::try_from(offset - start).ok()?;
        let end = begin.checked_add(usize::try_from(size).ok()?)?;
        (end <= bytes.len()).then_some((bytes, begin))
    }
    pub(crate) fn len(&self) -> u64 {
        match self {
            Store::Whole(bytes) => bytes.len() as u64,
            Store::Parts(parts) => parts.last().map_or(0, |(start, bytes)| start + bytes.len() as u64),
        }
    }
}

/// Reads a model file and the weights beside it, which are mapped, not loaded. Without a weights file the model can be
/// read as long as it has no constants.
pub fn read_file(path: &Path, registry: &Registry, options: &ReadOptions) -> Result<Model> {
    let read = || {
        let text = read_text(path)?;
        let (weights, missing) = map_weights(path, options)?;
        read_model(&text, &Store::Whole(weights), missing, registry, options, Some(path))
    };
    read().map_err(|e| e.at(format!("model `{}`", path.display())))
}

/// Reads a model from its text and its weights.
pub fn read(xml: &str, weights: SharedBytes, registry: &Registry, options: &ReadOptions) -> Result<Model> {
    read_model(xml, &Store::Whole(weights), None, registry, options, None)
}

/// Reads a model from its text and its weights in pieces, as `write_parts` gives them: pairs of a place and the bytes
/// from there on.
pub fn read_parts(
    xml: &str,
    mut parts: Vec<(u64, SharedBytes)>,
    registry: &Registry,
    options: &ReadOptions,
) -> Result<Model> {
    carafe_graph::sort_by_key(&mut parts, |(offset, _)| *offset);
    read_model(xml, &Store::Parts(parts), None, registry, options, None)
}

/// The types of a model that no operation of the registry provides.
pub fn problems(xml: &str, registry: &Registry) -> Result<Vec<Problem>> {
    let (weights, options) = (Store::none(), ReadOptions::default());
    let document = xml::parse(xml)?;
    let (root, version) = check_root(document.root_element())?;
    let mut reader = Reader {
        registry,
        options: &options,
        weights: &weights,
        missing_weights: None,
        version,
        problems: Problems::default(),
    };
    Net::read(&mut reader, root, 0)?;
    Ok(reader.problems.into_list())
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = files::read(path, xml::MAX_BYTES).map_err(|e| Error::io("cannot read", &e))?;
    String::from_utf8(bytes)
        .map_err(|e| Error::invalid(format!("not UTF-8 text: byte {} is wrong", e.utf8_error().valid_up_to())))
}

fn map_weights(path: &Path, options: &ReadOptions) -> Result<(SharedBytes, Option<PathBuf>)> {
    let beside = path.with_extension("bin");
    let weights = options.weights.as_ref().unwrap_or(&beside);
    let failed = |e: &std::io::Error| Error::io(format!("cannot read weights `{}`", weights.display()), e);
    match files::map(weights) {
        Ok(bytes) => Ok((bytes, None)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && options.weights.is_none() => {
            Ok((SharedBytes::from_vec(vec![]), Some(beside)))
        }
        Err(e) => Err(failed(&e)),
    }
}

fn read_model(
    text: &str,
    weights: &Store,
    missing_weights: Option<PathBuf>,
    registry: &Registry,
    options: &ReadOptions,
    path: Option<&Path>,
) -> Result<Model> {
    let document = xml::parse(text)?;
    let (root, version) = check_root(document.root_element())?;
    let mut reader = Reader { registry, options, weights, missing_weights, version, problems: Problems::default() };
    let net = Net::read(&mut reader, root, 0)?;
    let rt_info = match child(root, "rt_info") {
        Some(tree) => info::of_net(tree),
        None => info::of_old_net(root),
    };
    if !options.keep_unknown {
        reader.problems.check(&info::needed_extensions(&rt_info), &options.loaded, path)?;
    }
    let mut model = build::model(&reader, &net)?;
    model.name = root.attribute("name").unwrap_or("").to_string();
    model.rt_info = rt_info;
    if version == 10 {
        old_api::adjust(&reader, root, &mut model)?;
    }
    Ok(model)
}

fn check_root(root: Xml<'_>) -> Result<(Xml<'_>, u32)> {
    let name = root.tag_name().name();
    if !name.eq_ignore_ascii_case("net") {
        return Err(Error::invalid(format!("expected <net> as the root of an IR, found <{}>", shorten(name))));
    }
    let version = required(root, "version")?;
    match version.trim() {
        "10" => Ok((root, 10)),
        "11" => Ok((root, 11)),
        other => Err(Error::unsupported(format!("expected IR version 10 or 11, found `{}`", shorten(other)))),
    }
}
