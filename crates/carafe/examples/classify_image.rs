//! Classifies a picture: its bytes become the tensor of the input, and the best three of the outputs are printed.
//!
//!     cargo run --release --example classify_image [MODEL PICTURE LABELS]

use carafe::preprocess::image_tensor;
use carafe::{Error, Properties, Result, files};
use std::path::{Path, PathBuf};

pub(crate) fn main() -> Result<()> {
    let given: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let demo = |file: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/digits").join(file);
    let [model, picture, labels] = match given.as_slice() {
        [model, picture, labels] if model.exists() => [model.clone(), picture.clone(), labels.clone()],
        _ => [demo("digits.xml"), demo("seven.png"), demo("labels.txt")],
    };

    let core = carafe::core();
    let compiled = core.compile_model(&model, "CPU", &Properties::new())?;
    let bytes = files::read(&picture, 256 << 20).map_err(|e| Error::io("cannot read the picture", &e))?;
    let tensor = image_tensor(&bytes, compiled.input(0)?, None)?;
    let outputs = compiled.infer(tensor)?;

    let labels = files::read_text(&labels).map_err(|e| Error::io("cannot read the labels", &e))?;
    let labels: Vec<&str> = labels.lines().collect();
    let scores = outputs[0].to_vec::<f32>()?;
    let mut best: Vec<usize> = (0..scores.len()).collect();
    best.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    for i in best.into_iter().take(3) {
        println!("{:>6.3}  {}", scores[i], labels.get(i).unwrap_or(&"?"));
    }
    Ok(())
}
