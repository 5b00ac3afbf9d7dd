//! A device to start from. In Rust it is the source of the reference device, in C the example: both pass every check from the first
//! build, and each part can be replaced by itself. The files are those of this repository, with other names.

use crate::names::{camel, snake};
use crate::project::Project;
use crate::template::{Values, packed};
use carafe_graph::{Error, Result};
use std::path::Path;

/// Language of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginLanguage {
    Rust,
    C,
}

/// What is asked for a plugin.
#[derive(Clone, Debug)]
pub struct PluginAnswers {
    /// Name of the device, such as `ACME`.
    pub name: String,
    pub language: PluginLanguage,
}

/// Files of the device TEMPLATE that are taken over as they are.
const TEMPLATE: [&str; 3] = ["compiled.rs", "properties.rs", "request.rs"];

/// The project of a plugin; `sdk` is the repository of Carafe, where that is known.
pub fn plugin(answers: &PluginAnswers, sdk: Option<&Path>) -> Result<Project> {
    let name = &answers.name;
    if name.is_empty()
        || !name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(Error::usage(format!(
            "`{name}` is no name of a device: capital letters, digits and `_`, such as ACME"
        )));
    }
    let file = snake(name);
    let sdk_text = sdk.map(|p| p.display().to_string().replace('\\', "/")).unwrap_or_default();
    let values = Values::default()
        .text("name", name)
        .text("crate", &file)
        .text("type", format!("{}Device", camel(&name.to_ascii_lowercase())))
        .text("version", env!("CARGO_PKG_VERSION"))
        .text("sdk", &sdk_text)
        .text("library", library(answers.language, &file))
        .flag("rust", answers.language == PluginLanguage::Rust);
    let mut out = Project { files: vec![], notes: vec![] };
    match answers.language {
        PluginLanguage::Rust => {
            let renamed = |text: &str| {
                let text = text.replace("TemplateDevice", &format!("{}Device", camel(&name.to_ascii_lowercase())));
                text.replace("TEMPLATE", name)
            };
            out.add("Cargo.toml", values.fill(packed("templates/plugin-rust/Cargo.toml.in"))?);
            out.add("src/lib.rs", values.fill(packed("templates/plugin-rust/lib.rs.in"))?);
            let device = renamed(packed("from/template/lib.rs"))
                .replace("#![forbid(unsafe_code)]\n\nmod compiled;\nmod properties;\nmod request;\n\n", "");
            let device =
                device.replace("use compiled::Compiled;", "use crate::compiled::Compiled;\nuse crate::properties;");
            out.add("src/device.rs", device);
            for path in TEMPLATE {
                let text = packed(&format!("from/template/{path}"));
                let text = renamed(text)
                    .replace("crate::NAME", "crate::device::NAME")
                    .replace("crate::LAYOUTS", "crate::device::LAYOUTS");
                let text = text.replace("crate::{LAYOUTS, NAME}", "crate::device::{LAYOUTS, NAME}");
                out.add(&format!("src/{path}"), text);
            }
            if sdk.is_some() {
                out.add(".cargo/config.toml", values.fill(packed("templates/plugin-rust/config.toml.in"))?);
            }
        }
        PluginLanguage::C => {
            let text = packed("from/template-plugin-c/plugin.c")
                .replace("libtemplate_plugin_c", &format!("lib{file}"))
                .replace("-d C ", &format!("-d {name} "))
                .replace("--plugin C=", &format!("--plugin {name}="))
                .replace("device->name = \"C\"", &format!("device->name = \"{name}\""))
                .replace("write_text(write, sink, \"C\")", &format!("write_text(write, sink, \"{name}\")"));
            out.add("plugin.c", text);
            out.add(
                "CMakeLists.txt",
                packed("from/template-plugin-c/CMakeLists.txt").replace("template_plugin_c", &file),
            );
        }
    }
    out.add("README.md", values.fill(packed("templates/plugin-rust/README.md.in"))?);
    out.add(".gitignore", "/target\n/build\n/.cargo/config.toml\n".into());
    out.notes.push("1. carafe extension build {dir}".into());
    out.notes
        .push(format!("2. carafe conformance -d {name} --plugin {name}={{dir}}/{}", library(answers.language, &file)));
    Ok(out)
}

fn library(language: PluginLanguage, file: &str) -> String {
    let name = crate::project::library_name(file);
    if language == PluginLanguage::Rust { format!("target/debug/{name}") } else { format!("build/{name}") }
}
