//! Real dynamic libraries for tests: written in C or C++ and compiled here, or made by cargo beside the test itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A folder of its own for one test, removed at the end.
#[derive(Debug)]
pub struct Workshop(PathBuf);

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A library that cargo made because this crate's tests depend on it; `name` as the compiler spells it.
pub fn rust_library(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of the test");
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(&file)).find(|p| p.is_file());
    found.unwrap_or_else(|| panic!("`{file}` is not beside {}", own.display()))
}

impl Workshop {
    pub fn new() -> Workshop {
        Workshop::within(&std::env::temp_dir())
    }
    /// In a folder that is cleaned by others, for one that lives as long as the process.
    pub fn within(folder: &Path) -> Workshop {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("carafe-workshop-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Workshop(path)
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file in a temporary folder");
        path
    }
    /// A library from C text; `carafe.h` is found.
    pub fn c(&self, name: &str, source: &str) -> PathBuf {
        let source = self.write(&format!("{name}.c"), source);
        self.build("cc", name, &["-std=c11"], &source)
    }
    /// A library from C++ text; `carafe.hpp` is found.
    pub fn cpp(&self, name: &str, source: &str) -> PathBuf {
        let source = self.write(&format!("{name}.cpp"), source);
        self.build("c++", name, &["-std=c++17"], &source)
    }
    /// A library from a file of the repository.
    pub fn example(&self, name: &str, file: &str) -> PathBuf {
        let (compiler, standard) = if file.ends_with(".c") { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
        self.build(compiler, name, &[standard], &root().join(file))
    }
    /// A library with flags of the caller's. The same text is compiled once a process; each test has a copy of its own, since a
    /// library that is loaded from two files is two libraries.
    pub fn build(&self, compiler: &str, name: &str, flags: &[&str], source: &Path) -> PathBuf {
        static BUILT: Mutex<BTreeMap<String, Arc<OnceLock<Vec<u8>>>>> = Mutex::new(BTreeMap::new());
        let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let out = self.path(&file);
        let text = std::fs::read_to_string(source).expect("the source of a library");
        let key = format!("{compiler} {flags:?} {name}\n{text}");
        let built = BUILT.lock().unwrap_or_else(|e| e.into_inner()).entry(key).or_default().clone();
        let bytes = built.get_or_init(|| {
            compile(compiler, name, flags, source, &out);
            std::fs::read(&out).expect("the library that was built")
        });
        // A file that is loaded must not be written to.
        let _ = std::fs::remove_file(&out);
        std::fs::write(&out, bytes).expect("a library in a temporary folder");
        out
    }
}

fn compile(compiler: &str, name: &str, flags: &[&str], source: &Path, out: &Path) {
    let done = Command::new(compiler)
        .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"])
        .arg("-I")
        .arg(root().join("include"))
        .arg(source)
        .arg("-o")
        .arg(out)
        // After the source: libraries count from there.
        .args(flags)
        .arg("-lm")
        .output()
        .unwrap_or_else(|e| panic!("cannot run `{compiler}`: {e}"));
    assert!(done.status.success(), "{compiler} {name}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Default for Workshop {
    fn default() -> Workshop {
        Workshop::new()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
