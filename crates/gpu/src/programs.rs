//! Programs: source and what is defined for it, built once for each device and, where there is a folder for it, kept there as
//! binaries. The folder decides nothing: an entry that is missing, cut or refused by the driver is built anew.

use crate::error::told;
use carafe_graph::{Error, Result};
use carafe_opencl::{Context, Kernel, Program};
use carafe_packed::Files;
use carafe_tensor::{Hash128, files};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// What every program begins with: types, loads and stores, functions of one number.
const COMMON: &str = "common.cl";

static FILES: Files = Files::new(include_bytes!(concat!(env!("OUT_DIR"), "/kernels.deflate")));

/// The text of a file of `kernels/`.
pub(crate) fn text_of(name: &str) -> &'static str {
    FILES.text(&format!("kernels/{name}"))
}

/// Words for the compiler. What the arguments of kernels are is checked when they are set. Some drivers print how many warnings there are.
const OPTIONS: &str = "-cl-std=CL1.2 -cl-kernel-arg-info -w";

/// A file of `kernels/`, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source(pub(crate) &'static str);

impl Source {
    pub(crate) fn text(self) -> &'static str {
        text_of(self.0)
    }
}

/// A kernel of a built program, from which each request makes one with arguments of its own.
#[derive(Debug)]
pub(crate) struct KernelCode {
    /// `None` where nothing is to run, see [`crate::backend::BuildCx::dry`].
    program: Option<Arc<Program>>,
    name: String,
}

impl KernelCode {
    /// One that is never run.
    pub(crate) fn dry(name: &str) -> KernelCode {
        KernelCode { program: None, name: name.to_string() }
    }
    /// A kernel of a program.
    pub(crate) fn of(program: Arc<Program>, name: &str) -> KernelCode {
        KernelCode { program: Some(program), name: name.to_string() }
    }
    /// A kernel of its own arguments.
    pub(crate) fn create(&self) -> Result<Kernel> {
        let program = self.program.as_ref().ok_or_else(|| Error::invalid("a plan of a query is not run"))?;
        Kernel::new(program, &self.name).map_err(told)
    }
}

/// All programs of a device.
#[derive(Debug)]
pub(crate) struct Programs {
    context: Arc<Context>,
    built: Mutex<HashMap<u128, Arc<Mutex<Option<Arc<Program>>>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Programs {
    pub(crate) fn new(context: &Arc<Context>) -> Programs {
        Programs { context: context.clone(), built: Mutex::default() }
    }

    /// A kernel of source, behind lines that define macros for it. `what` names the source in errors.
    pub(crate) fn kernel(
        &self,
        what: &str,
        defined: &str,
        source: &str,
        name: &str,
        folder: Option<&Path>,
    ) -> Result<Arc<KernelCode>> {
        let whole = format!("{defined}{}\n#line 1 \"{what}\"\n{source}", text_of(COMMON));
        let program = self.program(&whole, OPTIONS, folder).map_err(|e| e.at(format!("kernel `{name}` of {what}")))?;
        Ok(Arc::new(KernelCode { program: Some(program), name: name.to_string() }))
    }

    /// Source, built as it stands.
    pub(crate) fn program(&self, source: &str, options: &str, folder: Option<&Path>) -> Result<Arc<Program>> {
        let key = self.key(source, options);
        let place = lock(&self.built).entry(key).or_default().clone();
        // Whoever wants the same waits for it, and others do not.
        let mut place = lock(&place);
        if let Some(program) = &*place {
            return Ok(program.clone());
        }
        let file = folder.map(|f| f.join(format!("{key:032x}.clbin")));
        let program = match file.as_deref().and_then(|file| self.kept(file, options)) {
            Some(program) => program,
            None => {
                let program = Program::from_source(&self.context, source, options).map_err(told)?;
                file.as_deref().inspect(|file| keep(file, &program));
                program
            }
        };
        *place = Some(program.clone());
        Ok(program)
    }

    // Everything that decides over a binary.
    fn key(&self, source: &str, options: &str) -> u128 {
        let info = &self.context.device.info;
        let mut hash = Hash128::default();
        let machine = [&info.name, &info.driver, &info.version, &info.platform_version];
        for part in [source, options, env!("CARGO_PKG_VERSION")].into_iter().chain(machine.map(String::as_str)) {
            hash.bytes(&(part.len() as u64).to_le_bytes());
            hash.bytes(part.as_bytes());
        }
        hash.finish()
    }

    fn kept(&self, file: &Path, options: &str) -> Option<Arc<Program>> {
        let bytes = std::fs::read(file).ok()?;
        let binary = bytes.strip_prefix(MAGIC)?;
        let (sum, binary) = binary.split_at_checked(16)?;
        if checksum(binary).to_le_bytes() != sum {
            return None;
        }
        Program::from_binary(&self.context, binary, options).ok()
    }
}

const MAGIC: &[u8] = b"carafe cl 1\n";

fn checksum(bytes: &[u8]) -> u128 {
    let mut hash = Hash128::default();
    hash.bytes(bytes);
    hash.finish()
}

// A folder that cannot be written to costs time, nothing else.
fn keep(file: &Path, program: &Program) {
    let Ok(binary) = program.binary() else { return };
    let bytes = [MAGIC, &checksum(&binary).to_le_bytes(), &binary].concat();
    let written = file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
    if written {
        let _ = files::write(file, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "__kernel void one(__global float *y) { y[get_global_id(0)] = 1.0f; }";

    fn context() -> Arc<Context> {
        crate::machine::by_id("0").unwrap().open().unwrap().context.clone()
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("carafe-gpu-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn only_file(folder: &Path) -> std::path::PathBuf {
        std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
    }

    #[test]
    fn a_program_is_kept_as_a_binary_and_found_again() {
        let (context, folder) = (context(), folder("kept"));
        Programs::new(&context).program(SOURCE, OPTIONS, Some(&folder)).unwrap();
        let file = only_file(&folder);
        let again = Programs::new(&context);
        assert!(again.kept(&file, OPTIONS).is_some());
        let program = again.program(SOURCE, OPTIONS, Some(&folder)).unwrap();
        assert!(Kernel::new(&program, "one").is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_broken_entry_is_built_anew() {
        let (context, folder) = (context(), folder("broken"));
        Programs::new(&context).program(SOURCE, OPTIONS, Some(&folder)).unwrap();
        let file = only_file(&folder);
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let programs = Programs::new(&context);
        assert!(programs.kept(&file, OPTIONS).is_none());
        assert!(programs.program(SOURCE, OPTIONS, Some(&folder)).is_ok());
        assert!(programs.kept(&file, OPTIONS).is_some());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_does_not_build_shows_the_log_with_the_lines_of_the_source() {
        let programs = Programs::new(&context());
        let source = "__kernel void bad(__global float *y) {\n    y[0] = nothing;\n}";
        let e = programs.kernel("bad.cl", "", source, "bad", None).unwrap_err().to_string();
        assert!(e.contains("kernel `bad` of bad.cl") && e.contains("nothing") && e.contains("bad.cl:2"), "{e}");
    }
}
