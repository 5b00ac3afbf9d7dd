//! `carafe c-api install`: the C library with everything by which programs, linkers and build tools find OpenVINO's.

use super::print;
use crate::c_api_args::{CApiAction, CApiArgs, CApiInstallArgs};
use carafe::{Error, Result, files};
use carafe_packed::Files;
use std::path::{Path, PathBuf};

/// The release whose API the library has.
const OWN: &str = "2641";
/// Releases before it number element types otherwise.
const FIRST: u32 = 2510;
const LIBRARY: &str = "libopenvino_c.so";

static FILES: Files = Files::new(include_bytes!(concat!(env!("OUT_DIR"), "/c_api.deflate")));

/// Where a packed file is installed.
fn place(name: &str) -> String {
    let name = name.trim_start_matches("c-api/");
    match name.strip_prefix("package/") {
        Some(file) if file.ends_with(".cmake") => format!("lib/cmake/openvino/{file}"),
        Some(file) => format!("lib/pkgconfig/{}", file.trim_end_matches(".in")),
        None => name.to_string(),
    }
}

pub(crate) fn run(args: &CApiArgs) -> Result<()> {
    match &args.action {
        CApiAction::Install(args) => install(args),
    }
}

fn install(args: &CApiInstallArgs) -> Result<()> {
    args.releases.iter().try_for_each(|r| check_release(r))?;
    let library = match &args.library {
        Some(file) if file.is_file() => file.clone(),
        Some(file) => return Err(Error::not_found(format!("there is no library `{}`", file.display()))),
        None => find()?,
    };
    let io = |what: &str, path: &Path, e: &std::io::Error| Error::io(what, e).at(format!("`{}`", path.display()));
    let dir = std::path::absolute(&args.dir).map_err(|e| io("cannot find", &args.dir, &e))?;
    let prefix = dir.display().to_string();
    let write = |place: &str, bytes: &[u8]| {
        let file = dir.join(place);
        let folder = file.parent().unwrap_or(&dir);
        std::fs::create_dir_all(folder).map_err(|e| io("cannot create", folder, &e))?;
        files::write(&file, bytes).map_err(|e| io("cannot write", &file, &e))
    };
    let bytes = files::map(&library).map_err(|e| io("cannot read", &library, &e))?;
    let name = format!("{LIBRARY}.{OWN}");
    write(&format!("lib/{name}"), bytes.as_slice())?;
    for (name, _) in FILES.all() {
        write(&place(name), FILES.text(name).replace("@PREFIX@", &prefix).as_bytes())?;
    }
    // For programs that look for one.
    write("lib/plugins.xml", b"<ie><plugins/></ie>\n")?;
    // Some programs link libopenvino too, and ask nothing of it.
    let numbered = args.releases.iter().filter(|r| *r != OWN).map(|r| format!("{LIBRARY}.{r}"));
    for link in [LIBRARY.to_string(), "libopenvino.so".to_string()].into_iter().chain(numbered) {
        let link = dir.join("lib").join(link);
        make_link(&name, &link).map_err(|e| io("cannot link", &link, &e))?;
    }
    print(&format!("{}\n", dir.join("lib").join(LIBRARY).display()))
}

fn check_release(text: &str) -> Result<()> {
    let number = text.parse::<u32>().ok().filter(|_| text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit()));
    match number {
        Some(FIRST..) => Ok(()),
        Some(_) => Err(Error::usage(format!(
            "release {text} numbers element types otherwise: programs built with it would take one type for another; \
             {FIRST} (2025.1.0) and later can be served"
        ))),
        None => Err(Error::usage(format!(
            "`{text}` is no release; expected year, minor and patch in four digits, as 2641 for 2026.4.1"
        ))),
    }
}

/// The library that was built or installed with this program.
fn find() -> Result<PathBuf> {
    let program = std::env::current_exe().ok().and_then(|p| p.canonicalize().ok());
    let beside = program.as_deref().and_then(Path::parent).into_iter();
    // The Python package sets it before it calls the command.
    let package = std::env::var_os("CARAFE_PACKAGE").map(PathBuf::from);
    // The wheel does not hold it: the engine would be in there twice.
    let hint = if package.is_some() { "the Python package comes without it; " } else { "" };
    let mut folders: Vec<PathBuf> = package.map(|p| p.join("lib")).into_iter().collect();
    folders.extend(beside.flat_map(|folder| [folder.to_path_buf(), folder.join("../lib"), folder.join("../library")]));
    let found = folders.iter().map(|f| f.join(LIBRARY)).find(|p| p.is_file());
    found.ok_or_else(|| {
        let tried = folders.iter().map(|f| format!("`{}`", f.display())).collect::<Vec<_>>().join(", ");
        Error::not_found(format!(
            "no {LIBRARY} in {tried}; {hint}build it with `cargo build --profile library -p carafe-capi`, or name it with --library FILE"
        ))
    })
}

#[cfg(unix)]
fn make_link(target: &str, link: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(link) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => std::os::unix::fs::symlink(target, link),
    }
}

#[cfg(not(unix))]
fn make_link(target: &str, link: &Path) -> std::io::Result<()> {
    std::fs::copy(link.with_file_name(target), link).map(drop)
}
