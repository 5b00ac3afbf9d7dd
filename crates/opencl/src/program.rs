//! Programs: source or a binary, built for the device of a context.

use crate::api::{check, info, num, number, text};
use crate::context::{Context, Owned};
use crate::error::{Code, Error, Result};
use std::ffi::CString;
use std::sync::Arc;

/// A built program.
#[derive(Debug)]
pub struct Program {
    pub(crate) handle: Owned,
    pub(crate) context: Arc<Context>,
}

fn c_string(text: &str, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Misuse(format!("{what} contains a zero byte")))
}

/// A log whose lines are counted in the whole of a source, as NVIDIA's compiler counts them, in the files and lines that `#line`
/// gives.
fn in_own_lines(log: &str, source: &str) -> String {
    const WHOLE: &str = "<kernel>:";
    let mut out = String::new();
    for line in log.split_inclusive('\n') {
        let place = line.strip_prefix(WHOLE).and_then(|rest| {
            let (number, rest) = rest.split_once(':')?;
            let (file, own) = own_line(source, number.parse().ok()?)?;
            Some(format!("{file}:{own}:{rest}"))
        });
        out.push_str(place.as_deref().unwrap_or(line));
    }
    out
}

// The file and line that a line of the whole, counted from 1, is by the `#line` before it.
fn own_line(source: &str, line: usize) -> Option<(String, usize)> {
    let before: Vec<&str> = source.lines().take(line.checked_sub(1)?).collect();
    let at = before.iter().rposition(|l| l.starts_with("#line "))?;
    let (number, name) = before[at]["#line ".len()..].split_once(' ')?;
    let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
    let first: usize = number.parse().ok()?;
    Some((name.replace("\\\"", "\"").replace("\\\\", "\\"), first.checked_add(line - at - 2)?))
}

impl Program {
    /// Builds source with these options of the compiler. An error has the compiler's log.
    pub fn from_source(context: &Arc<Context>, source: &str, options: &str) -> Result<Arc<Program>> {
        let api = context.api();
        let (lines, len) = (source.as_ptr().cast(), source.len());
        let mut code = 0;
        // SAFETY: one piece of text of the given length, which is copied before the call returns.
        let raw = unsafe { (api.create_program)(context.handle.raw, 1, &lines, &len, &mut code) };
        check("clCreateProgramWithSource", code)?;
        let built = Program { handle: Owned::new(raw, api.release_program), context: context.clone() }.built(options);
        built.map_err(|e| match e {
            Error::Build { code, log } => Error::Build { code, log: in_own_lines(&log, source) },
            e => e,
        })
    }

    /// Builds what [`Program::binary`] gave for the same device and driver.
    pub fn from_binary(context: &Arc<Context>, binary: &[u8], options: &str) -> Result<Arc<Program>> {
        let api = context.api();
        let (bytes, len) = (binary.as_ptr(), binary.len());
        let (mut status, mut code) = (0, 0);
        // SAFETY: one device of the context, and one binary of the given length, which is copied before the call returns.
        let raw = unsafe {
            let device = &context.device.id.0;
            (api.create_program_from_binary)(context.handle.raw, 1, device, &len, &bytes, &mut status, &mut code)
        };
        check("clCreateProgramWithBinary", code)?;
        let program = Program { handle: Owned::new(raw, api.release_program), context: context.clone() };
        check("clCreateProgramWithBinary", status)?;
        program.built(options)
    }

    fn built(self, options: &str) -> Result<Arc<Program>> {
        let api = self.context.api();
        let options = c_string(options, "an option of the compiler")?;
        let device = &self.context.device.id.0;
        // SAFETY: the program is alive, the device is that of its context, and without a callback the call waits.
        let code =
            unsafe { (api.build_program)(self.handle.raw, 1, device, options.as_ptr(), None, std::ptr::null_mut()) };
        if code != 0 {
            return Err(Error::Build { code: Code(code), log: self.log() });
        }
        Ok(Arc::new(self))
    }

    /// What the compiler said, warnings among it.
    pub fn log(&self) -> String {
        let (api, device) = (self.context.api(), self.context.device.id.0);
        // SAFETY: the program is alive, and `info` gives room for as many bytes as it says.
        let ask =
            |len, to, used| unsafe { (api.build_info)(self.handle.raw, device, num::PROGRAM_BUILD_LOG, len, to, used) };
        info("clGetProgramBuildInfo", ask).map(|b| text(&b)).unwrap_or_default()
    }

    /// The form that [`Program::from_binary`] takes.
    pub fn binary(&self) -> Result<Vec<u8>> {
        let api = self.context.api();
        let ask = |what: u32| {
            // SAFETY: the program is alive, and `info` gives room for as many bytes as it says.
            let ask = |len, to, used| unsafe { (api.program_info)(self.handle.raw, what, len, to, used) };
            info("clGetProgramInfo", ask).map(|b| number(&b) as usize)
        };
        if ask(num::PROGRAM_NUM_DEVICES)? != 1 {
            return Err(Error::Misuse("a program of several devices".into()));
        }
        let mut binary = vec![0u8; ask(num::PROGRAM_BINARY_SIZES)?];
        let mut to = binary.as_mut_ptr();
        let list: *mut *mut u8 = &mut to;
        // SAFETY: there is one device, so the list is one address, of as many bytes as its binary has.
        let code = unsafe {
            let (len, used) = (size_of::<*mut u8>(), std::ptr::null_mut());
            (api.program_info)(self.handle.raw, num::PROGRAM_BINARIES, len, list.cast(), used)
        };
        check("clGetProgramInfo", code)?;
        Ok(binary)
    }

    /// The context it was built for.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn kernel_name(name: &str) -> Result<CString> {
        c_string(name, "the name of a kernel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_counts_the_whole_source_gets_the_lines_of_the_user() {
        let source = "#define A 1\n#line 1 \"a \\\"b\\\".cl\"\n// one\nnonsense;\n#line 7 \"c.cl\"\nmore;\n";
        let log = "<kernel>:4:1: error: unknown\nnonsense;\n^\n<kernel>:6:2: error: more\n<kernel>:1:1: note: here\n";
        let own = "a \"b\".cl:2:1: error: unknown\nnonsense;\n^\nc.cl:7:2: error: more\n<kernel>:1:1: note: here\n";
        assert_eq!(in_own_lines(log, source), own);
        assert_eq!(
            in_own_lines("<kernel>:x: <kernel>:99999999999999999999:", source),
            "<kernel>:x: <kernel>:99999999999999999999:"
        );
    }
}
