//! `carafe devices`: what is here to run on.

use super::{print, print_json};
use crate::args::DevicesArgs;
use carafe::{CACHE_PROPERTIES, Core, Mutability, Result};
use serde_json::json;
use std::fmt::Write;

/// False when a plugin cannot be opened.
pub(crate) fn run(core: &Core, args: &DevicesArgs) -> Result<bool> {
    let (mut out, mut list) = (String::new(), Vec::new());
    for name in core.available_devices() {
        let full = core.get_property(&name, "FULL_DEVICE_NAME").unwrap_or_default();
        let _ = writeln!(out, "{name:<10} {full}");
        let mut properties = serde_json::Map::new();
        for info in core.device(&name)?.properties().iter().chain(CACHE_PROPERTIES) {
            let value = core.get_property(&name, info.name).unwrap_or_default();
            if args.properties {
                let mode = if info.mutability == Mutability::ReadOnly { "ro" } else { "rw" };
                let _ = writeln!(out, "  {mode} {:<34} {value:<20} {}", info.name, info.doc);
            }
            properties.insert(info.name.into(), json!(value));
        }
        list.push(json!({"name": name, "full_name": full, "properties": properties}));
    }
    let missing = if args.missing { core.missing_devices() } else { vec![] };
    for (name, reason) in &missing {
        let _ = writeln!(out, "{name:<10} not here: {reason}");
    }
    let missing: Vec<_> = missing.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect();
    let broken = core.broken_plugins();
    if args.json {
        let broken: Vec<_> = broken.iter().map(|(name, e)| json!({"name": name, "error": e.to_string()})).collect();
        print_json(&json!({"devices": list, "missing": missing, "broken": broken}))?;
    } else {
        print(&out)?;
    }
    for (_, e) in &broken {
        eprintln!("carafe: {}", carafe::printable(&e.to_string()));
    }
    Ok(broken.is_empty())
}
