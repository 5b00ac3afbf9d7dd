//! What operators of Paddle 3 are called in a `ProgramDesc`. The rules know those names, so that one rule serves both kinds of files.

use std::collections::HashMap;
use std::sync::LazyLock;

static OPS: LazyLock<HashMap<&str, OpNames>> = LazyLock::new(|| {
    let lines = include_str!("ops.txt").lines().filter(|l| !l.starts_with('#'));
    lines.filter_map(parse).collect()
});

/// The names of an operator.
#[derive(Debug)]
pub(crate) struct OpNames {
    pub(crate) op_type: &'static str,
    pub(crate) operands: Vec<Operand>,
    pub(crate) results: Vec<&'static str>,
    /// Attributes that are called otherwise, new and old.
    pub(crate) renamed: Vec<(&'static str, &'static str)>,
}

/// An operand.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) slot: &'static str,
    /// The attribute that it stands for, which need not be known before the run.
    pub(crate) attribute: Option<&'static str>,
}

/// The names of an operator; one that works in place has those of the plain one.
pub(crate) fn names(op: &str) -> Option<&'static OpNames> {
    OPS.get(op).or_else(|| OPS.get(op.trim_end_matches('_')))
}

fn parse(line: &'static str) -> Option<(&'static str, OpNames)> {
    let mut words = line.split(' ');
    let (name, op_type) = (words.next()?, words.next()?);
    let mut list = || words.next().filter(|w| *w != "-").into_iter().flat_map(|w| w.split(',')).collect::<Vec<_>>();
    let operand = |text: &'static str| match text.strip_prefix('@').and_then(|t| t.split_once(':')) {
        Some((attribute, slot)) => Operand { slot, attribute: Some(attribute) },
        None => Operand { slot: text, attribute: None },
    };
    let operands = list().into_iter().map(operand).collect();
    let results = list();
    let renamed = list().into_iter().filter_map(|r| r.split_once(':')).collect();
    Some((name, OpNames { op_type, operands, results, renamed }))
}
