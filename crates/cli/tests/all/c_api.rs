//! `carafe c-api install`.

use crate::common::{carafe, folder, ok, repo};
use std::path::Path;

fn headers(dir: &Path, found: &mut Vec<String>, root: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => headers(&path, found, root),
            false => found.push(path.strip_prefix(root).unwrap().display().to_string()),
        }
    }
}

#[test]
fn the_library_is_installed_with_its_names_headers_and_package_files() {
    let dir = folder("c-api-install");
    let library = dir.join("built.so");
    std::fs::write(&library, b"a library").unwrap();
    let to = dir.join("to");
    let args = ["c-api", "install", to.to_str().unwrap(), "--as", "2641,2520", "--library", library.to_str().unwrap()];
    // Twice: what is there is replaced.
    ok(&args);
    assert_eq!(ok(&args).trim(), to.join("lib/libopenvino_c.so").display().to_string());
    assert_eq!(std::fs::read(to.join("lib/libopenvino_c.so.2641")).unwrap(), b"a library");
    for link in ["libopenvino_c.so", "libopenvino.so", "libopenvino_c.so.2520"] {
        assert_eq!(std::fs::read_link(to.join("lib").join(link)).unwrap(), Path::new("libopenvino_c.so.2641"));
    }
    let (mut ours, mut installed) = (vec![], vec![]);
    let include = repo().join("crates/capi/include");
    headers(&include, &mut ours, &include);
    headers(&to.join("include"), &mut installed, &to.join("include"));
    ours.sort();
    installed.sort();
    assert_eq!(installed, ours);
    let pc = std::fs::read_to_string(to.join("lib/pkgconfig/openvino.pc")).unwrap();
    assert!(pc.starts_with(&format!("prefix={}\n", to.display())), "{pc}");
    assert!(to.join("lib/cmake/openvino/OpenVINOConfig.cmake").is_file());
    assert_eq!(std::fs::read_to_string(to.join("lib/plugins.xml")).unwrap(), "<ie><plugins/></ie>\n");
}

#[test]
fn releases_that_number_types_otherwise_are_refused() {
    for (release, words) in
        [("2440", "numbers element types otherwise"), ("26.4", "is no release"), ("", "is no release")]
    {
        let done = carafe(&["c-api", "install", "nowhere", "--as", release]);
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && text.contains(words), "{text}");
    }
    assert!(!repo().join("nowhere").exists());
}

#[test]
fn a_library_that_is_not_there_is_named() {
    let done = carafe(&["c-api", "install", "nowhere", "--library", "no/such.so"]);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && text.contains("no/such.so"), "{text}");
}
