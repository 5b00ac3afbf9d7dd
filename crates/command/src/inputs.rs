//! From files to input tensors. What a file is, its first bytes decide. The arrays of one .npz are the elements of a
//! sequence; an optional without a file has no content.

use carafe::memory::ensure_memory;
use carafe::preprocess::{Layout, image_tensor, is_image};
use carafe::{ElementType, Error, ItemType, Model, Port, Result, Tensor, files};
use carafe_bench::guess_shape;
use std::path::{Path, PathBuf};

/// Fills inputs that got no file.
#[derive(Clone, Copy)]
pub(crate) struct Filler<'a> {
    pub random: bool,
    pub seed: u64,
    /// Hears what was made up.
    pub said: Option<&'a dyn Fn(String)>,
}

/// One tensor for each input: from its file, or filled; without a filler every input needs a file.
pub(crate) fn bind(
    ports: &[Port],
    model: &Model,
    given: &[(Option<String>, PathBuf)],
    filler: Option<&Filler<'_>>,
) -> Result<Vec<Tensor>> {
    let mut tensors: Vec<Option<Tensor>> = vec![None; ports.len()];
    let packed: Vec<Option<ItemType>> = (0..ports.len()).map(|i| packed_type(model, i)).collect();
    for (name, path) in given {
        let bytes = files::read(path, most_file_bytes(ports))
            .map_err(|e| Error::io(format!("cannot read input file `{}`", path.display()), &e))?;
        let single_list = matches!(packed.as_slice(), [Some(_)]);
        if name.is_none() && is_npz(&bytes) && !single_list {
            let most = |key: &str| find(ports, model, key).ok().and_then(|i| most_bytes(&ports[i]));
            for (key, tensor) in npz(path, &bytes, most)? {
                let i = find(ports, model, &key)?;
                let tensor = match &packed[i] {
                    Some(ty) => list(vec![tensor], ty),
                    None => fit(tensor, ports[i].ty),
                };
                tensors[i] = Some(tensor.map_err(|e| e.at(shown(path)))?);
            }
            continue;
        }
        let i = find_input(ports, model, name.as_deref(), path)?;
        let tensor = match &packed[i] {
            Some(ty) => decode_list(path, &bytes, ty),
            None => decode(path, &bytes, &ports[i], model, i),
        };
        tensors[i] = Some(tensor.map_err(|e| e.at(shown(path)))?);
    }
    let fill = |(i, tensor): (usize, Option<Tensor>)| match (tensor, &packed[i], filler) {
        (Some(tensor), _, _) => Ok(tensor),
        (None, _, None) => Err(Error::usage(format!("input `{}` got no data", ports[i].name))),
        (None, Some(ty @ ItemType::Sequence(_)), _) => ty.pack(Some(&[])),
        (None, Some(ty), _) => ty.pack(None),
        (None, None, Some(filler)) => filler.fill(&ports[i], i),
    };
    tensors.into_iter().enumerate().map(fill).collect()
}

fn shown(path: &Path) -> String {
    format!("input file `{}`", path.display())
}

/// The input of a file: by its name, or the only one.
pub(crate) fn find_input(ports: &[Port], model: &Model, name: Option<&str>, path: &Path) -> Result<usize> {
    match name {
        Some(name) => find(ports, model, name),
        None => the_only(ports, path),
    }
}

pub(crate) fn find(ports: &[Port], model: &Model, name: &str) -> Result<usize> {
    let by_port = ports.iter().position(|p| p.name == name || p.names.contains(name));
    by_port.or_else(|| model.find_parameter(name)).ok_or_else(|| {
        let known: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
        Error::usage(format!("the model has no input `{name}`; it has: {}", known.join(", ")))
    })
}

fn the_only(ports: &[Port], path: &Path) -> Result<usize> {
    if ports.len() == 1 {
        return Ok(0);
    }
    let names: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
    Err(Error::usage(format!(
        "{}: the model has {} inputs, say which with NAME=FILE: {}",
        shown(path),
        ports.len(),
        names.join(", ")
    )))
}

// Bytes of the largest array that fits an input, in the widest of NumPy's numbers; `None` where the model sets no bound.
fn most_bytes(port: &Port) -> Option<u64> {
    if port.ty == ElementType::String {
        return None;
    }
    port.shape.dims()?.iter().try_fold(8u64, |n, d| n.checked_mul(d.max()?.try_into().ok()?))
}

// Bytes of the largest file for one input or for all of them. Pictures are scaled, so they may be larger than their input.
fn most_file_bytes(ports: &[Port]) -> u64 {
    const PICTURE: u64 = 256 << 20;
    let all = ports.iter().try_fold(1 << 20, |n: u64, p| n.checked_add(most_bytes(p)?));
    all.map_or(u64::MAX, |n| n.max(PICTURE))
}

pub(crate) fn npz(path: &Path, bytes: &[u8], most: impl Fn(&str) -> Option<u64>) -> Result<Vec<(String, Tensor)>> {
    carafe_npy::read_npz_within(bytes, most).map_err(|e| Error::invalid(e.to_string()).at(shown(path)))
}

pub(crate) fn is_npz(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

// What an input carries when that is a sequence or an optional.
fn packed_type(model: &Model, index: usize) -> Option<ItemType> {
    model.packed_type(*model.parameters().get(index)?)
}

fn decode_list(path: &Path, bytes: &[u8], ty: &ItemType) -> Result<Tensor> {
    if is_npz(bytes) {
        return list(npz(path, bytes, |_| None)?.into_iter().map(|(_, tensor)| tensor).collect(), ty);
    }
    if bytes.starts_with(b"\x93NUMPY") {
        return list(vec![carafe_npy::read_npy(bytes).map_err(|e| Error::invalid(e.to_string()))?], ty);
    }
    Err(Error::usage(format!("{ty} is read from .npz or .npy")))
}

fn list(items: Vec<Tensor>, ty: &ItemType) -> Result<Tensor> {
    let want = ty.element_type();
    let items = items.into_iter().map(|t| fit(t, want)).collect::<Result<Vec<_>>>()?;
    if let Some(other) = items.iter().map(Tensor::element_type).find(|have| !want.is_dynamic() && *have != want) {
        return Err(Error::usage(format!("{ty} takes elements of type {want}, found {other}")));
    }
    ty.pack(Some(&items))
}

fn decode(path: &Path, bytes: &[u8], port: &Port, model: &Model, index: usize) -> Result<Tensor> {
    if bytes.starts_with(b"\x93NUMPY") {
        let tensor = carafe_npy::read_npy(bytes).map_err(|e| Error::invalid(e.to_string()))?;
        return fit(tensor, port.ty);
    }
    if is_npz(bytes) {
        let mut arrays = npz(path, bytes, |_| most_bytes(port))?;
        return match arrays.len() {
            1 => fit(arrays.remove(0).1, port.ty),
            n => Err(Error::invalid(format!("holds {n} arrays for one input; leave NAME= out to bind them by name"))),
        };
    }
    if is_image(bytes) {
        return image_tensor(bytes, port, layout(model, index).as_ref());
    }
    raw(bytes, port)
}

// Same element type as the port where that loses nothing a user would miss: numpy has no bf16, f8 or 4-bit types.
pub(crate) fn fit(tensor: Tensor, want: ElementType) -> Result<Tensor> {
    let have = tensor.element_type();
    let narrow = have.is_float() && want.is_float() || have.is_integer() && want.is_sub_byte();
    if have != want && !want.is_dynamic() && narrow {
        return Ok(tensor.cast(want)?);
    }
    Ok(tensor)
}

fn raw(bytes: &[u8], port: &Port) -> Result<Tensor> {
    let shape = port.shape.to_static().ok_or_else(|| {
        Error::usage(format!("raw bytes need a static shape, `{}` has [{}]; use .npy", port.name, port.shape))
    })?;
    let needed = port.shape.elements().and_then(|n| port.ty.byte_len(n));
    if needed != Some(bytes.len()) {
        return Err(Error::invalid(format!(
            "`{}` takes {}[{}], which is {} bytes, found {}",
            port.name,
            port.ty,
            port.shape,
            needed.map_or("no fixed number of".into(), |n| n.to_string()),
            bytes.len()
        )));
    }
    Ok(Tensor::from_bytes(port.ty, &shape, bytes)?)
}

// What the model says of the axes of an input; a layout that cannot be read says nothing.
fn layout(model: &Model, index: usize) -> Option<Layout> {
    Layout::of(model, (*model.parameters().get(index)?).into()).ok()?
}

impl Filler<'_> {
    /// Open sizes are guessed as `carafe_bench::guess_shape` tells.
    fn fill(&self, port: &Port, index: usize) -> Result<Tensor> {
        let found = guess_shape(&port.shape).ok_or_else(|| {
            Error::usage(format!("input `{}` has no known rank; give it a file, or a shape with `--shape`", port.name))
        })?;
        let shape = found.shape;
        if port.ty.is_dynamic() {
            return Err(Error::usage(format!("input `{}` has no known element type; give it a file", port.name)));
        }
        if let Some(said) = self.said {
            let with = if self.random && port.ty != ElementType::String { "random values" } else { "zeros" };
            let guessed = match found.guessed {
                true => format!("; its shape [{}] is open, another one is set with `--shape`", port.shape),
                false => String::new(),
            };
            said(format!("input `{}` got no file and is filled with {with}, {}{shape:?}{guessed}", port.name, port.ty));
        }
        let zeros = Tensor::zeros(port.ty, &shape)?;
        if !self.random || port.ty == ElementType::String {
            return Ok(zeros);
        }
        let mut state = self.seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            // splitmix64
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z ^ (z >> 31)) >> 11
        };
        let unit = (1u64 << 53) as f64;
        ensure_memory(zeros.len().saturating_mul(size_of::<f64>()))?;
        let values: Vec<f64> = (0..zeros.len())
            .map(|_| match port.ty {
                ElementType::Boolean => (next() % 2) as f64,
                ty if ty.is_float() => next() as f64 / unit,
                _ => (next() % 10) as f64,
            })
            .collect();
        Ok(Tensor::from_f64(port.ty, &shape, &values)?)
    }
}
