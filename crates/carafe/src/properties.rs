//! Names of properties, as OpenVINO spells them. A value is text: [`Properties::with`](crate::Properties::with) takes anything
//! that can be shown. `carafe devices --properties` lists what each device knows.
//!
//! ```
//! use carafe::{Properties, properties};
//!
//! let config = Properties::new().with(properties::NUM_STREAMS, 2).with(properties::PERF_COUNT, true);
//! assert_eq!(config.get("NUM_STREAMS"), Some("2"));
//! ```

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident,)*) => { $($(#[$doc])* pub const $name: &str = stringify!($name);)* };
}

names! {
    /// `LATENCY`, `THROUGHPUT` or `CUMULATIVE_THROUGHPUT`.
    PERFORMANCE_HINT,
    /// Most requests that will run at once; 0 for any number.
    PERFORMANCE_HINT_NUM_REQUESTS,
    /// Inferences that run at the same time, or `AUTO`.
    NUM_STREAMS,
    /// Threads of all streams together; 0 for all processors allowed.
    INFERENCE_NUM_THREADS,
    /// Type that floats are computed in.
    INFERENCE_PRECISION_HINT,
    /// `PERFORMANCE` or `ACCURACY`.
    EXECUTION_MODE_HINT,
    /// Keep each thread on one processor.
    ENABLE_CPU_PINNING,
    /// Take numbers below the smallest normal one as zero.
    CPU_DENORMALS_OPTIMIZATION,
    /// Measure the time of every node.
    PERF_COUNT,
    /// Folder for compiled models.
    CACHE_DIR,
    /// Whether a compiled model came from the cache; read-only.
    LOADED_FROM_CACHE,
    /// Which instance of a device.
    DEVICE_ID,
    /// The list of `HETERO:A,B` and its kin.
    MULTI_DEVICE_PRIORITIES,
    /// Ids of the instances of a device; read-only.
    AVAILABLE_DEVICES,
    /// Name of a device for people; read-only.
    FULL_DEVICE_NAME,
    /// Kind of machine a device runs on; read-only.
    DEVICE_ARCHITECTURE,
    /// Integrated or discrete; read-only.
    DEVICE_TYPE,
    /// Precisions and abilities of a device; read-only.
    OPTIMIZATION_CAPABILITIES,
    /// How many requests keep the device busy; read-only.
    OPTIMAL_NUMBER_OF_INFER_REQUESTS,
    /// Fewest, most and step of parallel requests; read-only.
    RANGE_FOR_ASYNC_INFER_REQUESTS,
    /// Fewest and most streams; read-only.
    RANGE_FOR_STREAMS,
    /// Names of all properties of a device; read-only.
    SUPPORTED_PROPERTIES,
}
