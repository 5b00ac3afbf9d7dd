//! `carafe view`: a page with the graph of a model, and, if asked, who runs it and how long that takes.

use super::run::split_input;
use super::{print, read, use_kernel_files, view_serve};
use crate::inputs::{Filler, bind};
use crate::view_args::ViewArgs;
use carafe::log::Level;
use carafe::{Core, Error, Model, Properties, Result, files, properties as names};
use carafe_bench::Counters;
use carafe_view::{Graph, page};
use std::path::{Path, PathBuf};

pub(crate) fn run(core: &Core, args: &ViewArgs) -> Result<()> {
    let device = args.device.clone().or_else(|| args.run.then(|| "CPU".to_string()));
    use_kernel_files(core, device.as_deref().unwrap_or("CPU"), &args.config)?;
    let model = read(core, &args.model, true)?;
    let mut graph = Graph::of(&model);
    let (path, _) = args.model.format.model(args.model.model.as_ref())?;
    if graph.name.is_empty() {
        graph.name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    }
    match &device {
        Some(device) => explain(core, args, &model, device, &mut graph)?,
        None => graph.explain("", &core.explain(&model)),
    }
    let text = page(&graph);
    let output = match (&args.output, args.serve) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(beside(path)),
    };
    if let Some(file) = output {
        files::write(&file, text.as_bytes())
            .map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))?;
        print(&format!(
            "{} nodes, {} KB, written to {}\n",
            graph.boxes.len(),
            text.len().div_ceil(1000),
            file.display()
        ))?;
    }
    match args.serve {
        Some(port) => view_serve::serve(port, &text),
        None => Ok(()),
    }
}

// In the current folder, under the name of the model.
fn beside(path: &Path) -> PathBuf {
    PathBuf::from(path.file_stem().unwrap_or(path.as_os_str())).with_extension("html")
}

// A model that does not compile is shown with what the device says of its nodes.
fn explain(core: &Core, args: &ViewArgs, model: &Model, device: &str, graph: &mut Graph) -> Result<()> {
    let mut rows = core.explain(model);
    let counts = core.device(device)?.properties().iter().any(|p| p.name == names::PERF_COUNT);
    let properties =
        if args.run && counts { Properties::new().with(names::PERF_COUNT, true) } else { Properties::new() };
    let compiled = match core.compile_model(model, device, &properties) {
        Ok(compiled) => compiled,
        Err(e) if !args.run => {
            crate::log::print(Level::Warning, &format!("{device} does not compile the model: {e}"));
            let query = core.query_model(model, device, &Properties::new())?;
            core.explain_query(&mut rows, device, &query);
            graph.explain(device, &rows);
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    let mut counters = Counters::default();
    if args.run {
        let said = |text: String| crate::log::print(Level::Info, &text);
        let filler = Filler { random: true, seed: 0, said: Some(&said) };
        let given: Vec<_> = args.inputs.iter().map(|s| split_input(s)).collect();
        let request = compiled.create_infer_request();
        for (i, tensor) in bind(compiled.inputs(), model, &given, Some(&filler))?.into_iter().enumerate() {
            request.set_input(i, tensor)?;
        }
        // The first one warms up.
        for turn in 0..=args.repeat.max(1) {
            request.infer(())?;
            if turn > 0 {
                counters.add(&request.profile()?);
            }
        }
        if counters.inferences() == 0 {
            crate::log::print(Level::Warning, &format!("{device} gives no times of nodes"));
        }
    }
    let profile = counters.average();
    core.explain_compiled(&mut rows, device, &compiled, &profile);
    graph.explain(device, &rows);
    graph.time(&profile);
    Ok(())
}
