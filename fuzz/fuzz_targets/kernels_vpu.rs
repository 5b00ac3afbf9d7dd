//! Reads arbitrary text as layers for the VPU, and binds them to a node.
#![no_main]

use carafe_custom_kernels::{KernelFile, Mode, NodeView, PortView, vpu};
use carafe_graph::{AttrMap, AttrValue};
use carafe_tensor::ElementType;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (xml, source) = text.split_once('\0').unwrap_or((text, "__kernel void k(__global half *a, int b) {}"));
    let file = KernelFile::with_source("v.xml", xml, source);
    let strict = vpu::read(&file, Mode::Strict);
    let found = vpu::read(&file, Mode::Compatible);
    assert!(strict.is_err() || found.is_ok(), "what is right strictly is right at all");
    let port = || PortView { name: "data".into(), ty: ElementType::F16, shape: vec![1, 3, 8, 8], is_constant: true };
    let attrs: AttrMap = [("a".to_string(), AttrValue::Ints(vec![1, 2]))].into_iter().collect();
    let node = NodeView { attrs, inputs: vec![port(), port()], outputs: vec![port()] };
    for layer in found.map(|f| f.layers).unwrap_or_default() {
        let suits = layer.suits(&node);
        if let (Ok(true), Ok(bound)) = (suits, layer.bind(&node)) {
            bound.stages.iter().for_each(|s| drop(vpu::stage_source(s, false)));
        }
    }
});
