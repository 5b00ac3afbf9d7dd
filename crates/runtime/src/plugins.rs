//! Devices in libraries. A library is opened when its device is first used; one that cannot be opened is reported then, and
//! all other devices go on. Built-in devices need no file.

use crate::core::Core;
use crate::device_name::DeviceName;
use carafe_abi::load_plugin;
use carafe_device::Properties;
use carafe_graph::{Error, Result};
use std::path::{Path, PathBuf};

/// Libraries (`LIB` or `NAME=LIB`) and lists of them (`.xml`) that every program registers.
const ALWAYS: &str = "CARAFE_PLUGINS";

/// A library that was registered, and what its device starts with.
#[derive(Clone, Debug)]
pub(crate) struct PluginEntry {
    pub(crate) path: PathBuf,
    pub(crate) properties: Properties,
}

impl Core {
    /// Registers the device of a library under a name. The library is opened when the device is first used.
    pub fn register_plugin(&self, library: impl AsRef<Path>, name: &str) -> Result<()> {
        self.register(library.as_ref().to_path_buf(), name, Properties::new())
    }

    /// Opens a library and registers its device under the name that it gives itself; the name is returned.
    pub fn add_plugin(&self, library: impl AsRef<Path>) -> Result<String> {
        let plugin = load_plugin(library.as_ref())?;
        self.register(library.as_ref().to_path_buf(), &plugin.name, Properties::new())?;
        self.add_device(&plugin.name, plugin.device)?;
        Ok(plugin.name)
    }

    /// Registers all devices of a plugins.xml: `<ie><plugins><plugin name="" location=""><properties><property key=""
    /// value=""/></properties></plugin></plugins></ie>`. A location without a folder is looked for beside the file, one
    /// with a folder is relative to it.
    pub fn register_plugins(&self, file: impl AsRef<Path>) -> Result<()> {
        let file = file.as_ref();
        let read = || -> Result<()> {
            let text = carafe_tensor::files::read_text(file).map_err(|e| Error::io("cannot read", &e))?;
            self.register_plugins_of(&text, file.parent().unwrap_or(Path::new("")))
        };
        read().map_err(|e| e.at(format!("plugins file `{}`", file.display())))
    }

    /// As [`Core::register_plugins`], from the text of such a file; locations are relative to `folder`.
    pub fn register_plugins_of(&self, text: &str, folder: &Path) -> Result<()> {
        for (name, entry) in entries(text, folder)? {
            self.register(entry.path, &name, entry.properties)?;
        }
        Ok(())
    }

    /// Lets go of a plugin's device. What was compiled on it goes on working; the next use of the name opens the library
    /// again.
    pub fn unload_plugin(&self, name: &str) -> Result<()> {
        let mut state = self.state_mut();
        if !state.plugins.contains_key(name) {
            return Err(Error::not_found(format!("device `{name}` is not a registered plugin")));
        }
        match state.devices.remove(name) {
            Some(_) => Ok(()),
            None => Err(Error::usage(format!("device `{name}` is not loaded"))),
        }
    }

    /// Registers what the environment variable `CARAFE_PLUGINS` lists. Gives what could not be.
    pub fn add_environment_plugins(&self) -> Vec<Error> {
        let list = std::env::var_os(ALWAYS).unwrap_or_default();
        let items = std::env::split_paths(&list).filter(|p| !p.as_os_str().is_empty());
        items.filter_map(|item| self.add_plugin_text(&item.to_string_lossy()).err()).map(|e| e.at(ALWAYS)).collect()
    }

    /// `LIB`, `NAME=LIB` or the path of a plugins.xml, as users write them.
    pub fn add_plugin_text(&self, text: &str) -> Result<()> {
        if text.ends_with(".xml") {
            return self.register_plugins(text);
        }
        match text.split_once('=') {
            Some((name, library)) if DeviceName::parse(name).is_ok() => self.register_plugin(library, name),
            _ => self.add_plugin(text).map(|_| ()),
        }
    }

    fn register(&self, path: PathBuf, name: &str, properties: Properties) -> Result<()> {
        let parsed = DeviceName::parse(name)?;
        if parsed.instance.is_some() || parsed.priorities.is_some() {
            return Err(Error::usage(format!("device name `{name}` must not contain a dot or a colon")));
        }
        let mut state = self.state_mut();
        if state.devices.contains_key(name) || state.plugins.contains_key(name) {
            return Err(Error::usage(format!("device `{name}` is registered already")));
        }
        state.plugins.insert(name.to_string(), PluginEntry { path, properties });
        Ok(())
    }

    /// Opens the library of a registered plugin, unless it is open or the name is not one.
    pub(crate) fn open_plugin(&self, name: &str) -> Result<()> {
        let entry = {
            let state = self.state();
            match state.plugins.get(name) {
                Some(entry) if !state.devices.contains_key(name) => entry.clone(),
                _ => return Ok(()),
            }
        };
        let plugin = load_plugin(&entry.path).map_err(|e| e.at(format!("device `{name}`")))?;
        // Another thread may have been quicker.
        match self.add_device(name, plugin.device) {
            Err(_) if self.state().devices.contains_key(name) => Ok(()),
            Err(e) => Err(e),
            Ok(()) if entry.properties.iter().next().is_none() => Ok(()),
            Ok(()) => self.set_property(name, &entry.properties),
        }
    }

    /// Names of the registered plugins.
    pub(crate) fn plugin_names(&self) -> Vec<String> {
        self.state().plugins.keys().cloned().collect()
    }
}

fn entries(text: &str, folder: &Path) -> Result<Vec<(String, PluginEntry)>> {
    let document = roxmltree::Document::parse(text).map_err(|e| Error::invalid(e.to_string()))?;
    let plugins = document.root_element().children().find(|n| n.has_tag_name("plugins"));
    let plugins = plugins.ok_or_else(|| Error::invalid("there is no <plugins>"))?;
    let mut list = Vec::new();
    for plugin in plugins.children().filter(|n| n.has_tag_name("plugin")) {
        let line = document.text_pos_at(plugin.range().start).row;
        let required = |name| {
            let value = plugin.attribute(name).filter(|v| !v.is_empty());
            value.ok_or_else(|| Error::invalid(format!("<plugin> in line {line} has no `{name}`")))
        };
        let mut properties = Properties::new();
        let holders = plugin.children().filter(|n| n.has_tag_name("properties"));
        for p in holders.flat_map(|h| h.children()).filter(|n| n.has_tag_name("property")) {
            if let (Some(key), Some(value)) = (p.attribute("key"), p.attribute("value")) {
                properties.set(key, value);
            }
        }
        list.push((
            required("name")?.to_string(),
            PluginEntry { path: position(required("location")?, folder), properties },
        ));
    }
    Ok(list)
}

fn position(location: &str, folder: &Path) -> PathBuf {
    let given = Path::new(location);
    if given.is_absolute() {
        return given.to_path_buf();
    }
    if given.components().count() > 1 {
        return folder.join(given);
    }
    let file = if location.contains(std::env::consts::DLL_SUFFIX) {
        location.to_string()
    } else {
        format!("{}{location}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
    };
    let beside = folder.join(&file);
    if beside.exists() { beside } else { PathBuf::from(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_file_says_names_places_and_properties() {
        let text = r#"<ie><plugins>
            <plugin name="A" location="/abs/liba.so"/>
            <plugin name="B" location="sub/libb.so"><properties><property key="PERF_COUNT" value="true"/></properties></plugin>
            <plugin name="C" location="cee"/></plugins></ie>"#;
        let list = entries(text, Path::new("/etc/x")).unwrap();
        let paths: Vec<_> = list.iter().map(|(n, e)| (n.as_str(), e.path.to_str().unwrap())).collect();
        assert_eq!(paths, [("A", "/abs/liba.so"), ("B", "/etc/x/sub/libb.so"), ("C", "libcee.so")]);
        assert_eq!(list[1].1.properties.get("PERF_COUNT"), Some("true"));
    }

    #[test]
    fn a_plugin_without_a_place_is_told_with_its_line() {
        let e = entries("<ie><plugins>\n<plugin name=\"A\"/></plugins></ie>", Path::new("")).unwrap_err();
        assert_eq!(e.to_string(), "<plugin> in line 2 has no `location`");
    }
}
