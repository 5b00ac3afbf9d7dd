//! What a user wants: the one form that questions, JSON files, flags and models fill.

use crate::names::{field, snake};
use carafe_graph::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Everything that is asked for an extension with one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Type of the operation, as in an IR.
    pub name: String,
    /// One sentence about it.
    pub doc: String,
    /// Opset of the operation: the `version` of its layers in an IR.
    pub opset: String,
    /// Language of the code.
    pub language: Language,
    /// Folders.
    pub layout: Layout,
    /// Formats that it is read from.
    pub sources: Vec<Source>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// Each element of the output comes from the element of the input at the same position.
    pub elementwise: bool,
    /// How the shapes of outputs follow.
    pub shape: ShapeRule,
    /// A kernel for CPU beside the evaluation.
    pub cpu: bool,
    /// A kernel in OpenCL for GPU.
    pub gpu: bool,
    /// A kernel in OpenCL for VPU.
    pub vpu: bool,
}

impl Answers {
    /// An elementwise operation without attributes, read from nowhere, in Rust.
    pub fn new(name: impl Into<String>) -> Answers {
        Answers {
            name: name.into(),
            doc: String::new(),
            opset: "extension".into(),
            language: Language::Rust,
            layout: Layout::Crate,
            sources: vec![],
            attributes: vec![],
            inputs: vec!["data".into()],
            outputs: vec!["output".into()],
            elementwise: true,
            shape: ShapeRule::Same,
            cpu: false,
            gpu: false,
            vpu: false,
        }
    }
    /// The name in the files of the project.
    pub fn file_name(&self) -> String {
        snake(&self.name)
    }
    /// The source of a framework.
    pub fn source(&self, framework: Framework) -> Option<&Source> {
        self.sources.iter().find(|s| s.framework == framework)
    }
    /// Adds a framework, or changes its type and domain.
    pub fn read_from(&mut self, source: Source) {
        match self.sources.iter_mut().find(|s| s.framework == source.framework) {
            Some(s) => *s = source,
            None => self.sources.push(source),
        }
    }
    /// Refuses what cannot become code that compiles.
    pub fn check(&self) -> Result<()> {
        match self.fault() {
            Some(fault) => Err(Error::usage(fault.what)),
            None => Ok(()),
        }
    }
    /// The first thing that cannot become code that compiles.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.sound().err()
    }
    fn sound(&self) -> Result<(), Fault> {
        if self.name.trim().is_empty() || !self.name.chars().any(|c| c.is_ascii_alphanumeric()) {
            let what = format!("`{}` is no name of an operation: it needs a letter or a digit", self.name);
            return Err(Fault::new("name", what));
        }
        plain("name", "name", &self.name)?;
        plain("opset", "opset", &self.opset)?;
        if self.doc.contains(['"', '\\', '\n', '\r']) || self.doc.contains("*/") || self.doc.contains("%{") {
            let what = format!("description `{}`: it is one line without quotes", self.doc.escape_debug());
            return Err(Fault::new("doc", what));
        }
        if self.opset.is_empty() || self.opset.contains(|c: char| c.is_whitespace() || c == ':') {
            return Err(Fault::new("opset", format!("`{}` is no name of an opset", self.opset)));
        }
        let mut seen = BTreeSet::new();
        for (i, a) in self.attributes.iter().enumerate() {
            let at = format!("attributes[{i}]");
            if !seen.insert(field(&a.name)) {
                return Err(Fault::new(at, format!("two attributes would be the field `{}`", field(&a.name))));
            }
            a.sound(&at)?;
        }
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            if ports.is_empty() {
                return Err(Fault::new(format!("{what}s"), format!("an operation has at least one {what}")));
            }
            let mut seen = BTreeSet::new();
            for (i, port) in ports.iter().enumerate() {
                let at = format!("{what}s[{i}]");
                if port.is_empty() || !port.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    let text = format!("`{port}` is no name of an {what}: letters, digits and `_` are");
                    return Err(Fault::new(at, text));
                }
                if !seen.insert(port) {
                    return Err(Fault::new(at, format!("two {what}s are named `{port}`")));
                }
            }
        }
        if self.elementwise && (self.inputs.len(), self.outputs.len()) != (1, 1) {
            let what = format!(
                "an elementwise operation has one input and one output, `{}` has {} and {}; say that it is not elementwise",
                self.name,
                self.inputs.len(),
                self.outputs.len()
            );
            return Err(Fault::new("elementwise", what));
        }
        if self.elementwise && self.shape != ShapeRule::Same {
            let what =
                format!("an elementwise operation keeps the shape of its input, `{}` is to change it", self.name);
            return Err(Fault::new("shape", what));
        }
        for (i, s) in self.sources.iter().enumerate() {
            let at = format!("frameworks[{i}]");
            plain(&format!("{at}.type"), "type", &s.op_type)?;
            plain(&format!("{at}.domain"), "domain", s.domain.as_deref().unwrap_or_default())?;
            if s.op_type.is_empty() || s.op_type.contains(char::is_whitespace) {
                let what = format!("`{}` is no type of {}", s.op_type, s.framework);
                return Err(Fault::new(format!("{at}.type"), what));
            }
            if s.framework == Framework::Kaldi && self.outputs.len() > 1 {
                let what = format!("a component of Kaldi has one output, `{}` has {}", self.name, self.outputs.len());
                return Err(Fault::new(at, what));
            }
        }
        Ok(())
    }
}

/// An answer that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// Where it stands in a configuration, without the `$.` in front.
    pub at: String,
    pub what: String,
}

impl Fault {
    fn new(at: impl Into<String>, what: impl Into<String>) -> Fault {
        Fault { at: at.into(), what: what.into() }
    }
}

// Names and texts end up in string literals of three languages, in XML and in JSON.
fn plain(at: &str, what: &str, text: &str) -> Result<(), Fault> {
    match text.chars().find(|c| c.is_control() || "\"\\<>&%*".contains(*c)) {
        Some(c) => {
            Err(Fault::new(at, format!("{what} `{}`: `{}` cannot stand in it", text.escape_debug(), c.escape_debug())))
        }
        None => Ok(()),
    }
}

/// A format, and what the operation is called there.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The format.
    pub framework: Framework,
    /// Type of the node; `module.layer` for a Python layer of Caffe.
    pub op_type: String,
    /// Domain of ONNX, or `Custom` for a Custom node of MXNet; every domain when left out.
    pub domain: Option<String>,
}

impl Source {
    /// Of any domain.
    pub fn new(framework: Framework, op_type: impl Into<String>) -> Source {
        Source { framework, op_type: op_type.into(), domain: None }
    }
}

/// An attribute of the operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name in an IR.
    pub name: String,
    /// Its name in source formats, where that is another one.
    pub source: Option<String>,
    /// What its values are.
    pub kind: Kind,
    /// What a node without it has; a node must have it when there is none.
    pub default: Option<Literal>,
    /// Used while converting and running, never written to an IR.
    pub internal: bool,
}

impl Attribute {
    /// Required, under one name everywhere.
    pub fn new(name: impl Into<String>, kind: Kind) -> Attribute {
        Attribute { name: name.into(), source: None, kind, default: None, internal: false }
    }
    /// A value that suits the kind, for models of tests.
    pub fn sample(&self) -> Literal {
        self.default.clone().unwrap_or_else(|| match self.kind {
            Kind::Int => Literal::Int(1),
            Kind::Float => Literal::Float(0.5),
            Kind::Bool => Literal::Bool(true),
            Kind::Str => Literal::Str("text".into()),
            Kind::Ints => Literal::Ints(vec![1, 2]),
            Kind::Floats => Literal::Floats(vec![0.5, 2.0]),
            Kind::Strs => Literal::Strs(vec!["a".into(), "b".into()]),
        })
    }
    /// The name in a format. Kaldi writes fields as `<LearningRate>`.
    pub fn name_in(&self, framework: Framework) -> String {
        match (&self.source, framework) {
            (Some(name), _) => name.clone(),
            (None, Framework::Kaldi) => crate::names::camel(&self.name),
            (None, _) => self.name.clone(),
        }
    }
    /// Reads `NAME:TYPE`, `NAME:TYPE=DEFAULT`, `NAME=DEFAULT`; `NAME<SOURCE` says the name in source formats.
    pub fn parse(text: &str) -> Result<Attribute> {
        let bad = |what: String| {
            Error::usage(format!("attribute `{text}`: {what}; write NAME:TYPE=DEFAULT, such as alpha:float=0.5"))
        };
        let (head, default) = match text.split_once('=') {
            Some((head, value)) => (head, Some(value)),
            None => (text, None),
        };
        let (names, kind) = match head.split_once(':') {
            Some((names, kind)) => {
                (names, Some(kind.trim().parse::<Kind>().map_err(|e| bad(e.message().to_string()))?))
            }
            None => (head, None),
        };
        let (name, source) = match names.split_once('<') {
            Some((name, source)) => (name.trim(), Some(source.trim().to_string())),
            None => (names.trim(), None),
        };
        if name.is_empty() {
            return Err(bad("it has no name".into()));
        }
        let (kind, default) = match (kind, default) {
            (Some(kind), Some(value)) => {
                (kind, Some(Literal::parse(kind, value).map_err(|e| bad(e.message().to_string()))?))
            }
            (Some(kind), None) => (kind, None),
            (None, Some(value)) => {
                let value = Literal::guess(value);
                (value.kind(), Some(value))
            }
            (None, None) => return Err(bad("it has neither a type nor a default".into())),
        };
        Ok(Attribute { name: name.into(), source, kind, default, internal: false })
    }
    fn sound(&self, at: &str) -> Result<(), Fault> {
        let name = format!("{at}.name");
        plain(&name, "attribute", &self.name)?;
        if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            return Err(Fault::new(name, format!("`{}` is no name of an attribute", self.name)));
        }
        plain(&format!("{at}.source"), "attribute", self.source.as_deref().unwrap_or_default())?;
        let default = format!("{at}.default");
        match &self.default {
            Some(value) if value.kind() != self.kind => Err(Fault::new(
                default,
                format!("attribute `{}` is {}, its default `{value}` is {}", self.name, self.kind, value.kind()),
            )),
            Some(Literal::Str(s)) => plain(&default, "default", s),
            Some(Literal::Strs(v)) => v.iter().try_for_each(|s| plain(&default, "default", s)),
            Some(Literal::Float(x)) if !x.is_finite() => {
                Err(Fault::new(default, format!("attribute `{}`: a default must be finite", self.name)))
            }
            None if self.internal => {
                Err(Fault::new(at, format!("attribute `{}` is internal and needs a default", self.name)))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(source) = &self.source {
            write!(f, "<{source}")?;
        }
        write!(f, ":{}", self.kind)?;
        match &self.default {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Strs(Vec<String>),
}

impl Literal {
    /// What it is a value of.
    pub fn kind(&self) -> Kind {
        match self {
            Literal::Int(_) => Kind::Int,
            Literal::Float(_) => Kind::Float,
            Literal::Bool(_) => Kind::Bool,
            Literal::Str(_) => Kind::Str,
            Literal::Ints(_) => Kind::Ints,
            Literal::Floats(_) => Kind::Floats,
            Literal::Strs(_) => Kind::Strs,
        }
    }
    /// Reads a value of a kind; lists have commas.
    pub fn parse(kind: Kind, text: &str) -> Result<Literal> {
        let text = text.trim();
        let items = || text.trim_matches(['[', ']']).split(',').map(str::trim).filter(|s| !s.is_empty());
        let bad = || Error::usage(format!("`{text}` is not {kind}"));
        Ok(match kind {
            Kind::Int => Literal::Int(text.parse().map_err(|_| bad())?),
            Kind::Float => Literal::Float(text.parse().map_err(|_| bad())?),
            Kind::Bool => Literal::Bool(match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "y" => true,
                "false" | "0" | "no" | "n" => false,
                _ => return Err(bad()),
            }),
            Kind::Str => Literal::Str(text.into()),
            Kind::Ints => Literal::Ints(items().map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?),
            Kind::Floats => Literal::Floats(items().map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?),
            Kind::Strs => Literal::Strs(items().map(str::to_string).collect()),
        })
    }
    // What a text without a type looks like.
    fn guess(text: &str) -> Literal {
        let kinds = if text.contains(',') {
            [Kind::Ints, Kind::Floats, Kind::Strs]
        } else {
            [Kind::Int, Kind::Float, Kind::Str]
        };
        let words = if ["true", "false"].contains(&text.trim().to_ascii_lowercase().as_str()) {
            Some(Kind::Bool)
        } else {
            None
        };
        let parsed = words.into_iter().chain(kinds).find_map(|kind| Literal::parse(kind, text).ok());
        parsed.unwrap_or_else(|| Literal::Str(text.into()))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T>(v: &[T], show: impl Fn(&T) -> String) -> String {
            v.iter().map(show).collect::<Vec<_>>().join(",")
        }
        match self {
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Float(x) => write!(f, "{x:?}"),
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Str(s) => write!(f, "{s}"),
            Literal::Ints(v) => write!(f, "{}", list(v, i64::to_string)),
            Literal::Floats(v) => write!(f, "{}", list(v, |x| format!("{x:?}"))),
            Literal::Strs(v) => write!(f, "{}", list(v, String::clone)),
        }
    }
}

/// A choice of words; `words` are those of JSON files and flags, others are accepted too.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[$item_doc:meta])* $item:ident = $word:literal $(| $also:literal)*),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$item_doc])* $item),*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$item),*];
            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $($name::$item => $word),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<$name> {
                match text.trim().to_ascii_lowercase().as_str() {
                    $($word $(| $also)* => Ok($name::$item),)*
                    _ => {
                        let words: Vec<&str> = $name::ALL.iter().map(|c| c.word()).collect();
                        Err(Error::usage(format!("`{text}` is no {}; there are {}", $what, words.join(", "))))
                    }
                }
            }
        }
    };
}

choice! {
    /// What values of an attribute are. The other words are those of the old generator.
    Kind, "type of attributes":
    Int = "int" | "i" | "i64" | "batch" | "channel" | "spatial",
    Float = "float" | "f" | "f32",
    Bool = "bool" | "b",
    Str = "string" | "str" | "s" | "type" | "padding",
    Ints = "ints" | "list.i" | "listint" | "shape" | "list.shape",
    Floats = "floats" | "list.f" | "listfloat",
    Strs = "strings" | "list.s" | "list.type" | "list.b",
}

choice! {
    /// A format whose nodes need rules.
    Framework, "framework":
    Onnx = "onnx",
    TensorFlow = "tensorflow" | "tf",
    TfLite = "tflite",
    Caffe = "caffe",
    Mxnet = "mxnet",
    Kaldi = "kaldi",
    Paddle = "paddle" | "paddlepaddle",
}

impl Framework {
    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Framework::Onnx => "ONNX",
            Framework::TensorFlow => "TensorFlow",
            Framework::TfLite => "TensorFlow Lite",
            Framework::Caffe => "Caffe",
            Framework::Mxnet => "MXNet",
            Framework::Kaldi => "Kaldi",
            Framework::Paddle => "PaddlePaddle",
        }
    }
}

choice! {
    /// Language of the code.
    Language, "language":
    Rust = "rust" | "rs",
    C = "c",
    Cpp = "cpp" | "c++" | "cxx",
    Python = "python" | "py",
}

choice! {
    /// Folders of a project.
    Layout, "layout":
    /// `src/`, `kernels/`, `tests/`.
    Crate = "crate",
    /// `user_mo_extensions/` and `user_ie_extensions/`, as the old generator had them.
    Extgen = "extgen",
}

choice! {
    /// How the shapes of outputs follow from those of inputs.
    ShapeRule, "shape rule":
    /// Every output has the shape of input 0.
    Same = "same",
    /// A function to edit.
    Custom = "custom",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_read_and_printed() {
        for text in
            ["alpha:float=0.5", "axis:int", "mode<kind:string=near", "steps:ints=1,2", "flag:bool=true", "w:floats="]
        {
            assert_eq!(Attribute::parse(text).unwrap().to_string(), text);
        }
        for (text, kind) in [
            ("a=1", Kind::Int),
            ("a=1.5", Kind::Float),
            ("a=true", Kind::Bool),
            ("a=1,2", Kind::Ints),
            ("a=x", Kind::Str),
        ] {
            assert_eq!(Attribute::parse(text).unwrap().kind, kind, "{text}");
        }
        for (text, wanted) in [
            ("alpha", "neither a type nor a default"),
            ("a:number", "`number` is no type"),
            ("a:int=x", "`x` is not int"),
            (":int", "no name"),
        ] {
            let e = Attribute::parse(text).unwrap_err().to_string();
            assert!(e.contains(wanted) && e.contains("NAME:TYPE=DEFAULT"), "{text}: {e}");
        }
    }

    #[test]
    fn what_cannot_become_code_is_refused() {
        let check = |change: fn(&mut Answers), wanted: &str| {
            let mut answers = Answers::new("Acme");
            change(&mut answers);
            let e = answers.check().unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        };
        check(|a| a.name = "--".into(), "is no name of an operation");
        check(|a| a.name = "a\"b".into(), "cannot stand in it");
        check(|a| a.inputs = vec![], "at least one input");
        check(|a| a.inputs.push("data".into()), "two inputs are named");
        check(|a| a.inputs.push("more".into()), "say that it is not elementwise");
        check(|a| a.shape = ShapeRule::Custom, "keeps the shape");
        check(
            |a| a.attributes = vec![Attribute::new("a.b", Kind::Int), Attribute::new("a_b", Kind::Int)],
            "two attributes",
        );
        check(|a| a.opset = "my opset".into(), "is no name of an opset");
    }
}
