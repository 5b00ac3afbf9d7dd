//! What goes wrong, with OpenCL's own names.

use std::fmt;

/// A call that failed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// There is no library, or no platform with a device.
    #[error("no OpenCL device found: {0}")]
    NoDevice(String),
    /// A call of the library answered with a number.
    #[error("{call}: {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// What it answered.
        code: Code,
    },
    /// A program does not build.
    #[error("the OpenCL program does not build ({code})\n{log}")]
    Build {
        /// What the compiler answered.
        code: Code,
        /// What the compiler says.
        log: String,
    },
    /// The device has too little memory.
    #[error("no memory on the device for {wanted} bytes: {why}")]
    NoMemory {
        /// So many bytes were asked for.
        wanted: usize,
        /// How much there is.
        why: String,
    },
    /// A mistake of the caller.
    #[error("{0}")]
    Misuse(String),
}

/// Of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The number that a call answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    /// OpenCL's name of it.
    pub fn name(self) -> Option<&'static str> {
        match self.0 {
            -1001 => return Some("CL_PLATFORM_NOT_FOUND_KHR"),
            -9999 => return Some("CL_NV_ILLEGAL_BUFFER_READ_OR_WRITE"),
            _ => {}
        }
        let at = usize::try_from(-i64::from(self.0)).ok()?;
        NAMES.get(at).or_else(|| FROM_30.get(at.checked_sub(30)?)).copied()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const NAMES: [&str; 20] = [
    "CL_SUCCESS",
    "CL_DEVICE_NOT_FOUND",
    "CL_DEVICE_NOT_AVAILABLE",
    "CL_COMPILER_NOT_AVAILABLE",
    "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    "CL_OUT_OF_RESOURCES",
    "CL_OUT_OF_HOST_MEMORY",
    "CL_PROFILING_INFO_NOT_AVAILABLE",
    "CL_MEM_COPY_OVERLAP",
    "CL_IMAGE_FORMAT_MISMATCH",
    "CL_IMAGE_FORMAT_NOT_SUPPORTED",
    "CL_BUILD_PROGRAM_FAILURE",
    "CL_MAP_FAILURE",
    "CL_MISALIGNED_SUB_BUFFER_OFFSET",
    "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    "CL_COMPILE_PROGRAM_FAILURE",
    "CL_LINKER_NOT_AVAILABLE",
    "CL_LINK_PROGRAM_FAILURE",
    "CL_DEVICE_PARTITION_FAILED",
    "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
];

const FROM_30: [&str; 42] = [
    "CL_INVALID_VALUE",
    "CL_INVALID_DEVICE_TYPE",
    "CL_INVALID_PLATFORM",
    "CL_INVALID_DEVICE",
    "CL_INVALID_CONTEXT",
    "CL_INVALID_QUEUE_PROPERTIES",
    "CL_INVALID_COMMAND_QUEUE",
    "CL_INVALID_HOST_PTR",
    "CL_INVALID_MEM_OBJECT",
    "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
    "CL_INVALID_IMAGE_SIZE",
    "CL_INVALID_SAMPLER",
    "CL_INVALID_BINARY",
    "CL_INVALID_BUILD_OPTIONS",
    "CL_INVALID_PROGRAM",
    "CL_INVALID_PROGRAM_EXECUTABLE",
    "CL_INVALID_KERNEL_NAME",
    "CL_INVALID_KERNEL_DEFINITION",
    "CL_INVALID_KERNEL",
    "CL_INVALID_ARG_INDEX",
    "CL_INVALID_ARG_VALUE",
    "CL_INVALID_ARG_SIZE",
    "CL_INVALID_KERNEL_ARGS",
    "CL_INVALID_WORK_DIMENSION",
    "CL_INVALID_WORK_GROUP_SIZE",
    "CL_INVALID_WORK_ITEM_SIZE",
    "CL_INVALID_GLOBAL_OFFSET",
    "CL_INVALID_EVENT_WAIT_LIST",
    "CL_INVALID_EVENT",
    "CL_INVALID_OPERATION",
    "CL_INVALID_GL_OBJECT",
    "CL_INVALID_BUFFER_SIZE",
    "CL_INVALID_MIP_LEVEL",
    "CL_INVALID_GLOBAL_WORK_SIZE",
    "CL_INVALID_PROPERTY",
    "CL_INVALID_IMAGE_DESCRIPTOR",
    "CL_INVALID_COMPILER_OPTIONS",
    "CL_INVALID_LINKER_OPTIONS",
    "CL_INVALID_DEVICE_PARTITION_COUNT",
    "CL_INVALID_PIPE_SIZE",
    "CL_INVALID_DEVICE_QUEUE",
    "CL_INVALID_SPEC_ID",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_standard() {
        let names = [-5, -11, -30, -52, -61, -1001].map(|n| Code(n).name());
        let expected = [
            "CL_OUT_OF_RESOURCES",
            "CL_BUILD_PROGRAM_FAILURE",
            "CL_INVALID_VALUE",
            "CL_INVALID_KERNEL_ARGS",
            "CL_INVALID_BUFFER_SIZE",
            "CL_PLATFORM_NOT_FOUND_KHR",
        ];
        assert_eq!(names, expected.map(Some));
        assert_eq!(Code(-4242).to_string(), "error -4242");
    }
}
