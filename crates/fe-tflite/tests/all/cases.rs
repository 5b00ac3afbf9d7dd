//! Every case under `fixtures` gives what the TFLite interpreter gave: on CPU, on TEMPLATE, and converted, written as IR and read
//! again. `scripts/fixtures/tflite.py` writes them.

use carafe::convert::Conversion;
use carafe::{Core, Model, Properties, ReadRequest, SharedBytes, Tensor};
use std::collections::BTreeSet;
use std::path::Path;

/// Relative error of floats, measured against at least a thousandth of the largest of the output.
const TOLERANCE: f64 = 1e-4;
/// Error beside the largest of the output where the interpreter rounds activations to 8 bits while it runs, and we do not.
const HYBRID_TOLERANCE: f64 = 3e-2;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(#[test]
        fn $family() {
            check(stringify!($family));
        })*
    };
}

families! {
    binary,
    convolution,
    detection,
    detection_output,
    flex,
    fourier,
    graphs,
    indexing,
    linear,
    mediapipe,
    movement,
    normalization,
    pooling,
    quantized,
    recurrent,
    reduce,
    resize,
    shapes,
    stablehlo,
    unary,
}

fn check(family: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{family}.npz"));
    let arrays = carafe_npy::read_npz(&std::fs::read(file).unwrap()).unwrap();
    let names: BTreeSet<&str> = arrays.iter().map(|(n, _)| n.split(':').next().unwrap()).collect();
    let core = carafe::core();
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let mut failures = vec![];
    for name in &names {
        let list = |kind: &str| {
            let all = (0..).map(|i| arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}:{i}")));
            all.map_while(|a| Some(a?.1.clone())).collect::<Vec<Tensor>>()
        };
        let one = |kind: &str| arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}")).map(|(_, t)| t).unwrap();
        let case = Case {
            name: name.to_string(),
            file: SharedBytes::from_vec(one("model").bytes().to_vec()),
            runs: one("runs").to_vec::<i64>().map_or(1, |r| r[0]),
            inputs: list("in"),
            outputs: list("out"),
        };
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
    name: String,
    file: SharedBytes,
    runs: i64,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

type Run = fn(&Core, &Case) -> Result<(), String>;

const PATHS: &[(&str, Run)] = &[
    ("TEMPLATE", |core, case| case.run(core, &case.read(core)?, "TEMPLATE")),
    ("CPU", |core, case| case.run(core, &case.read(core)?, "CPU")),
    ("IR", |core, case| {
        let model = Conversion::new(ReadRequest::from_bytes(&case.file)).run(core).map_err(|e| e.to_string())?.model;
        let written = carafe::ir::write_to(&model, &carafe::ir::WriteOptions::default());
        let (text, weights) = written.map_err(|e| e.to_string())?;
        let text = SharedBytes::from_vec(text.into());
        let model = core.read_model_from(text, Some(SharedBytes::from_vec(weights))).map_err(|e| e.to_string())?;
        case.run(core, &model, "CPU")
    }),
];

impl Case {
    fn read(&self, core: &Core) -> Result<Model, String> {
        core.read(&ReadRequest::from_bytes(&self.file)).map_err(|e| e.to_string())
    }

    fn run(&self, core: &Core, model: &Model, device: &str) -> Result<(), String> {
        let compiled = core.compile_model(model, device, &Properties::new()).map_err(|e| e.to_string())?;
        let request = compiled.create_infer_request();
        if model.parameters().len() != self.inputs.len() {
            return Err(format!("{} inputs, expected {}", model.parameters().len(), self.inputs.len()));
        }
        for (i, tensor) in self.inputs.iter().enumerate() {
            request.set_input(i, tensor.clone()).map_err(|e| e.to_string())?;
        }
        for _ in 0..self.runs {
            request.infer(()).map_err(|e| e.to_string())?;
        }
        if model.results().len() != self.outputs.len() {
            return Err(format!("{} outputs, expected {}", model.results().len(), self.outputs.len()));
        }
        for (i, wanted) in self.outputs.iter().enumerate() {
            let found = request.output(i).map_err(|e| e.to_string())?;
            self.compare(wanted, &found).map_err(|e| format!("output {i}: {e}"))?;
        }
        Ok(())
    }

    fn compare(&self, wanted: &Tensor, found: &Tensor) -> Result<(), String> {
        let (ty, shape) = (wanted.element_type(), wanted.shape());
        if ty != found.element_type() || shape != found.shape() {
            return Err(format!("{}{:?}, expected {ty}{shape:?}", found.element_type(), found.shape()));
        }
        if !ty.is_float() && !ty.is_integer() {
            return if wanted.content_eq(found) { Ok(()) } else { Err(format!("{found:?}, expected {wanted:?}")) };
        }
        let is_hybrid = self.name.contains("hybrid");
        let (wanted, found) = (wanted.to_vec::<f64>().unwrap(), found.to_vec::<f64>().unwrap());
        let largest = wanted.iter().filter(|w| w.is_finite()).fold(0.0f64, |m, w| m.max(w.abs()));
        for (i, (w, f)) in wanted.iter().zip(found.iter()).enumerate() {
            let allowed = match ty.is_integer() {
                // One step of a quantised type; counts and indexes are exact.
                true => f64::from(u8::from(ty.bits() <= 16)),
                false if is_hybrid => HYBRID_TOLERANCE * largest,
                false => TOLERANCE * w.abs().max(1e-3 * largest),
            };
            let same = (w - f).abs() <= allowed || w == f || (w.is_nan() && f.is_nan());
            if !same {
                return Err(format!("element {i} is {f}, expected {w}"));
            }
        }
        Ok(())
    }
}
