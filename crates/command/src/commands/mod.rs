//! One file a command.

mod bench;
mod bench_config;
mod bench_inputs;
mod bench_text;
mod build;
mod c_api;
mod cache;
mod compress_weights;
mod conformance;
mod convert;
mod devices;
mod explain;
mod extension;
mod extension_test;
mod inspect;
mod isolate;
mod manuals;
mod operations;
mod quantize;
mod query;
mod run;
mod time_limit;
mod view;
mod view_serve;

use crate::args::{Cli, Command, ModelArgs};
use crate::extension_args::ExtensionAction;
use crate::progress::ProgressLine;
use carafe::convert::{Conversion, ConversionOptions, apply, read_mapping, read_mappings};
use carafe::{
    Content, Core, DeviceName, Error, Extension, Log, Model, Progress, Properties, ReadRequest, Result, printable,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs the command of the line. False when it worked and its answer is no.
pub(crate) fn run(cli: Cli) -> Result<bool> {
    let added = Added { extensions: cli.extension, plugins: cli.plugin, files: cli.mapping, lines: cli.map };
    match &cli.command {
        // The libraries are opened by other processes.
        Command::Conformance(args) if args.isolate => return conformance::run_isolated(args),
        Command::Query(args) if args.isolate => return isolate::query(args),
        // Tested alone.
        Command::Extension(args) => match &args.action {
            ExtensionAction::Test(args) => return extension_test::run(args),
            ExtensionAction::Watch(args) => return extension_test::watch(args).map(|()| true),
            ExtensionAction::Build(args) => {
                return print(&format!("{}\n", build::run(args)?.display())).map(|()| true);
            }
            ExtensionAction::New(args) => {
                return extension::new(&core_of(&added)?, args).map(|()| true);
            }
        },
        Command::Extgen(args) => return extension::extgen(args).map(|()| true),
        Command::Plugin(args) => return extension::plugin(&args.action).map(|()| true),
        Command::Explain(args) => return explain::run(args).map(|()| true),
        Command::CApi(args) => return c_api::run(args).map(|()| true),
        _ => {}
    }
    let core = core_of(&added)?;
    let done = match cli.command {
        Command::Conformance(args) => return conformance::run(move || core_of(&added), &args),
        Command::Run(args) => run::run(&core, &args),
        Command::Bench(args) => bench::run(&core, &args),
        Command::View(args) => view::run(&core, &args),
        Command::Convert(args) => convert::run(&core, &args),
        Command::Quantize(args) => quantize::run(&core, &args),
        Command::CompressWeights(args) => compress_weights::run(&core, &args),
        Command::Inspect(args) => inspect::run(&core, &args),
        Command::Query(args) => query::run(&core, &args),
        Command::Devices(args) => return devices::run(&core, &args),
        Command::Operations(args) => operations::run(&core, &args),
        Command::Cache(args) => cache::run(&args),
        // Answered above.
        Command::Extension(_) | Command::Extgen(_) | Command::Plugin(_) | Command::Explain(_) | Command::CApi(_) => {
            Ok(())
        }
        Command::Completions(args) => manuals::completions(&args),
        Command::Man(args) => manuals::man(&args),
    };
    done.map(|()| true)
}

/// What the line adds to all that is built in.
struct Added {
    extensions: Vec<PathBuf>,
    plugins: Vec<String>,
    /// Mappings, in files and as they stand in the line.
    files: Vec<PathBuf>,
    lines: Vec<String>,
}

/// All that is built in, and what the line adds.
fn core_of(added: &Added) -> Result<Core> {
    let core = carafe::core();
    core.add_extension(added.extensions.clone())?;
    added.plugins.iter().try_for_each(|p| core.add_plugin_text(p))?;
    // Behind the extensions, whose operations they may name.
    let registry = core.registry();
    for file in &added.files {
        let read = || {
            let text = carafe::files::read_text(file).map_err(|e| Error::io("cannot read", &e))?;
            read_mappings(&text, &registry)
        };
        let mappings = read().map_err(|e| e.at(format!("mappings `{}`", file.display())))?;
        core.add_extension(Extension { mappings, ..Extension::new(file.display().to_string()) })?;
    }
    if !added.lines.is_empty() {
        let read =
            |line: &String| read_mapping(line, &registry).map_err(|e| Error::usage(e.to_string()).at("option `--map`"));
        let mappings = added.lines.iter().map(read).collect::<Result<_>>()?;
        core.add_extension(Extension { mappings, ..Extension::new("--map") })?;
    }
    Ok(core)
}

/// Gives kernel files to those devices of a name that take them, before a model is read: its operations may be declared there.
fn use_kernel_files(core: &Core, device: &str, files: &[PathBuf]) -> Result<()> {
    const PROPERTY: &str = "CONFIG_FILE";
    let value = match files {
        [] => return Ok(()),
        [one] => one.display().to_string(),
        many => many.iter().map(|f| format!("\"{}\"", f.display())).collect::<Vec<_>>().join(";"),
    };
    let list = DeviceName::parse(device)?.priorities.unwrap_or_else(|| device.to_string());
    let names = list.split(',').map(|name| name.trim_start_matches('-').split('(').next().unwrap_or_default());
    let mut taken = false;
    for name in names {
        if core.device(name)?.properties().iter().any(|p| p.name == PROPERTY) {
            core.set_property(name, &Properties::new().with(PROPERTY, &value))?;
            taken = true;
        }
    }
    match taken {
        true => Ok(()),
        false => Err(Error::usage(format!("device `{device}` takes no kernel files (-c); GPU and VPU do"))),
    }
}

// For looking at a model: what nobody knows is kept.
fn read(core: &Core, args: &ModelArgs, explain: bool) -> Result<Model> {
    let (path, options) = args.format.model(args.model.as_ref())?;
    let request = ReadRequest { options: Some(&options), ..ReadRequest::new(path) };
    let request =
        ReadRequest { weights: args.weights.as_deref().map(Content::File), keep_unknown: true, explain, ..request };
    read_shaped(core, Conversion::new(request), args.shape.as_deref())
}

/// Reads a model whose inputs shall have the shapes of `--shape`.
fn read_shaped(core: &Core, conversion: Conversion<'_>, shape: Option<&str>) -> Result<Model> {
    let Some(text) = shape else { return conversion.read(core) };
    let options = shape_options(text);
    let mut model = Conversion { options: options.clone(), ..conversion }.read(core)?;
    apply(&mut model, &options)?;
    Ok(model)
}

// What `--shape` asks of a conversion.
fn shape_options(text: &str) -> ConversionOptions {
    let text = text.to_string();
    match text.trim_start().starts_with('[') {
        true => ConversionOptions { input_shape: Some(text), ..ConversionOptions::default() },
        false => ConversionOptions { input: Some(text), ..ConversionOptions::default() },
    }
}

/// Reads and tidies a model, as `carafe convert` does, for commands that change it and write it again.
fn read_to_change(core: &Core, args: &ModelArgs, line: &ProgressLine) -> Result<Model> {
    let (path, format) = args.format.model(args.model.as_ref())?;
    let steps = |done: usize, total: usize, what: &str| line.steps(done, total, what);
    let hear = |level: carafe::log::Level, text: &str| {
        line.clear();
        crate::log::print(level, text);
    };
    let request = ReadRequest {
        weights: args.weights.as_deref().map(Content::File),
        progress: Progress::to(&steps),
        options: Some(&format),
        log: Log::to(&hear, false),
        ..ReadRequest::new(path)
    };
    let options = args.shape.as_deref().map(shape_options).unwrap_or_default();
    Ok(Conversion { options, ..Conversion::new(request) }.run(core)?.model)
}

/// Refuses an output that could not be written, before hours are spent on it.
fn check_output(output: &Path) -> Result<()> {
    match output.extension().is_some_and(|e| e.eq_ignore_ascii_case("xml")) {
        true if output.is_dir() => Err(Error::usage(format!("output `{}` is a folder", output.display()))),
        true => Ok(()),
        false => Err(Error::usage(format!("output `{}` must end with .xml", output.display()))),
    }
}

/// Rows as text, each column as wide as its widest cell.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        widths.iter_mut().zip(row).for_each(|(w, cell)| *w = (*w).max(cell.chars().count()));
    }
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Prints to standard output for people: names out of a model must not steer their terminal.
fn print(text: &str) -> Result<()> {
    print_as_it_is(&printable(text))
}

/// Prints to standard output for programs; a closed pipe (`| head`) is not an error.
fn print_as_it_is(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("cannot print", &e)),
        _ => Ok(()),
    }
}

fn print_json(value: &serde_json::Value) -> Result<()> {
    print_as_it_is(&format!("{value:#}\n"))
}
