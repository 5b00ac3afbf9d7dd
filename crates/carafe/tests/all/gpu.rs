//! The OpenCL device beside the CPU, on the demo. Without an OpenCL device these tests fail and say so; `scripts/test` installs
//! PoCL.

use carafe::{ElementType, Properties, Tensor};

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
