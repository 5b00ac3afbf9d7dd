//! One engine's side of `scripts/bench-peers`: holds a compiled model and answers timing commands, a JSON object a line.
//!
//!     bench_worker MODEL INPUTS.npz THREADS STREAMS DEVICE [PRECISION]
//!
//! THREADS are those of one inference, STREAMS how many inferences run at once. PRECISION is the INFERENCE_PRECISION_HINT;
//! `default`, or none, leaves it to the device. When the model is ready, the first line tells what that took. Then, on standard input:
//!
//!     time SECONDS RUNS   run for that long and at least that often: median and least time of an inference
//!     rate SECONDS        keep all streams busy: how many inferences in how much time
//!     dump DIR            write the outputs as out_0.npy, out_1.npy and so on
//!     rss                 memory now and at its peak
//!     profile SECONDS     compile again with PERF_COUNT: least time of every node

use carafe::{
    CompiledModel, Core, Error, InferRequest, Model, NodeStatus, PartialShape, Port, Properties, Result, Tensor,
};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let told = match Setup::parse(&args) {
        Ok(setup) => serve(&setup),
        Err(e) => Err(e),
    };
    if let Err(e) = told {
        say(&json!({"error": e.to_string()}));
        std::process::exit(1);
    }
}

struct Setup {
    model: String,
    inputs: Vec<(String, Tensor)>,
    threads: usize,
    streams: usize,
    device: String,
    precision: Option<String>,
}

impl Setup {
    fn parse(args: &[String]) -> Result<Setup> {
        let [model, inputs, threads, streams, device, precision @ ..] = args else {
            return Err(Error::usage("usage: bench_worker MODEL INPUTS.npz THREADS STREAMS DEVICE [PRECISION]"));
        };
        let bytes = std::fs::read(inputs).map_err(|e| Error::io(format!("cannot read `{inputs}`"), &e))?;
        Ok(Setup {
            model: model.clone(),
            inputs: carafe_npy::read_npz(&bytes).map_err(|e| Error::invalid(e.to_string()))?,
            threads: number(threads)?,
            streams: number(streams)?,
            device: device.clone(),
            precision: precision.first().filter(|p| *p != "default").cloned(),
        })
    }

    fn compile(&self, core: &Core, count: bool) -> Result<CompiledModel> {
        let model = self.fixed(core.read_model(&self.model)?)?;
        let known = core.device(&self.device)?.properties();
        let mut properties = Properties::new();
        let streams = match self.streams {
            // The device chooses.
            0 => ("PERFORMANCE_HINT", "THROUGHPUT".to_string()),
            n => ("NUM_STREAMS", n.to_string()),
        };
        for (name, value) in [
            ("INFERENCE_NUM_THREADS", (self.threads * self.streams).to_string()),
            streams,
            ("PERF_COUNT", count.to_string()),
        ] {
            if known.iter().any(|p| p.name == name) {
                properties.set(name, value);
            }
        }
        if let Some(precision) = &self.precision {
            properties.set("INFERENCE_PRECISION_HINT", precision.clone());
        }
        core.compile_model(&model, &self.device, &properties)
    }

    /// With the shapes of the inputs in place of open ones.
    fn fixed(&self, mut model: Model) -> Result<Model> {
        let ports = Port::inputs_of(&model);
        let shapes: HashMap<usize, PartialShape> = ports
            .iter()
            .enumerate()
            .filter(|(_, port)| !port.shape.is_static())
            .filter_map(|(i, port)| Some((i, PartialShape::of(self.given(&port.name, &port.names)?.shape()))))
            .collect();
        if !shapes.is_empty() {
            model.reshape(&shapes)?;
        }
        Ok(model)
    }

    fn given(&self, name: &str, names: &BTreeSet<String>) -> Option<&Tensor> {
        self.inputs.iter().find(|(n, _)| n == name || names.contains(n)).map(|(_, tensor)| tensor)
    }

    fn request(&self, compiled: &CompiledModel) -> Result<InferRequest> {
        let request = compiled.create_infer_request();
        for (i, port) in compiled.inputs().iter().enumerate() {
            let given = self.given(&port.name, &port.names);
            let tensor = given.ok_or_else(|| Error::usage(format!("no value for input `{}`", port.name)))?;
            request.set_input(i, tensor.clone())?;
        }
        Ok(request)
    }
}

fn serve(setup: &Setup) -> Result<()> {
    let base = memory("VmRSS:");
    let start = Instant::now();
    let core = carafe::core();
    let compiled = setup.compile(&core, false)?;
    let n = match setup.streams {
        0 => compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")?.parse().unwrap_or(1),
        n => n,
    };
    let requests = (0..n).map(|_| setup.request(&compiled)).collect::<Result<Vec<_>>>()?;
    let load = start.elapsed();
    let start = Instant::now();
    requests[0].infer(())?;
    say(&json!({"load_s": load.as_secs_f64(), "first_s": start.elapsed().as_secs_f64(), "base_kb": base}));

    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        say(&match words.as_slice() {
            ["time", seconds, runs] => time(&requests[0], lasting(seconds)?, number(runs)?)?,
            ["rate", seconds] => rate(&requests, lasting(seconds)?)?,
            ["dump", folder] => dump(&requests[0], compiled.outputs().len(), Path::new(folder))?,
            ["rss"] => json!({"peak_kb": memory("VmHWM:"), "rss_kb": memory("VmRSS:")}),
            ["profile", seconds] => profile(setup, &core, lasting(seconds)?)?,
            ["quit"] => break,
            _ => return Err(Error::usage(format!("no command `{line}`"))),
        });
    }
    Ok(())
}

fn time(request: &InferRequest, lasting: Duration, runs: usize) -> Result<Value> {
    let mut each = Vec::with_capacity(1 << 16);
    let start = Instant::now();
    while each.len() < runs || start.elapsed() < lasting {
        let begin = Instant::now();
        request.infer(())?;
        each.push(begin.elapsed().as_nanos() as u64);
    }
    each.sort_unstable();
    let (least, median) = (each.first(), each.get(each.len() / 2));
    Ok(json!({"median_ns": median, "min_ns": least, "count": each.len()}))
}

fn rate(requests: &[InferRequest], lasting: Duration) -> Result<Value> {
    let start = Instant::now();
    let counts: Vec<Result<usize>> = std::thread::scope(|scope| {
        let run = |request: &InferRequest| {
            let mut count = 0;
            while start.elapsed() < lasting {
                request.infer(())?;
                count += 1;
            }
            Ok(count)
        };
        let threads: Vec<_> = requests.iter().map(|r| scope.spawn(move || run(r))).collect();
        threads.into_iter().map(|t| t.join().expect("an inference does not panic")).collect()
    });
    let count = counts.into_iter().sum::<Result<usize>>()?;
    Ok(json!({"count": count, "seconds": start.elapsed().as_secs_f64()}))
}

fn dump(request: &InferRequest, outputs: usize, folder: &Path) -> Result<Value> {
    request.infer(())?;
    for i in 0..outputs {
        let bytes = carafe_npy::write_npy(&request.output(i)?).map_err(|e| Error::invalid(e.to_string()))?;
        let file = folder.join(format!("out_{i}.npy"));
        std::fs::write(&file, bytes).map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))?;
    }
    Ok(json!({"outputs": outputs}))
}

fn profile(setup: &Setup, core: &Core, lasting: Duration) -> Result<Value> {
    let compiled = setup.compile(core, true)?;
    let request = setup.request(&compiled)?;
    request.infer(())?;
    let (mut least, mut order) = (HashMap::new(), Vec::new());
    let (start, mut wall, mut runs) = (Instant::now(), Duration::MAX, 0);
    while runs < 3 || start.elapsed() < lasting {
        let begin = Instant::now();
        request.infer(())?;
        wall = wall.min(begin.elapsed());
        runs += 1;
        for node in request.profile()?.into_iter().filter(|n| n.status == NodeStatus::Executed) {
            let known = least.entry(node.name.clone()).or_insert(node.real_time);
            *known = node.real_time.min(*known);
            if runs == 1 {
                order.push(node);
            }
        }
    }
    // A node that stands for several of the model says which.
    let model = compiled.runtime_model();
    let originals: HashMap<&str, String> = model
        .nodes()
        .filter_map(|(_, n)| Some((n.name(), n.rt_info.get("originalLayersNames")?.fields.first()?.1.clone())))
        .collect();
    let nodes: Vec<Value> = order
        .iter()
        .map(|n| {
            json!({"name": n.name, "type": n.type_name, "kernel": n.kernel, "us": least[&n.name].as_nanos() as f64 / 1e3,
                "of": originals.get(n.name.as_str()).map(|o| o.split(',').collect::<Vec<_>>())})
        })
        .collect();
    Ok(json!({"wall_us": wall.as_nanos() as f64 / 1e3, "runs": runs, "nodes": nodes}))
}

// A line of /proc/self/status, in KiB.
fn memory(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix(line)?.split_whitespace().next()?.parse().ok())
}

fn number(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Error::usage(format!("`{text}` is not a number")))
}

fn lasting(text: &str) -> Result<Duration> {
    let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| Error::usage(format!("`{text}` is no number of seconds")))
}

fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    // Whoever asked may be gone; then the next read of a command ends the loop.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
