//! Compiled models kept in a folder between runs (`CACHE_DIR`). Trouble with the cache is a warning and never an error: the
//! model is then compiled as if there were none.

mod entry;
mod fingerprint;
mod store;

pub use entry::EntryInfo;
pub(crate) use fingerprint::file_stamp;
pub use store::{CacheEntry, CacheStore, Removed};

use carafe_device::{CompiledModel, Device, Mutability, Properties, PropertyInfo, PropertyKind};
use carafe_graph::{Error, Model, Registry, Result};
use std::path::Path;
use std::sync::Arc;

/// Properties that `Core` answers for and devices never see.
pub const CACHE_PROPERTIES: &[PropertyInfo] = &[
    PropertyInfo {
        name: DIR,
        kind: PropertyKind::Text,
        mutability: Mutability::ReadWrite,
        default: "",
        doc: "Folder for compiled models; empty for none.",
    },
    PropertyInfo {
        name: LIMIT,
        kind: PropertyKind::Text,
        mutability: Mutability::ReadWrite,
        default: "0",
        doc: "Most bytes in that folder, as 1000000, 500M or 2G; those longest unused go first. 0 for no limit.",
    },
];

pub(crate) const DIR: &str = "CACHE_DIR";
const LIMIT: &str = "CACHE_SIZE_LIMIT";

/// Takes the cache's properties out of a set.
pub(crate) fn split(properties: &Properties) -> (Properties, Properties) {
    let (mut cache, mut rest) = (Properties::new(), properties.clone());
    for info in CACHE_PROPERTIES {
        if let Some(value) = rest.remove(info.name) {
            cache.set(info.name, value);
        }
    }
    (cache, rest)
}

/// A number of bytes, with K, M or G behind it for 1024 and its powers.
pub fn parse_size(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let (digits, shift) = match trimmed.char_indices().last().map(|(i, c)| (i, c.to_ascii_uppercase())) {
        Some((i, 'K')) => (&trimmed[..i], 10),
        Some((i, 'M')) => (&trimmed[..i], 20),
        Some((i, 'G')) => (&trimmed[..i], 30),
        _ => (trimmed, 0),
    };
    let number = digits.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    number.ok_or_else(|| Error::usage(format!("`{text}` is not a size; expected bytes, as 1000000, 500M or 2G")))
}

/// Checks values of the cache's properties.
pub(crate) fn check(cache: &Properties) -> Result<()> {
    cache.check(CACHE_PROPERTIES)?;
    parse_size(cache.or_default(CACHE_PROPERTIES, LIMIT).unwrap_or("0")).map(drop)
}

/// Built kernels have a folder in the cache, unless the user has named another.
pub(crate) fn place_kernels(device: &dyn Device, cache: &Properties, properties: &mut Properties) {
    const KERNELS: &str = "KERNEL_CACHE_DIR";
    let dir = cache.get(DIR).unwrap_or_default();
    let takes = device.properties().iter().any(|p| p.name == KERNELS);
    if takes && !dir.is_empty() && properties.get(KERNELS).is_none() {
        properties.set(KERNELS, Path::new(dir).join("kernels").to_string_lossy());
    }
}

/// One compilation.
pub(crate) struct Job<'a> {
    pub(crate) model: &'a Model,
    /// Name of the device without instance and list.
    pub(crate) name: &'a str,
    pub(crate) device: &'a dyn Device,
    pub(crate) properties: &'a Properties,
    pub(crate) registry: &'a dyn Fn() -> Registry,
    /// What else decides over the result: versions of extensions and of the devices this one is made of.
    pub(crate) others: &'a [String],
    pub(crate) warn: &'a dyn Fn(&str),
}

impl Job<'_> {
    /// Compiles, or loads what was compiled before; says which.
    pub(crate) fn run(&self, cache: &Properties) -> Result<(Arc<dyn CompiledModel>, bool)> {
        check(cache)?;
        let limit = parse_size(cache.or_default(CACHE_PROPERTIES, LIMIT).unwrap_or("0"))?;
        let dir = cache.get(DIR).unwrap_or_default();
        if dir.is_empty() || !can_export(self.device) {
            return Ok((self.compile()?, false));
        }
        let store = CacheStore::new(dir);
        let key = match fingerprint::key(self.model, self.name, self.device, self.properties, self.others) {
            Ok(key) => key,
            // What is wrong with the model the device says better.
            Err(_) => return Ok((self.compile()?, false)),
        };
        match self.load(&store, key) {
            Ok(Some(compiled)) => return Ok((compiled, true)),
            Ok(None) => {}
            Err(e) => (self.warn)(&format!("the cache was not used: {e}")),
        }
        let compiled = self.compile()?;
        let info = EntryInfo {
            device: self.name.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            model: self.model.name.clone(),
        };
        let limit = (limit > 0).then_some(limit);
        if let Err(e) = store.store(key, &info, limit, |to| compiled.export(to)) {
            (self.warn)(&format!("the compiled model was not put into the cache: {e}"));
        }
        Ok((compiled, false))
    }

    fn compile(&self) -> Result<Arc<dyn CompiledModel>> {
        self.device.compile(self.model, self.properties)
    }

    fn load(&self, store: &CacheStore, key: u128) -> Result<Option<Arc<dyn CompiledModel>>> {
        let Some(blob) = store.load(key)? else { return Ok(None) };
        match self.device.import(blob, &(self.registry)(), self.properties) {
            Ok(compiled) => Ok(Some(compiled)),
            Err(e) => {
                store.remove(key);
                Err(e)
            }
        }
    }
}

fn can_export(device: &dyn Device) -> bool {
    let capabilities = device.metric("OPTIMIZATION_CAPABILITIES").unwrap_or_default();
    capabilities.split_whitespace().any(|c| c == "EXPORT_IMPORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_a_letter() {
        assert_eq!(
            ["0", "12", " 3k", "500M", "2 G"].map(|s| parse_size(s).unwrap()),
            [0, 12, 3072, 500 << 20, 2 << 30]
        );
        for bad in ["", "M", "-1", "1.5G", "99999999999G", "1T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
