//! The files of a model: the program, and its parameters in one file beside it or in one file each.

use crate::params::{combined, single};
use carafe_frontend::{Content, ReadRequest, SourceTensor};
use carafe_graph::{Error, Result};
use carafe_tensor::{SharedBytes, files};
use std::path::{Component, Path, PathBuf};

/// The program of the old layout, a folder.
const OLD_PROGRAM: &str = "__model__";
/// The file of all parameters in such a folder, where there is one.
const OLD_PARAMS: &[&str] = &["__params__", "params"];

/// The program in a folder: that of the old layout, or the only one there is.
pub(crate) fn program_in(folder: &Path) -> Option<PathBuf> {
    let named = [OLD_PROGRAM, "inference.pdmodel", "inference.json", "model.pdmodel", "model.json"];
    let mut named = named.iter().map(|name| folder.join(name));
    if let Some(found) = named.find(|path| is_program(path)) {
        return Some(found);
    }
    let all = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut programs = all.filter(|p| p.extension().is_some_and(|e| e == "pdmodel" || e == "json") && is_program(p));
    match (programs.next(), programs.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && Content::File(path).head(1024).is_ok_and(|head| crate::recognise::recognise(&head).is_some())
}

/// The bytes of the program, and where it lies.
pub(crate) fn program(request: &ReadRequest<'_>) -> Result<(SharedBytes, Option<PathBuf>)> {
    let Some(path) = request.model.path() else { return Ok((request.model.map()?, None)) };
    if !path.is_dir() {
        return Ok((request.model.map()?, Some(path.to_path_buf())));
    }
    let found = program_in(path).ok_or_else(|| {
        Error::not_found(format!("`{}` holds no `{OLD_PROGRAM}` and not exactly one program", path.display()))
    })?;
    Ok((Content::File(&found).map()?, Some(found)))
}

/// The parameters of these names, sorted.
pub(crate) fn parameters(
    request: &ReadRequest<'_>,
    program: Option<&Path>,
    names: &[String],
) -> Result<Vec<SourceTensor>> {
    if names.is_empty() {
        return Ok(vec![]);
    }
    match request.weights {
        Some(Content::File(folder)) if folder.is_dir() => return separate(folder, names),
        Some(weights) => return combined(&weights.map()?, names).map_err(|e| e.at(format!("parameters {weights}"))),
        None => {}
    }
    let Some(program) = program else {
        return Err(Error::invalid(format!("the program has {} parameters; give them as weights", names.len())));
    };
    let folder = program.parent().unwrap_or(Path::new(""));
    let beside = program.with_extension("pdiparams");
    let old = OLD_PARAMS.iter().map(|name| folder.join(name));
    if let Some(file) = [beside.clone()].into_iter().chain(old).find(|path| path.is_file()) {
        let bytes = Content::File(&file).map()?;
        return combined(&bytes, names).map_err(|e| e.at(format!("parameters `{}`", file.display())));
    }
    if file_of(folder, &names[0]).is_ok_and(|f| f.is_file()) {
        return separate(folder, names);
    }
    Err(Error::not_found(format!(
        "the program has {} parameters, and there is no `{}`; pass the file of the parameters as weights",
        names.len(),
        beside.display()
    )))
}

// One file for each.
fn separate(folder: &Path, names: &[String]) -> Result<Vec<SourceTensor>> {
    let one = |name: &String| {
        let path = file_of(folder, name)?;
        let failed = |e: std::io::Error| Error::io(format!("cannot open `{}`", path.display()), &e);
        single(&files::map(&path).map_err(failed)?, name).map_err(|e| e.at(format!("parameter `{name}`")))
    };
    names.iter().map(one).collect()
}

// Names come from the program: none may lead out of the folder.
fn file_of(folder: &Path, name: &str) -> Result<PathBuf> {
    let is_inside = Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
    match is_inside && !name.is_empty() {
        true => Ok(folder.join(name)),
        false => Err(Error::invalid(format!("parameter `{name}` is no name of a file in the folder of the model"))),
    }
}
