//! Which device first, when the user leaves it open: by what devices say of themselves. A discrete accelerator, then an
//! integrated one, then the host; and before that, devices that compute in the model's precision before the others. The
//! processor that this program runs on may call itself integrated; it is the host all the same.

use super::Candidate;
use carafe_device::Device;
use carafe_graph::{Constant, Model};
use carafe_tensor::ElementType;

/// Best first; equal ones keep their order.
pub(crate) fn sort(candidates: &mut [Candidate], model: &Model) {
    let precision = precision(model);
    carafe_graph::sort_by_key(candidates, |c| (!has(&*c.device, precision), rank(&*c.device)));
}

/// Whether it is something beside the host, which takes its time to compile for.
pub(crate) fn is_accelerator(device: &dyn Device) -> bool {
    rank(device) < 2
}

fn rank(device: &dyn Device) -> usize {
    match device.metric("DEVICE_TYPE").unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "discrete" => 0,
        "integrated" if !is_this_processor(device) => 1,
        _ => 2,
    }
}

// The architecture begins with the name that the compiler has for it, as in `x86_64 avx512`.
fn is_this_processor(device: &dyn Device) -> bool {
    let architecture = device.metric("DEVICE_ARCHITECTURE").unwrap_or_default();
    architecture.split_whitespace().next() == Some(std::env::consts::ARCH)
}

fn has(device: &dyn Device, precision: &str) -> bool {
    let list = device.metric("OPTIMIZATION_CAPABILITIES").unwrap_or_default();
    list.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == precision)
}

// What the weights are kept in, by elements; a model with fake quantization is meant for integers.
fn precision(model: &Model) -> &'static str {
    if model.nodes().any(|(_, n)| n.op().info().quantizes) {
        return "INT8";
    }
    let (mut half, mut brain, mut full) = (0usize, 0usize, 0usize);
    for tensor in model.nodes().filter_map(|(_, n)| Some(n.op().get::<Constant>()?.tensor())) {
        match tensor.element_type() {
            ElementType::F16 => half += tensor.len(),
            ElementType::Bf16 => brain += tensor.len(),
            ElementType::F32 => full += tensor.len(),
            _ => {}
        }
    }
    match () {
        () if half > full && half >= brain => "FP16",
        () if brain > full => "BF16",
        () => "FP32",
    }
}
