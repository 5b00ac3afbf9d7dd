//! Data to calibrate with: a folder, in which every array file and picture is a sample, or one .npz whose arrays have a first axis
//! of samples. All of it is looked at before anything is computed, so that a bad sample does not waste hours.

use crate::inputs::{bind, find, fit, is_npz, npz};
use carafe::preprocess::is_image;
use carafe::quantize::Samples;
use carafe::{Error, Model, Port, Result, Tensor, files};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of samples that are kept in memory; what is beyond is read again each time.
const KEPT: usize = 1 << 30;
/// Bytes of the largest array of samples.
const LARGEST: u64 = 16 << 30;
/// Folders inside of folders that are looked into.
const DEPTH: usize = 8;

/// The samples of a model.
pub(crate) struct Data {
    ports: Vec<Port>,
    model: Model,
    source: Source,
    kept: Vec<Vec<Tensor>>,
}

enum Source {
    Files(Vec<PathBuf>),
    /// By input: its samples, or one tensor for all of them.
    Arrays(Vec<Rows>, usize),
}

struct Rows {
    tensor: Tensor,
    /// Shape of a sample; `None` when the tensor is the same for all.
    shape: Option<Vec<usize>>,
}

impl Data {
    /// At most `most` samples; `tell` hears how far it is.
    pub(crate) fn open(path: &Path, model: &Model, most: usize, tell: &dyn Fn(usize, usize)) -> Result<Data> {
        if most == 0 {
            return Err(Error::usage("--subset must be at least 1"));
        }
        let (ports, model) = (Port::inputs_of(model), model.clone());
        if ports.is_empty() {
            return Err(Error::invalid("the model has no inputs"));
        }
        let mut data = Data { ports, model, source: Source::Files(vec![]), kept: vec![] };
        data.source = match path.is_dir() {
            true => {
                let mut list = vec![];
                list_samples(path, DEPTH, most, &mut list)?;
                Source::Files(list)
            }
            false => data.source_of_file(path, most)?,
        };
        let count = data.count();
        if count == 0 {
            let shown = path.display();
            return Err(Error::invalid(format!("`{shown}` holds no samples: no .npy, no .npz and no picture")));
        }
        let mut bytes = 0;
        for i in 0..count {
            tell(i, count);
            let sample = data.read(i)?;
            data.check(&sample, i)?;
            bytes += sample.iter().map(Tensor::byte_len).sum::<usize>();
            if bytes <= KEPT && data.kept.len() == i {
                data.kept.push(sample);
            }
        }
        Ok(data)
    }

    fn source_of_file(&self, path: &Path, most: usize) -> Result<Source> {
        let bytes = files::read(path, LARGEST)
            .map_err(|e| Error::io(format!("cannot read calibration data `{}`", path.display()), &e))?;
        if !is_npz(&bytes) {
            return Ok(Source::Files(vec![path.to_path_buf()]));
        }
        let at = |e: Error| e.at(format!("calibration data `{}`", path.display()));
        let mut found: Vec<Option<Rows>> = (0..self.ports.len()).map(|_| None).collect();
        let mut count: Option<(usize, String)> = None;
        for (name, tensor) in npz(path, &bytes, |_| Some(LARGEST))? {
            let i = find(&self.ports, &self.model, &name).map_err(at)?;
            let rows = rows(&self.ports[i], fit(tensor, self.ports[i].ty).map_err(at)?).map_err(at)?;
            if let Some(n) = rows.count() {
                if let Some((m, other)) = count.as_ref().filter(|(m, _)| *m != n) {
                    let text = format!("`{name}` has {n} samples, `{other}` has {m}");
                    return Err(at(Error::invalid(text)));
                }
                count = Some((n, name));
            }
            found[i] = Some(rows);
        }
        let missing = |(i, rows): (usize, Option<Rows>)| {
            rows.ok_or_else(|| at(Error::usage(format!("has no array for input `{}`", self.ports[i].name))))
        };
        let all = found.into_iter().enumerate().map(missing).collect::<Result<Vec<_>>>()?;
        Ok(Source::Arrays(all, count.map_or(1, |(n, _)| n).min(most)))
    }

    fn read(&self, index: usize) -> Result<Vec<Tensor>> {
        match &self.source {
            Source::Files(list) => {
                let path = &list[index];
                let sample = bind(&self.ports, &self.model, &[(None, path.clone())], None);
                let shown = format!("calibration data `{}`", path.display());
                sample.map_err(|e| if e.to_string().contains(&path.display().to_string()) { e } else { e.at(shown) })
            }
            Source::Arrays(all, _) => all.iter().map(|rows| rows.sample(index)).collect(),
        }
    }

    fn check(&self, sample: &[Tensor], index: usize) -> Result<()> {
        let at = |e: Error| match &self.source {
            Source::Files(list) => e.at(format!("calibration data `{}`", list[index].display())),
            Source::Arrays(..) => e.at(format!("sample {index} of the calibration data")),
        };
        for (port, tensor) in self.ports.iter().zip(sample) {
            port.check(tensor).map_err(at)?;
            if !tensor.element_type().is_float() {
                continue;
            }
            let mut bad = None;
            tensor.for_each::<f32>(|x| {
                if !x.is_finite() {
                    bad = Some(x)
                }
            })?;
            if let Some(x) = bad {
                return Err(at(Error::invalid(format!("input `{}` has an element that is {x}", port.name))));
            }
        }
        Ok(())
    }
}

impl Samples for Data {
    fn count(&self) -> usize {
        match &self.source {
            Source::Files(list) => list.len(),
            Source::Arrays(_, count) => *count,
        }
    }

    fn sample(&self, index: usize) -> Result<Vec<Tensor>> {
        match self.kept.get(index) {
            Some(sample) => Ok(sample.clone()),
            None => self.read(index),
        }
    }
}

impl Rows {
    fn count(&self) -> Option<usize> {
        let each = self.shape.as_ref()?.iter().product::<usize>().max(1);
        Some(self.tensor.len() / each)
    }

    fn sample(&self, index: usize) -> Result<Tensor> {
        let Some(shape) = &self.shape else { return Ok(self.tensor.clone()) };
        let each: usize = shape.iter().product();
        Ok(self.tensor.select(shape, |i| Some(index * each + i))?)
    }
}

// Cuts an array into samples: along an axis that the input does not have, or along its first one where that is longer or of
// unknown size.
fn rows(port: &Port, tensor: Tensor) -> Result<Rows> {
    let (own, rank) = (tensor.shape().to_vec(), port.shape.rank());
    let wrong = || {
        let (name, shape) = (&port.name, &port.shape);
        Err(Error::usage(format!("`{name}` takes [{shape}], found {own:?}, which is no list of samples of that shape")))
    };
    let Some(dims) = port.shape.dims() else { return Ok(Rows { tensor, shape: None }) };
    if rank.is_some_and(|r| own.len() == r + 1) && port.shape.accepts(&own[1..]) {
        return Ok(Rows { shape: Some(own[1..].to_vec()), tensor });
    }
    let Some(first) = dims.first() else { return Ok(Rows { tensor, shape: None }) };
    let size = first.size();
    if size.is_some() && port.shape.accepts(&own) {
        return Ok(Rows { tensor, shape: None });
    }
    let batch = size.unwrap_or(1);
    let mut shape = own.clone();
    match shape.first_mut() {
        Some(n) if batch > 0 && n.is_multiple_of(batch) => *n = batch,
        _ => return wrong(),
    }
    if !port.shape.accepts(&shape) || own.contains(&0) {
        return wrong();
    }
    Ok(Rows { tensor, shape: Some(shape) })
}

// The array files and pictures of a folder and those below it, in the order of their names.
fn list_samples(folder: &Path, depth: usize, most: usize, to: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |e: &std::io::Error| Error::io(format!("cannot read folder `{}`", folder.display()), e);
    let entries = std::fs::read_dir(folder).map_err(|e| failed(&e))?;
    let mut paths = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>().map_err(|e| failed(&e))?;
    paths.sort_unstable();
    for path in paths {
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if to.len() >= most || hidden {
            continue;
        }
        if path.is_dir() {
            if depth > 0 {
                list_samples(&path, depth - 1, most, to)?;
            }
        } else if is_sample(&path)? {
            to.push(path);
        }
    }
    Ok(())
}

fn is_sample(path: &Path) -> Result<bool> {
    let mut head = vec![];
    let read = files::open(path).and_then(|f| f.take(64).read_to_end(&mut head));
    read.map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    Ok(is_npz(&head) || head.starts_with(b"\x93NUMPY") || is_image(&head))
}
