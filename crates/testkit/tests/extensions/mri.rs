//! The worked example of the guide to custom layers: a TensorFlow network that ends in Complex, IFFT2D and ComplexAbs. An engine
//! that does not know them names all three at once; `examples/mri-fft` makes it convert and run; and the engine as it is needs
//! no extension. `scripts/fixtures/tf_mri.py` writes the network and the numbers of TensorFlow.

use crate::support::tells;
use carafe::frontend::{RuleSet, Source};
use carafe::{Core, Format, Model, Properties, ReadRequest, Result, Tensor};
use carafe_fe_tensorflow::TensorFlow;
use carafe_testkit::libraries::{Workshop, root, rust_library};
use std::path::PathBuf;
use std::sync::Arc;

const TYPES: [&str; 3] = ["Complex", "IFFT2D", "ComplexAbs"];

/// TensorFlow as an engine reads it that has no rules for some types.
struct Without(RuleSet);

impl Format for Without {
    fn name(&self) -> &'static str {
        TensorFlow.name()
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        TensorFlow.recognizes(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        TensorFlow.decode(request)
    }
    fn framework(&self) -> &'static str {
        TensorFlow.framework()
    }
    fn rules(&self) -> &RuleSet {
        &self.0
    }
}

fn ignorant() -> Core {
    let core = Core::empty();
    core.add_ops(carafe_ops::factories());
    core.add_format(Arc::new(carafe_ir::Ir));
    core.add_format(Arc::new(Without(TensorFlow.rules().without(&TYPES))));
    core.add_device("CPU", carafe::core().device("CPU").unwrap()).unwrap();
    core.add_device("TEMPLATE", carafe::core().device("TEMPLATE").unwrap()).unwrap();
    core
}

fn fixture(name: &str) -> PathBuf {
    root().join("crates/testkit/fixtures/tensorflow").join(name)
}

fn read(core: &Core) -> Result<Model> {
    core.read_model(fixture("mri.pb"))
}

// What is wanted comes from TensorFlow. Gives the kernels that ran.
#[track_caller]
fn check(core: &Core, model: &Model, device: &str) -> Vec<String> {
    let arrays = carafe_npy::read_npz(&std::fs::read(fixture("mri.npz")).unwrap()).unwrap();
    let array = |name: &str| -> &Tensor { &arrays.iter().find(|(n, _)| n == name).unwrap().1 };
    let counted = Properties::new().with("PERF_COUNT", true);
    let counted = if device == "CPU" { counted.with("INFERENCE_PRECISION_HINT", "f32") } else { counted };
    let request = core.compile_model(model, device, &counted).unwrap().create_infer_request();
    request.set_input(0, array("i.x").clone()).unwrap();
    request.infer(()).unwrap();
    let (found, wanted) = (request.output(0).unwrap(), array("o.lambda_2/Abs"));
    assert_eq!(found.shape(), wanted.shape());
    for (a, b) in found.as_slice::<f32>().unwrap().iter().zip(wanted.as_slice::<f32>().unwrap()) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(0.1), "{a} is not {b}");
    }
    request.profile().unwrap().into_iter().map(|p| p.kernel).collect()
}

#[test]
fn without_rules_all_three_types_are_named_at_once() {
    let wanted = [
        "3 nodes of 3 operations cannot be translated",
        "1 x `Complex`",
        "`lambda_2/Complex`",
        "1 x `IFFT2D`",
        "`lambda_2/IFFT2D`",
        "1 x `ComplexAbs`",
        "`lambda_2/Abs`",
    ];
    tells(read(&ignorant()), &wanted);
}

#[test]
fn the_extension_makes_it_convert_and_run() {
    let core = ignorant();
    core.add_extension(rust_library("mri_fft")).unwrap();
    let model = read(&core).unwrap();
    let types: Vec<&str> = model.nodes().map(|(_, n)| n.op().type_name()).collect();
    assert!(types.contains(&"FFT") && !types.contains(&"StridedSlice"), "{types:?}");
    assert!(check(&core, &model, "CPU").iter().any(|k| k == "mri_fft"));
    check(&core, &model, "TEMPLATE");

    let shop = Workshop::new();
    let path = shop.path("mri.xml");
    carafe::ir::write_file(&model, &path, &carafe::ir::WriteOptions::default()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#"type="FFT" version="mri""#) && text.contains(r#"inverse="true""#), "{text}");
    check(&core, &core.read_model(&path).unwrap(), "CPU");
}

#[test]
fn the_extension_stands_in_front_of_the_built_in_rules() {
    let core = carafe::core();
    core.add_extension(rust_library("mri_fft")).unwrap();
    let model = read(&core).unwrap();
    assert!(check(&core, &model, "CPU").iter().any(|k| k == "mri_fft"));
}

#[test]
fn no_extension_is_needed() {
    let core = carafe::core();
    let model = read(&core).unwrap();
    assert!(model.nodes().any(|(_, n)| n.op().type_name() == "IDFT"));
    check(&core, &model, "CPU");
    check(&core, &model, "TEMPLATE");
}

#[test]
fn the_reference_of_the_operation_takes_sides_that_the_kernel_declines() {
    let core = carafe::core();
    core.add_extension(rust_library("mri_fft")).unwrap();
    let shop = Workshop::new();
    let port = |id: usize| format!(r#"<port id="{id}" precision="FP32"><dim>3</dim><dim>5</dim><dim>2</dim></port>"#);
    let layer = |id: usize, body: &str| format!(r#"<layer id="{id}" {body}</layer>"#);
    let layers = [
        layer(
            0,
            &format!(
                r#"name="x" type="Parameter" version="opset1"><data shape="3,5,2" element_type="f32"/><output>{}</output>"#,
                port(0)
            ),
        ),
        layer(
            1,
            &format!(
                r#"name="f" type="FFT" version="mri"><data inverse="false"/><input>{}</input><output>{}</output>"#,
                port(0),
                port(1)
            ),
        ),
        layer(
            2,
            &format!(
                r#"name="b" type="FFT" version="mri"><data inverse="true"/><input>{}</input><output>{}</output>"#,
                port(0),
                port(1)
            ),
        ),
        layer(3, r#"name="y" type="Result" version="opset1"><input><port id="0"/></input>"#),
    ];
    let edge =
        |a: usize, p: usize| format!(r#"<edge from-layer="{a}" from-port="{p}" to-layer="{}" to-port="0"/>"#, a + 1);
    let edges = [edge(0, 0), edge(1, 1), edge(2, 1)];
    let text = format!(
        r#"<net name="n" version="11"><layers>{}</layers><edges>{}</edges></net>"#,
        layers.concat(),
        edges.concat()
    );
    let model = core.read_model(shop.write("there-and-back.xml", text)).unwrap();
    let x: Vec<f32> = (0..30).map(|i| (i * 7 % 11) as f32 - 4.0).collect();
    let request = core.compile_model(&model, "CPU", &Properties::new()).unwrap().create_infer_request();
    request.set_input(0, Tensor::from_slice(&[3, 5, 2], &x).unwrap()).unwrap();
    request.infer(()).unwrap();
    let y = request.output(0).unwrap();
    for (a, b) in x.iter().zip(y.as_slice::<f32>().unwrap()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}
