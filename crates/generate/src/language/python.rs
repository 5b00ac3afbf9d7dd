//! Python: one module with the operation and its rules, and a test that runs the cases.

use super::readable;
use crate::answers::{Answers, Attribute, Literal, Source};
use crate::camel;
use crate::project::Project;
use crate::template::{Values, packed};
use carafe_graph::{Error, Result};

/// What only libraries can have is refused.
pub(crate) fn check(answers: &Answers) -> Result<()> {
    use crate::answers::Layout;
    if answers.cpu || answers.gpu || answers.vpu {
        let why = "an extension in Python has no kernels: devices call its `evaluate`; rust, c and cpp have them";
        return Err(Error::usage(why));
    }
    if answers.layout != Layout::Crate {
        return Err(Error::usage("an extension in Python has the layout `crate`; rust, c and cpp have `extgen` too"));
    }
    Ok(())
}

/// The files.
pub(crate) fn write(answers: &Answers, values: &Values, out: &mut Project) -> Result<()> {
    let kind = camel(&answers.name);
    let frameworks: Vec<&str> = answers.sources.iter().map(|s| s.framework.word()).collect();
    let mut imports = vec![];
    if !answers.sources.is_empty() {
        imports.push("from carafe.frontend import NodeContext".to_string());
    }
    imports.extend(frameworks.iter().map(|f| format!("from carafe.frontend import {f}")));
    imports.sort();
    let defaults = answers.attributes.iter().map(|a| {
        let value = a.default.clone().unwrap_or_else(|| a.sample());
        format!("\"{}\": {}", a.name, literal(&value))
    });
    let rules: Vec<String> = answers.sources.iter().map(|s| rule(answers, s)).collect();
    let mut extensions = vec![kind];
    for s in &answers.sources {
        let domain = s.domain.as_ref().map(|d| format!(", domain=\"{d}\"")).unwrap_or_default();
        let word = s.framework.word();
        extensions.push(format!("{word}.ConversionExtension(\"{}\", from_{word}{domain})", s.op_type));
    }
    let values = values
        .clone()
        .text("imports", imports.join("\n"))
        .text("defaults", defaults.collect::<Vec<_>>().join(", "))
        .text("rules", rules.join("\n\n"))
        .text("extensions", extensions.join(", "));
    out.add("extension.py", values.fill(packed("templates/python/extension.py.in"))?);
    out.add("tests/test_extension.py", values.fill(packed("templates/python/test_extension.py.in"))?);
    out.add("README.md", values.fill(packed("templates/python/README.md.in"))?);
    out.add(".github/workflows/extension.yml", values.fill(packed("templates/python/ci.yml.in"))?);
    out.add(".gitignore", "__pycache__/\n.pytest_cache/\n".into());
    Ok(())
}

fn rule(answers: &Answers, source: &Source) -> String {
    let read: Vec<&Attribute> = answers.attributes.iter().filter(|a| readable(a, source.framework)).collect();
    let pairs: Vec<String> =
        read.iter().map(|a| format!("\"{}\": \"{}\"", a.name, a.name_in(source.framework))).collect();
    let (word, title) = (source.framework.word(), source.framework.title());
    format!(
        "def from_{word}(node: NodeContext):\n    \
         \"\"\"From {title}: a node `{}` becomes a `{}`. EDIT where names or inputs differ.\"\"\"\n    \
         names = {{{}}}\n    \
         attributes = {{ours: node.get_attribute(theirs) for ours, theirs in names.items() if node.has_attribute(theirs)}}\n    \
         return {}([node.get_input(i) for i in range({})], **attributes).outputs()\n",
        source.op_type,
        answers.name,
        pairs.join(", "),
        camel(&answers.name),
        answers.inputs.len(),
    )
}

fn literal(value: &Literal) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let real = |x: &f64| format!("{x:?}");
    match value {
        Literal::Int(i) => i.to_string(),
        Literal::Float(x) => real(x),
        Literal::Bool(true) => "True".into(),
        Literal::Bool(false) => "False".into(),
        Literal::Str(s) => format!("\"{s}\""),
        Literal::Ints(v) => list(v.iter().map(i64::to_string).collect()),
        Literal::Floats(v) => list(v.iter().map(real).collect()),
        Literal::Strs(v) => list(v.iter().map(|s| format!("\"{s}\"")).collect()),
    }
}
