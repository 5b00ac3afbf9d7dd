//! Every case under `fixtures` gives what Paddle gave: evaluated as the model says, on CPU, and converted, written as IR and read again.
//! `scripts/fixtures/paddle_programs.py` writes them, programs of Paddle 2.6 and of Paddle 3.

use carafe::convert::Conversion;
use carafe::{Content, Core, Model, Properties, ReadRequest, SharedBytes, Tensor};
use std::collections::BTreeSet;
use std::path::Path;

/// Relative error of floats, measured against at least a thousandth of the largest of the output.
const TOLERANCE: f64 = 1e-4;

macro_rules! families {
    ($($folder:ident { $($family:ident),* $(,)? })*) => {
        $(mod $folder {
            $(#[test]
            fn $family() {
                super::check(stringify!($folder), stringify!($family));
            })*
        })*
    };
}

families! {
    program {
        activation,
        binary,
        control,
        convolution,
        detection,
        indexing,
        linear,
        lod,
        movement,
        normalization,
        old,
        pooling,
        quantize,
        quantized_nets,
        recurrent,
        reduce,
        resize,
        sources,
        unary,
    }
    json {
        activation,
        binary,
        control,
        convolution,
        detection,
        indexing,
        linear,
        movement,
        normalization,
        pooling,
        quantized_nets,
        recurrent,
        reduce,
        resize,
        sources,
        unary,
    }
}

#[test]
fn layers_of_quantized_networks_multiply_integers() {
    for folder in ["program", "json"] {
        let arrays = arrays(folder, "quantized_nets");
        let core = carafe::core();
        for (name, _) in arrays.iter().filter(|(name, _)| name.ends_with(":model")) {
            let name = name.trim_end_matches(":model");
            let model = core.read(&Case::of(&arrays, name).request()).unwrap();
            let compiled = core.compile_model(&model, "CPU", &Properties::new()).unwrap();
            let running = compiled.runtime_model();
            let kernels = running.nodes().map(|(_, n)| format!("{:?}", n.rt_info.get("primitiveType")));
            let integers = kernels.filter(|kernel| kernel.contains("_i8")).count();
            assert!(integers >= 3, "{folder}/{name}: {integers} of 5 layers");
        }
    }
}

fn arrays(folder: &str, family: &str) -> Vec<(String, Tensor)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{folder}/{family}.npz"));
    carafe_npy::read_npz(&std::fs::read(file).unwrap()).unwrap()
}

fn check(folder: &str, family: &str) {
    let arrays = arrays(folder, family);
    let names: BTreeSet<&str> = arrays.iter().map(|(n, _)| n.split(':').next().unwrap()).collect();
    let core = carafe::core();
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let mut failures = vec![];
    for name in &names {
        let case = Case::of(&arrays, name);
        assert!(!case.outputs.is_empty(), "{name} has no outputs to compare");
        for (path, run) in PATHS {
            if let Err(e) = run(&core, &case) {
                failures.push(format!("{name} ({path}): {e}"));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), names.len(), failures.join("\n"));
}

struct Case {
    model: SharedBytes,
    weights: SharedBytes,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

type Run = fn(&Core, &Case) -> Result<(), String>;

const PATHS: &[(&str, Run)] = &[
    ("eval", |core, case| {
        let model = core.read(&case.request()).map_err(|e| e.to_string())?;
        let found = model.evaluate(&case.inputs).map_err(|e| e.to_string())?;
        case.compare_all(&found)
    }),
    ("CPU", |core, case| case.run(core, &core.read(&case.request()).map_err(|e| e.to_string())?)),
    ("IR", |core, case| {
        let model = Conversion::new(case.request()).run(core).map_err(|e| e.to_string())?.model;
        let written = carafe::ir::write_to(&model, &carafe::ir::WriteOptions::default());
        let (text, weights) = written.map_err(|e| e.to_string())?;
        let text = SharedBytes::from_vec(text.into());
        let model = core.read_model_from(text, Some(SharedBytes::from_vec(weights))).map_err(|e| e.to_string())?;
        case.run(core, &model)
    }),
];

impl Case {
    fn of(arrays: &[(String, Tensor)], name: &str) -> Case {
        let list = |kind: &str| {
            let all = (0..).map(|i| arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}:{i}")));
            all.map_while(|a| Some(a?.1.clone())).collect::<Vec<Tensor>>()
        };
        let bytes = |kind: &str| {
            let found = arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}")).map(|(_, t)| t.bytes().to_vec());
            SharedBytes::from_vec(found.unwrap_or_default())
        };
        Case { model: bytes("model"), weights: bytes("weights"), inputs: list("in"), outputs: list("out") }
    }

    fn request(&self) -> ReadRequest<'_> {
        let mut request = ReadRequest::from_bytes(&self.model);
        request.weights = Some(Content::Bytes(&self.weights)).filter(|_| !self.weights.is_empty());
        request
    }

    fn run(&self, core: &Core, model: &Model) -> Result<(), String> {
        let compiled = core.compile_model(model, "CPU", &Properties::new()).map_err(|e| e.to_string())?;
        let request = compiled.create_infer_request();
        if model.parameters().len() != self.inputs.len() {
            return Err(format!("{} inputs, expected {}", model.parameters().len(), self.inputs.len()));
        }
        for (i, tensor) in self.inputs.iter().enumerate() {
            request.set_input(i, tensor.clone()).map_err(|e| e.to_string())?;
        }
        request.infer(()).map_err(|e| e.to_string())?;
        let found = (0..model.results().len()).map(|i| request.output(i).map_err(|e| e.to_string()));
        self.compare_all(&found.collect::<Result<Vec<_>, _>>()?)
    }

    fn compare_all(&self, found: &[Tensor]) -> Result<(), String> {
        if found.len() != self.outputs.len() {
            return Err(format!("{} outputs, expected {}", found.len(), self.outputs.len()));
        }
        let mut all = self.outputs.iter().zip(found).enumerate();
        all.try_for_each(|(i, (wanted, found))| compare(wanted, found).map_err(|e| format!("output {i}: {e}")))
    }
}

fn compare(wanted: &Tensor, found: &Tensor) -> Result<(), String> {
    let (ty, shape) = (wanted.element_type(), wanted.shape());
    if ty != found.element_type() || shape != found.shape() {
        return Err(format!("{}{:?}, expected {ty}{shape:?}", found.element_type(), found.shape()));
    }
    if !ty.is_float() {
        return if wanted.content_eq(found) { Ok(()) } else { Err(format!("{found:?}, expected {wanted:?}")) };
    }
    let (wanted, found) = (wanted.to_vec::<f64>().unwrap(), found.to_vec::<f64>().unwrap());
    let largest = wanted.iter().filter(|w| w.is_finite()).fold(0.0f64, |m, w| m.max(w.abs()));
    for (i, (w, f)) in wanted.iter().zip(found.iter()).enumerate() {
        let allowed = TOLERANCE * w.abs().max(1e-3 * largest);
        let same = (w - f).abs() <= allowed || w == f || (w.is_nan() && f.is_nan());
        if !same {
            return Err(format!("element {i} is {f}, expected {w}"));
        }
    }
    Ok(())
}
