//! Device names: `CPU`, `GPU.1`, `HETERO:GPU,CPU`, `MULTI:GPU(4),CPU`, `BATCH:CPU(8)`. What stands behind the dot is the
//! instance, what stands behind the colon is the list that a device made of devices works with.

use carafe_graph::{Error, Result};

/// A device name taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// The device: `GPU` of `GPU.1`.
    pub device: String,
    /// The instance: `1` of `GPU.1`.
    pub instance: Option<String>,
    /// The text behind the colon, spaces removed.
    pub priorities: Option<String>,
}

impl DeviceName {
    /// Reads `NAME`, `NAME.ID` or `NAME:A,B`.
    pub fn parse(text: &str) -> Result<DeviceName> {
        let text = text.trim();
        let (head, list) = match text.split_once(':') {
            Some((head, list)) => (head, Some(list)),
            None => (text, None),
        };
        let (device, instance) = match head.split_once('.') {
            Some((d, i)) => (d, Some(i)),
            None => (head, None),
        };
        let bad = || {
            Error::usage(format!("`{text}` is not a device name; expected `NAME`, `NAME.INSTANCE` or `NAME:NAME,NAME`"))
        };
        if !is_word(device) || !instance.is_none_or(is_word) || (instance.is_some() && list.is_some()) {
            return Err(bad());
        }
        let priorities = match list {
            Some(list) => {
                let list: String = list.chars().filter(|c| !c.is_whitespace()).collect();
                if list.split(',').any(|item| !is_item(item)) {
                    return Err(bad());
                }
                Some(list)
            }
            None => None,
        };
        Ok(DeviceName { device: device.to_string(), instance: instance.map(str::to_string), priorities })
    }
}

fn is_word(s: &str) -> bool {
    !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

// `NAME`, `NAME.ID`, either with `(n)` behind or `-` in front.
fn is_item(item: &str) -> bool {
    let item = item.strip_prefix('-').unwrap_or(item);
    let name = match item.split_once('(') {
        Some((name, count)) => match count.strip_suffix(')') {
            Some(n) if !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()) => name,
            _ => return false,
        },
        None => item,
    };
    let (device, instance) = name.split_once('.').map_or((name, None), |(d, i)| (d, Some(i)));
    is_word(device) && instance.is_none_or(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instance_stands_behind_the_dot() {
        let n = DeviceName::parse("GPU.1").unwrap();
        assert_eq!((n.device.as_str(), n.instance.as_deref()), ("GPU", Some("1")));
    }

    #[test]
    fn the_list_stands_behind_the_colon() {
        let n = DeviceName::parse("MULTI:GPU.1(4), CPU,-NPU").unwrap();
        assert_eq!((n.device.as_str(), n.priorities.as_deref()), ("MULTI", Some("GPU.1(4),CPU,-NPU")));
    }

    #[test]
    fn an_empty_name_is_refused() {
        for text in ["", "GPU.", "HETERO:", "HETERO:A,", "BATCH:CPU(", "BATCH:CPU(4)x", "A.0:B"] {
            assert!(DeviceName::parse(text).is_err(), "{text}");
        }
    }
}
