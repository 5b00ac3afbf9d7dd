//! The six lines of README.md, from the root of the repository as there.

use std::process::Command;

// The program itself: a process of its own, for the folder it stands in.
fn six_lines() -> carafe::Result<()> {
    let core = carafe::core();
    let model = core.compile_model("demo/digits/digits.xml", "CPU", &carafe::Properties::new())?;
    let request = model.create_infer_request();
    let image = carafe::Tensor::zeros(carafe::ElementType::F32, &[1, 1, 8, 8])?;
    let outputs = request.infer(&[("image", image)])?;
    println!("{:?}", outputs["probabilities"].as_slice::<f32>()?);
    Ok(())
}

const INSIDE: &str = "CARAFE_SIX_LINES";

#[test]
fn the_six_lines_of_the_readme_run() {
    if std::env::var_os(INSIDE).is_some() {
        return six_lines().unwrap();
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["the_six_lines_of_the_readme_run", "--nocapture"]).env(INSIDE, "1").current_dir(root);
    let done = again.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("[0."), "{said}{}", String::from_utf8_lossy(&done.stderr));
}
