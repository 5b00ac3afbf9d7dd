//! Reads arbitrary text as kernels for the GPU, binds them to a node and infers the operations that they declare.
#![no_main]

use carafe_custom_kernels::{KernelFile, Mode, NodeView, PortView, gpu};
use carafe_graph::{AttrMap, AttrValue};
use carafe_tensor::{ElementType, PartialShape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (xml, source) = text.split_once('\0').unwrap_or((text, "__kernel void k() {}"));
    let file = KernelFile::with_source("k.xml", xml, source);
    let strict = gpu::read(&file, Mode::Strict);
    let found = gpu::read(&file, Mode::Compatible);
    assert!(strict.is_err() || found.is_ok(), "what is right strictly is right at all");
    let port = || PortView { name: "data".into(), ty: ElementType::F32, shape: vec![1, 3, 8, 8], is_constant: true };
    let attrs: AttrMap = [("a".to_string(), AttrValue::Ints(vec![1, 2]))].into_iter().collect();
    let node = NodeView { attrs, inputs: vec![port(), port()], outputs: vec![port()] };
    let inputs = vec![(ElementType::F32, PartialShape::of(&[1, 3, 8, 8])); 2];
    for layer in found.map(|f| f.layers).unwrap_or_default() {
        let _ = layer.bind(&node);
        for rule in layer.declaration.iter().flat_map(|d| &d.outputs) {
            let _ = rule.infer(&inputs, &node.attrs);
        }
    }
});
