//! BATCH: requests that come at the same time run as one inference with a batch. `BATCH:A(8)` compiles the model twice,
//! as it is and with eight rows; whoever waits longer than AUTO_BATCH_TIMEOUT for the others runs alone.

mod alone;
mod collector;
mod compiled;
mod rows;

use crate::PRIORITIES;
use crate::list::{DeviceList, refuse_nested};
use crate::settings::{check_own, device_of, readable, writable};
use alone::Alone;
use carafe_device::{CompiledModel, Device, Devices, Properties, PropertyInfo, PropertyKind, Query, Unsupported};
use carafe_graph::{Error, Model, Node, Registry, Result};
use carafe_tensor::SharedBytes;
use compiled::Compiled;
use std::sync::Arc;

const NAME: &str = "BATCH";

/// Rows where neither the user nor the device says how many.
const DEFAULT_BATCH: usize = 4;

pub(crate) const TABLE: &[PropertyInfo] = &[
    writable(PRIORITIES, PropertyKind::Text, "", "The device, with the batch: `A(8)`."),
    writable(
        "AUTO_BATCH_TIMEOUT",
        PropertyKind::Int { min: 0, max: 3_600_000 },
        "1000",
        "Milliseconds a request waits for others.",
    ),
    writable(
        "PERFORMANCE_HINT_NUM_REQUESTS",
        PropertyKind::Int { min: 0, max: 1 << 20 },
        "0",
        "Requests the user makes at once, 0 for unknown; the batch is not larger.",
    ),
    writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node."),
    readable("AVAILABLE_DEVICES", "Empty: it is made of another device."),
    readable("FULL_DEVICE_NAME", "Name for people."),
    readable("OPTIMIZATION_CAPABILITIES", "Precisions and abilities."),
    readable("SUPPORTED_PROPERTIES", "Names of all properties."),
];

/// Collects requests into batches.
pub struct BatchDevice {
    from: Arc<dyn Devices>,
}

/// The device that does the work.
struct Target {
    name: String,
    device: Arc<dyn Device>,
    properties: Properties,
    count: Option<usize>,
}

impl BatchDevice {
    /// That finds its device there.
    pub fn new(from: Arc<dyn Devices>) -> BatchDevice {
        BatchDevice { from }
    }

    fn target(&self, properties: &Properties) -> Result<Target> {
        check_own(properties, TABLE)?;
        let text = properties.get(PRIORITIES).unwrap_or_default();
        let list = DeviceList::parse(text)?;
        let [item] = list.items.as_slice() else {
            return Err(Error::usage(format!("{NAME} takes one device, e.g. `BATCH:A(8)`, found `{text}`")));
        };
        if !list.excluded.is_empty() {
            return Err(Error::usage(format!("{NAME} takes one device and leaves none out, found `{text}`")));
        }
        let (device, properties) = device_of(&*self.from, &item.name, properties, TABLE)?;
        refuse_nested(&item.name, &*device)?;
        Ok(Target { name: item.name.clone(), device, properties, count: item.count })
    }

    // The user's word, else the device's, else a common one; never more rows than requests come.
    fn rows(target: &Target, properties: &Properties) -> usize {
        let told = target.device.metric("OPTIMAL_BATCH_SIZE").ok().and_then(|t| t.trim().parse().ok());
        let n = target.count.or(told.filter(|n| *n > 0)).unwrap_or(DEFAULT_BATCH);
        let most = properties.get("PERFORMANCE_HINT_NUM_REQUESTS").and_then(|t| t.trim().parse::<usize>().ok());
        most.filter(|m| *m > 0).map_or(n, |m| n.min(m))
    }
}

impl Device for BatchDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        Ok(match name {
            "AVAILABLE_DEVICES" | "OPTIMIZATION_CAPABILITIES" => String::new(),
            "FULL_DEVICE_NAME" => "Requests collected into batches".into(),
            "SUPPORTED_PROPERTIES" => TABLE.iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
            _ => return Err(Error::not_found(format!("device {NAME} has no property `{name}`"))),
        })
    }
    /// A model that cannot be run in batches is refused as a whole.
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        let target = self.target(properties)?;
        let answer = target.device.query(model, &target.properties);
        let answer = answer.map_err(|e| e.at(format!("device `{}`", target.name)))?;
        let n = BatchDevice::rows(&target, properties);
        if n == 1 || !answer.unsupported.is_empty() {
            return Ok(answer);
        }
        let Err(e) = rows::batched(model, n) else { return Ok(answer) };
        let refused = |node: &Node| Unsupported {
            name: node.name().to_string(),
            type_name: node.op().type_name().to_string(),
            reason: e.to_string(),
        };
        Ok(Query { supported: vec![], unsupported: model.nodes().map(|(_, n)| refused(n)).collect() })
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        let target = self.target(properties)?;
        let position = || format!("device `{}`", target.name);
        let n = BatchDevice::rows(&target, properties);
        if n == 1 {
            let inner = target.device.compile(model, &target.properties).map_err(|e| e.at(position()))?;
            return Ok(Arc::new(Alone { inner, properties: properties.clone() }));
        }
        let many = rows::batched(model, n)?;
        let single = target.device.compile(model, &target.properties).map_err(|e| e.at(position()))?;
        let many = target
            .device
            .compile(&many, &target.properties)
            .map_err(|e| e.at(format!("{} with a batch of {n}", position())))?;
        Ok(Arc::new(Compiled::new(model, target.name, n, single, many, properties)))
    }
    fn import(&self, _: SharedBytes, _: &Registry, _: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Err(Error::unsupported(format!("{NAME} cannot import; import into the device itself")))
    }
}

fn no_export() -> Error {
    Error::unsupported(format!("{NAME} cannot export; compile for the device itself"))
}

impl std::fmt::Debug for BatchDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BatchDevice")
    }
}
