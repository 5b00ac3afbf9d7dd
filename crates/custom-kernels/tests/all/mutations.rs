//! The kernel files of the examples with bytes changed, left out and doubled: whatever comes out is read or refused, and never panics.

use carafe_custom_kernels::{KernelFile, Mode, NodeView, PortView, gpu, vpu};
use carafe_graph::{AttrMap, AttrValue};
use carafe_tensor::ElementType;
use std::path::PathBuf;

const CHANGES: usize = 1500;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

const WORDS: [&str; 16] = [
    "<",
    ">",
    "\"",
    "'",
    "&lt;",
    "<!--",
    "]]>",
    "-1",
    "99999999999",
    "X*Y/0",
    "((((",
    "INPUT0_DIMS[9]",
    "é",
    "\0",
    "stage=\"1\"",
    "ANY",
];

fn changed(text: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(text.len());
        match random.below(4) {
            0 => drop(text.remove(at)),
            1 => {
                let end = (at + random.below(40)).min(text.len());
                text.drain(at..end);
            }
            2 => {
                let part: Vec<char> = text[at..(at + random.below(60)).min(text.len())].to_vec();
                text.splice(at..at, part);
            }
            _ => drop(text.splice(at..at, WORDS[random.below(WORDS.len())].chars())),
        }
        if text.is_empty() {
            break;
        }
    }
    text.into_iter().collect()
}

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/custom_kernels").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.retain(|p| p.extension().is_some_and(|e| e == "xml"));
    let read = |p: PathBuf| std::fs::read_to_string(p).unwrap();
    paths.into_iter().map(|p| (read(p.clone()), read(p.with_extension("cl")))).collect()
}

fn node() -> NodeView {
    let port = || PortView { name: "data".into(), ty: ElementType::F32, shape: vec![2, 4, 6, 8], is_constant: true };
    let attrs: AttrMap =
        [("stride".to_string(), AttrValue::Int(2)), ("eps".to_string(), AttrValue::Float(0.1))].into_iter().collect();
    NodeView { attrs, inputs: vec![port(), port()], outputs: vec![port()] }
}

#[test]
fn changed_files_of_the_gpu_are_read_or_refused() {
    let mut random = Random(1);
    for (xml, source) in files("gpu") {
        for _ in 0..CHANGES {
            let text = changed(&xml, &mut random);
            let file = KernelFile::with_source("k.xml", &text, &source);
            let strict = gpu::read(&file, Mode::Strict);
            let found = gpu::read(&file, Mode::Compatible);
            assert!(strict.is_err() || found.is_ok(), "what is right strictly is right at all:\n{text}");
            for layer in found.map(|f| f.layers).unwrap_or_default() {
                let _ = layer.bind(&node());
            }
        }
    }
}

#[test]
fn changed_files_of_the_vpu_are_read_or_refused() {
    let mut random = Random(2);
    for (xml, source) in files("vpu") {
        for _ in 0..CHANGES {
            let file = KernelFile::with_source("v.xml", &changed(&xml, &mut random), &changed(&source, &mut random));
            for layer in vpu::read(&file, Mode::Compatible).map(|f| f.layers).unwrap_or_default() {
                let _ = layer.suits(&node());
                if let Ok(bound) = layer.bind(&node()) {
                    bound.stages.iter().for_each(|s| drop(vpu::stage_source(s, false)));
                }
            }
        }
    }
}
