//! HETERO: one model over several devices. Every node goes to the device the user wants or to the first of the list that
//! takes it; the model is cut along the borders, and the pieces run in order, handing their tensors over.

mod blob;
mod compiled;
mod dot;
mod order;
mod placement;
mod report;
mod request;
mod split;
mod units;

pub use placement::{affinity, set_affinity};
pub use report::{Refused, Report, SubModelReport};

use crate::list::{DeviceList, refuse_nested};
use crate::settings::{check_own, device_of, readable, writable};
use crate::{PRIORITIES, hetero::compiled::Compiled};
use carafe_device::{CompiledModel, Device, Devices, Properties, PropertyInfo, PropertyKind, Query, Unsupported};
use carafe_graph::{Error, Model, Registry, Result};
use carafe_tensor::SharedBytes;
use placement::{Part, Placement, place, wished};
use split::{Split, split};
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the device, and the name its exported models carry.
pub(crate) const NAME: &str = "HETERO";

pub(crate) const TABLE: &[PropertyInfo] = &[
    writable(PRIORITIES, PropertyKind::Text, "", "Devices in order of priority: `A,B`."),
    writable("HETERO_DUMP_GRAPH_DOT", PropertyKind::Bool, "false", "Write the split as two Graphviz files."),
    writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node."),
    readable("AVAILABLE_DEVICES", "Empty: it is made of other devices."),
    readable("FULL_DEVICE_NAME", "Name for people."),
    readable("OPTIMIZATION_CAPABILITIES", "Precisions and abilities."),
    readable("SUPPORTED_PROPERTIES", "Names of all properties."),
];

/// Splits a model over several devices.
pub struct HeteroDevice {
    from: Arc<dyn Devices>,
}

impl HeteroDevice {
    /// That finds its devices there.
    pub fn new(from: Arc<dyn Devices>) -> HeteroDevice {
        HeteroDevice { from }
    }

    /// How a model would be split, without compiling anything. Nodes nobody takes are in the report, not an error.
    pub fn explain(&self, model: &Model, properties: &Properties) -> Result<Report> {
        Ok(self.plan(model, properties)?.report)
    }

    // Devices of the list first, then those the user names on nodes only.
    fn parts(&self, model: &Model, properties: &Properties) -> Result<(Vec<Part>, usize)> {
        check_own(properties, TABLE)?;
        let list = DeviceList::parse(properties.get(PRIORITIES).unwrap_or_default())?;
        if let Some(item) = list.items.iter().find(|i| i.count.is_some()) {
            return Err(Error::usage(format!("{NAME} takes no counts, found one behind `{}`", item.name)));
        }
        let mut names: Vec<String> = list.items.iter().map(|i| i.name.clone()).collect();
        names.retain(|n| !list.excludes(n));
        let listed = names.len();
        for name in wished(model) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(Error::usage("no devices given; name them in order of priority, e.g. `HETERO:A,B`"));
        }
        let parts = names.into_iter().map(|name| self.part(&name, properties)).collect::<Result<_>>()?;
        Ok((parts, listed))
    }

    fn part(&self, name: &str, properties: &Properties) -> Result<Part> {
        let (device, properties) = device_of(&*self.from, name, properties, TABLE)?;
        refuse_nested(name, &*device)?;
        Ok(Part { name: name.to_string(), device, properties })
    }

    fn plan(&self, model: &Model, properties: &Properties) -> Result<Plan> {
        let mut model = model.clone();
        model.prune();
        let (parts, listed) = self.parts(&model, properties)?;
        let placed = place(&model, &parts, listed)?;
        let split = if placed.refused.is_empty() { Some(split(&model, &placed, parts.len())?) } else { None };
        let report = Report::of(&model, &parts, &placed, split.as_ref());
        Ok(Plan { model, parts, placed, split, report })
    }
}

struct Plan {
    model: Model,
    parts: Vec<Part>,
    placed: Placement,
    split: Option<Split>,
    report: Report,
}

impl Device for HeteroDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        Ok(match name {
            "AVAILABLE_DEVICES" => String::new(),
            "FULL_DEVICE_NAME" => "One model over several devices".into(),
            "OPTIMIZATION_CAPABILITIES" => "EXPORT_IMPORT".into(),
            "SUPPORTED_PROPERTIES" => TABLE.iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
            _ => return Err(Error::not_found(format!("device {NAME} has no property `{name}`"))),
        })
    }
    /// Nodes nobody takes are simply not in the answer, with each device's reason.
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        let plan = self.plan(model, properties)?;
        let mut query = Query::default();
        for r in &plan.placed.refused {
            let reasons: Vec<String> = r.reasons.iter().map(|(d, why)| format!("{d}: {why}")).collect();
            let reason = if reasons.is_empty() { "no device of the list is asked".into() } else { reasons.join("; ") };
            query.unsupported.push(Unsupported { name: r.name.clone(), type_name: r.type_name.clone(), reason });
        }
        let refused = |name: &str| plan.placed.refused.iter().any(|r| r.name == name);
        let names = model.nodes().map(|(_, n)| n.name()).filter(|n| !refused(n));
        query.supported = names.map(str::to_string).collect();
        Ok(query)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        let plan = self.plan(model, properties)?;
        let Some(split) = plan.split else {
            let list: Vec<String> = plan.placed.refused.iter().map(|r| r.to_string()).collect();
            return Err(Error::unsupported(format!(
                "{} of {} nodes are taken by no device: {}",
                list.len(),
                plan.model.len(),
                list.join(", ")
            )));
        };
        let folder = match properties.is_on(TABLE, "HETERO_DUMP_GRAPH_DOT") {
            true => Some(PathBuf::from(".")),
            false => dot::wanted_by_environment(),
        };
        if let Some(folder) = folder {
            dot::write(&folder, &plan.model, &plan.report)?;
        }
        Ok(Arc::new(Compiled::new(&plan.model, &plan.parts, split, plan.report, properties)?))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        check_own(properties, TABLE)?;
        let device = |name: &str| self.part(name, properties);
        Ok(Arc::new(blob::read(&blob, registry, properties, &device)?))
    }
}

impl std::fmt::Debug for HeteroDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeteroDevice")
    }
}
