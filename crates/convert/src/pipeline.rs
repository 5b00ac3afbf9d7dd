//! The way of a conversion, stage by stage: load and extract (the reader; rewrites of the graph as decoded between the two),
//! front (replacement file, rewrites of the translated model), infer (cuts, shapes, preprocessing), middle and back
//! (rewrites around the common passes), emit. Whoever listens hears of each stage and of all that happens in it.

use super::config::{ConfigPass, ReplacementFile};
use super::{ConversionOptions, apply, inputs, run_reshapable, transform};
use carafe_frontend::{Explained, Log, ReadRequest, describe};
use carafe_graph::{
    Constant, Error, ErrorKind, Model, Notes, Pass, PassChoice, Phase, Result, ResultOp, Value, run_passes,
};
use carafe_passes::{COMMON, CompressToFp16, FUSE, SpellOut, TIDY};
use carafe_runtime::{Core, NodeExplained};
use std::path::Path;
use std::sync::Arc;

/// Everything one conversion does.
pub struct Conversion<'a> {
    /// The file, and how it is read. Its log hears of all stages.
    pub request: ReadRequest<'a>,
    /// What is done to the model.
    pub options: ConversionOptions,
    /// File of sub-graph replacements.
    pub transformations_config: Option<&'a Path>,
    /// Names of rewrites, built-in or of extensions, that shall not run.
    pub disable: Vec<String>,
    /// Name of the written model.
    pub model_name: Option<String>,
    /// Simplify the graph; otherwise constants are folded and no more.
    pub tidy: bool,
    /// Store weights as f16.
    pub compress_to_fp16: bool,
}

impl std::fmt::Debug for Conversion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversion")
            .field("request", &self.request)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A model that is ready to be written.
#[derive(Debug)]
pub struct Converted {
    /// The model.
    pub model: Model,
    /// Who handled each node, when the request asks for it.
    pub explained: Option<Vec<NodeExplained>>,
    /// How many replacements the file of them made; `None` without one.
    pub replaced: Option<usize>,
}

/// What the first stages give.
struct Loaded {
    model: Model,
    replaced: Option<usize>,
    choice: PassChoice,
    /// What is left to do.
    options: ConversionOptions,
}

impl<'a> Conversion<'a> {
    /// Of a file as it is.
    pub fn new(request: ReadRequest<'a>) -> Conversion<'a> {
        Conversion {
            request,
            options: ConversionOptions::default(),
            transformations_config: None,
            disable: vec![],
            model_name: None,
            tidy: true,
            compress_to_fp16: false,
        }
    }

    /// All stages but the last, which is `emit`.
    pub fn run(&self, core: &Core) -> Result<Converted> {
        let log = self.request.log;
        let Loaded { mut model, replaced, choice, options } = self.load(core)?;
        let explained = self.request.explain.then(|| core.explain(&model));
        if self.request.explain {
            Explained::detach(&mut model)?;
        }
        log.debug(|| "stage infer".to_string());
        apply(&mut model, &options)?;
        trace(&model, &log);
        if let Some(name) = &self.model_name {
            model.name = name.clone();
        }
        log.debug(|| "stage middle".to_string());
        heard(&log, |notes| self.middle(core, &mut model, &choice, notes))?;
        log.debug(|| "stage back".to_string());
        heard(&log, |notes| self.back(core, &mut model, notes))?;
        core.record_extensions(&mut model);
        Ok(Converted { model, explained, replaced })
    }

    /// The model as it is read, with the replacements of the file and the rewrites in front, and nothing more.
    pub fn read(&self, core: &Core) -> Result<Model> {
        Ok(self.load(core)?.model)
    }

    fn load(&self, core: &Core) -> Result<Loaded> {
        let log = self.request.log;
        let file = self.transformations_config.map(|path| read_config(core, path)).transpose()?;
        let (choice, options) = self.choose(core, file.as_ref())?;
        core.choose_passes(choice.clone());
        let config = file.map(|file| Arc::new(ConfigPass::new(file, core)));
        let rewrites: Vec<Arc<dyn Pass>> = config.iter().map(|c| c.clone() as Arc<dyn Pass>).collect();
        let wanted = super::wanted(&options);
        let input_shapes = inputs::foreseen(&options)?;
        let request = ReadRequest { rewrites: &rewrites, wanted: &wanted, input_shapes: &input_shapes, ..self.request };
        let read = core.read(&request);
        let read = read.map_err(|e| match self.transformations_config {
            Some(path) if e.to_string().contains("pass `transformations_config`") => e.at(place(path)),
            _ => e,
        });
        let model = read?;
        let replaced = config.as_ref().map(|c| c.made());
        let unmatched = config.as_ref().map(|c| c.unmatched()).unwrap_or_default();
        let file = || place(self.transformations_config.unwrap_or(Path::new("")));
        for line in &unmatched {
            log.warn(format!("{}: {line}; are file and model made for each other?", file()));
        }
        if replaced == Some(0) {
            log.warn(format!("{}: no replacement matches this model", file()));
        }
        Ok(Loaded { model, replaced, choice, options })
    }

    fn middle(&self, core: &Core, model: &mut Model, choice: &PassChoice, notes: &mut Notes) -> Result<()> {
        core.run_phase(model, Phase::Middle, notes)?;
        let all: Vec<&dyn Pass> = if self.tidy { built_in() } else { COMMON.to_vec() };
        let passes: Vec<&dyn Pass> = all.into_iter().filter(|p| choice.runs(p.name(), true)).collect();
        if self.options.static_shape {
            run_passes(model, &passes, notes)?;
            model.infer()
        } else {
            run_reshapable(model, &passes, notes)
        }
    }

    fn back(&self, core: &Core, model: &mut Model, notes: &mut Notes) -> Result<()> {
        core.run_phase(model, Phase::Back, notes)?;
        if self.compress_to_fp16 {
            run_passes(model, &[&CompressToFp16], notes)?;
        }
        run_passes(model, &[&SpellOut], notes)
    }

    // Which rewrites run: those that are named to be off or on, and what is left of `--transform`.
    fn choose(&self, core: &Core, file: Option<&ReplacementFile>) -> Result<(PassChoice, ConversionOptions)> {
        let passes = core.passes();
        let extension: Vec<&str> = passes.iter().map(|p| p.pass.name()).collect();
        let mut choice = PassChoice::default();
        for name in &self.disable {
            let known = extension.iter().copied().chain(built_in().into_iter().map(|p| p.name()));
            let mut known: Vec<&str> = known.collect();
            if !known.contains(&name.as_str()) {
                known.sort_unstable();
                known.dedup();
                let text = format!("there is no rewrite `{name}`; there are: {}", known.join(", "));
                return Err(Error::usage(text).at("option `--disable`"));
            }
            choice.disable.insert(name.clone());
        }
        let mut options = self.options.clone();
        if let Some(text) = &self.options.transform {
            let split = transform::split(text, &extension);
            let (enable, rest) = split.map_err(|e| e.at("option `--transform`"))?;
            choice.enable.extend(enable);
            options.transform = rest;
        }
        let on = file.into_iter().flat_map(ReplacementFile::turned_on).filter(|id| extension.contains(id));
        choice.enable.extend(on.map(str::to_string));
        if let Some(both) = choice.enable.intersection(&choice.disable).next() {
            return Err(Error::usage(format!("rewrite `{both}` is both asked for and disabled")));
        }
        Ok((choice, options))
    }
}

// Tells what the passes of a stage note, also when one of them fails.
fn heard(log: &Log<'_>, stage: impl FnOnce(&mut Notes) -> Result<()>) -> Result<()> {
    let mut notes = Notes::default().kept(log.is_debug());
    let done = stage(&mut notes);
    notes.lines.iter().for_each(|line| log.debug(|| line.clone()));
    done
}

// The passes of the middle stage, in order.
fn built_in() -> Vec<&'static dyn Pass> {
    TIDY.iter().chain(FUSE).chain(COMMON).copied().collect()
}

fn place(path: &Path) -> String {
    format!("transformations config `{}`", path.display())
}

fn read_config(core: &Core, path: &Path) -> Result<ReplacementFile> {
    let read = || {
        let text = carafe_tensor::files::read_text(path).map_err(|e| Error::io("cannot read", &e))?;
        let file = ReplacementFile::parse(&text).map_err(|e| e.with_code(65))?;
        for library in file.libraries() {
            core.add_extension(library)?;
        }
        Ok(file)
    };
    read().map_err(|e: Error| e.at(place(path)))
}

// Every node with what goes in and comes out.
fn trace(model: &Model, log: &Log<'_>) {
    if !log.is_debug() {
        return;
    }
    for id in model.topological_order().unwrap_or_default() {
        let node = model.node(id);
        if node.op().is::<Constant>() || node.op().is::<ResultOp>() {
            continue;
        }
        log.debug(|| {
            let mut text = format!("infer: `{}` ({}::{})", node.name(), node.op().opset(), node.op().type_name());
            for (i, v) in node.inputs().iter().enumerate() {
                let from = model.node(v.node).name();
                text.push_str(&format!("\n    in  {i} `{from}`: {}", describe(model.fact(*v))));
            }
            for port in 0..node.outputs().len() {
                text.push_str(&format!("\n    out {port}: {}", describe(model.fact(Value { node: id, port }))));
            }
            text
        });
    }
}

/// The last stage: writes the model as IR, .xml and .bin.
pub fn emit(model: &Model, output: &Path, log: &Log<'_>) -> Result<()> {
    emit_up_to(model, output, None, log)
}

/// As [`emit`], with the highest numbered opset that may be in the file; an error lists the nodes that need a newer one.
pub fn emit_up_to(model: &Model, output: &Path, opset: Option<u32>, log: &Log<'_>) -> Result<()> {
    if output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("xml")) {
        return Err(Error::usage(format!("output `{}` must end with .xml", output.display())));
    }
    log.debug(|| format!("stage emit: {}", output.display()));
    let foreign = carafe_ir::types_only_read_here(model);
    if !foreign.is_empty() {
        let names: Vec<&str> = foreign.iter().map(|ty| ty.name()).collect();
        let (names, output) = (names.join(", "), output.display());
        log.warn(format!(
            "`{output}` has values of type {names}, which OpenVINO does not have: only this engine reads it"
        ));
    }
    if let Some(folder) = output.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot create folder `{}`", folder.display()), &e).with_code(22))?;
    }
    let options = carafe_ir::WriteOptions {
        runtime_version: Some(concat!("carafe ", env!("CARGO_PKG_VERSION")).to_string()),
        versions: opset.map_or(carafe_ir::Versions::Oldest, carafe_ir::Versions::UpTo),
        ..carafe_ir::WriteOptions::default()
    };
    carafe_ir::write_file(model, output, &options).map_err(|e| {
        let e = e.at(format!("output `{}`", output.display()));
        if e.kind() == ErrorKind::Io { e.with_code(22) } else { e }
    })
}
