//! AUTO picks a device for a model and MULTI spreads requests over several. MULTI is AUTO with the hint
//! CUMULATIVE_THROUGHPUT and a list that must be there. With that hint all devices work and a request takes whichever
//! has a worker free (`pool`); without it one device works, and others only come in when it fails (`chosen`).

mod choice;
mod chosen;
mod pool;

use crate::PRIORITIES;
use crate::list::{DeviceItem, DeviceList, candidates, refuse_nested};
use crate::settings::{check_own, device_of, readable, writable};
use carafe_device::{CompiledModel, Device, Devices, Properties, PropertyInfo, PropertyKind, Query};
use carafe_graph::{Error, Model, Registry, Result};
use carafe_tensor::SharedBytes;
use std::sync::Arc;

const HINTS: &[&str] = &["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"];

pub(crate) const TABLE: &[PropertyInfo] = &[
    writable(PRIORITIES, PropertyKind::Text, "", "Devices in order of priority: `A(2),B`, or left out: `-C`."),
    writable("PERFORMANCE_HINT", PropertyKind::Enum(HINTS), "LATENCY", "With CUMULATIVE_THROUGHPUT all devices work."),
    writable(
        "ENABLE_STARTUP_FALLBACK",
        PropertyKind::Bool,
        "true",
        "Let a host device work while the chosen one still compiles.",
    ),
    writable(
        "ENABLE_RUNTIME_FALLBACK",
        PropertyKind::Bool,
        "true",
        "Run a request again on another device when one fails.",
    ),
    writable(
        "SCHEDULE_POLICY",
        PropertyKind::Enum(&["DEVICE_PRIORITY", "ROUND_ROBIN"]),
        "DEVICE_PRIORITY",
        "Which free device a request takes: the first of the list, or each in turn.",
    ),
    writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node."),
    readable("AVAILABLE_DEVICES", "Empty: it is made of other devices."),
    readable("FULL_DEVICE_NAME", "Name for people."),
    readable("OPTIMIZATION_CAPABILITIES", "Precisions and abilities."),
    readable("SUPPORTED_PROPERTIES", "Names of all properties."),
];

/// AUTO or MULTI.
pub struct AutoDevice {
    from: Arc<dyn Devices>,
    is_multi: bool,
}

/// A device that may get the model.
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) count: Option<usize>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) properties: Properties,
}

/// What all compiled models of AUTO and MULTI keep.
pub(crate) struct Settings {
    pub(crate) device: &'static str,
    pub(crate) runtime_fallback: bool,
    pub(crate) stateful: bool,
    pub(crate) properties: Properties,
}

impl AutoDevice {
    /// AUTO, that finds its devices there.
    pub fn auto(from: Arc<dyn Devices>) -> AutoDevice {
        AutoDevice { from, is_multi: false }
    }
    /// MULTI, that finds its devices there.
    pub fn multi(from: Arc<dyn Devices>) -> AutoDevice {
        AutoDevice { from, is_multi: true }
    }

    fn name(&self) -> &'static str {
        if self.is_multi { "MULTI" } else { "AUTO" }
    }

    fn is_cumulative(&self, properties: &Properties) -> bool {
        let hint = properties.get("PERFORMANCE_HINT").unwrap_or_default();
        self.is_multi || hint.trim().eq_ignore_ascii_case("CUMULATIVE_THROUGHPUT")
    }

    fn candidates(&self, model: &Model, properties: &Properties) -> Result<Vec<Candidate>> {
        check_own(properties, TABLE)?;
        let list = DeviceList::parse(properties.get(PRIORITIES).unwrap_or_default())?;
        if self.is_multi && list.items.is_empty() {
            return Err(Error::usage("no devices given; name them in order of priority, e.g. `MULTI:A,B`"));
        }
        let items = candidates(&list, &*self.from);
        if items.is_empty() {
            return Err(Error::usage(format!("{} has no device left to run on", self.name())));
        }
        // The hint CUMULATIVE_THROUGHPUT is AUTO's own; a single device has no other to share with.
        let mut passed = properties.clone();
        if self.is_cumulative(properties) && passed.get("PERFORMANCE_HINT").is_some() {
            passed.set("PERFORMANCE_HINT", "THROUGHPUT");
        }
        let candidate = |DeviceItem { name, count }| {
            let (device, properties) = device_of(&*self.from, &name, &passed, TABLE)?;
            refuse_nested(&name, &*device)?;
            Ok(Candidate { name, count, device, properties })
        };
        let mut all = items.into_iter().map(candidate).collect::<Result<Vec<_>>>()?;
        if list.items.is_empty() {
            choice::sort(&mut all, model);
        }
        Ok(all)
    }
}

impl Device for AutoDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        Ok(match name {
            "AVAILABLE_DEVICES" | "OPTIMIZATION_CAPABILITIES" => String::new(),
            "FULL_DEVICE_NAME" if self.is_multi => "Requests over several devices".into(),
            "FULL_DEVICE_NAME" => "The best device for a model".into(),
            "SUPPORTED_PROPERTIES" => TABLE.iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
            _ => return Err(Error::not_found(format!("device {} has no property `{name}`", self.name()))),
        })
    }
    /// Where all devices work, what all of them take; else the answer of the device that takes most.
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        let mut answers = Vec::new();
        for c in self.candidates(model, properties)? {
            answers.push(c.device.query(model, &c.properties).map_err(|e| e.at(format!("device `{}`", c.name)))?);
        }
        if !self.is_cumulative(properties) {
            return Ok(answers.into_iter().min_by_key(|q| q.unsupported.len()).unwrap_or_default());
        }
        let mut all = answers.remove(0);
        for next in answers {
            all.supported.retain(|n| next.supported.contains(n));
            let new = next.unsupported.into_iter().filter(|u| all.unsupported.iter().all(|o| o.name != u.name));
            all.unsupported.extend(new.collect::<Vec<_>>());
        }
        Ok(all)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        let candidates = self.candidates(model, properties)?;
        let stateful = model.is_stateful();
        let settings = Settings {
            device: self.name(),
            runtime_fallback: properties.is_on(TABLE, "ENABLE_RUNTIME_FALLBACK"),
            stateful,
            properties: properties.clone(),
        };
        if !self.is_cumulative(properties) || (stateful && candidates.len() == 1) {
            let startup = properties.is_on(TABLE, "ENABLE_STARTUP_FALLBACK") && !stateful;
            return Ok(Arc::new(chosen::Compiled::new(model, candidates, settings, startup)?));
        }
        if stateful {
            return Err(Error::unsupported(format!(
                "the model keeps variables from one inference to the next, and {} runs each on another device; \
                 give it one device",
                self.name()
            )));
        }
        Ok(Arc::new(pool::Compiled::new(model, candidates, settings)?))
    }
    fn import(&self, _: SharedBytes, _: &Registry, _: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Err(Error::unsupported(format!("{} cannot import; import into the device itself", self.name())))
    }
}

/// How many requests keep a compiled model busy.
pub(crate) fn optimal_requests(compiled: &dyn CompiledModel) -> usize {
    let text = compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS").unwrap_or_default();
    text.trim().parse().unwrap_or(1).max(1)
}

impl Settings {
    /// A property the model was compiled with, or its default.
    pub(crate) fn property(&self, name: &str) -> Result<String> {
        use carafe_device::Mutability::ReadWrite;
        if name == "SUPPORTED_PROPERTIES" {
            let table = TABLE.iter().filter(|p| p.mutability == ReadWrite).map(|p| p.name);
            return Ok(OWN.iter().copied().chain(table).collect::<Vec<_>>().join(" "));
        }
        match (self.properties.get(name), TABLE.iter().find(|p| p.name == name)) {
            (Some(value), _) => Ok(value.to_string()),
            (None, Some(p)) if p.mutability == ReadWrite => Ok(p.default.to_string()),
            _ => Err(Error::not_found(format!("a model compiled for {} has no property `{name}`", self.device))),
        }
    }
    pub(crate) fn no_export(&self) -> Error {
        Error::unsupported(format!("{} cannot export; compile for the device itself", self.device))
    }
}

/// What a compiled model answers itself.
const OWN: &[&str] = &[
    "NETWORK_NAME",
    "EXECUTION_DEVICES",
    "LOADED_FROM_CACHE",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "SUPPORTED_PROPERTIES",
];

/// One line about every device that failed.
pub(crate) fn all_failed(failures: &[(String, Error)]) -> Error {
    let list: Vec<String> = failures.iter().map(|(name, e)| format!("{name}: {e}")).collect();
    Error::unsupported(format!("no device compiles the model: {}", list.join("; ")))
}

impl std::fmt::Debug for AutoDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
