//! The list behind the colon: `A,B.1(4),-C`. An item with `-` in front is left out of whatever the others or the machine
//! offer; a count is the number of requests (MULTI, AUTO) or the batch (BATCH).

use crate::PRIORITIES;
use carafe_device::{Device, Devices, Properties};
use carafe_graph::{Error, Result};

/// One device of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceItem {
    /// With its instance, e.g. `GPU.1`.
    pub name: String,
    /// The number in brackets, if there is one.
    pub count: Option<usize>,
}

/// A list of devices taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceList {
    /// Devices, in order of priority.
    pub items: Vec<DeviceItem>,
    /// Devices that are left out.
    pub excluded: Vec<String>,
}

impl DeviceList {
    /// Reads `A(2),B,-C`.
    pub fn parse(text: &str) -> Result<DeviceList> {
        let mut list = DeviceList::default();
        for item in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (excluded, rest) = match item.strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, item),
            };
            let (name, count) = match rest.split_once('(') {
                Some((name, tail)) => (name, Some(count(item, tail)?)),
                None => (rest, None),
            };
            if name.is_empty() {
                return Err(Error::usage(format!("`{item}` in the device list `{text}` has no name")));
            }
            if excluded {
                list.excluded.push(name.to_string());
            } else if list.items.iter().any(|i| i.name == name) {
                return Err(Error::usage(format!("device `{name}` is named twice in `{text}`")));
            } else {
                list.items.push(DeviceItem { name: name.to_string(), count });
            }
        }
        Ok(list)
    }

    /// Whether a name, with or without instance, is left out. `-GPU` leaves out `GPU.1` too.
    pub fn excludes(&self, name: &str) -> bool {
        let device = name.split('.').next().unwrap_or(name);
        self.excluded.iter().any(|e| e == name || e == device)
    }
}

fn count(item: &str, tail: &str) -> Result<usize> {
    let bad = || Error::usage(format!("`{item}`: what stands in parentheses must be a whole number from 1 on"));
    match tail.strip_suffix(')').and_then(|n| n.parse().ok()) {
        Some(n) if n > 0 => Ok(n),
        _ => Err(bad()),
    }
}

/// Refuses a device that is itself made of devices.
pub(crate) fn refuse_nested(name: &str, device: &dyn Device) -> Result<()> {
    match device.properties().iter().any(|p| p.name == PRIORITIES) {
        true => Err(Error::usage(format!("device `{name}` is made of other devices and cannot stand in a list"))),
        false => Ok(()),
    }
}

/// The devices a list means: its items without the excluded ones; for a list without items all that are here, but for those
/// that only stand for another device (`DEVICE_TYPE` virtual). A name without instance stands for all instances where there are
/// several.
pub(crate) fn candidates(list: &DeviceList, from: &dyn Devices) -> Vec<DeviceItem> {
    let available = from.available();
    let mut items = Vec::new();
    if list.items.is_empty() {
        let real = |name: &String| {
            let device = from.device(name, &Properties::new()).map(|(device, _)| device);
            device.and_then(|d| d.metric("DEVICE_TYPE")).unwrap_or_default().trim() != "virtual"
        };
        items.extend(available.into_iter().filter(real).map(|name| DeviceItem { name, count: None }));
    } else {
        for item in &list.items {
            let instances = available.iter().filter(|a| a.split_once('.').is_some_and(|(d, _)| d == item.name));
            let before = items.len();
            items.extend(instances.map(|name| DeviceItem { name: name.clone(), count: item.count }));
            if items.len() == before {
                items.push(item.clone());
            }
        }
    }
    items.retain(|i| !list.excludes(&i.name));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        DeviceList::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn counts_and_exclusions_are_taken_apart() {
        let list = DeviceList::parse("A(2),B.1,-C").unwrap();
        let item = |name: &str, count| DeviceItem { name: name.into(), count };
        assert_eq!(list.items, [item("A", Some(2)), item("B.1", None)]);
        assert_eq!(list.excluded, ["C"]);
    }

    #[test]
    fn leaving_out_a_device_leaves_out_its_instances() {
        let list = DeviceList::parse("-C,-D.0").unwrap();
        assert!(list.excludes("C.1") && list.excludes("D.0") && !list.excludes("D.1"));
    }

    #[test]
    fn a_count_of_zero_is_refused() {
        assert!(error("A(0)").contains("a whole number from 1 on"));
    }

    #[test]
    fn a_device_named_twice_is_refused() {
        assert!(error("A,B,A").contains("`A` is named twice"));
    }
}
