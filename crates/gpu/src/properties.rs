//! The property tables of GPU and VPU, what their values mean, and what a device tells of itself.

use crate::custom::{CONFIG_FILE, VPU_LAYERS};
use crate::machine::{self, Found};
use crate::{GPU, Kind};
use carafe_device::{Mutability, Properties, PropertyInfo, PropertyKind};
use carafe_graph::{Error, Result};
use carafe_opencl::DeviceKind;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

const COUNT: PropertyKind = PropertyKind::Int { min: 0, max: 1024 };
const HINTS: PropertyKind = PropertyKind::Enum(&["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"]);
const PRECISIONS: PropertyKind = PropertyKind::Enum(&["f32", "FP32", "f16", "FP16", "dynamic", "undefined"]);

pub(crate) const PRECISION: &str = "INFERENCE_PRECISION_HINT";
pub(crate) const MODE: &str = "EXECUTION_MODE_HINT";
pub(crate) const ID: &str = "DEVICE_ID";
pub(crate) const RECORDS: &str = "COMMAND_BUFFERS";
const KERNELS: &str = "KERNEL_CACHE_DIR";

/// Streams that THROUGHPUT means: enough for uploads to go on while kernels run.
const THROUGHPUT_STREAMS: usize = 2;

/// What can be set and read of a device.
pub(crate) fn table(kind: Kind) -> &'static [PropertyInfo] {
    static WITH_LAYERS: LazyLock<Vec<PropertyInfo>> = LazyLock::new(|| {
        let doc = "Files with layers (MVCL); in front of CONFIG_FILE.";
        let layers = VPU_LAYERS.map(|name| writable(name, PropertyKind::Text, "", doc));
        TABLE.iter().copied().chain(layers).collect()
    });
    match kind {
        Kind::Gpu => &TABLE,
        Kind::Vpu => &WITH_LAYERS,
    }
}

/// What both devices have.
static TABLE: LazyLock<Vec<PropertyInfo>> = LazyLock::new(|| {
    vec![
        writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node by OpenCL events."),
        writable(ID, PropertyKind::Text, "0", "Which OpenCL device: graphics processors first, the host's own last."),
        writable("PERFORMANCE_HINT", HINTS, "LATENCY", "LATENCY: one stream; THROUGHPUT: several."),
        writable("PERFORMANCE_HINT_NUM_REQUESTS", COUNT, "0", "Most requests that will run at once; 0 for any number."),
        writable(
            "NUM_STREAMS",
            PropertyKind::Text,
            "AUTO",
            "Queues that work at the same time; AUTO follows the hint.",
        ),
        writable(
            PRECISION,
            PRECISIONS,
            "f32",
            "f16 keeps floats as halves in the device's memory and computes in f32. VPU always does.",
        ),
        writable(
            MODE,
            PropertyKind::Enum(&["PERFORMANCE", "ACCURACY"]),
            "PERFORMANCE",
            "ACCURACY keeps floats as f32 unless the precision is asked for.",
        ),
        writable(
            KERNELS,
            PropertyKind::Text,
            "",
            "Folder for built kernels and measured choices; with CACHE_DIR its `kernels` when left out, empty for none.",
        ),
        writable(
            RECORDS,
            PropertyKind::Bool,
            "true",
            "Record the launches of a plan and enqueue them as one command, where the driver has cl_khr_command_buffer and nothing is timed. \
             A compiled model says whether it does.",
        ),
        writable(CONFIG_FILE, PropertyKind::Text, "", "Files with custom kernels, `;` between them."),
        readable("CACHING_PROPERTIES", "What decides over an exported model."),
        readable("AVAILABLE_DEVICES", "Ids of the instances."),
        readable("FULL_DEVICE_NAME", "Name for people."),
        readable("DEVICE_ARCHITECTURE", "What the device is."),
        readable("DEVICE_TYPE", "Integrated or discrete; virtual where the host's own processors stand for a device."),
        readable("GPU_DEVICE_TOTAL_MEM_SIZE", "Bytes of the device's memory."),
        readable("GPU_DEVICE_MAX_ALLOC_MEM_SIZE", "Most bytes of one buffer."),
        readable("GPU_EXECUTION_UNITS_COUNT", "Parallel units."),
        readable("GPU_UARCH_VERSION", "Version of OpenCL that the device has."),
        readable("GPU_DRIVER_VERSION", "Version of the driver."),
        readable("GPU_MEMORY_STATISTICS", "Bytes that buffers take now."),
        readable("OPTIMIZATION_CAPABILITIES", "Precisions and abilities."),
        readable("OPTIMAL_NUMBER_OF_INFER_REQUESTS", "How many requests keep the device busy."),
        readable("RANGE_FOR_ASYNC_INFER_REQUESTS", "Fewest, most and step of parallel requests."),
        readable("RANGE_FOR_STREAMS", "Fewest and most streams."),
        readable("SUPPORTED_PROPERTIES", "Names of all properties."),
    ]
});

const fn writable(name: &'static str, kind: PropertyKind, default: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind, mutability: Mutability::ReadWrite, default, doc }
}

const fn readable(name: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind: PropertyKind::Text, mutability: Mutability::ReadOnly, default: "", doc }
}

/// What a model is compiled with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) streams: usize,
    pub(crate) profiled: bool,
    /// Whether floats lie as f16 in the device's memory.
    pub(crate) half: bool,
    pub(crate) folder: Option<PathBuf>,
    /// Whether launches may be recorded.
    pub(crate) records: bool,
}

impl Settings {
    /// Checks what the table can say and what it cannot.
    pub(crate) fn of(kind: Kind, properties: &Properties) -> Result<Settings> {
        let table = table(kind);
        properties.check(table)?;
        let text = |name: &str| properties.or_default(table, name).unwrap_or_default().trim().to_string();
        let requests = text("PERFORMANCE_HINT_NUM_REQUESTS").parse::<usize>().unwrap_or(0);
        let streams = match text("NUM_STREAMS").to_ascii_uppercase().as_str() {
            "AUTO" | "-1" | "0" | "" => match text("PERFORMANCE_HINT").to_ascii_uppercase().as_str() {
                "LATENCY" => 1,
                _ if requests > 0 => requests.min(THROUGHPUT_STREAMS),
                _ => THROUGHPUT_STREAMS,
            },
            n => match n.parse::<usize>() {
                Ok(n) if n <= 64 => n,
                _ => {
                    return Err(Error::usage(format!(
                        "property `NUM_STREAMS` takes AUTO or a number up to 64, found `{n}`"
                    )));
                }
            },
        };
        let folder = Some(text(KERNELS)).filter(|f| !f.is_empty()).map(PathBuf::from);
        let records = properties.is_on(table, RECORDS);
        let profiled = properties.is_on(table, "PERF_COUNT");
        Ok(Settings { streams, profiled, half: precision(kind, properties) == "f16", folder, records })
    }
}

/// What INFERENCE_PRECISION_HINT comes to.
pub(crate) fn precision(kind: Kind, properties: &Properties) -> &'static str {
    let asked = properties.get(PRECISION).unwrap_or_default().trim().to_ascii_lowercase();
    match asked.as_str() {
        _ if kind == Kind::Vpu => "f16",
        "f16" | "fp16" => "f16",
        _ => "f32",
    }
}

/// The OpenCL device that is meant.
pub(crate) fn device(properties: &Properties) -> Result<Arc<Found>> {
    machine::by_id(properties.get(ID).unwrap_or("0"))
}

/// Value of a read-only property of an instance.
pub(crate) fn metric(kind: Kind, name: &str, found: &Found) -> Result<String> {
    let info = found.info();
    let is_host = info.kind == DeviceKind::Cpu;
    Ok(match name {
        "AVAILABLE_DEVICES" => {
            let count = machine::all()?.len();
            (0..count).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")
        }
        "CACHING_PROPERTIES" => {
            let layers = VPU_LAYERS.iter().filter(|_| kind == Kind::Vpu).map(|name| format!(" {name}"));
            layers.fold(format!("{ID} {PRECISION} {MODE} {CONFIG_FILE}"), |all, name| all + &name)
        }
        "FULL_DEVICE_NAME" if kind == Kind::Vpu => {
            format!("f16 with the limits of a VPU on the OpenCL device {} (not a stick)", info.name)
        }
        "FULL_DEVICE_NAME" => format!("{} ({}, {})", info.name, info.platform, info.version),
        // The host's own processors begin with their architecture, by which others know them.
        "DEVICE_ARCHITECTURE" if is_host => format!("{} OpenCL", std::env::consts::ARCH),
        "DEVICE_ARCHITECTURE" => format!("{GPU}: vendor=0x{:x} {}", info.vendor_id, info.version),
        "DEVICE_TYPE" if is_host || kind == Kind::Vpu => "virtual".into(),
        "DEVICE_TYPE" => if info.unified_memory { "integrated" } else { "discrete" }.into(),
        "GPU_DEVICE_TOTAL_MEM_SIZE" => info.global_memory.to_string(),
        "GPU_DEVICE_MAX_ALLOC_MEM_SIZE" => info.largest_buffer.to_string(),
        "GPU_EXECUTION_UNITS_COUNT" => info.compute_units.to_string(),
        "GPU_UARCH_VERSION" => info.version.clone(),
        "GPU_DRIVER_VERSION" => info.driver.clone(),
        "GPU_MEMORY_STATISTICS" => format!("buffers {}", found.open()?.context.taken()),
        "OPTIMIZATION_CAPABILITIES" if kind == Kind::Vpu => "FP16 EXPORT_IMPORT".into(),
        "OPTIMIZATION_CAPABILITIES" if is_host => "FP32 EXPORT_IMPORT".into(),
        "OPTIMIZATION_CAPABILITIES" => "FP32 FP16 EXPORT_IMPORT".into(),
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => "1".into(),
        "RANGE_FOR_ASYNC_INFER_REQUESTS" => format!("1 {THROUGHPUT_STREAMS} 1"),
        "RANGE_FOR_STREAMS" => "1 64".into(),
        "SUPPORTED_PROPERTIES" => table(kind).iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
        _ => return Err(Error::not_found(format!("device {} has no property `{name}`", kind.name()))),
    })
}
