//! Finds objects with an SSD, in pictures of another size than the model was made for: every shape behind the input follows.
//!
//!     cargo run --release --example reshape_ssd [MODEL SIZE]

use carafe::{PartialShape, Properties, Result, Tensor};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) fn main() -> Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../fe-caffe/tests/fixtures/ssd.prototxt");
    let (file, size) = match given.as_slice() {
        [model, size] if Path::new(model).exists() => (PathBuf::from(model), size.parse().unwrap_or(300)),
        _ => (own(), 48),
    };

    let core = carafe::core();
    let mut model = core.read_model(file)?;
    let shape = [1, 3, size, size];
    model.reshape(&HashMap::from([(0, PartialShape::of(&shape))]))?; // its first input
    let compiled = core.compile_model(&model, "CPU", &Properties::new())?;

    // A gray ramp; a program of yours reads a picture with `carafe::preprocess::image_tensor`.
    let pixels: Vec<f32> = (0..3 * size * size).map(|i| (i % size) as f32 / size as f32).collect();
    let outputs = compiled.infer(Tensor::from_slice(&shape, &pixels)?)?;

    // Rows of seven: picture, class, score, and the corners of a box; a picture of -1 ends them.
    let rows = outputs[0].to_vec::<f32>()?;
    let found: Vec<&[f32]> = rows.chunks_exact(7).take_while(|row| row[0] >= 0.0).collect();
    for row in found.iter().take(3) {
        println!("class {}, score {:.3}, from {:.2?} to {:.2?}", row[1], row[2], &row[3..5], &row[5..7]);
    }
    println!("{} objects in a picture of {size} by {size}", found.len());
    Ok(())
}
