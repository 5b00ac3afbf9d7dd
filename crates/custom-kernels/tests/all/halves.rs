//! The kernels of the examples as a device with `cl_khr_fp16` gets them, where `half` is a type of its own, past a compiler: where clang
//! is, for the device of this machine may not have that extension.

use carafe_custom_kernels::vpu::{BoundStage, read, stage_source};
use carafe_custom_kernels::{KernelFile, Mode, parameters};
use std::path::Path;
use std::process::Command;

// The compiler, if one is here.
fn clang() -> Option<&'static str> {
    let names = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];
    names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
}

#[test]
fn stages_with_real_halves_compile() {
    let Some(clang) = clang() else {
        eprintln!("no clang is here; scripts/test installs one");
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/custom_kernels/vpu");
    let work = std::env::temp_dir().join(format!("carafe-halves-{}", std::process::id()));
    std::fs::create_dir_all(&work).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "xml") {
            continue;
        }
        let file = read(&KernelFile::open(&path).unwrap(), Mode::Compatible).unwrap();
        for kernel in file.layers.iter().flat_map(|l| &l.stages) {
            let source: String = kernel.sources.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join("\n");
            let stage = BoundStage {
                parameters: parameters(&source, &kernel.entry).unwrap().unwrap(),
                source,
                entry: kernel.entry.clone(),
                arguments: vec![],
                global: vec![],
                local: vec![],
                max_shaves: kernel.max_shaves,
            };
            let (text, _) = stage_source(&stage, true);
            let to = work.join(format!("{count}.cl"));
            std::fs::write(&to, text).unwrap();
            let options = [
                "-x",
                "cl",
                "-cl-std=CL1.2",
                "-fsyntax-only",
                "-target",
                "spir64",
                "-Xclang",
                "-finclude-default-header",
            ];
            let done = Command::new(clang).args(options).arg(&to).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{} `{}`:\n{said}", path.display(), kernel.entry);
            count += 1;
        }
    }
    std::fs::remove_dir_all(work).unwrap();
    assert!(count >= 9, "only {count} stages were found");
}
