//! What only one language writes in its own way: types, literals, fields. The rest is in the templates.

mod c;
mod cpp;
mod opencl;
pub(crate) mod python;
mod rust;

pub(crate) use opencl::opencl_values;

use crate::answers::{Answers, Attribute, Framework, Kind, Language, Source};
use crate::template::{Values, packed};

/// The templates of the parts.
pub(crate) struct Templates {
    pub(crate) main: &'static str,
    pub(crate) op: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) rule: &'static str,
}

macro_rules! templates {
    ($folder:literal, $main:literal, $ending:literal) => {
        Templates {
            main: packed(concat!("templates/", $folder, "/", $main, ".in")),
            op: packed(concat!("templates/", $folder, "/op.", $ending, ".in")),
            kernel: packed(concat!("templates/", $folder, "/kernel.", $ending, ".in")),
            rule: packed(concat!("templates/", $folder, "/rule.", $ending, ".in")),
        }
    };
}

/// `None` where there is no library to be compiled.
pub(crate) fn templates(language: Language) -> Option<Templates> {
    match language {
        Language::Rust => Some(templates!("rust", "lib.rs", "rs")),
        Language::C => Some(templates!("c", "extension.c", "h")),
        Language::Cpp => Some(templates!("cpp", "extension.cpp", "hpp")),
        Language::Python => None,
    }
}

/// Texts for the placeholders of one language.
#[derive(Default)]
pub(crate) struct Fragments {
    texts: Vec<(&'static str, String)>,
    flags: Vec<(&'static str, bool)>,
}

impl Fragments {
    fn text(mut self, name: &'static str, text: impl Into<String>) -> Fragments {
        self.texts.push((name, text.into()));
        self
    }
    fn lines(self, name: &'static str, lines: impl IntoIterator<Item = String>) -> Fragments {
        self.text(name, lines.into_iter().collect::<Vec<_>>().join("\n"))
    }
    fn flag(mut self, name: &'static str, holds: bool) -> Fragments {
        self.flags.push((name, holds));
        self
    }
    pub(crate) fn add_to(&self, mut values: Values) -> Values {
        for (name, text) in &self.texts {
            values = values.text(name, text.clone());
        }
        for (name, holds) in &self.flags {
            values = values.flag(name, *holds);
        }
        values
    }
}

pub(crate) fn fragments(answers: &Answers) -> Fragments {
    match answers.language {
        Language::Rust => rust::fragments(answers),
        Language::C => c::fragments(answers),
        Language::Cpp => cpp::fragments(answers),
        Language::Python => Fragments::default(),
    }
}

/// What the rule of a format needs besides.
pub(crate) fn rule_values(answers: &Answers, source: &Source, values: Values) -> Values {
    let read: Vec<&Attribute> = answers.attributes.iter().filter(|a| readable(a, source.framework)).collect();
    let pairs: Vec<String> =
        read.iter().map(|a| format!("{{\"{}\", \"{}\"}}", a.name, a.name_in(source.framework))).collect();
    let domain = source.domain.as_deref();
    values
        .text("framework", source.framework.word())
        .text("framework_title", source.framework.title())
        .text("framework_guard", source.framework.word().to_ascii_uppercase())
        .text("source_type", &source.op_type)
        .text("domain_call", domain.map(|d| format!(".domain(\"{d}\")")).unwrap_or_default())
        .text("domain_line", domain.map(|d| format!("rule.domain = \"{d}\";")).unwrap_or_default())
        .text("domain_value", domain.map_or("std::nullopt".into(), |d| format!("\"{d}\"")))
        // The bytes that the attributes were read from.
        .text("ignores", if source.framework == Framework::TfLite { "n.ignore(&[\"custom_options\"]);" } else { "" })
        .text("attr_pairs", pairs.join(", "))
        .text("source_fields", rust::source_fields(answers, source.framework))
        .flag("rule_attributes", !read.is_empty())
}

/// Whether nodes of a format can have such an attribute: lists of Kaldi are arrays, which are inputs, and it has no texts.
pub(crate) fn readable(attribute: &Attribute, framework: Framework) -> bool {
    framework != Framework::Kaldi || matches!(attribute.kind, Kind::Int | Kind::Float | Kind::Bool)
}
