//! Which of the user's properties reach a device of the list. Plain ones reach it where its table has them, for a user
//! of several devices cannot know what each understands; those written for that very device
//! (`DEVICE_PROPERTIES_A={..}`, `DEVICE_PROPERTIES={A:{..}}`) always do, and a wrong one is the device's to refuse.

use carafe_device::{Device, Devices, Mutability, Properties, PropertyInfo, PropertyKind};
use carafe_graph::{Error, Result};
use std::sync::Arc;

const NESTED: &str = "DEVICE_PROPERTIES";

/// The device of that name and what it is compiled with. `own` is the table of the device that asks; its properties stay
/// with it unless both know them.
pub(crate) fn device_of(
    from: &dyn Devices,
    name: &str,
    properties: &Properties,
    own: &[PropertyInfo],
) -> Result<(Arc<dyn Device>, Properties)> {
    let (device, defaults) = from.device(name, &Properties::new())?;
    let known = |k: &str| device.properties().iter().any(|p| p.name == k && p.mutability == Mutability::ReadWrite);
    let kept_here = |k: &str| own.iter().any(|p| p.name == k) && !SHARED.contains(&k);
    let mut all = defaults;
    for (k, v) in properties.iter().filter(|(k, _)| known(k) && !kept_here(k) && *k != "DEVICE_ID") {
        all.set(k, v);
    }
    for (k, v) in nested(properties, name)?.iter() {
        all.set(k, v);
    }
    Ok((device, all))
}

/// Properties of a device made of devices that are meant for its parts just as well.
const SHARED: &[&str] = &["PERF_COUNT", "PERFORMANCE_HINT", "LOG_LEVEL"];

fn nested(properties: &Properties, name: &str) -> Result<Properties> {
    let device = name.split('.').next().unwrap_or(name);
    let mut found = Properties::new();
    // The instance's own words come last and win.
    let names = if device == name { vec![device] } else { vec![device, name] };
    if let Some(text) = properties.get(NESTED) {
        for (key, value) in pairs(text)? {
            if names.contains(&key.as_str()) {
                pairs(&value)?.into_iter().for_each(|(k, v)| found.set(&k, v));
            }
        }
    }
    for name in names {
        if let Some(text) = properties.get(&format!("{NESTED}_{name}")) {
            pairs(text)?.into_iter().for_each(|(k, v)| found.set(&k, v));
        }
    }
    Ok(found)
}

// `{A:1,B:{C:2}}` as pairs; a value may be such a list itself.
fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let bad = || Error::usage(format!("`{text}` must have the form {{NAME:VALUE,NAME:VALUE}}"));
    let inner = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or_else(bad)?;
    let mut out = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1).ok_or_else(bad)?,
            ',' if depth == 0 => {
                let item = inner[start..at].trim();
                start = (at + 1).min(inner.len());
                if item.is_empty() {
                    continue;
                }
                let (k, v) = item.split_once([':', '=']).ok_or_else(bad)?;
                out.push((unquoted(k), unquoted(v)));
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(bad());
    }
    Ok(out)
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text).to_string()
}

pub(crate) const fn writable(
    name: &'static str,
    kind: PropertyKind,
    default: &'static str,
    doc: &'static str,
) -> PropertyInfo {
    PropertyInfo { name, kind, mutability: Mutability::ReadWrite, default, doc }
}

pub(crate) const fn readable(name: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind: PropertyKind::Text, mutability: Mutability::ReadOnly, default: "", doc }
}

/// Checks the values of the properties that a table has; others are meant for the devices of the list.
pub(crate) fn check_own(properties: &Properties, table: &[PropertyInfo]) -> Result<()> {
    let mut own = Properties::new();
    for (k, v) in properties.iter().filter(|(k, _)| table.iter().any(|p| p.name == *k)) {
        own.set(k, v);
    }
    own.check(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_one_device_win_over_the_common_list() {
        let p =
            Properties::new().with("DEVICE_PROPERTIES", "{A:{X:1,Y:2},B:{X:3}}").with("DEVICE_PROPERTIES_A", "{X:4}");
        assert_eq!(nested(&p, "A").unwrap(), Properties::new().with("X", 4).with("Y", 2));
        assert_eq!(nested(&p, "B.0").unwrap(), Properties::new().with("X", 3));
        assert_eq!(nested(&p, "C").unwrap(), Properties::new());
    }

    #[test]
    fn a_list_without_braces_is_refused() {
        for text in ["X:1", "{X:1", "{X}", "{X:{Y:1}"] {
            let p = Properties::new().with("DEVICE_PROPERTIES_A", text);
            assert!(nested(&p, "A").unwrap_err().to_string().contains("must have the form"), "{text}");
        }
    }
}
