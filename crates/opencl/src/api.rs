//! The functions of the library, found when they are first needed. Nothing else in this crate knows their signatures.

use crate::error::{Code, Error, Result};
use libloading::Library;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// Every handle of OpenCL is an address.
pub(crate) type Handle = *mut c_void;
pub(crate) type Callback = Option<extern "C" fn()>;

/// Numbers of the standard that this crate uses.
pub(crate) mod num {
    pub(crate) const PLATFORM_NAME: u32 = 0x0902;
    pub(crate) const PLATFORM_VERSION: u32 = 0x0901;
    pub(crate) const DEVICE_TYPE_ALL: u64 = 0xFFFF_FFFF;
    pub(crate) const DEVICE_TYPE: u32 = 0x1000;
    pub(crate) const DEVICE_VENDOR_ID: u32 = 0x1001;
    pub(crate) const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
    pub(crate) const DEVICE_MAX_WORK_GROUP_SIZE: u32 = 0x1004;
    pub(crate) const DEVICE_MAX_WORK_ITEM_SIZES: u32 = 0x1005;
    pub(crate) const DEVICE_MAX_CLOCK_FREQUENCY: u32 = 0x100C;
    pub(crate) const DEVICE_MAX_MEM_ALLOC_SIZE: u32 = 0x1010;
    pub(crate) const DEVICE_MEM_BASE_ADDR_ALIGN: u32 = 0x1019;
    pub(crate) const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101F;
    pub(crate) const DEVICE_LOCAL_MEM_SIZE: u32 = 0x1023;
    pub(crate) const DEVICE_AVAILABLE: u32 = 0x1027;
    pub(crate) const DEVICE_COMPILER_AVAILABLE: u32 = 0x1028;
    pub(crate) const DEVICE_NAME: u32 = 0x102B;
    pub(crate) const DEVICE_VENDOR: u32 = 0x102C;
    pub(crate) const DRIVER_VERSION: u32 = 0x102D;
    pub(crate) const DEVICE_VERSION: u32 = 0x102F;
    pub(crate) const DEVICE_EXTENSIONS: u32 = 0x1030;
    pub(crate) const DEVICE_HOST_UNIFIED_MEMORY: u32 = 0x1035;
    pub(crate) const DEVICE_PLATFORM: u32 = 0x1031;
    pub(crate) const CONTEXT_DEVICES: u32 = 0x1081;
    pub(crate) const QUEUE_CONTEXT: u32 = 0x1090;
    pub(crate) const QUEUE_PROFILING_ENABLE: u64 = 1 << 1;
    pub(crate) const MEM_READ_WRITE: u64 = 1;
    pub(crate) const MEM_SIZE: u32 = 0x1102;
    pub(crate) const MEM_CONTEXT: u32 = 0x1106;
    pub(crate) const BUFFER_CREATE_TYPE_REGION: u32 = 0x1220;
    pub(crate) const PROGRAM_NUM_DEVICES: u32 = 0x1162;
    pub(crate) const PROGRAM_BINARY_SIZES: u32 = 0x1165;
    pub(crate) const PROGRAM_BINARIES: u32 = 0x1166;
    pub(crate) const PROGRAM_BUILD_LOG: u32 = 0x1183;
    pub(crate) const KERNEL_NUM_ARGS: u32 = 0x1191;
    pub(crate) const KERNEL_ARG_ADDRESS_QUALIFIER: u32 = 0x1196;
    pub(crate) const ADDRESS_GLOBAL: u32 = 0x119B;
    pub(crate) const ADDRESS_LOCAL: u32 = 0x119C;
    pub(crate) const ADDRESS_CONSTANT: u32 = 0x119D;
    pub(crate) const KERNEL_WORK_GROUP_SIZE: u32 = 0x11B0;
    pub(crate) const PROFILING_COMMAND_START: u32 = 0x1282;
    pub(crate) const PROFILING_COMMAND_END: u32 = 0x1283;
}

macro_rules! functions {
    ($($field:ident = $name:literal ( $($arg:ty),* ) -> $out:ty;)*) => {
        /// The functions by name.
        pub(crate) struct Api {
            $(pub(crate) $field: unsafe extern "C" fn($($arg),*) -> $out,)*
            // The functions are good as long as the library is; it is never closed.
            _library: Library,
        }

        impl Api {
            fn load(library: Library) -> std::result::Result<Api, libloading::Error> {
                Ok(Api {
                    // SAFETY: the types are those of the standard for the function of this name, which has never changed any.
                    $($field: unsafe { *library.get(concat!($name, "\0").as_bytes())? },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    platform_ids = "clGetPlatformIDs"(u32, *mut Handle, *mut u32) -> i32;
    platform_info = "clGetPlatformInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    device_ids = "clGetDeviceIDs"(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    device_info = "clGetDeviceInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    create_context =
        "clCreateContext"(*const isize, u32, *const Handle, Callback, *mut c_void, *mut i32) -> Handle;
    retain_context = "clRetainContext"(Handle) -> i32;
    retain_queue = "clRetainCommandQueue"(Handle) -> i32;
    queue_info = "clGetCommandQueueInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    release_context = "clReleaseContext"(Handle) -> i32;
    context_info = "clGetContextInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    create_queue = "clCreateCommandQueue"(Handle, Handle, u64, *mut i32) -> Handle;
    release_queue = "clReleaseCommandQueue"(Handle) -> i32;
    flush = "clFlush"(Handle) -> i32;
    finish = "clFinish"(Handle) -> i32;
    wait_for_events = "clWaitForEvents"(u32, *const Handle) -> i32;
    create_buffer = "clCreateBuffer"(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
    create_sub_buffer = "clCreateSubBuffer"(Handle, u64, u32, *const c_void, *mut i32) -> Handle;
    retain_mem = "clRetainMemObject"(Handle) -> i32;
    release_mem = "clReleaseMemObject"(Handle) -> i32;
    mem_info = "clGetMemObjectInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    read_buffer =
        "clEnqueueReadBuffer"(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    write_buffer =
        "clEnqueueWriteBuffer"(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    copy_buffer =
        "clEnqueueCopyBuffer"(Handle, Handle, Handle, usize, usize, usize, u32, *const Handle, *mut Handle) -> i32;
    fill_buffer =
        "clEnqueueFillBuffer"(Handle, Handle, *const c_void, usize, usize, usize, u32, *const Handle, *mut Handle) -> i32;
    create_program =
        "clCreateProgramWithSource"(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    create_program_from_binary =
        "clCreateProgramWithBinary"(Handle, u32, *const Handle, *const usize, *const *const u8, *mut i32, *mut i32) -> Handle;
    build_program = "clBuildProgram"(Handle, u32, *const Handle, *const c_char, Callback, *mut c_void) -> i32;
    release_program = "clReleaseProgram"(Handle) -> i32;
    program_info = "clGetProgramInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    build_info = "clGetProgramBuildInfo"(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    create_kernel = "clCreateKernel"(Handle, *const c_char, *mut i32) -> Handle;
    retain_kernel = "clRetainKernel"(Handle) -> i32;
    release_kernel = "clReleaseKernel"(Handle) -> i32;
    extension_function = "clGetExtensionFunctionAddressForPlatform"(Handle, *const c_char) -> Handle;
    set_arg = "clSetKernelArg"(Handle, u32, usize, *const c_void) -> i32;
    kernel_info = "clGetKernelInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    kernel_arg_info = "clGetKernelArgInfo"(Handle, u32, u32, usize, *mut c_void, *mut usize) -> i32;
    kernel_work_group_info =
        "clGetKernelWorkGroupInfo"(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    launch =
        "clEnqueueNDRangeKernel"(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> i32;
    profiling_info = "clGetEventProfilingInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    release_event = "clReleaseEvent"(Handle) -> i32;
}

/// Where the loader of OpenCL's drivers is looked for.
#[cfg(target_os = "windows")]
const LIBRARIES: &[&str] = &["OpenCL.dll"];
#[cfg(target_os = "macos")]
const LIBRARIES: &[&str] = &["/System/Library/Frameworks/OpenCL.framework/OpenCL"];
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
const LIBRARIES: &[&str] = &["libOpenCL.so.1", "libOpenCL.so"];

/// The functions, or why there are none. The library is opened once for the process.
pub(crate) fn api() -> Result<&'static Api> {
    static API: OnceLock<std::result::Result<Api, String>> = OnceLock::new();
    let loaded = API.get_or_init(|| {
        let mut why = String::new();
        for name in LIBRARIES {
            // SAFETY: opening runs the initialisers of the system's OpenCL loader, which does no more than set itself up.
            match unsafe { Library::new(*name) }.and_then(Api::load) {
                Ok(api) => return Ok(api),
                Err(e) => why = if why.is_empty() { e.to_string() } else { why },
            }
        }
        Err(format!("the library cannot be loaded ({why})"))
    });
    loaded.as_ref().map_err(|why| Error::NoDevice(why.clone()))
}

/// An answer of a call as a result.
pub(crate) fn check(call: &'static str, code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Call { call, code: Code(code) }) }
}

/// Asks one of the `clGet...Info` functions for bytes: first how many, then for them.
pub(crate) fn info(call: &'static str, ask: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> Result<Vec<u8>> {
    let mut len = 0;
    check(call, ask(0, std::ptr::null_mut(), &mut len))?;
    let mut bytes = vec![0u8; len];
    if len > 0 {
        check(call, ask(len, bytes.as_mut_ptr().cast(), std::ptr::null_mut()))?;
    }
    Ok(bytes)
}

/// Bytes of an answer as text, without the zero at the end.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').trim().to_string()
}

/// Bytes of an answer as a number; shorter ones are widened.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).enumerate().fold(0, |n, (i, b)| n | u64::from(*b) << (8 * i))
}
