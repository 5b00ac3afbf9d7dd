//! What a new input shape costs: runs a model with input 0 at several sizes of one axis, each twice, and tells the time of
//! both in milliseconds.
//!
//!     new_shapes MODEL SHAPE AXIS SIZE,SIZE,...        e.g. new_shapes rec.onnx 1,3,48,0 3 320,328,336

use carafe::{Error, Properties, Result, Tensor};
use std::time::Instant;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, shape, axis, sizes] = args.as_slice() else {
        return Err(Error::usage("usage: new_shapes MODEL SHAPE AXIS SIZE,SIZE,..."));
    };
    let numbers = |list: &str| list.split(',').map(number).collect::<Result<Vec<_>>>();
    let (mut shape, axis) = (numbers(shape)?, number(axis)?);
    let core = carafe::core();
    let model = core.read_model(file)?;
    let compiled = core.compile_model(&model, "CPU", &Properties::new())?;
    let request = compiled.create_infer_request();
    for size in numbers(sizes)? {
        *shape.get_mut(axis).ok_or_else(|| Error::usage(format!("no axis {axis}")))? = size;
        let mut times = [0.0; 2];
        for time in &mut times {
            let n: usize = shape.iter().product();
            let values: Vec<f32> = (0..n).map(|i| (i % 97) as f32 / 97.0).collect();
            request.set_input(0, Tensor::from_vec(&shape, values)?)?;
            let start = Instant::now();
            request.infer(())?;
            *time = start.elapsed().as_secs_f64() * 1e3;
        }
        println!("{size}: new {:.1}, again {:.1}, more {:.1}", times[0], times[1], times[0] - times[1]);
    }
    Ok(())
}

fn number(text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| Error::usage(format!("`{text}` is not a size")))
}
