//! Everything a model needs that nobody has, told in one list instead of one error at a time. A custom operation has two
//! halves, the operation and the rule that maps the node to it; the message says which of them is missing.

use crate::near::is_near;
use crate::options::Log;
use crate::rule::RuleSet;
use carafe_graph::{Error, Registry, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The command that writes an extension with an operation that a model needs; `op_type` chooses one of several.
pub fn generator(model: &Path, op_type: Option<&str>) -> String {
    let path = model.display().to_string();
    let is_plain = path.chars().all(|c| c.is_alphanumeric() || "/\\._-:".contains(c));
    let path = if is_plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) };
    let which = op_type.map(|t| format!(" --op {t}")).unwrap_or_default();
    format!("carafe extension new --from-model {path}{which}")
}

/// Operations without a rule, with the nodes that use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing {
    found: BTreeMap<(String, String, i64), Vec<String>>,
}

const SHOWN_NODES: usize = 10;

impl Missing {
    pub(crate) fn add(&mut self, domain: &str, op_type: &str, version: i64, node: &str) {
        self.found.entry((domain.into(), op_type.into(), version)).or_default().push(node.into());
    }
    /// Names every node, for whoever reads the debug lines.
    pub(crate) fn tell(&self, log: &Log<'_>) {
        for ((_, op_type, _), nodes) in &self.found {
            nodes.iter().for_each(|node| log.debug(|| format!("nobody handles `{node}` ({op_type})")));
        }
    }
    /// Domain and type of each.
    pub(crate) fn ops(&self) -> impl Iterator<Item = (&str, &str)> {
        self.found.keys().map(|(domain, op_type, _)| (domain.as_str(), op_type.as_str()))
    }
    // The command that writes a library with the first of them.
    fn generator(&self, model: Option<&Path>) -> Option<String> {
        let (_, op_type, _) = self.found.keys().next()?;
        Some(generator(model?, (self.found.len() > 1).then_some(op_type)))
    }
    /// One error for all of them: counts, node names, which half is missing, near names, what to do.
    pub(crate) fn check(
        &self,
        format: &str,
        rules: &RuleSet,
        registry: Option<&Registry>,
        model: Option<&Path>,
    ) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let total: usize = self.found.values().map(Vec::len).sum();
        let mut parts = Vec::new();
        for ((domain, op_type, _), nodes) in &self.found {
            let shown: Vec<String> = nodes.iter().take(SHOWN_NODES).map(|n| format!("`{n}`")).collect();
            let more = match nodes.len().saturating_sub(SHOWN_NODES) {
                0 => String::new(),
                n => format!(" and {n} more, which `carafe convert --log_level DEBUG` names"),
            };
            let domain_text = if domain.is_empty() { String::new() } else { format!(" of domain `{domain}`") };
            let half = half(domain, op_type, format, rules, registry);
            let s = if nodes.len() == 1 { "" } else { "s" };
            parts.push(format!(
                "{} x `{op_type}`{domain_text} ({half}; node{s} {}{more})",
                nodes.len(),
                shown.join(", ")
            ));
        }
        let nodes = if total == 1 { "1 node".to_string() } else { format!("{total} nodes") };
        let operations = match self.found.len() {
            1 => "1 operation".to_string(),
            n => format!("{n} operations"),
        };
        let write = self.generator(model).map(|line| format!("`{line}` writes one, ")).unwrap_or_default();
        Err(Error::unsupported(format!(
            "{nodes} of {operations} cannot be translated: {}; a library with what is missing is loaded by `carafe \
             --extension LIB` or `Core::add_extension`; {write}`carafe explain E0024` tells more",
            parts.join("; ")
        )))
    }
}

// Which half of an operation is missing, and what to write.
fn half(domain: &str, op_type: &str, format: &str, rules: &RuleSet, registry: Option<&Registry>) -> String {
    let elsewhere = rules.elsewhere(op_type);
    if !elsewhere.is_empty() {
        return format!("no rule here: there is one for {}", elsewhere.join(" and "));
    }
    let class = registry.and_then(|r| r.newest(op_type)).map(|f| f.info);
    if let Some(info) = class {
        let op = format!("{}::{}", info.opset, info.name);
        let mut mapping = format!("Mapping::new(\"{op}\").framework(\"{format}\")");
        if !domain.is_empty() {
            mapping.push_str(&format!(".domain(\"{domain}\")"));
        }
        if info.name != op_type {
            mapping.push_str(&format!(".from_type(\"{op_type}\")"));
        }
        return format!("no rule: the operation `{op}` is there, only the rule is missing, `{mapping}` would be one");
    }
    let like = near(rules, registry, op_type);
    let hint = if like.is_empty() { String::new() } else { format!("; did you mean {}?", like.join(" or ")) };
    format!(
        "no rule and no operation: register an operation named `{op_type}`, which is then mapped by its name, or a \
         rule that composes it{hint}"
    )
}

fn near(rules: &RuleSet, registry: Option<&Registry>, op_type: &str) -> Vec<String> {
    let wanted = op_type.to_ascii_lowercase();
    let is_like = |n: &&str| {
        let n = n.to_ascii_lowercase();
        n == wanted
            || (wanted.len() > 3
                && (n.starts_with(&wanted) || wanted.starts_with(&n))
                && n.len().abs_diff(wanted.len()) <= 3)
    };
    let mut like: Vec<String> = rules.names().into_iter().filter(is_like).map(str::to_string).collect();
    for name in registry.map(|r| r.near(op_type)).unwrap_or_default() {
        if is_near(name, op_type) && !like.iter().any(|n| n == name) {
            like.push(name.to_string());
        }
    }
    like.truncate(3);
    like
}
