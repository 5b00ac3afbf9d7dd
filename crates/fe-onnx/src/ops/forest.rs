//! The trees themselves. All trees of all rows are walked at once: one step a level, each a few gathers over tables that
//! hold the nodes. A leaf leads to itself, so shallow trees wait for deep ones.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Error, Result, Value};
use carafe_ops::compare::NotEqual;
use carafe_ops::indexing::GatherElements;
use carafe_ops::math::IsNaN;
use carafe_ops::reduce::{ReduceLogicalOr, ReduceMax, ReduceMean, ReduceMin, ReduceSum};
use carafe_tensor::{ElementType, Tensor};

/// Deeper trees are refused: every level is a few operations.
const MAX_DEPTH: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    /// The value is one of a list.
    Member,
}

/// Nodes of all trees, those of one tree anywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Forest {
    pub(super) roots: Vec<usize>,
    /// `None` at leaves.
    pub(super) modes: Vec<Option<Mode>>,
    pub(super) features: Vec<i64>,
    pub(super) values: Vec<f64>,
    /// The lists of `Mode::Member`.
    pub(super) members: Vec<Vec<f64>>,
    pub(super) yes: Vec<usize>,
    pub(super) no: Vec<usize>,
    pub(super) missing_is_yes: Vec<bool>,
    /// What leaves give: target and weight.
    pub(super) weights: Vec<Vec<(usize, f64)>>,
    pub(super) targets: usize,
}

impl Forest {
    pub(super) fn add(&mut self) -> usize {
        let id = self.modes.len();
        self.modes.push(None);
        self.features.push(0);
        self.values.push(0.0);
        self.members.push(vec![]);
        self.yes.push(id);
        self.no.push(id);
        self.missing_is_yes.push(false);
        self.weights.push(vec![]);
        id
    }

    // Levels of the deepest tree; refuses nodes that lead back.
    fn depth(&self) -> Result<usize> {
        let mut level = self.roots.clone();
        let mut depth = 0;
        let mut visited = 0usize;
        while !level.is_empty() {
            visited += level.len();
            if depth > MAX_DEPTH || visited > self.modes.len() {
                return Err(Error::unsupported(format!("trees must not be deeper than {MAX_DEPTH} or share nodes")));
            }
            let inner = level.iter().filter(|&&i| self.modes[i].is_some());
            level = inner.flat_map(|&i| [self.yes[i], self.no[i]]).collect();
            depth += usize::from(!level.is_empty());
        }
        Ok(depth)
    }

    // The leaf each row reaches in each tree: `[batch, tree]`.
    fn walk(&self, n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
        let ints = |list: &[usize]| list.iter().map(|&i| i as i64).collect::<Vec<_>>();
        let roots = n.i64s(&ints(&self.roots))?;
        let batch = n.size(x, 0)?;
        let trees = n.i64s(&[self.roots.len() as i64])?;
        let shape = n.concat(&[batch, trees], 0)?;
        let mut at = n.stretch(roots, shape)?;
        let features = n.i64s(&self.features)?;
        let (yes, no) = (n.i64s(&ints(&self.yes))?, n.i64s(&ints(&self.no))?);
        let ty = n.ty(x);
        let values = n.constant(Tensor::from_f64(ty, &[self.values.len()], &self.values)?)?;
        let modes: Vec<Mode> = {
            let mut seen = vec![];
            for mode in self.modes.iter().flatten() {
                if !seen.contains(mode) {
                    seen.push(*mode);
                }
            }
            seen
        };
        let mode_table: Vec<i64> = self.modes.iter().map(|m| m.map_or(-1, |m| m as i64)).collect();
        let mode_table = n.i64s(&mode_table)?;
        let missing = self.missing_is_yes.iter().any(|&m| m);
        let missing_table: Vec<i64> = self.missing_is_yes.iter().map(|&m| i64::from(m)).collect();
        let missing_table =
            n.constant(Tensor::from_i64(ElementType::Boolean, &[missing_table.len()], &missing_table)?)?;
        let members = self.member_table(n, ty)?;
        for _ in 0..self.depth()? {
            let feature = n.gather(features, at, 0)?;
            let value = n.gather(values, at, 0)?;
            let seen = n.emit(GatherElements { axis: 1 }, &[x, feature])?;
            let mut go = None;
            for &mode in &modes {
                let this = match mode {
                    Mode::LessEqual => n.less_equal(seen, value)?,
                    Mode::Less => n.less(seen, value)?,
                    Mode::GreaterEqual => n.greater_equal(seen, value)?,
                    Mode::Greater => n.greater(seen, value)?,
                    Mode::Equal => n.equal(seen, value)?,
                    Mode::NotEqual => n.emit(NotEqual::default(), &[seen, value])?,
                    Mode::Member => {
                        let list = n.gather(members, at, 0)?;
                        let wide = n.unsqueeze(seen, &[-1])?;
                        let equal = n.equal(wide, list)?;
                        let axes = n.i64s(&[-1])?;
                        n.emit(ReduceLogicalOr { keep_dims: false }, &[equal, axes])?
                    }
                };
                go = Some(match go {
                    None => this,
                    Some(other) => {
                        let number = n.i64(mode as i64)?;
                        let own = n.gather(mode_table, at, 0)?;
                        let own = n.equal(own, number)?;
                        n.choose(own, this, other)?
                    }
                });
            }
            let Some(mut go) = go else { break };
            if missing {
                let lost = n.emit(IsNaN, &[seen])?;
                let follow = n.gather(missing_table, at, 0)?;
                let lost = n.and(lost, follow)?;
                go = n.or(go, lost)?;
            }
            let (yes, no) = (n.gather(yes, at, 0)?, n.gather(no, at, 0)?);
            at = n.choose(go, yes, no)?;
        }
        Ok(at)
    }

    // The lists of members, filled up with NaN, which equals nothing.
    fn member_table(&self, n: &mut NodeCx<'_>, ty: ElementType) -> Result<Value> {
        let width = self.members.iter().map(Vec::len).max().unwrap_or(0);
        let rows = if width == 0 { 0 } else { self.members.len() };
        let size = rows.checked_mul(width).filter(|&s| s < 1 << 28);
        let size = size.ok_or_else(|| n.unsupported("the lists of members are too long"))?;
        let mut table = vec![f64::NAN; size];
        for (row, list) in table.chunks_exact_mut(width.max(1)).zip(&self.members) {
            row[..list.len()].copy_from_slice(list);
        }
        n.constant(Tensor::from_f64(ty, &[rows, width], &table)?)
    }

    // Scores `[batch, target]` without base values. `aggregate` is SUM, AVERAGE, MIN or MAX.
    pub(super) fn scores(&self, n: &mut NodeCx<'_>, x: Value, aggregate: &str) -> Result<Value> {
        let at = self.walk(n, x)?;
        let absent = match aggregate {
            "MIN" => f64::INFINITY,
            "MAX" => f64::NEG_INFINITY,
            _ => 0.0,
        };
        let size = self.modes.len().checked_mul(self.targets).filter(|&s| s < 1 << 30);
        let size = size.ok_or_else(|| n.unsupported("the table of leaf weights is too large"))?;
        let mut table = vec![absent; size];
        for (row, weights) in table.chunks_exact_mut(self.targets.max(1)).zip(&self.weights) {
            for &(target, weight) in weights {
                row[target] = if row[target] == absent { weight } else { row[target] + weight };
            }
        }
        let ty = n.ty(x);
        let table = n.constant(Tensor::from_f64(ty, &[self.modes.len(), self.targets], &table)?)?;
        let all = n.gather(table, at, 0)?;
        let axes = n.i64s(&[1])?;
        match aggregate {
            "SUM" => n.emit(ReduceSum { keep_dims: false }, &[all, axes]),
            "AVERAGE" => n.emit(ReduceMean { keep_dims: false }, &[all, axes]),
            "MIN" => n.emit(ReduceMin { keep_dims: false }, &[all, axes]),
            "MAX" => n.emit(ReduceMax { keep_dims: false }, &[all, axes]),
            _ => Err(n.fail(format!("aggregate_function `{aggregate}` is not known"))),
        }
    }
}
