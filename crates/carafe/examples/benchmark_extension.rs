//! Times a model with an operation of an extension. Without arguments the model and the extension are made here.
//!
//!     cargo run --release --example benchmark_extension [MODEL LIBRARY SECONDS]

use carafe::prelude::*;
use carafe::{Error, Model, OpFactory, Properties};
use std::path::Path;
use std::time::{Duration, Instant};

/// `x * x + shift`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", inputs = "x", outputs = "y")]
struct ShiftedSquare {
    /// What is added.
    #[attr(default = 1.0)]
    shift: f32,
}

impl Op for ShiftedSquare {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| x * x + self.shift).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

pub(crate) fn main() -> Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let core = carafe::core();
    let (model, limit) = match given.as_slice() {
        [model, library, seconds] if Path::new(model).exists() => {
            // Before the model is read: it has operations that only the library knows.
            core.add_extension(library.as_str())?;
            (core.read_model(model)?, seconds.parse().unwrap_or(1.0))
        }
        _ => {
            core.add_ops([OpFactory::of::<ShiftedSquare>()]);
            let mut model = Model::new("square");
            let x = model.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 32, 32]))?;
            let y = model.add("y", ShiftedSquare { shift: 2.0 }, &[x])?;
            model.result("result", y.into())?;
            (model, 0.05)
        }
    };
    let compiled = core.compile_model(&model, "CPU", &Properties::new().with("PERFORMANCE_HINT", "LATENCY"))?;
    let request = compiled.create_infer_request();
    // Zeros for every input.
    for (i, port) in compiled.inputs().iter().enumerate() {
        let open = || Error::usage(format!("input `{}` has open sizes: reshape the model first", port.name));
        let shape = port.shape.to_static().ok_or_else(open)?;
        request.set_input(i, Tensor::zeros(port.ty, &shape)?)?;
    }
    // The first inference makes everything that is made once.
    request.infer(())?;
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < Duration::from_secs_f64(limit) {
        let start = Instant::now();
        request.infer(())?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{} inferences, median {:?}, least {:?}", times.len(), times[times.len() / 2], times[0]);
    Ok(())
}
