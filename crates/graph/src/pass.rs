//! A rewrite of a whole model, and the list that runs rewrites in order. In debug builds the verifier runs after each one
//! and names the pass that broke the graph.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::registry::Registry;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A rewrite. It says how often it fired; why it did not goes to `notes`.
pub trait Pass: Send + Sync {
    /// Verb and object, e.g. `fold_constants`.
    fn name(&self) -> &'static str;
    /// Rewrites the model; how often it fired.
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize>;
}

/// What passes tell about themselves, for `--log_level DEBUG`, and what they may ask: which operations there are.
#[derive(Debug, Default)]
pub struct Notes {
    /// What passes noted, in order.
    pub lines: Vec<String>,
    enabled: bool,
    decoded: bool,
    registry: Option<Arc<Registry>>,
}

impl Notes {
    /// That are kept.
    pub fn enabled() -> Notes {
        Notes { enabled: true, ..Notes::default() }
    }
    /// Lets passes make operations by name.
    #[must_use]
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Notes {
        self.registry = Some(registry);
        self
    }
    /// For rewrites of a graph as decoded: every name is an operation there, a `FrameworkNode`.
    pub fn decoded() -> Notes {
        Notes { decoded: true, ..Notes::default() }
    }
    /// Whether the graph is one as decoded, with the operations of its format.
    pub fn is_decoded(&self) -> bool {
        self.decoded
    }
    /// As these, and they also keep lines.
    #[must_use]
    pub fn kept(mut self, lines: bool) -> Notes {
        self.enabled = lines;
        self
    }
    /// Every operation, where the caller has them.
    pub fn registry(&self) -> Option<&Arc<Registry>> {
        self.registry.as_ref()
    }
    /// The text is only made when somebody listens.
    pub fn add(&mut self, line: impl FnOnce() -> String) {
        if self.enabled {
            self.lines.push(line());
        }
    }
}

/// Runs passes in the order they stand in the list.
pub fn run_passes(model: &mut Model, passes: &[&dyn Pass], notes: &mut Notes) -> Result<()> {
    for pass in passes {
        let fired = pass.run(model, notes).map_err(|e| e.at(format!("pass `{}`", pass.name())))?;
        notes.add(|| format!("{}: {fired}", pass.name()));
        if cfg!(debug_assertions) {
            crate::verify(model).map_err(|e| e.at(format!("after pass `{}`", pass.name())))?;
        }
    }
    Ok(())
}

/// When a user's rewrite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// On the graph as decoded, before translation, for formats that have such a form.
    Decoded,
    /// On the translated model, before anything else.
    Front,
    /// Among the common passes.
    Middle,
    /// After the common passes, before the model is written or compiled.
    Back,
}

/// A rewrite with its place in time: the phase, and the names of those it runs before or after.
#[derive(Clone)]
pub struct PhasedPass {
    /// When it runs.
    pub phase: Phase,
    /// Names of passes that run after it.
    pub before: Vec<String>,
    /// Names of passes that run before it.
    pub after: Vec<String>,
    /// Whether it runs when nobody speaks of it; one that does not waits until it is asked for by name.
    pub enabled: bool,
    /// The pass.
    pub pass: Arc<dyn Pass>,
}

impl PhasedPass {
    /// That runs unless it is turned off.
    pub fn new(phase: Phase, pass: Arc<dyn Pass>) -> PhasedPass {
        PhasedPass { phase, before: vec![], after: vec![], enabled: true, pass }
    }
    /// Runs only when it is asked for by name.
    #[must_use]
    pub fn disabled(mut self) -> PhasedPass {
        self.enabled = false;
        self
    }
    /// Runs before the pass of this name.
    #[must_use]
    pub fn before(mut self, name: &str) -> PhasedPass {
        self.before.push(name.into());
        self
    }
    /// Runs after the pass of this name.
    #[must_use]
    pub fn after(mut self, name: &str) -> PhasedPass {
        self.after.push(name.into());
        self
    }
}

impl std::fmt::Debug for PhasedPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.pass.name(), self.phase)
    }
}

/// Which rewrites a user wants to run and not to run, by name, whatever they say of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassChoice {
    /// Passes that run though they do not by themselves.
    pub enable: BTreeSet<String>,
    /// Passes that do not run.
    pub disable: BTreeSet<String>,
}

impl PassChoice {
    /// Whether a pass runs, when by itself it would or would not.
    pub fn runs(&self, name: &str, enabled: bool) -> bool {
        !self.disable.contains(name) && (enabled || self.enable.contains(name))
    }
}

/// Rewrites of a phase in an order that keeps every before and after; otherwise as they were registered. Names of
/// rewrites that are not here are passed over. A circle is an error that names it.
pub fn order_passes(passes: &[PhasedPass], phase: Phase) -> Result<Vec<Arc<dyn Pass>>> {
    let here: Vec<&PhasedPass> = passes.iter().filter(|p| p.phase == phase).collect();
    let comes_first = |a: &PhasedPass, b: &PhasedPass| {
        a.before.iter().any(|n| n == b.pass.name()) || b.after.iter().any(|n| n == a.pass.name())
    };
    let mut left: Vec<usize> = (0..here.len()).collect();
    let mut order = Vec::with_capacity(here.len());
    while !left.is_empty() {
        let free = left.iter().position(|&i| !left.iter().any(|&j| j != i && comes_first(here[j], here[i])));
        let Some(at) = free else {
            let names: Vec<&str> = left.iter().map(|&i| here[i].pass.name()).collect();
            return Err(Error::usage(format!("passes wait for each other: {}", names.join(", "))));
        };
        order.push(here[left.remove(at)].pass.clone());
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);
    impl Pass for Named {
        fn name(&self) -> &'static str {
            self.0
        }
        fn run(&self, _: &mut Model, _: &mut Notes) -> Result<usize> {
            Ok(0)
        }
    }
    fn front(name: &'static str) -> PhasedPass {
        PhasedPass::new(Phase::Front, Arc::new(Named(name)))
    }
    fn order(passes: &[PhasedPass]) -> Result<Vec<&'static str>> {
        Ok(order_passes(passes, Phase::Front)?.iter().map(|p| p.name()).collect())
    }

    #[test]
    fn before_and_after_decide_and_the_rest_keeps_its_order() {
        let passes = [front("a").after("c"), front("b"), front("c").before("b")];
        assert_eq!(order(&passes).unwrap(), ["c", "a", "b"]);
    }

    #[test]
    fn a_choice_wins_over_what_a_pass_says_of_itself() {
        let choice = PassChoice { enable: ["a".into()].into(), disable: ["b".into()].into() };
        assert!(choice.runs("a", false) && choice.runs("c", true));
        assert!(!choice.runs("b", true) && !choice.runs("c", false));
    }

    #[test]
    fn a_circle_is_named() {
        let e = order(&[front("a").before("b"), front("b").before("a")]).unwrap_err();
        assert_eq!(e.to_string(), "passes wait for each other: a, b");
    }
}
