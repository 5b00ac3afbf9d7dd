//! Every case under `fixtures` gives what MXNet gave: on TEMPLATE and CPU, with shapes that are known only when it runs, and
//! converted, written as IR and read again. `scripts/fixtures/mxnet.py` writes them.

use carafe::convert::Conversion;
use carafe::frontend::InputShape;
use carafe::{Core, Model, PartialShape, Properties, ReadRequest, SharedBytes, Tensor};
use std::collections::BTreeSet;
use std::path::Path;

/// Relative error of floats, measured against at least a thousandth of the largest of the output.
const TOLERANCE: f64 = 1e-4;
/// Of half floats.
const HALF_TOLERANCE: f64 = 2e-3;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        /// Names of all archives.
        pub(crate) const FAMILIES: &[&str] = &[$(stringify!($family)),*];
        $(#[test]
        fn $family() {
            check(stringify!($family));
        })*
    };
}

families! {
    activation,
    arithmetic,
    compare,
    constants,
    control,
    convolution,
    detection,
    heads,
    indexing,
    joining,
    linear,
    normalization,
    numpy,
    pooling,
    recurrent,
    reduce,
    reshaping,
    resize,
    search,
    shapes,
    slicing,
    softmax,
    unary,
}

/// Cases that need a rank or size which only an input of known shape has, and why.
const STATIC_ONLY: &[(&str, &str)] = &[("squeeze_all", "how many axes are left is known only with the sizes of all")];

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) symbol: SharedBytes,
    pub(crate) params: Option<SharedBytes>,
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<Tensor>,
}

/// The cases of an archive.
pub(crate) fn cases(family: &str) -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{family}.npz"));
    let arrays = carafe_npy::read_npz(&std::fs::read(file).unwrap()).unwrap();
    let names: BTreeSet<&str> = arrays.iter().map(|(n, _)| n.split(':').next().unwrap()).collect();
    let of = |name: &&str| {
        let find = |key: &str| arrays.iter().find(|(n, _)| *n == format!("{name}:{key}")).map(|(_, t)| t);
        let bytes = |key: &str| find(key).map(|t| SharedBytes::from_vec(t.bytes().to_vec()));
        let inputs =
            arrays.iter().filter_map(|(n, t)| Some((n.strip_prefix(&format!("{name}:in:"))?.to_string(), t.clone())));
        Case {
            name: name.to_string(),
            symbol: bytes("symbol").unwrap(),
            params: bytes("params"),
            inputs: inputs.collect(),
            outputs: (0..).map_while(|i| find(&format!("out:{i}")).cloned()).collect(),
        }
    };
    names.iter().map(of).collect()
}

fn check(family: &str) {
    let core = carafe::core();
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let all = cases(family);
    let mut failures = vec![];
    for case in &all {
        for (path, run) in PATHS {
            if let Err(e) = run(&core, case) {
                failures.push(format!("{} ({path}): {e}", case.name));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), all.len(), failures.join("\n"));
}

type Run = fn(&Core, &Case) -> Result<(), String>;

const PATHS: &[(&str, Run)] = &[
    ("TEMPLATE", |core, case| case.run(core, &case.read(core, false)?, "TEMPLATE")),
    ("CPU", |core, case| case.run(core, &case.read(core, false)?, "CPU")),
    ("dynamic", |core, case| {
        if STATIC_ONLY.iter().any(|(name, _)| *name == case.name) {
            return Ok(());
        }
        case.run(core, &case.read(core, true)?, "CPU")
    }),
    ("IR", |core, case| {
        let weights = case.params.as_ref().map(carafe::Content::Bytes);
        let request = ReadRequest { weights, ..ReadRequest::from_bytes(&case.symbol) };
        let mut conversion = Conversion::new(request);
        conversion.options.input = case.input_option();
        let model = conversion.run(core).map_err(|e| e.to_string())?.model;
        let written = carafe::ir::write_to(&model, &carafe::ir::WriteOptions::default());
        let (text, weights) = written.map_err(|e| e.to_string())?;
        let text = SharedBytes::from_vec(text.into());
        let model = core.read_model_from(text, Some(SharedBytes::from_vec(weights))).map_err(|e| e.to_string())?;
        case.run(core, &model, "CPU")
    }),
];

impl Case {
    fn shapes(&self, dynamic: bool) -> Vec<InputShape> {
        let shape = |t: &Tensor| match dynamic {
            true => PartialShape::any_of_rank(t.rank()),
            false => PartialShape::of(t.shape()),
        };
        self.inputs.iter().map(|(name, t)| InputShape { name: Some(name.clone()), shape: shape(t) }).collect()
    }

    // As `--input` has them.
    fn input_option(&self) -> Option<String> {
        let of = |(name, t): &(String, Tensor)| {
            let dims: Vec<String> = t.shape().iter().map(usize::to_string).collect();
            format!("{name}[{}]", dims.join(","))
        };
        let all: Vec<String> = self.inputs.iter().map(of).collect();
        if all.is_empty() { None } else { Some(all.join(",")) }
    }

    pub(crate) fn read(&self, core: &Core, dynamic: bool) -> Result<Model, String> {
        let shapes = self.shapes(dynamic);
        let request = ReadRequest {
            weights: self.params.as_ref().map(carafe::Content::Bytes),
            input_shapes: &shapes,
            ..ReadRequest::from_bytes(&self.symbol)
        };
        core.read(&request).map_err(|e| e.to_string())
    }

    fn run(&self, core: &Core, model: &Model, device: &str) -> Result<(), String> {
        let compiled = core.compile_model(model, device, &Properties::new()).map_err(|e| e.to_string())?;
        let request = compiled.create_infer_request();
        if model.parameters().len() != self.inputs.len() {
            return Err(format!("{} inputs, expected {}", model.parameters().len(), self.inputs.len()));
        }
        for (name, tensor) in &self.inputs {
            let at = model.find_parameter(name).ok_or_else(|| format!("there is no input `{name}`"))?;
            request.set_input(at, tensor.clone()).map_err(|e| e.to_string())?;
        }
        request.infer(()).map_err(|e| e.to_string())?;
        if model.results().len() != self.outputs.len() {
            return Err(format!("{} outputs, expected {}", model.results().len(), self.outputs.len()));
        }
        for (i, wanted) in self.outputs.iter().enumerate() {
            let found = request.output(i).map_err(|e| e.to_string())?;
            agree(wanted, &found).map_err(|e| format!("output {i}: {e}"))?;
        }
        Ok(())
    }
}

fn agree(wanted: &Tensor, found: &Tensor) -> Result<(), String> {
    let (ty, shape) = (wanted.element_type(), wanted.shape());
    if ty != found.element_type() || shape != found.shape() {
        return Err(format!("{}{:?}, expected {ty}{shape:?}", found.element_type(), found.shape()));
    }
    if !ty.is_float() && !ty.is_integer() {
        return if wanted.content_eq(found) { Ok(()) } else { Err(format!("{found:?}, expected {wanted:?}")) };
    }
    let (wanted, found) = (wanted.to_vec::<f64>().unwrap(), found.to_vec::<f64>().unwrap());
    let largest = wanted.iter().filter(|w| w.is_finite()).fold(0.0f64, |m, w| m.max(w.abs()));
    let tolerance = if ty.bits() < 32 { HALF_TOLERANCE } else { TOLERANCE };
    for (i, (w, f)) in wanted.iter().zip(found.iter()).enumerate() {
        let allowed = if ty.is_integer() { 0.0 } else { tolerance * w.abs().max(1e-3 * largest) };
        if !((w - f).abs() <= allowed || w == f || (w.is_nan() && f.is_nan())) {
            return Err(format!("element {i} is {f}, expected {w}"));
        }
    }
    Ok(())
}
