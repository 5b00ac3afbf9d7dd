//! Quantized networks as TensorFlow's converter writes them, with the settings that a user has by default: they give what the
//! TFLite interpreter gave, and on machines that multiply integers faster their layers do. `scripts/fixtures/tflite_networks.py`
//! writes them.

use carafe::{Core, ElementType, Properties, ReadRequest, SharedBytes, Tensor};

/// Steps of the output that roundings on the way may add up to, 256 for 16 bits.
const STEPS: f64 = 1.0;

struct Network {
    model: SharedBytes,
    input: Tensor,
    output: Tensor,
}

fn network(name: &str) -> Network {
    let arrays = carafe_npy::read_npz(include_bytes!("../fixtures/networks.npz")).unwrap();
    let array = |what: &str| arrays.iter().find(|(n, _)| *n == format!("{name}:{what}")).unwrap().1.clone();
    Network { model: SharedBytes::from_vec(array("model").bytes().to_vec()), input: array("in"), output: array("out") }
}

/// Kernels of layers, after the output was compared.
fn layers(core: &Core, name: &str) -> Vec<String> {
    let Network { model, input, output } = network(name);
    let model = core.read(&ReadRequest::from_bytes(&model)).unwrap();
    let compiled = core.compile_model(&model, "CPU", &Properties::new().with("PERF_COUNT", "YES")).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, input).unwrap();
    request.infer(()).unwrap();
    let found = request.output(0).unwrap();
    let steps = if output.element_type() == ElementType::I16 { 256.0 * STEPS } else { STEPS };
    for (a, b) in found.to_vec::<f64>().unwrap().iter().zip(output.to_vec::<f64>().unwrap().iter()) {
        assert!((a - b).abs() <= steps, "{name}: {a}, expected {b}");
    }
    let is_layer = |k: &String| (k.starts_with("conv_") || k.contains("gemm")) && !k.starts_with("convert");
    request.profile().unwrap().into_iter().map(|p| p.kernel).filter(is_layer).collect()
}

// Whether this machine has an integer capability.
fn is_fast(core: &Core) -> bool {
    core.get_property("CPU", "OPTIMIZATION_CAPABILITIES").unwrap().contains("INT8")
}

#[test]
fn convolutions_of_files_in_8_bits_multiply_integers() {
    let core = carafe::core();
    for name in ["vision_int8", "vision_uint8"] {
        let kernels = layers(&core, name);
        assert!(kernels.len() >= 8, "{kernels:?}");
        assert!(!is_fast(&core) || kernels.iter().all(|k| k.contains("_i8")), "{name}: {kernels:?}");
    }
}

#[test]
fn products_of_attention_in_8_bits_multiply_integers() {
    let core = carafe::core();
    let kernels = layers(&core, "attention_int8");
    assert!(kernels.iter().any(|k| k.starts_with("batch_gemm")), "{kernels:?}");
    assert!(!is_fast(&core) || kernels.iter().all(|k| k.contains("_i8")), "{kernels:?}");
}

#[test]
fn files_with_data_of_16_bits_agree() {
    layers(&carafe::core(), "vision_int16");
}
