//! Platforms and their devices.

use crate::api::{Handle, api, check, info, num, number, text};
use crate::error::{Error, Result};
use std::sync::Mutex;

/// What kind of processor a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A graphics processor.
    Gpu,
    /// The processors of the host.
    Cpu,
    /// Anything else.
    Accelerator,
}

/// A device of a platform. Devices are there as long as the process is.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) id: Id,
    pub(crate) platform: Id,
    /// What is known of it.
    pub info: DeviceInfo,
}

/// A handle that belongs to the library and is never released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) Handle);

// SAFETY: platforms and root devices live as long as the library, and every call on them may come from any thread.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// Name for people.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// PCI id of the vendor, where there is one.
    pub vendor_id: u32,
    /// Name of the platform.
    pub platform: String,
    /// Version of the platform, with the word OpenCL.
    pub platform_version: String,
    /// Version of OpenCL that the device has, with that word.
    pub version: String,
    /// Version of the driver.
    pub driver: String,
    /// What kind of processor it is.
    pub kind: DeviceKind,
    /// Parallel units.
    pub compute_units: usize,
    /// In MHz.
    pub clock: usize,
    /// Bytes of its memory.
    pub global_memory: usize,
    /// Most bytes of one buffer.
    pub largest_buffer: usize,
    /// Bytes that the items of a group share.
    pub local_memory: usize,
    /// Most items of a group.
    pub group_size: usize,
    /// Most items of a group along each axis.
    pub group_sizes: [usize; 3],
    /// Sub-buffers begin at multiples of so many bytes.
    pub alignment: usize,
    /// Whether it works in the memory of the host.
    pub unified_memory: bool,
    /// Extensions that it has.
    pub extensions: Vec<String>,
}

impl DeviceInfo {
    /// Whether it has an extension.
    pub fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|e| e == extension)
    }
}

impl Device {
    /// A device by the address of its `cl_device_id`.
    ///
    /// # Safety
    ///
    /// The address is that of a device which is there as long as the process.
    pub(crate) unsafe fn from_raw(device: usize) -> Result<Device> {
        let api = api()?;
        let id = device as Handle;
        // SAFETY: the caller vouches for the device, and `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.device_info)(id, num::DEVICE_PLATFORM, len, to, used) };
        let platform = number(&info("clGetDeviceInfo", ask)?) as usize as Handle;
        let (name, version) = platform_words(platform)?;
        let unable = || Error::NoDevice("the device of the context compiles no programs".into());
        let info = describe(id, &name, &version)?.ok_or_else(unable)?;
        Ok(Device { id: Id(id), platform: Id(platform), info })
    }
}

/// Every device of every platform that is there and can compile programs. That there is none is an error that says why.
pub fn devices() -> Result<Vec<Device>> {
    // PoCL 3.1 finds its devices when it is first asked, and whoever asks meanwhile is told that there are none.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(|e| e.into_inner());
    let api = api()?;
    let mut count = 0;
    // SAFETY: asking for the number alone writes one number.
    let code = unsafe { (api.platform_ids)(0, std::ptr::null_mut(), &mut count) };
    if code != 0 || count == 0 {
        return Err(Error::NoDevice("no platform is installed".into()));
    }
    let mut platforms = vec![std::ptr::null_mut(); count as usize];
    // SAFETY: the list has room for as many as are asked for.
    check("clGetPlatformIDs", unsafe { (api.platform_ids)(count, platforms.as_mut_ptr(), std::ptr::null_mut()) })?;
    let mut found = vec![];
    for &platform in &platforms {
        // A platform without devices answers with an error; it has nothing to say.
        found.extend(devices_of(platform).unwrap_or_default());
    }
    match found.is_empty() {
        true => {
            Err(Error::NoDevice(format!("none of {} platforms has a device that compiles programs", platforms.len())))
        }
        false => Ok(found),
    }
}

// Name and version.
fn platform_words(platform: Handle) -> Result<(String, String)> {
    let api = api()?;
    let of_platform = |what: u32| {
        // SAFETY: `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.platform_info)(platform, what, len, to, used) };
        info("clGetPlatformInfo", ask).map(|bytes| text(&bytes))
    };
    Ok((of_platform(num::PLATFORM_NAME)?, of_platform(num::PLATFORM_VERSION)?))
}

fn devices_of(platform: Handle) -> Result<Vec<Device>> {
    let api = api()?;
    let (name, version) = platform_words(platform)?;
    let mut count = 0;
    // SAFETY: asking for the number alone writes one number.
    let code = unsafe { (api.device_ids)(platform, num::DEVICE_TYPE_ALL, 0, std::ptr::null_mut(), &mut count) };
    check("clGetDeviceIDs", code)?;
    let mut ids = vec![std::ptr::null_mut(); count as usize];
    let all = num::DEVICE_TYPE_ALL;
    // SAFETY: the list has room for as many as are asked for.
    let code = unsafe { (api.device_ids)(platform, all, count, ids.as_mut_ptr(), std::ptr::null_mut()) };
    check("clGetDeviceIDs", code)?;
    let mut list = vec![];
    for id in ids {
        if let Some(info) = describe(id, &name, &version)? {
            list.push(Device { id: Id(id), platform: Id(platform), info });
        }
    }
    Ok(list)
}

// `None` for a device that is not available or cannot compile.
fn describe(id: Handle, platform: &str, platform_version: &str) -> Result<Option<DeviceInfo>> {
    let api = api()?;
    let bytes = |what: u32| {
        // SAFETY: `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.device_info)(id, what, len, to, used) };
        info("clGetDeviceInfo", ask)
    };
    let words = |what: u32| bytes(what).map(|b| text(&b));
    let count = |what: u32| bytes(what).map(|b| usize::try_from(number(&b)).unwrap_or(usize::MAX));
    if count(num::DEVICE_AVAILABLE)? == 0 || count(num::DEVICE_COMPILER_AVAILABLE)? == 0 {
        return Ok(None);
    }
    let sizes = bytes(num::DEVICE_MAX_WORK_ITEM_SIZES)?;
    let mut group_sizes = [1; 3];
    for (size, bytes) in group_sizes.iter_mut().zip(sizes.chunks_exact(size_of::<usize>())) {
        *size = usize::try_from(number(bytes)).unwrap_or(1);
    }
    let kind = match count(num::DEVICE_TYPE)? {
        t if t & 4 != 0 => DeviceKind::Gpu,
        t if t & 2 != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Accelerator,
    };
    Ok(Some(DeviceInfo {
        name: words(num::DEVICE_NAME)?,
        vendor: words(num::DEVICE_VENDOR)?,
        vendor_id: u32::try_from(count(num::DEVICE_VENDOR_ID)?).unwrap_or(0),
        platform: platform.to_string(),
        platform_version: platform_version.to_string(),
        version: words(num::DEVICE_VERSION)?,
        driver: words(num::DRIVER_VERSION)?,
        kind,
        compute_units: count(num::DEVICE_MAX_COMPUTE_UNITS)?,
        clock: count(num::DEVICE_MAX_CLOCK_FREQUENCY)?,
        global_memory: count(num::DEVICE_GLOBAL_MEM_SIZE)?,
        largest_buffer: count(num::DEVICE_MAX_MEM_ALLOC_SIZE)?,
        local_memory: count(num::DEVICE_LOCAL_MEM_SIZE)?,
        group_size: count(num::DEVICE_MAX_WORK_GROUP_SIZE)?,
        group_sizes,
        alignment: (count(num::DEVICE_MEM_BASE_ADDR_ALIGN)? / 8).max(1),
        unified_memory: count(num::DEVICE_HOST_UNIFIED_MEMORY).unwrap_or(0) != 0,
        extensions: words(num::DEVICE_EXTENSIONS)?.split_whitespace().map(str::to_string).collect(),
    }))
}
