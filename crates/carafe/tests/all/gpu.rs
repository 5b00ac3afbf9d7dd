//! The OpenCL device beside the CPU, on the demo. Without an OpenCL device these tests fail and say so; `scripts/test` installs
//! PoCL.

use carafe::{ElementType, Properties, Tensor};
use std::path::{Path, PathBuf};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/digits/digits.xml");

fn probabilities(device: &str, properties: &Properties) -> Vec<f32> {
    let compiled = carafe::core().compile_model(DEMO, device, properties).unwrap();
    let pixels: Vec<f32> = (0..64).map(|i| (i * 37 % 17) as f32).collect();
    let image = Tensor::from_vec(&[1, 1, 8, 8], pixels).unwrap();
    let outputs = compiled.create_infer_request().infer(&[("image", image)]).unwrap();
    assert_eq!(outputs["probabilities"].element_type(), ElementType::F32);
    outputs["probabilities"].as_slice::<f32>().unwrap().to_vec()
}

#[track_caller]
fn near(found: &[f32], wanted: &[f32], bound: f32) {
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= bound), "{found:?} is not near {wanted:?}");
}

#[test]
fn the_demo_gives_the_same_on_gpu_and_divided_between_gpu_and_cpu() {
    let wanted = probabilities("TEMPLATE", &Properties::new());
    near(&probabilities("GPU", &Properties::new()), &wanted, 1e-4);
    near(&probabilities("HETERO:GPU,TEMPLATE", &Properties::new()), &wanted, 1e-4);
}

#[test]
fn the_demo_is_near_in_f16_on_gpu_and_on_vpu_by_both_names() {
    let wanted = probabilities("TEMPLATE", &Properties::new());
    near(&probabilities("GPU", &Properties::new().with("INFERENCE_PRECISION_HINT", "f16")), &wanted, 0.01);
    for name in ["VPU", "MYRIAD", "HETERO:VPU,CPU"] {
        near(&probabilities(name, &Properties::new()), &wanted, 0.02);
    }
}

#[test]
fn a_model_for_gpu_is_exported_and_imported() {
    let core = carafe::core();
    let compiled = core.compile_model(DEMO, "GPU", &Properties::new()).unwrap();
    let mut blob = vec![];
    compiled.export(&mut blob).unwrap();
    let again = core.import_model(blob.clone().into(), "GPU", &Properties::new()).unwrap();
    let image = || Tensor::from_vec(&[1, 1, 8, 8], vec![3f32; 64]).unwrap();
    let (a, b) = (compiled.infer(&[("image", image())]).unwrap(), again.infer(&[("image", image())]).unwrap());
    assert!(a[0].content_eq(&b[0]));
    blob.truncate(blob.len() / 2);
    assert!(core.import_model(blob.into(), "GPU", &Properties::new()).is_err());
}

#[test]
fn devices_that_only_stand_for_others_are_not_chosen_by_auto() {
    let compiled = carafe::core().compile_model(DEMO, "AUTO", &Properties::new()).unwrap();
    let devices = compiled.property("EXECUTION_DEVICES").unwrap();
    assert!(!devices.contains("VPU"), "{devices}");
}

fn noise(shape: &[usize], seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let numbers = (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0);
    Tensor::from_vec(shape, numbers.collect::<Vec<f32>>()).unwrap()
}

// A network of `scripts/fixtures/gpu_networks.py` on every device that OpenCL has a part in. Outputs are compared by the largest of
// their numbers.
fn same_everywhere(name: &str, inputs: &[Vec<(&str, Tensor)>]) {
    let core = carafe::core();
    let file = format!("{}/tests/data/gpu_networks/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
    let model = core.read_model(file).unwrap();
    let template = core.compile_model(&model, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    let half = Properties::new().with("INFERENCE_PRECISION_HINT", "f16");
    let plain = Properties::new();
    // CPU alone would compute in bf16 where it can.
    let strict = Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
    for (device, properties, bound) in [
        ("GPU", &plain, 1e-4),
        ("GPU", &half, 1e-2),
        ("VPU", &plain, 1e-2),
        ("HETERO:GPU,CPU", &strict, 1e-4),
        ("MULTI:GPU,CPU", &strict, 1e-4),
    ] {
        let compiled = core.compile_model(&model, device, properties).unwrap();
        let request = compiled.create_infer_request();
        // Twice each: the second time all launches are one command.
        for inputs in inputs.iter().flat_map(|i| [i, i]) {
            let wanted = template.infer(&inputs[..]).unwrap();
            let found = request.infer(&inputs[..]).unwrap();
            for i in 0..compiled.outputs().len() {
                let (found, wanted) = (found[i].as_slice::<f32>().unwrap(), wanted[i].as_slice::<f32>().unwrap());
                let scale = wanted.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
                let worst = found.iter().zip(wanted).fold(0f32, |m, (a, b)| m.max((a - b).abs() / scale));
                assert!(found.len() == wanted.len() && worst <= bound, "{device} {name} output {i} is off by {worst}");
            }
        }
    }
}

#[test]
fn a_cnn_gives_the_same_on_every_device_of_opencl() {
    same_everywhere("cnn", &[vec![("image", noise(&[1, 3, 32, 32], 1))]]);
}

#[test]
fn a_transformer_block_gives_the_same_on_every_device_of_opencl() {
    let ids = |batch: usize| {
        let ids: Vec<i64> = (0..12 * batch as i64).map(|i| i * 17 % 50).collect();
        let mask: Vec<i64> = (0..12 * batch as i64).map(|i| i64::from(i % 12 < 9)).collect();
        vec![
            ("ids", Tensor::from_vec(&[batch, 12], ids).unwrap()),
            ("mask", Tensor::from_vec(&[batch, 12], mask).unwrap()),
        ]
    };
    same_everywhere("transformer", &[ids(1), ids(3)]);
}

#[test]
fn an_lstm_gives_the_same_on_every_device_of_opencl() {
    same_everywhere("lstm", &[vec![("x", noise(&[7, 2, 12], 2))], vec![("x", noise(&[3, 2, 12], 3))]]);
}

// Largest distance of two lists, of the largest number.
fn distance(found: &Tensor, wanted: &Tensor) -> f64 {
    assert_eq!(found.shape(), wanted.shape());
    let (found, wanted) = (found.to_vec::<f64>().unwrap(), wanted.to_vec::<f64>().unwrap());
    let scale = wanted.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
    found.iter().zip(&*wanted).fold(0.0, |m, (a, b)| m.max((a - b).abs() / scale))
}

#[test]
fn networks_of_keras_give_on_gpu_what_tensorflow_gave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fe-tensorflow/tests/data/control");
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let is_network = |f: &PathBuf| {
        let name = f.file_stem().unwrap_or_default().to_string_lossy();
        f.extension().is_some_and(|e| e == "pb") && name.starts_with("keras-") && !name.ends_with("-lowered")
    };
    let files: Vec<PathBuf> = files.filter(is_network).collect();
    assert!(files.len() >= 12, "{files:?}");
    let core = carafe::core();
    for path in &files {
        let arrays = carafe_npy::read_npz(&std::fs::read(path.with_extension("npz")).unwrap()).unwrap();
        let named = |mark: &'static str| arrays.iter().filter_map(move |(n, t)| Some((n.strip_prefix(mark)?, t)));
        let model = core.read_model(path).unwrap();
        for (device, precision, bound) in [("GPU", "f32", 1e-4), ("GPU", "f16", 2e-2), ("HETERO:GPU,CPU", "f32", 1e-4)]
        {
            let properties = Properties::new().with("INFERENCE_PRECISION_HINT", precision);
            let request = core.compile_model(&model, device, &properties).unwrap().create_infer_request();
            for (name, tensor) in named("i.") {
                // An input that has no effect is gone.
                let Some(index) = model.find_parameter(name) else { continue };
                request.set_input(index, tensor.clone()).unwrap();
            }
            request.infer(()).unwrap();
            for (name, wanted) in named("o.") {
                let found = request.output(model.find_result(name).unwrap()).unwrap();
                let far = distance(&found, wanted);
                assert!(far <= bound, "{} on {device} in {precision}: `{name}` is off by {far}", path.display());
            }
        }
    }
}

#[test]
fn what_gpu_has_no_kernel_for_is_denied_and_goes_to_cpu() {
    let text = r#"<ir_version: 8, opset_import: ["": 17]>
        net (float[1,6,4] boxes, float[1,2,6] scores) => (int64[N,3] picked, float[1,2,6] likely) {
            most = Constant <value = int64[1] {3}> ()
            overlap = Constant <value = float[1] {0.5}> ()
            corners = Relu (boxes)
            likely = Sigmoid (scores)
            picked = NonMaxSuppression (corners, likely, most, overlap)
        }"#;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("picked.onnxtxt");
    std::fs::write(&file, text).unwrap();
    let core = carafe::core();
    let model = core.read_model(&file).unwrap();
    let query = core.query_model(&model, "GPU", &Properties::new()).unwrap();
    let denied: Vec<&str> = query.unsupported.iter().map(|u| u.type_name.as_str()).collect();
    assert_eq!(denied, ["NonMaxSuppression"]);
    let corners = (0..6).flat_map(|i| [i as f32, 0.0, i as f32 + 4.0, 3.0]).collect::<Vec<f32>>();
    let inputs = [("boxes", Tensor::from_vec(&[1, 6, 4], corners).unwrap()), ("scores", noise(&[1, 2, 6], 5))];
    let run = |device: &str| {
        let compiled = core.compile_model(&model, device, &Properties::new()).unwrap();
        let outputs = compiled.create_infer_request().infer(&inputs[..]).unwrap();
        (compiled, outputs["picked"].clone())
    };
    let wanted = run("TEMPLATE").1;
    // GPU alone evaluates it on the host.
    assert!(run("GPU").1.content_eq(&wanted));
    let (compiled, found) = run("HETERO:GPU,CPU");
    assert!(found.content_eq(&wanted));
    let report = compiled.property("HETERO_REPORT").unwrap();
    assert!(report.contains("GPU") && report.contains("CPU"), "{report}");
}

#[test]
fn the_cache_keeps_built_kernels_too() {
    let folder = std::env::temp_dir().join(format!("carafe-kernels-{}", std::process::id()));
    let properties = Properties::new().with("CACHE_DIR", folder.display());
    let core = carafe::core();
    let compiled = core.compile_model(DEMO, "GPU", &properties).unwrap();
    assert_eq!(compiled.property("LOADED_FROM_CACHE").unwrap(), "false");
    assert_eq!(compiled.property("KERNEL_CACHE_DIR").unwrap(), folder.join("kernels").display().to_string());
    let again = core.compile_model(DEMO, "GPU", &properties).unwrap();
    assert_eq!(again.property("LOADED_FROM_CACHE").unwrap(), "true");
    let mine = folder.join("mine");
    let own = properties.with("KERNEL_CACHE_DIR", mine.display());
    assert_eq!(
        core.compile_model(DEMO, "GPU", &own).unwrap().property("KERNEL_CACHE_DIR").unwrap(),
        mine.display().to_string()
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_compiled_model_says_whether_launches_are_one_command() {
    let core = carafe::core();
    let says = |properties: &Properties| {
        core.compile_model(DEMO, "GPU", properties).unwrap().property("COMMAND_BUFFERS").unwrap()
    };
    let off = Properties::new().with("COMMAND_BUFFERS", false);
    assert_eq!(says(&off), "false");
    assert_eq!(says(&Properties::new().with("PERF_COUNT", true)), "false");
    near(&probabilities("GPU", &off), &probabilities("GPU", &Properties::new()), 1e-6);
}

#[test]
fn tensors_of_the_device_go_through_devices_made_of_devices() {
    let core = carafe::core();
    let context = core.create_context("GPU", &Properties::new()).unwrap();
    let pixels = Tensor::from_vec(&[1, 1, 8, 8], (0..64).map(|i| (i * 37 % 17) as f32).collect::<Vec<_>>()).unwrap();
    let mut image = context.create_tensor(ElementType::F32, &[1, 1, 8, 8]).unwrap();
    image.copy_elements(0, &pixels, 0, 64).unwrap();
    let wanted = probabilities("TEMPLATE", &Properties::new());
    for device in ["GPU", "CPU", "TEMPLATE", "HETERO:GPU,CPU", "MULTI:GPU,CPU"] {
        let output = context.create_tensor(ElementType::F32, &[1, 10]).unwrap();
        // The CPU may choose bf16.
        let exact = Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
        let exact = if device.contains(',') || device == "TEMPLATE" { Properties::new() } else { exact };
        let request = core.compile_model(DEMO, device, &exact).unwrap().create_infer_request();
        request.set_output("probabilities", output.clone()).unwrap();
        request.infer(&[("image", image.clone())]).unwrap();
        let bound = if device.contains(',') { 2e-3 } else { 1e-4 };
        near(output.to_host().unwrap().as_slice::<f32>().unwrap(), &wanted, bound);
    }
    let none = core.create_context("CPU", &Properties::new()).unwrap_err().to_string();
    assert!(none.contains("no memory of its own"), "{none}");
}
