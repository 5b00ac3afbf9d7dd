//! The property table of TEMPLATE.

use carafe_device::{Mutability, Properties, PropertyInfo, PropertyKind};
use carafe_graph::{Error, Result};

pub(crate) const TABLE: &[PropertyInfo] = &[
    writable("PERF_COUNT", PropertyKind::Bool, "false", "Measure the time of every node."),
    writable("DEVICE_ID", PropertyKind::Text, "0", "Which instance; there is only 0."),
    readable("AVAILABLE_DEVICES", "Ids of the instances."),
    readable("FULL_DEVICE_NAME", "Name for people."),
    readable("DEVICE_ARCHITECTURE", "Kind of machine the device runs on."),
    readable("OPTIMIZATION_CAPABILITIES", "Precisions and abilities."),
    readable("OPTIMAL_NUMBER_OF_INFER_REQUESTS", "How many requests keep the device busy."),
    readable("RANGE_FOR_ASYNC_INFER_REQUESTS", "Fewest, most and step of parallel requests."),
    readable("SUPPORTED_PROPERTIES", "Names of all properties."),
];

const fn writable(name: &'static str, kind: PropertyKind, default: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind, mutability: Mutability::ReadWrite, default, doc }
}

const fn readable(name: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind: PropertyKind::Text, mutability: Mutability::ReadOnly, default: "", doc }
}

/// Checks what the table can say and what it cannot: whether the instance is there.
pub(crate) fn check(properties: &Properties) -> Result<()> {
    properties.check(TABLE)?;
    match properties.get("DEVICE_ID") {
        Some(id) if id.trim() != "0" => {
            Err(Error::not_found(format!("device TEMPLATE has no instance {id}; it has 0")))
        }
        _ => Ok(()),
    }
}

/// Value of a read-only property.
pub(crate) fn metric(name: &str) -> Result<String> {
    Ok(match name {
        "AVAILABLE_DEVICES" => "0".into(),
        "FULL_DEVICE_NAME" => "Carafe reference device (plain evaluation on the host)".into(),
        "DEVICE_ARCHITECTURE" => std::env::consts::ARCH.into(),
        "OPTIMIZATION_CAPABILITIES" => "FP32 EXPORT_IMPORT".into(),
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => "1".into(),
        "RANGE_FOR_ASYNC_INFER_REQUESTS" => "1 1 1".into(),
        "SUPPORTED_PROPERTIES" => TABLE.iter().map(|p| p.name).collect::<Vec<_>>().join(" "),
        _ => return Err(Error::not_found(format!("device TEMPLATE has no property `{name}`"))),
    })
}
