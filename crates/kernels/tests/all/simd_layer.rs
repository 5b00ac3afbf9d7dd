//! The layer of vectors is the only one: intrinsics stand where `simd/mod.rs` says, and nowhere else.

use std::path::{Path, PathBuf};

/// Files that may use intrinsics, besides `simd/`.
const RAW: [&str; 16] = [
    "cast.rs",
    "conv/fill.rs",
    "depthwise_bytes/avx512.rs",
    "gemm/cells_avx2.rs",
    "gemm/cells_avx512.rs",
    "gemm/leave_avx512.rs",
    "gemm/compressed/rounded_avx512.rs",
    "gemm/f32_avx2.rs",
    "gemm/f32_avx512.rs",
    "gemm/halves_avx512.rs",
    "gemm/pack.rs",
    "gemm/short_avx512.rs",
    "machine.rs",
    "movement/tiles.rs",
    "movement/weave.rs",
    "quantize.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn intrinsics_and_features_stay_behind_the_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "{} files", files.len());
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        if name.starts_with("simd/") || RAW.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["arch::x86_64", "arch::aarch64", "target_feature("] {
            assert!(!text.contains(word), "{name} uses {word}: write it over `Simd`, or say in simd/mod.rs why not");
        }
    }
}
