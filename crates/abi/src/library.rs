//! Opens dynamic libraries and tells apart why one cannot be used. The file is looked at before it is mapped, and its
//! `carafe_abi` is read before any of its code is called.

use crate::tables::{CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, CARAFE_ABI_MINOR, CarafeAbi};
use carafe_graph::{Error, ErrorKind};
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A mapped library. Everything that came from it holds one of these.
pub struct Library {
    name: String,
    /// The name for notes that outlive everything.
    shown: &'static &'static str,
    path: PathBuf,
    abi: CarafeAbi,
    handle: libloading::Library,
}

/// Why a library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    NoSuchFile,
    /// It needs another library that is not here.
    MissingDependency(String),
    /// It needs a symbol that no loaded library has.
    MissingSymbol(String),
    /// Not a dynamic library at all.
    NotALibrary(String),
    /// A library for another machine.
    OtherArchitecture {
        found: String,
        wanted: String,
    },
    /// A library that is not made for Carafe.
    NotAnExtension(String),
    /// Built for tables of another generation.
    OtherAbi {
        found: (u32, u32),
        wanted: (u32, u32),
    },
    /// The dynamic loader said something else.
    Other(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NoSuchFile => write!(f, "there is no such file"),
            LoadError::MissingDependency(lib) => write!(
                f,
                "it needs `{lib}`, which was not found; put its folder into LD_LIBRARY_PATH or install the package that has it"
            ),
            LoadError::MissingSymbol(symbol) => {
                write!(f, "it needs the symbol `{symbol}`, which no library here has; was it built for other versions?")
            }
            LoadError::NotALibrary(why) => write!(f, "it is not a dynamic library: {why}"),
            LoadError::OtherArchitecture { found, wanted } => write!(f, "it is built for {found}, this is {wanted}"),
            LoadError::NotAnExtension(why) => write!(f, "it is not a Carafe library: {why}"),
            LoadError::OtherAbi { found, wanted } => write!(
                f,
                "it is built for ABI {}.{}, this engine speaks {}.{}; build it again with this engine's header or SDK",
                found.0, found.1, wanted.0, wanted.1
            ),
            LoadError::Other(text) => write!(f, "{text}"),
        }
    }
}

impl LoadError {
    /// As the error of the engine, with the library named.
    pub fn named(self, path: &Path) -> Error {
        let kind = match self {
            LoadError::NoSuchFile | LoadError::MissingDependency(_) => ErrorKind::NotFound,
            LoadError::OtherAbi { .. } | LoadError::OtherArchitecture { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Invalid,
        };
        Error::new(kind, self.to_string()).at(format!("library `{}`", path.display())).with_code(202)
    }
}

impl Library {
    /// Maps the library at `path`; a bare file name is looked for where the system's loader looks.
    pub fn open(path: &Path) -> Result<Library, LoadError> {
        let bare = path.components().count() == 1 && !path.exists();
        let path = match bare {
            true => path.to_path_buf(),
            false => path.canonicalize().map_err(|_| LoadError::NoSuchFile)?,
        };
        if !bare {
            look_at(&path)?;
        }
        // SAFETY: opening runs the library's initialisers. That they are sound is the trust a user gives by loading it.
        let handle = unsafe { open(&path) }.map_err(|e| loader_error(&e, &path))?;
        // SAFETY: the symbol is data of this type in every Carafe library, and `magic` tells others apart.
        let abi = unsafe { handle.get::<*const CarafeAbi>(b"carafe_abi\0") };
        let abi = match abi {
            // SAFETY: the symbol's address is that of a mapped constant of at least four words.
            Ok(p) if !p.is_null() => unsafe { **p },
            _ => return Err(LoadError::NotAnExtension(why_not(&handle))),
        };
        if abi.magic != CARAFE_ABI_MAGIC {
            return Err(LoadError::NotAnExtension("its `carafe_abi` has another content".into()));
        }
        if abi.major != CARAFE_ABI_MAJOR {
            let wanted = (CARAFE_ABI_MAJOR, CARAFE_ABI_MINOR);
            return Err(LoadError::OtherAbi { found: (abi.major, abi.minor), wanted });
        }
        if abi.pointer as usize != size_of::<usize>() {
            return Err(LoadError::OtherArchitecture {
                found: format!("{}-bit pointers", abi.pointer * 8),
                wanted: format!("{}-bit", usize::BITS),
            });
        }
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let shown = Box::leak(Box::new(crate::text::forever(&name)));
        Ok(Library { name, shown, path, abi, handle })
    }
    /// File name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn path(&self) -> &Path {
        &self.path
    }
    pub(crate) fn shown(&self) -> &'static &'static str {
        self.shown
    }
    /// Numbers of the tables it was built for.
    pub fn abi(&self) -> (u32, u32) {
        (self.abi.major, self.abi.minor)
    }
    /// An exported function.
    ///
    /// # Safety
    /// `F` must be the function pointer type that the boundary gives this name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: passed on from the caller.
        unsafe { self.handle.get::<F>(name.as_bytes()) }.ok().map(|s| *s)
    }
}

// Every symbol is looked for at once: one that is missing is an error here, not the end of the process when it is called.
#[cfg(unix)]
unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: passed on from the caller.
    unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: passed on from the caller.
    unsafe { libloading::Library::new(path) }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Library({})", self.path.display())
    }
}

// The head of an ELF file says class, byte order and machine.
fn look_at(path: &Path) -> Result<(), LoadError> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let mut head = [0u8; 20];
    let mut file = carafe_tensor::files::open(path).map_err(|e| LoadError::Other(e.to_string()))?;
    if file.read_exact(&mut head).is_err() {
        return Err(LoadError::NotALibrary("the file is too short".into()));
    }
    if &head[..4] != b"\x7fELF" {
        return Err(LoadError::NotALibrary("it does not begin as an ELF file does".into()));
    }
    let kind = u16::from_le_bytes([head[16], head[17]]);
    let machine = u16::from_le_bytes([head[18], head[19]]);
    let wanted = if cfg!(target_arch = "x86_64") {
        62
    } else if cfg!(target_arch = "aarch64") {
        183
    } else {
        machine
    };
    if machine != wanted || head[4] != 2 && size_of::<usize>() == 8 {
        return Err(LoadError::OtherArchitecture {
            found: machine_name(machine, head[4]),
            wanted: std::env::consts::ARCH.into(),
        });
    }
    if kind != 3 {
        return Err(LoadError::NotALibrary("it is an object file or a program of fixed address".into()));
    }
    match size_of::<usize>() {
        8 => whole(&mut file),
        _ => Ok(()),
    }
}

// A file that ends before its segments do, such as a half copied one, would end the process when it is touched.
fn whole(file: &mut std::fs::File) -> Result<(), LoadError> {
    fn number(bytes: &[u8], at: usize) -> u64 {
        let field = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
        field.map_or(0, u64::from_le_bytes)
    }
    let cut = |n: u64| LoadError::NotALibrary(format!("the file is cut, it has {n} bytes"));
    let size = file.metadata().map_err(|e| LoadError::Other(e.to_string()))?.len();
    let mut head = [0u8; 64];
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut head)).map_err(|_| cut(size))?;
    let (table, entry) = (number(&head, 32), (number(&head, 54) & 0xffff) as usize);
    let count = (number(&head, 56) & 0xffff) as usize;
    let mut segments = vec![0u8; entry * count];
    file.seek(SeekFrom::Start(table)).and_then(|_| file.read_exact(&mut segments)).map_err(|_| cut(size))?;
    for s in segments.chunks_exact(entry.max(56)) {
        let loaded = number(s, 0) & 0xffff_ffff == 1;
        if loaded && number(s, 8).checked_add(number(s, 32)).is_none_or(|end| end > size) {
            return Err(cut(size));
        }
    }
    Ok(())
}

fn machine_name(machine: u16, class: u8) -> String {
    let name = match machine {
        3 => "x86",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv",
        other => return format!("machine {other}"),
    };
    format!("{name} ({} bit)", if class == 2 { 64 } else { 32 })
}

// What the system's loader says is text; its forms are few and old.
fn loader_error(e: &libloading::Error, path: &Path) -> LoadError {
    let source = std::error::Error::source(e).map(|s| s.to_string());
    let text = source.unwrap_or_else(|| e.to_string());
    if let Some((before, _)) = text.split_once(": cannot open shared object file") {
        let missing = before.rsplit(' ').next().unwrap_or(before).trim_matches('"');
        let own = path.to_string_lossy();
        return match missing == own || own.ends_with(&format!("/{missing}")) {
            true => LoadError::NoSuchFile,
            false => LoadError::MissingDependency(missing.to_string()),
        };
    }
    if let Some((_, symbol)) = text.split_once("undefined symbol: ") {
        let symbol = symbol.split([' ', ',', '"']).next().unwrap_or(symbol);
        return LoadError::MissingSymbol(symbol.to_string());
    }
    for sign in
        ["invalid ELF header", "file too short", "only ET_DYN and ET_EXEC can be loaded", "cannot dynamically load"]
    {
        if text.contains(sign) {
            return LoadError::NotALibrary(text);
        }
    }
    LoadError::Other(text)
}

fn why_not(handle: &libloading::Library) -> String {
    // SAFETY: only the presence of the symbol is asked for; it is not used.
    let has = |name: &[u8]| unsafe { handle.get::<*const ()>(name) }.is_ok();
    if has(b"create_extensions\0") || has(b"CreatePluginEngine\0") {
        "it has an entry point but no `carafe_abi`; a library made for OpenVINO must be built with carafe.h".into()
    } else {
        "it exports no `carafe_abi`; use the macro CARAFE_LIBRARY of carafe.h, or `export_extension!`".into()
    }
}
