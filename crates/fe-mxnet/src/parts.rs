//! The files that make a model: `NAME-symbol.json` and `NAME-0000.params`, each found beside the other, or arrays kept apart
//! while a model was tuned (`PREFIX_args.nd`, `PREFIX_auxs.nd`) over those of a pretrained one.

use crate::params::{LIST_MAGIC, Params, encode};
use crate::symbol::Symbol;
use carafe_frontend::{Content, ReadRequest};
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor, files};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The topology, and where the values of its variables lie.
pub(crate) struct Parts {
    pub(crate) symbol: Symbol,
    pub(crate) values: Values,
    pub(crate) bytes: usize,
}

/// Values of variables by name; the latest file that has one counts.
#[derive(Clone, Default)]
pub(crate) struct Values {
    found: BTreeMap<String, (Rc<Params>, usize)>,
    /// Whether any file of values was read.
    pub(crate) are_given: bool,
}

impl Values {
    fn overlay(&mut self, params: Params, is_wanted: impl Fn(&str) -> bool) {
        self.are_given = true;
        let params = Rc::new(params);
        for (i, array) in params.arrays.iter().enumerate().filter(|(_, a)| is_wanted(&a.name)) {
            if params.form(array).is_some() || params.tensor(array).is_some() {
                self.found.insert(array.name.clone(), (params.clone(), i));
            }
        }
    }
    /// Whether a variable has a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }
    /// Type and shape of a dense value.
    pub(crate) fn form(&self, name: &str) -> Option<(ElementType, &[usize])> {
        let (params, i) = self.found.get(name)?;
        params.form(&params.arrays[*i])
    }
    /// The value, mapped.
    pub(crate) fn tensor(&self, name: &str) -> Result<Tensor> {
        let none = || Err(Error::not_found(format!("there is no array `{name}`")));
        self.found.get(name).and_then(|(params, i)| params.tensor(&params.arrays[*i])).unwrap_or_else(none)
    }
    // All as one file.
    fn encode(&self) -> Result<Vec<u8>> {
        let mut all = vec![];
        for (name, (params, i)) in &self.found {
            let kind = if params.arrays[*i].is_aux { "aux" } else { "arg" };
            all.push((format!("{kind}:{name}"), self.tensor(name)?));
        }
        encode(&all)
    }
}

/// Whether bytes begin like a file of arrays.
pub(crate) fn is_params(head: &[u8]) -> bool {
    head.len() >= 8 && head[..8] == LIST_MAGIC.to_le_bytes()
}

/// Opens all that belongs to the model.
pub(crate) fn open(request: &ReadRequest<'_>) -> Result<Parts> {
    let given = request.model.map()?;
    let path = request.model.path();
    let holds_values = is_params(given.as_slice());
    let symbol_path = match (request.option("input_symbol"), path, holds_values) {
        (Some(path), ..) => Some(PathBuf::from(path)),
        (None, Some(path), true) => Some(symbol_beside(path)?),
        (None, None, true) => {
            return Err(Error::usage(
                "the model is a file of arrays; give the symbol as the model and it as the weights",
            ));
        }
        (None, _, false) => None,
    };
    if let (Some(symbol), false) = (&symbol_path, holds_values)
        && path.is_some_and(|p| p != symbol)
    {
        let text = format!("the model is a symbol already, and --input_symbol names `{}`", symbol.display());
        return Err(Error::usage(text));
    }
    let text = match &symbol_path {
        Some(symbol) if holds_values => map(symbol)?,
        _ => given.clone(),
    };
    let located = symbol_path.as_deref().or(path).map(|p| format!("`{}`", p.display()));
    let at = |e: Error| located.iter().fold(e, |e, l| e.at(l.clone()));
    let symbol = Symbol::parse(text.as_slice()).map_err(at)?;
    let own = if holds_values { Some((given, path.map(Path::to_path_buf))) } else { None };
    let values = values(request, &symbol, own, symbol_path.as_deref().or(path))?;
    Ok(Parts { symbol, values, bytes: text.len() })
}

fn map(path: &Path) -> Result<SharedBytes> {
    Content::File(path).map()
}

fn decode(bytes: &SharedBytes, path: Option<&Path>) -> Result<Params> {
    Params::decode(bytes).map_err(|e| match path {
        Some(path) => e.at(format!("`{}`", path.display())),
        None => e.at("the weights"),
    })
}

// `own` is the model where that is a file of values.
fn values(
    request: &ReadRequest<'_>,
    symbol: &Symbol,
    own: Option<(SharedBytes, Option<PathBuf>)>,
    symbol_path: Option<&Path>,
) -> Result<Values> {
    let mut values = Values::default();
    let (prefix, pretrained) = (request.option("nd_prefix_name"), request.option("pretrained_model_name"));
    if prefix.is_some() != pretrained.is_some() {
        return Err(Error::usage("--nd_prefix_name and --pretrained_model_name are given both or neither"));
    }
    if let (Some(prefix), Some(pretrained)) = (prefix, pretrained) {
        tuned(&mut values, symbol, prefix, Path::new(pretrained))?;
        if request.flag("save_params_from_nd")? {
            save(&values, prefix)?;
        }
        return Ok(values);
    }
    if request.flag("save_params_from_nd")? {
        return Err(Error::usage("--save_params_from_nd needs --nd_prefix_name and --pretrained_model_name"));
    }
    let found = match (own, request.weights) {
        (Some(_), Some(weights)) => {
            return Err(Error::usage(format!("the model is a file of arrays already, and the weights are {weights}")));
        }
        (Some(own), None) => Some(own),
        (None, Some(weights)) => Some((weights.map()?, weights.path().map(Path::to_path_buf))),
        (None, None) => match symbol_path.map(params_beside).transpose()?.flatten() {
            Some(path) => Some((map(&path)?, Some(path))),
            None => None,
        },
    };
    if let Some((bytes, path)) = found {
        values.overlay(decode(&bytes, path.as_deref())?, |_| true);
    }
    Ok(values)
}

// The pretrained arrays that the symbol has, under all arrays of the tuned model.
fn tuned(values: &mut Values, symbol: &Symbol, prefix: &str, pretrained: &Path) -> Result<()> {
    let known: HashSet<&str> = symbol.nodes.iter().filter(|n| n.is_variable()).map(|n| n.name.as_str()).collect();
    let first = decode(&map(pretrained)?, Some(pretrained))?;
    values.overlay(first, |name| known.contains(name));
    for part in ["args", "auxs"] {
        let path = PathBuf::from(format!("{prefix}_{part}.nd"));
        let mut params = decode(&map(&path)?, Some(&path))?;
        params.arrays.iter_mut().for_each(|a| a.is_aux |= part == "auxs");
        values.overlay(params, |_| true);
    }
    Ok(())
}

fn save(values: &Values, prefix: &str) -> Result<()> {
    let path = PathBuf::from(format!("{prefix}-0000.params"));
    let failed = |e: &std::io::Error| Error::io(format!("cannot write `{}`", path.display()), e);
    files::write(&path, &values.encode()?).map_err(|e| failed(&e))
}

// `NAME-0012.params` and `NAME.params` belong to `NAME-symbol.json`.
fn symbol_beside(params: &Path) -> Result<PathBuf> {
    let stem = params.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = match stem.rsplit_once('-') {
        Some((name, epoch)) if epoch.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => &stem,
    };
    let candidates = [format!("{name}-symbol.json"), format!("{stem}-symbol.json"), format!("{name}.json")];
    let found = candidates.iter().map(|c| params.with_file_name(c)).find(|p| p.is_file());
    found.ok_or_else(|| {
        let wanted = params.with_file_name(&candidates[0]);
        Error::not_found(format!(
            "`{}` holds arrays, and there is no `{}`; name the file of the topology with --input_symbol",
            params.display(),
            wanted.display()
        ))
    })
}

// The latest epoch.
fn params_beside(symbol: &Path) -> Result<Option<PathBuf>> {
    let stem = symbol.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = stem.strip_suffix("-symbol").unwrap_or(&stem);
    let folder = symbol.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let listed = std::fs::read_dir(folder).map_err(|e| Error::io(format!("cannot list `{}`", folder.display()), &e))?;
    let epoch = |path: &Path| -> Option<u64> {
        let file = path.file_name()?.to_str()?;
        let epoch = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".params")?;
        if epoch.bytes().all(|b| b.is_ascii_digit()) { epoch.parse().ok() } else { None }
    };
    let files = listed.filter_map(|f| f.ok().map(|f| f.path()));
    let latest = files.filter_map(|p| Some((epoch(&p)?, p))).max();
    let plain = || Some(symbol.with_file_name(format!("{name}.params"))).filter(|p| p.is_file());
    Ok(latest.map(|(_, path)| path).or_else(plain))
}
