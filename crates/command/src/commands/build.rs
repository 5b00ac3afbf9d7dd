//! `carafe extension build`: cargo or CMake with the SDK at hand, without a network where that is possible.

use crate::extension_args::{BuildArgs, SdkArgs};
use carafe::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository that this command was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder with `include/` and `crates/`.
pub(crate) fn sdk(args: &SdkArgs) -> Result<PathBuf> {
    let (path, whence) = match &args.sdk {
        Some(path) => (path.clone(), "--sdk"),
        None => (PathBuf::from(BUILT_FROM), "the repository that this command was built from"),
    };
    let found =
        path.canonicalize().ok().filter(|p| p.join("include/carafe.h").is_file() && p.join("crates/sdk").is_dir());
    found.ok_or_else(|| {
        let path = path.display();
        Error::usage(format!("no SDK in `{path}` ({whence}): expected include/carafe.h and crates/sdk there; --sdk or CARAFE_SDK names the repository of Carafe"))
            .with_code(204)
    })
}

/// Builds a project and gives its library.
pub(crate) fn run(args: &BuildArgs) -> Result<PathBuf> {
    let dir = args.dir.canonicalize().map_err(|e| Error::io(format!("cannot open `{}`", args.dir.display()), &e))?;
    let sdk = sdk(&args.sdk)?;
    if dir.join("Cargo.toml").is_file() {
        return cargo(&dir, &sdk, args.release);
    }
    if dir.join("CMakeLists.txt").is_file() {
        return cmake(&dir, &sdk, args.release);
    }
    Err(Error::usage(format!(
        "`{}` is no project: it has neither Cargo.toml nor CMakeLists.txt; `carafe extension new` writes one",
        args.dir.display()
    )))
}

fn cargo(dir: &Path, sdk: &Path, release: bool) -> Result<PathBuf> {
    // The versions that the SDK was built with need no network.
    let lock = dir.join("Cargo.lock");
    if !lock.exists() {
        let _ = std::fs::copy(sdk.join("Cargo.lock"), &lock);
    }
    let manifest =
        std::fs::read_to_string(dir.join("Cargo.toml")).map_err(|e| Error::io("cannot read Cargo.toml", &e))?;
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let command = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(dir).args(words);
        for name in patched(&manifest) {
            let folder = sdk.join("crates").join(name.strip_prefix("carafe-").unwrap_or(&name));
            command.arg("--config").arg(format!("patch.crates-io.{name}.path='{}'", folder.display()));
        }
        command
    };
    let metadata = |words: &[&str]| {
        let output = command(words).stderr(Stdio::piped()).output().map_err(|e| missing("cargo", &e))?;
        Ok::<_, Error>(output)
    };
    let known = ["metadata", "--format-version=1", "--no-deps"];
    let offline = metadata(&["metadata", "--format-version=1", "--offline"])?.status.success();
    let output = metadata(&known)?;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let (Some(target), Some(name)) = (value["target_directory"].as_str(), library_of(&value)) else {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::invalid(format!("cargo cannot read the project: {}", text.trim())));
    };
    let mut build = command(&["build", "--quiet"]);
    if offline {
        build.arg("--offline");
    }
    if release {
        build.arg("--release");
    }
    finish(build, "cargo build")?;
    let profile = if release { "release" } else { "debug" };
    exists(Path::new(target).join(profile).join(carafe_generate::library_name(&name.replace('-', "_"))))
}

// Crates of ours that the manifest names.
fn patched(manifest: &str) -> Vec<String> {
    let names = manifest.lines().filter_map(|l| l.split_once('=')).map(|(name, _)| name.trim().trim_matches('"'));
    let mut names: Vec<String> = names.filter(|n| n.starts_with("carafe")).map(str::to_string).collect();
    names.dedup();
    names
}

fn library_of(metadata: &serde_json::Value) -> Option<String> {
    let targets = metadata["packages"].as_array()?.first()?["targets"].as_array()?;
    let is_library =
        |t: &&serde_json::Value| t["crate_types"].as_array().is_some_and(|c| c.iter().any(|k| k == "cdylib"));
    targets.iter().find(is_library)?["name"].as_str().map(str::to_string)
}

fn cmake(dir: &Path, sdk: &Path, release: bool) -> Result<PathBuf> {
    let out = dir.join("build");
    // A project that was moved or copied is configured anew.
    let cache = out.join("CMakeCache.txt");
    let home = format!("CMAKE_HOME_DIRECTORY:INTERNAL={}", dir.display());
    if std::fs::read_to_string(&cache).is_ok_and(|text| !text.lines().any(|line| line == home)) {
        std::fs::remove_file(&cache).map_err(|e| Error::io(format!("cannot remove `{}`", cache.display()), &e))?;
    }
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(dir).arg("-B").arg(&out).arg(format!("-DCMAKE_PREFIX_PATH={}", sdk.display()));
    if release {
        configure.arg("-DCMAKE_BUILD_TYPE=Release");
    }
    configure.stdout(Stdio::null());
    finish(configure, "cmake")?;
    let mut build = Command::new("cmake");
    build.arg("--build").arg(&out).stdout(Stdio::null());
    finish(build, "cmake --build")?;
    let text = std::fs::read_to_string(dir.join("CMakeLists.txt")).unwrap_or_default();
    let name = text.split("add_library(").nth(1).and_then(|t| t.split_whitespace().next()).unwrap_or_default();
    exists(out.join(carafe_generate::library_name(name)))
}

fn finish(mut command: Command, what: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| missing(&program, &e))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::invalid(format!("`{what}` failed; its messages are above"))),
    }
}

fn missing(program: &str, e: &std::io::Error) -> Error {
    let hint = if program.contains("cmake") {
        "; install CMake and a C or C++ compiler"
    } else {
        "; install Rust, https://rustup.rs"
    };
    Error::io(
        format!("cannot start `{program}`{}", if e.kind() == std::io::ErrorKind::NotFound { hint } else { "" }),
        e,
    )
}

fn exists(library: PathBuf) -> Result<PathBuf> {
    match library.is_file() {
        true => Ok(library),
        false => Err(Error::not_found(format!("the build made no `{}`", library.display()))),
    }
}
