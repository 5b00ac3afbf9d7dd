//! The property table of CPU, and what its values mean for threads and streams.

use crate::threads::Machine;
use carafe_device::{Mutability, Properties, PropertyInfo, PropertyKind};
use carafe_graph::log::{self, Level};
use carafe_graph::{Error, Result};
use carafe_kernels::{Halves, Isa, Numbers};
use std::sync::LazyLock;

const COUNT: PropertyKind = PropertyKind::Int { min: 0, max: 1024 };
const HINTS: PropertyKind = PropertyKind::Enum(&["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"]);

/// Names of those that decide over the types of numbers.
pub(crate) const PRECISION: &str = "INFERENCE_PRECISION_HINT";
pub(crate) const MODE: &str = "EXECUTION_MODE_HINT";
/// How many numbers of a row share a scale where rows are rounded while a product with compressed weights runs.
pub(crate) const GROUP: &str = "DYNAMIC_QUANTIZATION_GROUP_SIZE";
/// As many as OpenVINO takes.
const USUAL_GROUP: &str = "32";

/// What can be set and read. The default precision is that of the machine.
pub(crate) static TABLE: LazyLock<Vec<PropertyInfo>> = LazyLock::new(|| {
    vec![
        writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node."),
        writable("DEVICE_ID", PropertyKind::Text, "0", "Which instance; there is only 0."),
        writable(
            "PERFORMANCE_HINT",
            HINTS,
            "LATENCY",
            "LATENCY: one stream with all threads; THROUGHPUT: a stream a thread, or fewer of more threads where their memory would not \
             fit the cache.",
        ),
        writable("PERFORMANCE_HINT_NUM_REQUESTS", COUNT, "0", "Most requests that will run at once; 0 for any number."),
        writable(
            "NUM_STREAMS",
            PropertyKind::Text,
            "AUTO",
            "Inferences that run at the same time; AUTO follows the hint.",
        ),
        writable("INFERENCE_NUM_THREADS", COUNT, "0", "Threads of all streams together; 0 for all processors allowed."),
        writable("ENABLE_CPU_PINNING", PropertyKind::Bool, "false", "Keep each thread on one processor."),
        writable(
            "CPU_SPIN_MICROSECONDS",
            PropertyKind::Int { min: 0, max: 1_000_000 },
            "200",
            "How long an idle thread waits awake for the next node before it sleeps.",
        ),
        writable(
            PRECISION,
            PropertyKind::Enum(&["f32", "FP32", "bf16", "BF16", "f16", "FP16", "dynamic", "undefined"]),
            fast_precision(),
            "Type that products and convolutions of floats are computed in; dynamic is the type of the model. A type that the \
         processor has no instructions for (f16: AVX512-FP16 or AMX-FP16) counts as none: then it is bf16 where that is \
         multiplied faster than f32, in the mode PERFORMANCE.",
        ),
        writable(
            MODE,
            PropertyKind::Enum(&["PERFORMANCE", "ACCURACY"]),
            "PERFORMANCE",
            "ACCURACY keeps the types of the model and leaves out convolution by Winograd's method.",
        ),
        writable(
            GROUP,
            PropertyKind::Int { min: 0, max: i64::MAX },
            fast_group(),
            "Numbers of a row that share a scale where the data of products with compressed weights is rounded to 8 bits; 0 \
         computes with floats, as do the mode ACCURACY and the precision f32 where they are asked for and this is not.",
        ),
        writable(
            "CPU_DENORMALS_OPTIMIZATION",
            PropertyKind::Bool,
            "true",
            "Kernels take numbers below 1.2e-38 as zero, which many processors are slow with. Evaluations, constants and \
         extensions keep them.",
        ),
        writable(
            "CPU_REPRODUCIBLE",
            PropertyKind::Bool,
            "true",
            "Results of the same input are the same bits in every run with as many threads; it always holds.",
        ),
        readable("AVAILABLE_DEVICES", "Ids of the instances."),
        readable("FULL_DEVICE_NAME", "Name for people."),
        readable("DEVICE_ARCHITECTURE", "Kind of machine the device runs on."),
        readable("DEVICE_TYPE", "Integrated or discrete."),
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

/// Checks what the table can say and what it cannot.
pub(crate) fn check(properties: &Properties) -> Result<()> {
    properties.check(&TABLE)?;
    match properties.get("DEVICE_ID") {
        Some(id) if id.trim() != "0" => {
            return Err(Error::not_found(format!("device CPU has no instance {id}; it has 0")));
        }
        _ => {}
    }
    Settings::of(properties).map(|_| ())
}

/// What a model is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) streams: usize,
    pub(crate) threads_each: usize,
    /// A stream a thread because throughput was asked for, and no number: models that need much memory get fewer.
    pub(crate) streams_may_be_fewer: bool,
    pub(crate) pinned: bool,
    pub(crate) spin_us: u64,
    pub(crate) profiled: bool,
    pub(crate) strict_f32: bool,
    pub(crate) flush_denormals: bool,
    /// The type of 16 bits that products and convolutions of floats are computed in.
    pub(crate) half: Option<Halves>,
    /// Numbers of a row that are rounded together beside compressed weights; 0 where none are.
    pub(crate) rounded_group: usize,
}

impl Settings {
    pub(crate) fn of(properties: &Properties) -> Result<Settings> {
        let text = |name: &str| properties.or_default(&TABLE, name).unwrap_or_default().trim().to_ascii_uppercase();
        let number = |name: &str| text(name).parse::<usize>().unwrap_or(0);
        let processors = Machine::processors();
        let threads = match number("INFERENCE_NUM_THREADS") {
            0 => processors,
            n => n,
        };
        let wanted = match text("NUM_STREAMS").as_str() {
            "AUTO" | "-1" | "0" | "" => None,
            // One a node of memory; there is one where only one is known of.
            "NUMA" | "-2" => Some(1),
            n => match n.parse::<usize>() {
                Ok(n) if n <= 1024 => Some(n),
                _ => {
                    return Err(Error::usage(format!(
                        "property `NUM_STREAMS` takes AUTO, NUMA or a number up to 1024, found `{n}`"
                    )));
                }
            },
        };
        let requests = number("PERFORMANCE_HINT_NUM_REQUESTS");
        let latency = text("PERFORMANCE_HINT") == "LATENCY";
        let streams = wanted.unwrap_or(match () {
            _ if latency => 1,
            _ if requests > 0 => threads.min(requests),
            _ => threads,
        });
        Ok(Settings {
            streams,
            threads_each: (threads / streams).max(1),
            streams_may_be_fewer: wanted.is_none() && !latency && requests == 0,
            pinned: properties.is_on(&TABLE, "ENABLE_CPU_PINNING"),
            spin_us: number("CPU_SPIN_MICROSECONDS") as u64,
            profiled: properties.is_on(&TABLE, "PERF_COUNT"),
            strict_f32: text(MODE) == "ACCURACY",
            flush_denormals: properties.is_on(&TABLE, "CPU_DENORMALS_OPTIMIZATION"),
            half: half_of(precision(properties)),
            rounded_group: rounded_group(properties).parse().unwrap_or(0),
        })
    }
}

fn half_of(precision: &str) -> Option<Halves> {
    [Halves::Bf16, Halves::F16].into_iter().find(|halves| halves.name() == precision)
}

// The type that was asked for, in one spelling.
fn given_precision(properties: &Properties) -> String {
    properties.get(PRECISION).unwrap_or_default().trim().to_ascii_lowercase().replace("fp", "f")
}

// The type that is multiplied fastest.
fn fast_precision() -> &'static str {
    if Numbers::Bf16.is_fast(Isa::best()) { "bf16" } else { "f32" }
}

// Where integers are multiplied faster than floats.
fn fast_group() -> &'static str {
    if Numbers::U8I8.is_fast(Isa::best()) { USUAL_GROUP } else { "0" }
}

/// What DYNAMIC_QUANTIZATION_GROUP_SIZE comes to: who asks for exact floats and not for groups gets none.
pub(crate) fn rounded_group(properties: &Properties) -> String {
    let mode = properties.or_default(&TABLE, MODE).unwrap_or_default();
    let exact = mode.trim().eq_ignore_ascii_case("ACCURACY") || given_precision(properties) == "f32";
    match properties.get(GROUP) {
        Some(given) => given.trim().to_string(),
        None if exact => "0".into(),
        None => fast_group().into(),
    }
}

/// What INFERENCE_PRECISION_HINT comes to: an explicit type wins over the mode, and one without instructions counts as none.
pub(crate) fn precision(properties: &Properties) -> &'static str {
    let given = given_precision(properties);
    let mode = properties.or_default(&TABLE, MODE).unwrap_or_default();
    let half = half_of(&given).filter(|halves| halves.numbers().is_native(Isa::best()));
    match given.as_str() {
        "f32" => "f32",
        _ if half.is_some() => half.map_or("f32", Halves::name),
        "dynamic" | "undefined" => "dynamic",
        _ if mode.trim().eq_ignore_ascii_case("ACCURACY") => "dynamic",
        _ => fast_precision(),
    }
}

/// What a compiled model says of it: in the words it was asked for with, where they mean what runs.
pub(crate) fn told_precision(properties: &Properties) -> String {
    let runs = precision(properties);
    match properties.get(PRECISION) {
        Some(given) if given_precision(properties) == runs => given.to_string(),
        _ => runs.to_string(),
    }
}

/// Tells the log where another type runs than was asked for.
pub(crate) fn tell_precision(properties: &Properties) {
    let (given, runs) = (given_precision(properties), precision(properties));
    if half_of(&given).is_some() && given != runs {
        let text = format!("{PRECISION}: CPU has no kernels for {given} on this processor; {runs} runs instead");
        log::report(Level::Info, &text);
    }
}

/// Value of a read-only property.
pub(crate) fn metric(name: &str) -> Result<String> {
    let processors = Machine::processors();
    Ok(match name {
        "AVAILABLE_DEVICES" => "0".into(),
        "FULL_DEVICE_NAME" => Machine::name(),
        "DEVICE_ARCHITECTURE" => format!("{} {}", std::env::consts::ARCH, carafe_kernels::Isa::best().name()),
        "DEVICE_TYPE" => "integrated".into(),
        "OPTIMIZATION_CAPABILITIES" => {
            let fast = |numbers: Numbers, word| if numbers.is_fast(Isa::best()) { word } else { "" };
            let (bf16, int8) = (fast(Numbers::Bf16, "BF16 "), fast(Numbers::U8I8, "INT8 "));
            let f16 = if Numbers::F16.is_native(Isa::best()) { "FP16 " } else { "" };
            format!("FP32 {bf16}{f16}{int8}WINOGRAD EXPORT_IMPORT")
        }
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => "1".into(),
        "RANGE_FOR_ASYNC_INFER_REQUESTS" => "1 1 1".into(),
        "RANGE_FOR_STREAMS" => format!("1 {processors}"),
        "SUPPORTED_PROPERTIES" => TABLE.iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
        _ => return Err(Error::not_found(format!("device CPU has no property `{name}`"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> (usize, usize) {
        let mut p = Properties::new().with("INFERENCE_NUM_THREADS", 8);
        pairs.iter().for_each(|(k, v)| p.set(k, v));
        let s = Settings::of(&p).unwrap();
        (s.streams, s.threads_each)
    }

    #[test]
    fn latency_gives_all_threads_to_one_stream() {
        assert_eq!(settings(&[]), (1, 8));
        assert_eq!(settings(&[("PERFORMANCE_HINT", "latency")]), (1, 8));
    }

    #[test]
    fn throughput_gives_each_thread_a_stream() {
        assert_eq!(settings(&[("PERFORMANCE_HINT", "THROUGHPUT")]), (8, 1));
        assert_eq!(settings(&[("PERFORMANCE_HINT", "THROUGHPUT"), ("PERFORMANCE_HINT_NUM_REQUESTS", "4")]), (4, 2));
    }

    #[test]
    fn streams_that_are_asked_for_share_the_threads() {
        assert_eq!(settings(&[("NUM_STREAMS", "2")]), (2, 4));
        assert_eq!(settings(&[("NUM_STREAMS", "16")]), (16, 1));
    }

    #[test]
    fn a_number_of_streams_that_is_none_is_refused() {
        let e = check(&Properties::new().with("NUM_STREAMS", "many")).unwrap_err();
        assert!(e.to_string().contains("NUM_STREAMS"), "{e}");
    }
}
