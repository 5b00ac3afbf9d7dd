//! Every operation beside TensorFlow: graphs of one operation with inputs and the outputs that TensorFlow gave, written by
//! `scripts/fixtures/tf_ops.py`, which says what the files hold. Each must give the same on CPU and TEMPLATE, as it is and
//! after it was written as IR and read again. All failures are listed at once; `OPS=Name` runs the cases of one operation.

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{Content, ReadRequest};
use carafe_graph::Model;
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub(crate) struct Case {
    name: String,
    tolerance: f64,
    pub(crate) graph: Vec<u8>,
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<(String, Tensor)>,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        head
    }
    fn u32(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }
    fn record(&mut self) -> &'a [u8] {
        let n = self.u32();
        self.take(n)
    }
    fn text(&mut self) -> String {
        String::from_utf8(self.record().to_vec()).unwrap()
    }
    fn tensor(&mut self) -> Tensor {
        let (code, rank) = (self.take(1)[0], self.take(1)[0]);
        let shape: Vec<usize> = (0..rank).map(|_| self.u32()).collect();
        let mut data = Reader(self.record());
        let ty = match code {
            1 => ElementType::F32,
            2 => ElementType::F64,
            3 => ElementType::I32,
            4 => ElementType::U8,
            5 => ElementType::I16,
            6 => ElementType::I8,
            7 => {
                let count = shape.iter().product();
                let texts = (0..count).map(|_| carafe_tensor::text_of_bytes(data.record())).collect();
                return Tensor::from_strings(&shape, texts).unwrap();
            }
            9 => ElementType::I64,
            10 => ElementType::Boolean,
            14 => ElementType::Bf16,
            17 => ElementType::U16,
            19 => ElementType::F16,
            22 => ElementType::U32,
            23 => ElementType::U64,
            other => panic!("type {other}"),
        };
        Tensor::from_bytes(ty, &shape, data.0).unwrap()
    }
    fn named(&mut self) -> Vec<(String, Tensor)> {
        (0..self.u32()).map(|_| (self.text(), self.tensor())).collect()
    }
    fn case(&mut self) -> Case {
        let mut r = Reader(self.record());
        let name = r.text();
        let tolerance = f64::from_le_bytes(r.take(8).try_into().unwrap());
        let graph = r.record().to_vec();
        Case { name, tolerance, graph, inputs: r.named(), outputs: r.named() }
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ops");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "npz"));
    files.sort();
    files
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = vec![];
    for file in files() {
        let arrays = carafe_npy::read_npz(&std::fs::read(&file).unwrap()).unwrap();
        let bytes = arrays[0].1.to_vec::<u8>().unwrap();
        let mut reader = Reader(&bytes);
        while !reader.0.is_empty() {
            all.push(reader.case());
        }
    }
    all
}

#[test]
fn operations_give_what_tensorflow_gives() {
    let only = std::env::var("OPS").unwrap_or_default();
    let all: Vec<Case> = cases().into_iter().filter(|c| c.name.starts_with(&only)).collect();
    assert!(!only.is_empty() || all.len() > 1500, "{} cases", all.len());
    let core = carafe::core();
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &carafe::Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let mut failures = vec![];
    for case in &all {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&core, case)));
        if let Err(e) = outcome.unwrap_or_else(|_| Err("panics".to_string())) {
            failures.push(format!("{}: {e}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), all.len(), failures.join("\n"));
}

fn check(core: &carafe::Core, case: &Case) -> Result<(), String> {
    let bytes = SharedBytes::from_vec(case.graph.clone());
    let request = ReadRequest { model: Content::Bytes(&bytes), ..ReadRequest::new(Path::new("")) };
    let model = carafe_frontend::read(&TensorFlow, &request).map_err(|e| e.to_string())?;
    carafe_graph::verify(&model).map_err(|e| format!("not a sound model: {e}"))?;
    for device in ["TEMPLATE", "CPU"] {
        run(core, &model, device, case).map_err(|e| format!("on {device}: {e}"))?;
    }
    let (xml, weights) = carafe::ir::write_to(&model, &Default::default()).map_err(|e| format!("writing: {e}"))?;
    let options = carafe::ir::ReadOptions { old_api: false, ..Default::default() };
    let again = carafe::ir::read(&xml, SharedBytes::from_vec(weights), &core.registry(), &options);
    let again = again.map_err(|e| format!("reading again: {e}"))?;
    run(core, &again, "CPU", case).map_err(|e| format!("after writing and reading: {e}"))
}

fn run(core: &carafe::Core, model: &Model, device: &str, case: &Case) -> Result<(), String> {
    let text = |e: carafe::Error| e.to_string();
    let compiled = core.compile_model(model, device, &carafe::Properties::new()).map_err(text)?;
    let request = compiled.create_infer_request();
    for (name, tensor) in &case.inputs {
        // An input that has no effect is gone.
        let Some(index) = model.find_parameter(name) else { continue };
        request.set_input(index, tensor.clone()).map_err(text)?;
    }
    request.infer(()).map_err(text)?;
    let mut compared = 0;
    for (i, &r) in model.results().iter().enumerate() {
        let names = &model.output(model.result_value(r)).names;
        let is = |name: &str| names.contains(name) || model.node(r).name() == name;
        let Some((name, wanted)) = case.outputs.iter().find(|(name, _)| is(name)) else { continue };
        compared += 1;
        let found = request.output(i).map_err(text)?;
        same(&found, wanted, case.tolerance).map_err(|e| format!("`{name}`: {e}"))?;
    }
    let wanted = case.outputs.len();
    if compared == wanted { Ok(()) } else { Err(format!("{compared} of {wanted} outputs were compared")) }
}

fn same(found: &Tensor, wanted: &Tensor, tolerance: f64) -> Result<(), String> {
    let (a, b) = (found.element_type(), wanted.element_type());
    if (a, found.shape()) != (b, wanted.shape()) {
        return Err(format!("{a}{:?}, wanted {b}{:?}", found.shape(), wanted.shape()));
    }
    if let (Ok(a), Ok(b)) = (found.strings(), wanted.strings()) {
        return if a == b { Ok(()) } else { Err(format!("{a:?}, wanted {b:?}")) };
    }
    let values = |t: &Tensor| t.to_vec::<f64>().map(|v| v.into_owned()).map_err(|e| e.to_string());
    let (found, wanted) = (values(found)?, values(wanted)?);
    let close = |x: f64, y: f64| {
        x == y || x.is_nan() && y.is_nan() || b.is_float() && (x - y).abs() <= tolerance * (0.1 + y.abs())
    };
    match found.iter().zip(&wanted).position(|(x, y)| !close(*x, *y)) {
        None => Ok(()),
        Some(i) => Err(format!("element {i} is {}, wanted {}", found[i], wanted[i])),
    }
}
