//! Rules: which translator handles a source operation. The user's stand in front of the built-in ones; among rules of one
//! layer the greatest `since` not above the model's version wins. A built-in rule that is only for later versions serves an
//! older model too, as the first version it knows: converters write such models.

use crate::node_cx::{NodeCx, Outputs};
use carafe_graph::{REPLACEMENT, Result};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// From one source node to values.
pub type Translate = dyn Fn(&mut NodeCx<'_>) -> Result<Outputs> + Send + Sync;

/// A built-in rule, for tables.
#[derive(Clone, Copy)]
pub struct StaticRule {
    /// Domain of the source operation.
    pub domain: &'static str,
    /// Type of the source operation.
    pub op_type: &'static str,
    /// First version that the rule serves.
    pub since: i64,
    /// Makes the operations.
    pub translate: fn(&mut NodeCx<'_>) -> Result<Outputs>,
}

/// A rule of the default domain.
pub const fn rule(op_type: &'static str, since: i64, translate: fn(&mut NodeCx<'_>) -> Result<Outputs>) -> StaticRule {
    StaticRule { domain: "", op_type, since, translate }
}

/// A rule of a named domain.
pub const fn rule_in(
    domain: &'static str,
    op_type: &'static str,
    since: i64,
    translate: fn(&mut NodeCx<'_>) -> Result<Outputs>,
) -> StaticRule {
    StaticRule { domain, op_type, since, translate }
}

impl std::fmt::Debug for StaticRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rule({}::{} since {})", self.domain, self.op_type, self.since)
    }
}

/// A rule a user adds at run time.
#[derive(Clone)]
pub struct Rule {
    /// Format it is for, such as `onnx`; `None` for all.
    pub framework: Option<String>,
    /// `None` matches every domain.
    pub domain: Option<String>,
    /// Type of the source operation.
    pub op_type: String,
    /// First version that the rule serves.
    pub since: i64,
    /// Makes the operations.
    pub translate: Arc<Translate>,
    /// The extension it came with.
    pub origin: Option<String>,
}

impl Rule {
    /// For every format, domain and version.
    pub fn new(
        op_type: impl Into<String>,
        translate: impl Fn(&mut NodeCx<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Rule {
        let translate = Arc::new(translate);
        Rule { framework: None, domain: None, op_type: op_type.into(), since: 0, translate, origin: None }
    }
    /// Only for one format.
    #[must_use]
    pub fn framework(mut self, framework: &str) -> Rule {
        self.framework = Some(framework.to_ascii_lowercase());
        self
    }
    /// Only for one domain.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> Rule {
        self.domain = Some(domain.to_string());
        self
    }
    /// Came with this extension.
    #[must_use]
    pub fn origin(mut self, extension: &str) -> Rule {
        self.origin = Some(extension.to_string());
        self
    }
    /// Whether it is for this format.
    pub fn is_for(&self, framework: &str) -> bool {
        self.framework.as_deref().is_none_or(|f| f == framework)
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({:?}::{} since {})", self.domain, self.op_type, self.since)
    }
}

/// All rules of one format.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    user: Vec<Rule>,
    built_in: Vec<StaticRule>,
    /// Asked last: operations of extensions that came without a rule.
    fallback: Vec<Rule>,
    /// Users' rules for other formats: type and format.
    others: Vec<(String, String)>,
}

/// Whose rule answers for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'r> {
    /// A user's; what it stands in front of, and the other extension that has a rule for it.
    User {
        /// Name of the extension; `None` for the program itself.
        extension: Option<&'r str>,
        /// What of the engine it stands in front of.
        hides: Option<&'static str>,
        /// The other extension that has a rule for it.
        over: Option<&'r str>,
    },
    /// The format itself.
    BuiltIn,
    /// There is no rule, but a registered operation of the same name.
    EqualName {
        /// Name of the extension that brings the operation; `None` for the program itself.
        extension: Option<&'r str>,
    },
    /// An entry of a replacement file put an operation of ours there.
    Replacement,
    /// An entry of a list of custom layers.
    CustomLayers,
    /// The node is kept as it is.
    Nobody,
}

impl Origin<'_> {
    /// Whose rule it is, and why it answers.
    pub fn words(&self) -> (String, String) {
        let of = |extension: &Option<&str>| extension.map_or("the program".into(), |e| format!("extension `{e}`"));
        match self {
            Origin::User { extension, hides, over } => {
                let other = over.map(|e| format!("that of extension `{e}`"));
                let hidden: Vec<String> = other.into_iter().chain(hides.map(str::to_string)).collect();
                let why = match hidden.is_empty() {
                    true => "a user's rule is the only one".to_string(),
                    false => format!("a user's rule stands in front of {}", hidden.join(" and ")),
                };
                (of(extension), why)
            }
            Origin::BuiltIn => ("built-in".into(), String::new()),
            Origin::EqualName { extension } => {
                (format!("equal name, {}", of(extension)), "no rule, but an operation of the same name".into())
            }
            Origin::Replacement => ("transformations_config".into(), "a replacement put the operation there".into()),
            Origin::CustomLayers => {
                ("CustomLayersMapping.xml".into(), "no extension and no standard layer handles it".into())
            }
            Origin::Nobody => ("none".into(), "there is no rule for it".into()),
        }
    }
}

/// A rule that answers for an operation.
#[derive(Clone)]
pub struct Found<'r> {
    /// Makes the operations.
    pub translate: Rc<dyn Fn(&mut NodeCx<'_>) -> Result<Outputs> + 'r>,
    /// Where the rule comes from.
    pub origin: Origin<'r>,
    /// The first version of the operation, where the model imports an older one.
    pub newer: Option<i64>,
}

impl std::fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({:?})", self.origin)
    }
}

fn of_user(rule: &Rule) -> Rc<dyn Fn(&mut NodeCx<'_>) -> Result<Outputs> + '_> {
    Rc::new(|n: &mut NodeCx<'_>| (rule.translate)(n))
}

// The operation that the node names, with its attributes.
fn as_it_is(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let inputs = n.inputs()?;
    let (op, attrs) = (n.op_type().to_string(), n.attrs().clone());
    Ok(n.emit_class(&op, &attrs, &inputs)?.into())
}

impl RuleSet {
    /// Of the rules of a format.
    pub fn new(built_in: impl IntoIterator<Item = StaticRule>) -> RuleSet {
        RuleSet { built_in: built_in.into_iter().collect(), ..RuleSet::default() }
    }
    /// Domain, type and versions of the operations that the format itself translates, sorted.
    pub fn operations(&self) -> Vec<(&'static str, &'static str, Vec<i64>)> {
        let mut all: Vec<_> = self.built_in.iter().map(|r| (r.domain, r.op_type, r.since)).collect();
        all.sort_unstable();
        let mut list: Vec<(&'static str, &'static str, Vec<i64>)> = Vec::new();
        for (domain, op_type, since) in all {
            match list.last_mut() {
                Some(last) if last.0 == domain && last.1 == op_type => last.2.push(since),
                _ => list.push((domain, op_type, vec![since])),
            }
        }
        list
    }
    /// Adds a user's rule in front of everything.
    pub fn add(&mut self, rule: Rule) {
        self.user.insert(0, rule);
    }
    /// These rules but the built-in ones of some types, as an engine has them that does not know these.
    #[must_use]
    pub fn without(&self, types: &[&str]) -> RuleSet {
        let mut all = self.clone();
        all.built_in.retain(|r| !types.contains(&r.op_type));
        all
    }
    /// These rules with a user's in front, the latest first, and others behind; only those for the format.
    #[must_use]
    pub fn with_user(&self, format: &str, user: &[Rule], fallback: &[Rule]) -> RuleSet {
        let mut all = self.clone();
        user.iter().filter(|r| r.is_for(format)).for_each(|r| all.add(r.clone()));
        let others = user.iter().filter(|r| !r.is_for(format));
        all.others.extend(others.filter_map(|r| Some((r.op_type.clone(), r.framework.clone()?))));
        all.fallback.extend(fallback.iter().rev().filter(|r| r.is_for(format)).cloned());
        all
    }
    /// The rule for an operation of a domain at a version, and whose it is.
    pub fn find(&self, domain: &str, op_type: &str, version: i64) -> Option<Found<'_>> {
        if domain == REPLACEMENT {
            return Some(Found { translate: Rc::new(as_it_is), origin: Origin::Replacement, newer: None });
        }
        // The latest stands first, and `max_by_key` gives the last of equals.
        let is_for =
            |r: &&Rule| r.op_type == op_type && r.domain.as_deref().is_none_or(|d| d == domain) && r.since <= version;
        let user = self.user.iter().rev().filter(is_for).max_by_key(|r| r.since);
        let built_in = self
            .built_in
            .iter()
            .filter(|r| r.op_type == op_type && r.domain == domain && r.since <= version)
            .max_by_key(|r| r.since);
        if let Some(r) = user {
            let hides = built_in.map(|_| "the built-in one");
            let extension = r.origin.as_deref();
            let over =
                self.user.iter().filter(is_for).find_map(|o| o.origin.as_deref().filter(|o| Some(*o) != extension));
            let origin = Origin::User { extension, hides, over };
            return Some(Found { translate: of_user(r), origin, newer: None });
        }
        if let Some(r) = built_in {
            return Some(Found { translate: Rc::new(r.translate), origin: Origin::BuiltIn, newer: None });
        }
        if let Some(r) = self.fallback.iter().find(|r| r.op_type == op_type) {
            let origin = Origin::EqualName { extension: r.origin.as_deref() };
            return Some(Found { translate: of_user(r), origin, newer: None });
        }
        let later = self.built_in.iter().filter(|r| r.op_type == op_type && r.domain == domain);
        let first = later.min_by_key(|r| r.since)?;
        Some(Found { translate: Rc::new(first.translate), origin: Origin::BuiltIn, newer: Some(first.since) })
    }
    /// Rules of this name that do not fit: for other domains or formats, in words.
    pub fn elsewhere(&self, op_type: &str) -> Vec<String> {
        let domain = |d: &str| if d.is_empty() { "the default domain".to_string() } else { format!("domain `{d}`") };
        let user = self.user.iter().filter(|r| r.op_type == op_type).map(|r| match (&r.domain, r.since) {
            (Some(d), 0) => domain(d),
            (Some(d), since) => format!("{} from version {since} on", domain(d)),
            (None, since) => format!("version {since} and later"),
        });
        let built_in = self.built_in.iter().filter(|r| r.op_type == op_type).map(|r| domain(r.domain));
        let others = self.others.iter().filter(|(name, _)| name == op_type).map(|(_, f)| format!("the format {f}"));
        let all: BTreeSet<String> = user.chain(built_in).chain(others).collect();
        all.into_iter().take(3).collect()
    }
    /// Whether a user's rule answers for this operation.
    pub fn is_user(&self, domain: &str, op_type: &str) -> bool {
        self.user.iter().any(|r| r.op_type == op_type && r.domain.as_deref().is_none_or(|d| d == domain))
    }
    /// Known operation names, for suggestions.
    pub fn names(&self) -> BTreeSet<&str> {
        self.user
            .iter()
            .map(|r| r.op_type.as_str())
            .chain(self.built_in.iter().map(|r| r.op_type))
            .chain(self.fallback.iter().map(|r| r.op_type.as_str()))
            .collect()
    }
}
