//! Everything a model needs that nobody has, told in one list instead of one error at a time.

use crate::rule::RuleSet;
use carafe_graph::{Error, Result};
use std::collections::BTreeMap;

/// Operations without a rule, with the nodes that use them.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    found: BTreeMap<(String, String, i64), Vec<String>>,
}

impl Missing {
    pub fn add(&mut self, domain: &str, op_type: &str, version: i64, node: &str) {
        self.found.entry((domain.into(), op_type.into(), version)).or_default().push(node.into());
    }
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
    /// One error for all of them: counts, node names, near names, what to do.
    pub fn check(&self, rules: &RuleSet) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let total: usize = self.found.values().map(Vec::len).sum();
        let mut parts = Vec::new();
        for ((domain, op_type, version), nodes) in &self.found {
            let shown: Vec<String> = nodes.iter().take(5).map(|n| format!("`{n}`")).collect();
            let more = if nodes.len() > 5 { format!(" and {} more", nodes.len() - 5) } else { String::new() };
            let domain_text = if domain.is_empty() { String::new() } else { format!(" of domain `{domain}`") };
            let hint = match rules.first_version(domain, op_type) {
                Some(first) => format!("; there is a rule from version {first} on, the model imports {version}"),
                None => near(rules, op_type),
            };
            parts.push(format!(
                "{} x `{op_type}`{domain_text} (no rule; nodes {}{more}{hint})",
                nodes.len(),
                shown.join(", ")
            ));
        }
        Err(Error::unsupported(format!(
            "{total} nodes of {} operations have no rule: {}; add a rule with an extension",
            self.found.len(),
            parts.join("; ")
        )))
    }
}

fn near(rules: &RuleSet, op_type: &str) -> String {
    let wanted = op_type.to_ascii_lowercase();
    let like: Vec<&str> = rules
        .names()
        .into_iter()
        .filter(|n| {
            let n = n.to_ascii_lowercase();
            n == wanted
                || (wanted.len() > 3
                    && (n.starts_with(&wanted) || wanted.starts_with(&n))
                    && n.len().abs_diff(wanted.len()) <= 3)
        })
        .take(3)
        .collect();
    if like.is_empty() { String::new() } else { format!("; did you mean {}?", like.join(" or ")) }
}
