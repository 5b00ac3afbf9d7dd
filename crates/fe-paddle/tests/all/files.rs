//! Where the files of a model lie: parameters beside the program or given, in one file or in one each.

use crate::common::*;
use carafe::{Core, Properties, ReadRequest, Tensor};
use std::path::{Path, PathBuf};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("carafe-fe-paddle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// x * b + a: names sort in another order than the program uses them.
fn affine() -> Message {
    let vars = [variable("b", &[3], true), variable("a", &[3], true), variable("t", &[3], false)];
    let mul = operator("elementwise_mul", &[("X", &["x"]), ("Y", &["b"])], &[("Out", &["t"])]);
    let add = operator("elementwise_add", &[("X", &["t"]), ("Y", &["a"])], &[("Out", &["y"])]);
    single(&vars, &[mul, add])
}

fn params() -> Vec<u8> {
    [record(&[3], &[10.0, 20.0, 30.0]), record(&[3], &[2.0, 3.0, 4.0])].concat()
}

fn run(core: &Core, request: &ReadRequest<'_>) -> Vec<f32> {
    let model = core.read(request).unwrap_or_else(|e| panic!("{e}"));
    let request = core.compile_model(&model, "CPU", &Properties::new()).unwrap().create_infer_request();
    request.set_input(0, Tensor::from_slice(&[3], &[1f32, 2.0, 3.0]).unwrap()).unwrap();
    request.infer(()).unwrap();
    request.output(0).unwrap().to_vec().unwrap().into_owned()
}

const WANTED: [f32; 3] = [12.0, 26.0, 42.0];

#[test]
fn parameters_lie_beside_the_program() {
    let folder = Folder::new("beside");
    let path = folder.write("net.pdmodel", &affine().0);
    folder.write("net.pdiparams", &params());
    let core = carafe::core();
    assert_eq!(core.format_of(&path).unwrap(), "PaddlePaddle");
    assert_eq!(run(&core, &ReadRequest::new(&path)), WANTED);
}

#[test]
fn parameters_may_be_given() {
    let folder = Folder::new("given");
    let (path, weights) = (folder.write("net.pdmodel", &affine().0), folder.write("other.bin", &params()));
    let mut request = ReadRequest::new(&path);
    request.weights = Some(weights.as_path().into());
    assert_eq!(run(&carafe::core(), &request), WANTED);
}

#[test]
fn parameters_may_lie_in_a_file_each() {
    let folder = Folder::new("each");
    folder.write("__model__", &affine().0);
    folder.write("a", &record(&[3], &[10.0, 20.0, 30.0]));
    folder.write("b", &record(&[3], &[2.0, 3.0, 4.0]));
    assert_eq!(run(&carafe::core(), &ReadRequest::new(&folder.0)), WANTED);
    assert_eq!(run(&carafe::core(), &ReadRequest::new(&folder.0.join("__model__"))), WANTED);
}

#[test]
fn a_folder_may_have_one_file_of_parameters() {
    let folder = Folder::new("params");
    folder.write("__model__", &affine().0);
    folder.write("__params__", &params());
    assert_eq!(run(&carafe::core(), &ReadRequest::new(&folder.0)), WANTED);
}

#[test]
fn parameters_that_are_nowhere_are_asked_for() {
    let folder = Folder::new("nowhere");
    let path = folder.write("net.pdmodel", &affine().0);
    let e = carafe::core().read(&ReadRequest::new(&path)).unwrap_err().to_string();
    assert!(e.contains("2 parameters") && e.contains("net.pdiparams"), "{e}");
}

#[test]
fn the_name_of_a_parameter_does_not_lead_out_of_the_folder() {
    let folder = Folder::new("escape");
    let add = operator("elementwise_add", &[("X", &["x"]), ("Y", &["../w"])], &[("Out", &["y"])]);
    folder.write("__model__", &single(&[variable("../w", &[3], true)], &[add]).0);
    let mut request = ReadRequest::new(&folder.0);
    request.weights = Some(Path::new(&folder.0).into());
    let e = carafe::core().read(&request).unwrap_err().to_string();
    assert!(e.contains("no name of a file"), "{e}");
}

#[test]
fn parameters_stay_mapped() {
    let folder = Folder::new("mapped");
    let path = folder.write("net.pdmodel", &affine().0);
    folder.write("net.pdiparams", &params());
    let model = carafe::core().read(&ReadRequest::new(&path)).unwrap();
    let b = model.node(model.find_node("b").unwrap());
    let constant = b.op().get::<carafe_graph::Constant>().unwrap();
    assert!(constant.tensor().is_mapped());
}
