//! Writes projects of extensions and plugins from a few answers, and explains error codes. The answers come from questions, a
//! JSON file, flags or a model; all fill [`Answers`]. What is written are the files under `templates/`, with placeholders filled
//! in. Nothing here runs a model or a compiler.

#![forbid(unsafe_code)]

mod answers;
mod config;
pub mod faq;
mod language;
mod legacy;
mod models;
mod names;
mod plugin;
mod project;
mod questions;
mod template;
mod write;

pub use answers::{Answers, Attribute, Framework, Kind, Language, Layout, Literal, ShapeRule, Source};
pub use config::{from_json, to_json};
pub use names::{camel, snake};
pub use plugin::{PluginAnswers, PluginLanguage, plugin};
pub use project::{File, Project, extension, library_name};
pub use questions::{Conversation, ask};
pub use write::{MANIFEST, Written, write};
