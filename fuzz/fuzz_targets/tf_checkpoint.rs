//! Reads arbitrary bytes as a checkpoint of either version, its index and its one shard in one input, for the variables of a
//! graph. Checksums count as right: no change would get past them.
#![no_main]

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{FormatOptions, ReadRequest};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Bytes at the end of an input that are the shard.
const SHARD: usize = 64;

// In memory where the system has a folder for it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = root.join(format!("carafe-fuzz-checkpoint-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let graphs: [(&str, &[u8]); 3] = [
        ("resource.pb", include_bytes!("../../crates/fe-tensorflow/tests/data/containers/checkpoint_resource/graph.pb")),
        ("parts.pb", include_bytes!("../../crates/fe-tensorflow/tests/data/containers/checkpoint_partitioned/graph.pb")),
        ("version1.pb", include_bytes!("../../crates/fe-tensorflow/tests/data/containers/checkpoint_version1/graph.pb")),
    ];
    for (name, bytes) in graphs {
        std::fs::write(folder.join(name), bytes).expect("a graph");
    }
    folder
});

fuzz_target!(|data: &[u8]| {
    let (index, shard) = data.split_at(data.len().saturating_sub(SHARD));
    let write = |name: &str, bytes: &[u8]| std::fs::write(FOLDER.join(name), bytes).expect("a file");
    write("two.index", index);
    write("two.data-00000-of-00001", shard);
    write("one", index);
    for (graph, checkpoint) in [("resource.pb", "two"), ("parts.pb", "two"), ("version1.pb", "one")] {
        let mut options = FormatOptions::default();
        options.set("input_checkpoint", FOLDER.join(checkpoint).display().to_string());
        let path = FOLDER.join(graph);
        let request = ReadRequest { options: Some(&options), ..ReadRequest::new(&path) };
        if let Ok(model) = carafe_frontend::read(&TensorFlow, &request) {
            carafe_graph::verify(&model).expect("a model that was read holds its invariants");
        }
    }
});
