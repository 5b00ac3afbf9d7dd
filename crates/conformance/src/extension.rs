//! What every operation of an extension must do: each device gives what `eval` gives, shapes are those that `infer` promised, an IR
//! keeps it, threads do not disturb each other, and nothing is left behind. And the cases of a project: models with what goes in and
//! what must come out.

mod cases;
mod memory;
mod probe;

pub use cases::{ModelCase, read_cases};

use crate::compare::{Tolerance, compare};
use crate::guard::caught;
use carafe::{
    AttrMap, AttrValue, Core, ElementType, ErrorKind, Extension, Model, OpFactory, PartialShape, Properties, Tensor,
    properties as names,
};
use carafe_graph::{AttrKind, OpRef};
use probe::{Probe, Values};
use std::path::Path;

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It holds; what was looked at.
    Passed(String),
    /// It does not, and why.
    Failed(String),
    /// It could not be asked, and why.
    Skipped(String),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Check {
    /// Operation, or the model of a case.
    pub subject: String,
    pub device: String,
    pub check: &'static str,
    pub outcome: Outcome,
}

/// Puts every operation of an extension, and the cases of its project, through all checks on these devices.
pub fn check(
    core: &Core,
    extension: &Extension,
    devices: &[String],
    cases: &[ModelCase],
    hear: &mut dyn FnMut(&Check),
) -> Vec<Check> {
    let mut all = vec![];
    let mut add = |subject: &str, device: &str, check: &'static str, outcome: Outcome| {
        all.push(Check { subject: subject.into(), device: device.into(), check, outcome });
        hear(all.last().expect("it was pushed"));
    };
    for case in cases {
        for device in devices {
            add(&case.name, device, "cases", case.run(core, device));
        }
    }
    for factory in &extension.ops {
        let name = factory.info.xml_name;
        let op = match sample(factory) {
            Ok(op) => op,
            Err(e) => {
                add(name, "-", "kernel", Outcome::Skipped(format!("no node of it can be made from defaults: {e}")));
                continue;
            }
        };
        let probes = probe::probes(&op);
        if probes.is_empty() {
            add(name, "-", "kernel", Outcome::Skipped("`infer` refused every shape and type that was tried".into()));
            continue;
        }
        add(name, "-", "shapes", settle(shapes(&probes)));
        add(name, "-", "round trip", settle(round_trip(core, &probes)));
        add(name, "-", "memory", settle(memory::of_operation(factory, &probes)));
        for device in devices {
            add(name, device, "kernel", settle(kernel(core, device, &probes, Values::Random)));
            add(name, device, "edge values", settle(kernel(core, device, &probes, Values::Edge)));
            add(name, device, "threads", settle(threads(core, device, &probes)));
            add(name, device, "memory", settle(memory::of_device(core, device, &probes)));
        }
    }
    all
}

/// What a check says: passed with a note, or skipped.
enum Said {
    Passed(String),
    Skipped(String),
}

fn settle(result: Result<Said, String>) -> Outcome {
    match result {
        Ok(Said::Passed(note)) => Outcome::Passed(note),
        Ok(Said::Skipped(why)) => Outcome::Skipped(why),
        Err(e) => Outcome::Failed(e),
    }
}

// A node from defaults; what must be given gets a plain value.
fn sample(factory: &OpFactory) -> carafe::Result<OpRef> {
    let mut attrs = AttrMap::new();
    for a in factory.info.attrs.iter().filter(|a| a.default.is_none()) {
        let value = match a.kind {
            AttrKind::Bool => AttrValue::Bool(true),
            AttrKind::Int => AttrValue::Int(1),
            AttrKind::Float => AttrValue::Float(0.5),
            AttrKind::Str => AttrValue::Str("text".into()),
            AttrKind::Ints => AttrValue::Ints(vec![1, 2]),
            AttrKind::Floats => AttrValue::Floats(vec![0.5, 2.0]),
            AttrKind::Strs => AttrValue::Strs(vec!["a".into()]),
            AttrKind::Type => AttrValue::Type(ElementType::F32),
            AttrKind::Enum(words) => AttrValue::Str(words.first().copied().unwrap_or_default().into()),
            _ => continue,
        };
        attrs.set(a.name, value);
    }
    factory.create(&attrs)
}

fn run(core: &Core, model: &Model, device: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    caught(|| {
        let compiled = core.compile_model(model, device, &Properties::new()).map_err(|e| e.to_string())?;
        let request = compiled.create_infer_request();
        infer(&request, inputs, compiled.outputs().len())
    })
}

fn infer(request: &carafe::InferRequest, inputs: &[Tensor], n: usize) -> Result<Vec<Tensor>, String> {
    for (i, t) in inputs.iter().enumerate() {
        request.set_input(i, t.clone()).map_err(|e| e.to_string())?;
    }
    request.infer(()).map_err(|e| e.to_string())?;
    (0..n).map(|i| request.output(i).map_err(|e| e.to_string())).collect()
}

// A device that computes in f16 is off by as much.
fn tolerance(device: &str, ty: ElementType) -> Tolerance {
    match ty {
        _ if device.starts_with("VPU") || device.starts_with("MYRIAD") => Tolerance { rtol: 5e-3, atol: 5e-3 },
        ElementType::F16 => Tolerance { rtol: 2e-3, atol: 1e-3 },
        ElementType::Bf16 => Tolerance { rtol: 2e-2, atol: 1e-2 },
        _ => Tolerance::of_type(ty),
    }
}

fn is_half(device: &str) -> bool {
    device.starts_with("VPU") || device.starts_with("MYRIAD")
}

fn kernel(core: &Core, device: &str, probes: &[Probe], values: Values) -> Result<Said, String> {
    let (mut ran, mut refused) = (0, None);
    let mut kernels: Vec<String> = vec![];
    for probe in probes {
        let query = core.query_model(&probe.model, device, &Properties::new()).map_err(|e| e.to_string())?;
        if let Some(u) = query.unsupported.first() {
            refused = Some(u.reason.clone());
            continue;
        }
        // A kernel may refuse a type once it sees it.
        let compiled = match core.compile_model(&probe.model, device, &Properties::new()) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                refused = Some(e.to_string());
                continue;
            }
            Err(e) => return Err(format!("{}: {e}", probe.title())),
            Ok(compiled) => compiled,
        };
        // The numbers of f16 end earlier.
        let inputs = probe.inputs(values, is_half(device))?;
        let wanted = probe.eval(&inputs).map_err(|e| format!("{}: `eval`: {e}", probe.title()))?;
        let found = run(core, &probe.model, device, &inputs).map_err(|e| format!("{}: {e}", probe.title()))?;
        for (port, (w, f)) in wanted.iter().zip(&found).enumerate() {
            let different = |e: String| format!("{}, output {port}: {e}", probe.title());
            compare(w, f, tolerance(device, w.element_type())).map_err(different)?;
        }
        ran += 1;
        if values == Values::Random {
            let mut rows = core.explain(&probe.model);
            core.explain_compiled(&mut rows, device, &compiled, &[]);
            let used = rows.iter().find(|r| r.name == probe::NODE).and_then(|r| r.kernel.clone());
            kernels.extend(used.filter(|k| !kernels.contains(k)));
        }
    }
    let by = if kernels.is_empty() { String::new() } else { format!(" by {}", kernels.join(", ")) };
    match (ran, refused) {
        (0, Some(reason)) => Ok(Said::Skipped(format!("the device does not take it: {reason}"))),
        (ran, Some(_)) => Ok(Said::Passed(format!("{ran} shapes and types{by}; the device takes no others"))),
        (ran, None) => Ok(Said::Passed(format!("{ran} shapes and types{by}"))),
    }
}

// What `infer` promises with known and with unknown sizes, against what `eval` gives.
fn shapes(probes: &[Probe]) -> Result<Said, String> {
    for probe in probes {
        let outputs =
            probe.eval(&probe.inputs(Values::Random, false)?).map_err(|e| format!("{}: `eval`: {e}", probe.title()))?;
        for unknown in [false, true] {
            let model = match unknown {
                false => probe.model.clone(),
                true => probe
                    .with_shapes(|shape| PartialShape::any_of_rank(shape.len()))
                    .map_err(|e| format!("{} with unknown sizes: {e}", probe.title()))?,
            };
            for (port, (result, tensor)) in model.results().iter().zip(&outputs).enumerate() {
                let fact = model.fact(model.result_value(*result));
                let fits = fact.shape.accepts(tensor.shape())
                    && (fact.ty == tensor.element_type() || fact.ty == ElementType::Dynamic);
                if !fits {
                    let how = if unknown { " with unknown sizes" } else { "" };
                    return Err(format!(
                        "{}{how}, output {port}: `infer` promises {}[{}], `eval` gives {}{:?}",
                        probe.title(),
                        fact.ty,
                        fact.shape,
                        tensor.element_type(),
                        tensor.shape()
                    ));
                }
            }
        }
    }
    Ok(Said::Passed(format!("{} shapes and types, known and unknown sizes", probes.len())))
}

fn round_trip(core: &Core, probes: &[Probe]) -> Result<Said, String> {
    let probe = &probes[0];
    let folder = std::env::temp_dir().join(format!("carafe-extension-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let path = folder.join("model.xml");
    let done = write_and_read(core, probe, &path);
    let _ = std::fs::remove_dir_all(&folder);
    let model = done?;
    let id = model.find_node(probe::NODE).ok_or("the node is not in the model that was read back")?;
    let (before, after) = (probe.op().attrs(), model.node(id).op().attrs());
    let internal = |name: &str| probe.op().info().attrs.iter().any(|a| a.internal && a.name == name);
    for (name, value) in before.iter().filter(|(name, _)| !internal(name)) {
        let found = after.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.to_text());
        if found != value.to_text() {
            return Err(format!(
                "attribute `{name}` was {value}, and is {} in the IR",
                found.unwrap_or("missing".into())
            ));
        }
    }
    let inputs = probe.inputs(Values::Random, false)?;
    let wanted = run(core, &probe.model, "TEMPLATE", &inputs)?;
    for (w, f) in wanted.iter().zip(&run(core, &model, "TEMPLATE", &inputs)?) {
        compare(w, f, Tolerance::EXACT)?;
    }
    Ok(Said::Passed(format!("{} attributes", before.len())))
}

fn write_and_read(core: &Core, probe: &Probe, path: &Path) -> Result<Model, String> {
    carafe_ir::write_file(&probe.model, path, &carafe_ir::WriteOptions::default()).map_err(|e| e.to_string())?;
    core.read_model(path).map_err(|e| e.to_string())
}

// The largest probe that the device takes, with its inputs.
fn taken<'p>(core: &Core, device: &str, probes: &'p [Probe]) -> Result<Option<(&'p Probe, Vec<Tensor>)>, String> {
    let mut by_size: Vec<&Probe> = probes.iter().collect();
    by_size.sort_by_key(|p| std::cmp::Reverse(p.elements()));
    for probe in by_size {
        let query = core.query_model(&probe.model, device, &Properties::new()).map_err(|e| e.to_string())?;
        if query.unsupported.is_empty() {
            return Ok(Some((probe, probe.inputs(Values::Random, is_half(device))?)));
        }
    }
    Ok(None)
}

const NOT_TAKEN: &str = "the device does not take it";

// Requests at once, each with values of its own: what one writes into the memory of another shows.
fn threads(core: &Core, device: &str, probes: &[Probe]) -> Result<Said, String> {
    const THREADS: usize = 8;
    const ROUNDS: usize = 60;
    let Some((probe, _)) = taken(core, device, probes)? else { return Ok(Said::Skipped(NOT_TAKEN.into())) };
    if probe.op().info().random || probe.op().info().stateful {
        return Ok(Said::Skipped("two evaluations may differ".into()));
    }
    // Requests of one stream stand in a queue.
    let found = core.device(device).map_err(|e| e.to_string())?;
    let streams = found.properties().iter().any(|p| p.name == names::NUM_STREAMS);
    let properties = if streams { Properties::new().with(names::NUM_STREAMS, THREADS) } else { Properties::new() };
    let compiled = core.compile_model(&probe.model, device, &properties).map_err(|e| e.to_string())?;
    let (n, compiled) = (compiled.outputs().len(), &compiled);
    let first = compiled.create_infer_request();
    let mut work = vec![];
    for thread in 0..THREADS {
        let inputs = probe.inputs(Values::Seeded(thread as u64), is_half(device))?;
        let wanted = infer(&first, &inputs, n)?;
        work.push((inputs, wanted));
    }
    let failed = std::thread::scope(|scope| {
        let all: Vec<_> = work
            .iter()
            .map(|(inputs, wanted)| {
                scope.spawn(move || {
                    let request = compiled.create_infer_request();
                    for _ in 0..ROUNDS {
                        let found = infer(&request, inputs, n)?;
                        for (w, f) in wanted.iter().zip(&found) {
                            compare(w, f, Tolerance::EXACT)?;
                        }
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        all.into_iter().find_map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())).err())
    });
    match failed {
        Some(e) => Err(format!("{THREADS} requests at once: {e}")),
        None => Ok(Said::Passed(format!("{THREADS} requests at once, {ROUNDS} times each"))),
    }
}
