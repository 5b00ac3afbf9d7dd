//! The templates of `examples/` in C and C++, copied out of the repository and built by CMake as an author would. Those in Rust
//! are built by `examples/README.md`, which `scripts/check-readme` goes through.

use carafe_testkit::libraries::{Workshop, root};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) {
    let shown = format!("{command:?}");
    let done = command.output().unwrap_or_else(|e| panic!("{shown}: {e}; scripts/test installs what the tests need"));
    let text = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{shown}: {}", String::from_utf8_lossy(&text));
}

fn copied(workshop: &Workshop, example: &str) -> PathBuf {
    let to = workshop.path(example);
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(root().join("examples").join(example)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    to
}

/// Builds a copy with the package that lies in `prefix`, and gives the library.
fn built(folder: &Path, prefix: &Path) -> PathBuf {
    let name = folder.file_name().unwrap().to_str().unwrap().replace('-', "_");
    let build = folder.join("build");
    run(Command::new("cmake")
        .arg("-S")
        .arg(folder)
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    let library = build.join(format!("lib{name}.so"));
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

#[test]
fn extensions_build_with_cmake_and_load() {
    let workshop = Workshop::new();
    for example in ["template-extension-c", "template-extension-cpp"] {
        let core = carafe::core();
        core.add_extension(built(&copied(&workshop, example), &root())).unwrap();
        assert_eq!(core.extensions().len(), 1, "{example}");
    }
}

#[test]
fn plugins_build_with_cmake_and_run() {
    let workshop = Workshop::new();
    for (example, name) in [("template-plugin-c", "C"), ("template-plugin-cpp", "CPP")] {
        let core = carafe::core();
        assert_eq!(core.add_plugin(built(&copied(&workshop, example), &root())).unwrap(), name);
        assert_eq!(core.get_property(name, "AVAILABLE_DEVICES").unwrap(), "0");
    }
}

#[test]
fn the_package_can_be_installed_and_found_there() {
    let workshop = Workshop::new();
    let (build, prefix) = (workshop.path("build"), workshop.path("prefix"));
    run(Command::new("cmake").arg("-S").arg(root().join("cmake")).arg("-B").arg(&build));
    run(Command::new("cmake").arg("--install").arg(&build).arg("--prefix").arg(&prefix));
    for header in ["carafe.h", "carafe.hpp", "carafe_device.hpp", "carafe_elementwise.h"] {
        assert!(prefix.join("include").join(header).is_file(), "{header} was not installed");
    }
    built(&copied(&workshop, "template-extension-cpp"), &prefix);
}

#[test]
fn the_version_of_the_package_is_that_of_the_engine() {
    let text = std::fs::read_to_string(root().join("cmake/carafe-config-version.cmake")).unwrap();
    assert!(text.contains(&format!("set(PACKAGE_VERSION {})", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[test]
fn every_template_is_complete_in_its_folder() {
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        for word in ["workspace", "path ="] {
            assert!(!manifest.contains(word), "{}: `{word}` does not work in a copy", folder.display());
        }
    }
}

#[test]
fn the_crates_that_copies_are_given_are_those_of_the_workspace() {
    let patch = |file: &str| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let from = text.find("[patch.crates-io]").expect("a list of crates");
        text[from..].lines().skip(1).take_while(|l| l.contains('=')).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(patch("Cargo.toml"), patch("examples/carafe.toml"));
}
