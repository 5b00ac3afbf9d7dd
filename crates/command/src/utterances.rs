//! Utterances out of Kaldi's archives, run frame by frame: the state of the model goes from frame to frame and is reset between
//! utterances. What a model looks at around an utterance is its first and its last frame.

use crate::inputs::find_input;
use carafe::{CompiledModel, ElementType, Error, InferRequest, Model, Port, Result, Tensor, files};
use carafe_ark::{ArkError, Entry, read_ark, read_scp, write_ark, write_text_ark};
use std::path::{Path, PathBuf};

/// Frames to repeat before the first of an utterance and behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub left: usize,
    pub right: usize,
}

impl Context {
    /// As given, else as the model says, else none.
    pub(crate) fn of(model: &Model, left: Option<usize>, right: Option<usize>) -> Context {
        let known = |key: &str| {
            let info = model.rt_info.iter().find(|t| t.key == "framework")?;
            info.child(key)?.value.as_ref()?.parse().ok()
        };
        Context {
            left: left.or_else(|| known("left_context")).unwrap_or(0),
            right: right.or_else(|| known("right_context")).unwrap_or(0),
        }
    }
}

/// The outputs of an utterance.
#[derive(Debug)]
pub(crate) struct Utterance {
    pub key: String,
    pub frames: usize,
    /// A row for each frame, of each output.
    pub outputs: Vec<Tensor>,
}

/// Whether a file holds utterances, by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("ark") || e.eq_ignore_ascii_case("scp"))
}

fn wrong(path: &Path, e: &ArkError) -> Error {
    let kind = match e.kind() {
        carafe_ark::ErrorKind::Unsupported => carafe::ErrorKind::Unsupported,
        carafe_ark::ErrorKind::Invalid => carafe::ErrorKind::Invalid,
    };
    Error::new(kind, e.to_string()).at(format!("`{}`", path.display()))
}

fn read(path: &Path) -> Result<Vec<Entry>> {
    let io = |path: &Path, e: &std::io::Error| Error::io(format!("cannot read `{}`", path.display()), e);
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("scp")) {
        let text = files::read_text(path).map_err(|e| io(path, &e))?;
        let mut open =
            |file: &str| files::map(Path::new(file)).map(|b| b.as_slice().to_vec()).map_err(|e| e.to_string());
        return read_scp(&text, &mut open).map_err(|e| wrong(path, &e));
    }
    let bytes = files::map(path).map_err(|e| io(path, &e))?;
    read_ark(bytes.as_slice()).map_err(|e| wrong(path, &e))
}

/// What each input of a model is fed with.
pub(crate) struct Archives {
    /// The input, and its utterances in the order of the file.
    inputs: Vec<(usize, Vec<Entry>)>,
}

impl Archives {
    /// Reads the archives; each is for an input.
    pub(crate) fn read(ports: &[Port], model: &Model, given: &[(Option<String>, PathBuf)]) -> Result<Archives> {
        let mut inputs = vec![];
        for (name, path) in given {
            if !is_archive(path) {
                return Err(Error::usage(format!(
                    "`{}` is no archive; where one input comes out of an .ark or .scp file, all do",
                    path.display()
                )));
            }
            inputs.push((find_input(ports, model, name.as_deref(), path)?, read(path)?));
        }
        if let Some(port) = (0..ports.len()).find(|p| !inputs.iter().any(|(i, _)| i == p)) {
            return Err(Error::usage(format!("input `{}` has no archive", ports[port].name)));
        }
        Ok(Archives { inputs })
    }

    /// Runs every utterance; `each` hears before every frame and may stop it.
    pub(crate) fn run(
        &self,
        compiled: &CompiledModel,
        request: &InferRequest,
        context: Context,
        each: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<Utterance>> {
        let Some((_, first)) = self.inputs.first() else { return Ok(vec![]) };
        let run = |entry: &Entry| {
            self.run_one(compiled, request, context, &entry.key, each)
                .map_err(|e| e.at(format!("utterance `{}`", entry.key)))
        };
        first.iter().map(run).collect()
    }

    fn run_one(
        &self,
        compiled: &CompiledModel,
        request: &InferRequest,
        context: Context,
        key: &str,
        each: &dyn Fn() -> Result<()>,
    ) -> Result<Utterance> {
        let mut sources = vec![];
        for (input, entries) in &self.inputs {
            let port = &compiled.inputs()[*input];
            let entry = entries.iter().find(|e| e.key == key);
            let entry = entry
                .ok_or_else(|| Error::invalid(format!("the archive of input `{}` does not have it", port.name)))?;
            sources.push((*input, Frames::of(port, &entry.value)?));
        }
        let frames = sources.iter().map(|(_, f)| f.count).max().unwrap_or(0);
        if let Some((input, f)) = sources.iter().find(|(_, f)| f.count != frames && f.count != 1) {
            let name = &compiled.inputs()[*input].name;
            return Err(Error::invalid(format!("input `{name}` has {} frames, another {frames}", f.count)));
        }
        request.reset_state()?;
        let mut rows: Vec<Vec<f32>> = vec![vec![]; compiled.outputs().len()];
        let steps = if frames == 0 { 0 } else { frames + context.left + context.right };
        for step in 0..steps {
            each()?;
            let at = step.saturating_sub(context.left).min(frames - 1);
            for (input, source) in &sources {
                request.set_input(*input, source.frame(at)?)?;
            }
            request.infer(())?;
            // The output of a frame comes when the last frame that it looks at has come.
            if step < context.left + context.right {
                continue;
            }
            for (i, row) in rows.iter_mut().enumerate() {
                row.extend_from_slice(&request.output(i)?.to_vec::<f32>()?);
            }
        }
        let outputs = rows.into_iter().map(|row| {
            let cols = row.len() / frames.max(1);
            Tensor::from_vec(&[frames, cols], row).map_err(Error::from)
        });
        Ok(Utterance { key: key.to_string(), frames, outputs: outputs.collect::<Result<_>>()? })
    }
}

/// The frames of an utterance, as an input takes them.
struct Frames {
    count: usize,
    values: Vec<f32>,
    shape: Vec<usize>,
    ty: ElementType,
}

impl Frames {
    // A vector is one frame, which all others share.
    fn of(port: &Port, value: &Tensor) -> Result<Frames> {
        let (count, cols) = match value.shape() {
            [cols] => (1, *cols),
            [rows, cols] => (*rows, *cols),
            other => return Err(Error::invalid(format!("expected a matrix, found {other:?}"))),
        };
        let mut dims: Vec<usize> = vec![];
        for dim in port.shape.dims().unwrap_or(&[]) {
            dims.push(dim.size().unwrap_or(1));
        }
        if dims.is_empty() {
            dims = vec![1, cols];
        }
        if count > 0 && dims.iter().product::<usize>() != cols {
            return Err(Error::invalid(format!(
                "frames have {cols} numbers, input `{}` takes [{}] at a time",
                port.name, port.shape
            )));
        }
        Ok(Frames { count, values: value.to_vec::<f32>()?.into_owned(), shape: dims, ty: port.ty })
    }
    fn frame(&self, at: usize) -> Result<Tensor> {
        let size = self.values.len() / self.count.max(1);
        let at = if self.count == 1 { 0 } else { at };
        Ok(Tensor::from_slice(&self.shape, &self.values[at * size..(at + 1) * size])?.cast(self.ty)?)
    }
}

/// Writes the outputs: one archive, or one for each output with its name in front of the ending. One that ends with `.txt` is text.
pub(crate) fn write(path: &Path, names: &[String], all: &[Utterance]) -> Result<Vec<PathBuf>> {
    let mut files_written = vec![];
    for (i, name) in names.iter().enumerate() {
        let to = match names.len() {
            1 => path.to_path_buf(),
            _ => {
                let safe: String =
                    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let end = path.extension().unwrap_or_default().to_string_lossy();
                path.with_file_name(format!("{stem}.{safe}.{end}"))
            }
        };
        let entries: Vec<Entry> =
            all.iter().map(|u| Entry { key: u.key.clone(), value: u.outputs[i].clone() }).collect();
        let is_text = to.extension().is_some_and(|e| e.eq_ignore_ascii_case("txt"));
        let bytes = if is_text { write_text_ark(&entries).map(String::into_bytes) } else { write_ark(&entries) };
        let bytes = bytes.map_err(|e| wrong(&to, &e))?;
        files::write(&to, &bytes).map_err(|e| Error::io(format!("cannot write `{}`", to.display()), &e))?;
        files_written.push(to);
    }
    Ok(files_written)
}
