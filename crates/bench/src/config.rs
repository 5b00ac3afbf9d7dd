//! Properties of several devices: what a configuration file says, and values written `CPU:2,GPU:4`.

use carafe::{DeviceName, Error, Properties, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Properties by device, as the files of `-load_config` and `-dump_config` hold them: `{"CPU": {"NUM_STREAMS": "3"}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceConfig(pub BTreeMap<String, Properties>);

impl DeviceConfig {
    /// Reads a file. Values are text, numbers or true and false.
    pub fn from_json(text: &str) -> Result<DeviceConfig> {
        let value: Value = serde_json::from_str(text).map_err(|e| Error::invalid(e.to_string()))?;
        let expected = |what: &str, found: &Value| Error::invalid(format!("{what}, found {found}"));
        let devices = value.as_object().ok_or_else(|| expected("expected an object of devices", &value))?;
        let mut all = DeviceConfig::default();
        for (device, list) in devices {
            let list = list
                .as_object()
                .ok_or_else(|| expected(&format!("`{device}` must be an object of properties"), list))?;
            let properties = all.0.entry(device.clone()).or_default();
            for (name, value) in list {
                let text = match value {
                    Value::String(s) => s.clone(),
                    Value::Number(n) => n.to_string(),
                    Value::Bool(b) => b.to_string(),
                    // `DEVICE_PROPERTIES`, written as an object.
                    Value::Object(fields) => nested(fields),
                    other => {
                        return Err(expected(&format!("`{device}`.`{name}` must be text, a number or a truth"), other));
                    }
                };
                properties.set(name, text);
            }
        }
        Ok(all)
    }

    /// The file again.
    pub fn to_json(&self) -> String {
        let devices: Map<String, Value> = self
            .0
            .iter()
            .map(|(device, p)| (device.clone(), p.iter().map(|(k, v)| (k.to_string(), json!(v))).collect()))
            .collect();
        format!("{:#}\n", Value::Object(devices))
    }

    /// The properties of a device, to add to.
    pub fn of(&mut self, device: &str) -> &mut Properties {
        self.0.entry(device.to_string()).or_default()
    }
}

fn nested(fields: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| match value {
        Value::Object(inner) => format!("{name}:{}", nested(inner)),
        Value::String(s) => format!("{name}:{s}"),
        other => format!("{name}:{other}"),
    };
    format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(","))
}

/// The devices that do the work: those in the list of `HETERO:GPU,CPU`, or the device itself.
pub fn hardware_devices(device: &str) -> Result<Vec<String>> {
    let name = DeviceName::parse(device)?;
    Ok(match name.priorities {
        Some(list) => list
            .split(',')
            .filter(|item| !item.starts_with('-'))
            .map(|item| item.split('(').next().unwrap_or(item).to_string())
            .collect(),
        None => vec![device.to_string()],
    })
}

/// Reads `VALUE`, for all of the devices, or `CPU:VALUE,GPU:VALUE`: the value of each.
pub fn per_device(text: &str, devices: &[String], option: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        match part.split_once(':') {
            Some((device, value)) if devices.iter().any(|d| d == device) => {
                all.insert(device.to_string(), value.to_string());
            }
            Some((device, _)) => {
                let known = devices.join(", ");
                return Err(Error::usage(format!(
                    "option `{option}`: `{device}` is not a device of this run ({known})"
                )));
            }
            None => all.extend(devices.iter().map(|d| (d.clone(), part.to_string()))),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_as_it_was() {
        let text = r#"{"CPU": {"NUM_STREAMS": 3, "PERF_COUNT": "NO"}, "AUTO": {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}}}"#;
        let config = DeviceConfig::from_json(text).unwrap();
        assert_eq!(config.0["CPU"].get("NUM_STREAMS"), Some("3"));
        assert_eq!(config.0["AUTO"].get("DEVICE_PROPERTIES"), Some("{CPU:{NUM_STREAMS:2}}"));
        assert_eq!(DeviceConfig::from_json(&config.to_json()).unwrap(), config);
    }

    #[test]
    fn a_file_of_another_form_says_where() {
        for (text, part) in [
            ("[]", "expected an object of devices"),
            (r#"{"CPU": 1}"#, "`CPU` must be"),
            (r#"{"CPU": {"A": []}}"#, "`CPU`.`A`"),
        ] {
            let message = DeviceConfig::from_json(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_value_is_for_all_devices_or_for_one() {
        let devices = hardware_devices("MULTI:GPU.1(4),CPU,-VPU").unwrap();
        assert_eq!(devices, ["GPU.1", "CPU"]);
        assert_eq!(per_device("2", &devices, "-nstreams").unwrap().len(), 2);
        assert_eq!(per_device("CPU:4", &devices, "-nstreams").unwrap(), BTreeMap::from([("CPU".into(), "4".into())]));
        assert!(per_device("TPU:4", &devices, "-nstreams").is_err());
    }
}
