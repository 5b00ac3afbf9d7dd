//! Device names: `CPU`, `GPU.1`. The part behind the dot is the instance.

use carafe_graph::{Error, Result};

/// A device name taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    pub device: String,
    pub instance: Option<String>,
}

impl DeviceName {
    pub fn parse(text: &str) -> Result<DeviceName> {
        let text = text.trim();
        let (device, instance) = match text.split_once('.') {
            Some((d, i)) => (d, Some(i)),
            None => (text, None),
        };
        let word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !word(device) || !instance.is_none_or(word) {
            return Err(Error::usage(format!("`{text}` is not a device name; expected `NAME` or `NAME.INSTANCE`")));
        }
        Ok(DeviceName { device: device.to_string(), instance: instance.map(str::to_string) })
    }
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
    fn an_empty_name_is_refused() {
        assert!(DeviceName::parse("").is_err());
        assert!(DeviceName::parse("GPU.").is_err());
    }
}
