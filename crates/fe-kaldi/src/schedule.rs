//! When a node is computed. Frames come one at a time: at step `s` a node of delay `d` has its value for time `s - d`. A node that
//! reads another `k` frames later needs a delay of at least that of the other and `k`; what it needs of earlier steps is
//! remembered. So a network that looks ahead answers later, and one that cannot wait for what it needs has no schedule.

use crate::timed::{Expr, Timed, Work};
use carafe_graph::{Error, Result};

/// Farther than this nobody remembers.
const MAX_FRAMES: i64 = 10_000;

/// Delays, and from when on values mean something.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Delay of each node; `None` where it is the same at all times.
    pub(crate) delay: Vec<Option<i64>>,
    /// First time at which a node is defined, if the frames begin at 0; `None` where it always is.
    pub(crate) first: Vec<Option<i64>>,
    /// Frames before the first that the first output looks at.
    pub(crate) left: i64,
    /// Frames behind the last that the last output looks at; by so many steps outputs come later.
    pub(crate) right: i64,
    /// How many of those the network would also do without.
    pub(crate) beyond: i64,
}

impl Schedule {
    pub(crate) fn of(timed: &Timed<'_>) -> Result<Schedule> {
        let mut s = Schedule { delay: delays(timed, false)?, first: first_times(timed)?, left: 0, right: 0, beyond: 0 };
        let outputs = || timed.nodes.iter().enumerate().filter(|(_, n)| n.work == Work::Output).map(|(i, _)| i);
        s.right = outputs().filter_map(|i| s.delay[i]).max().unwrap_or(0).max(0);
        // All outputs of a step belong to the same time.
        for i in outputs() {
            s.delay[i] = s.delay[i].map(|_| s.right);
        }
        let needed = delays(timed, true)?;
        s.beyond = s.right - outputs().filter_map(|i| needed[i]).max().unwrap_or(s.right).clamp(0, s.right);
        s.left = outputs().filter(|i| s.delay[*i].is_some()).filter_map(|i| s.first[i]).max().unwrap_or(0).max(0);
        Ok(s)
    }
    /// How many steps ago `node` had what a reader of this delay reads of it.
    pub(crate) fn steps_back(&self, node: usize, offset: i64, reader: Option<i64>) -> i64 {
        match (self.delay[node], reader) {
            (Some(own), Some(reader)) => reader - own - offset,
            // What does not care for time takes the latest.
            _ => 0,
        }
    }
}

// Delays for all that is read, or only for what must be defined.
fn delays(timed: &Timed<'_>, needed: bool) -> Result<Vec<Option<i64>>> {
    let n = timed.nodes.len();
    let mut delay: Vec<Option<i64>> = timed.nodes.iter().map(|node| (node.work == Work::Input).then_some(0)).collect();
    for round in 0.. {
        let mut changed = None;
        for (i, node) in timed.nodes.iter().enumerate() {
            if matches!(node.work, Work::Input | Work::Timeless) {
                continue;
            }
            let mut most = delay[i];
            node.reads.iter().for_each(|e| {
                e.all_reads(&mut |read| {
                    if !(needed && read.optional) {
                        most = most.max(delay[read.node].map(|d| d.saturating_add(read.offset)));
                    }
                });
            });
            if most != delay[i] {
                (delay[i], changed) = (most, Some(i));
            }
        }
        let Some(node) = changed else { break };
        if round > n {
            return Err(Error::unsupported(format!(
                "node `{}` depends on its own future: a network that runs backwards in time, such as a bidirectional one, \
                 needs whole utterances and cannot be fed frame by frame",
                timed.nodes[node].name
            )));
        }
    }
    let far = delay.iter().position(|d| d.is_some_and(|d| d.abs() > MAX_FRAMES));
    match far {
        None => Ok(delay),
        Some(i) => {
            Err(Error::unsupported(format!("node `{}` looks farther than {MAX_FRAMES} frames", timed.nodes[i].name)))
        }
    }
}

fn first_times(timed: &Timed<'_>) -> Result<Vec<Option<i64>>> {
    let n = timed.nodes.len();
    let mut first: Vec<Option<i64>> = timed.nodes.iter().map(|node| (node.work == Work::Input).then_some(0)).collect();
    for round in 0.. {
        let mut changed = None;
        for (i, node) in timed.nodes.iter().enumerate() {
            if matches!(node.work, Work::Input | Work::Timeless) {
                continue;
            }
            let all = node.reads.iter().filter_map(|e| first_time(e, &first)).max();
            if all > first[i] {
                (first[i], changed) = (all, Some(i));
            }
        }
        let Some(node) = changed else { break };
        if round > n {
            return Err(Error::invalid(format!(
                "node `{}` reads its own past without IfDefined, so it can never be computed",
                timed.nodes[node].name
            )));
        }
    }
    Ok(first)
}

/// The first time at which all that an expression reads is defined.
pub(crate) fn first_time(e: &Expr, first: &[Option<i64>]) -> Option<i64> {
    match e {
        Expr::Read(read) if read.optional => None,
        Expr::Read(read) => first[read.node].map(|t| t.saturating_sub(read.offset)),
        Expr::Append(list) | Expr::Sum(list) => list.iter().filter_map(|e| first_time(e, first)).max(),
        Expr::Scale(_, inner) => first_time(inner, first),
        Expr::Const(..) => None,
        Expr::Failover(a, b) => first_time(a, first).min(first_time(b, first)),
    }
}
