//! What an operation is asked before a model runs many rows at once: whether each row comes out as if it were alone
//! ([`Op::keeps_rows`](crate::Op::keeps_rows)). The helpers here are the usual answers.

use crate::infer::normalize_axis;
use crate::model::{Model, Node, NodeId, Value};
use crate::op::Elementwise;
use carafe_tensor::PartialShape;

/// What the elements of a value depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// Neither on inputs nor on the number of rows.
    Fixed,
    /// On the number of rows.
    Count,
    /// On inputs; one row for each.
    Rows,
}

/// A node between values that are rows or not; at least one input is rows.
#[derive(Debug)]
pub struct RowsCx<'a> {
    model: &'a Model,
    id: NodeId,
    kinds: Vec<RowKind>,
}

impl<'a> RowsCx<'a> {
    /// The node with the kinds of its inputs.
    pub fn new(model: &'a Model, id: NodeId, kinds: Vec<RowKind>) -> RowsCx<'a> {
        RowsCx { model, id, kinds }
    }
    fn node(&self) -> &Node {
        self.model.node(self.id)
    }
    /// Kinds of all inputs.
    pub fn kinds(&self) -> &[RowKind] {
        &self.kinds
    }
    /// Shape of an input.
    pub fn shape(&self, input: usize) -> &PartialShape {
        &self.model.fact(self.node().inputs()[input]).shape
    }
    /// Rank of an input.
    pub fn rank(&self, input: usize) -> usize {
        self.shape(input).rank().unwrap_or(0)
    }
    /// Integers of an input, where they are known.
    pub fn ints(&self, input: usize) -> Option<Vec<i64>> {
        self.model.fact(*self.node().inputs().get(input)?).ints()
    }
    /// Whether nothing reads the outputs behind the first.
    pub fn only_first_output(&self) -> bool {
        let used = |port| !self.model.users(Value { node: self.id, port }).is_empty();
        !(1..self.node().outputs().len()).any(used)
    }

    /// The answer that follows from the words of a declaration.
    pub fn by_info(&self) -> Result<(), String> {
        let info = self.node().op().info();
        match info.elementwise {
            _ if !info.rows.is_empty() => self.rows_at(info.rows),
            _ if info.reduces => self.rows_at(&[0]).and_then(|()| self.axes_leave_rows(1)),
            Elementwise::First | Elementwise::All => self.elementwise(),
            Elementwise::No => Err("it is not known to keep rows apart".into()),
        }
    }

    /// Exactly these inputs are rows and all others are fixed.
    pub fn rows_at(&self, ports: &[usize]) -> Result<(), String> {
        for (i, kind) in self.kinds.iter().enumerate() {
            let expected = if ports.contains(&i) { RowKind::Rows } else { RowKind::Fixed };
            if *kind != expected {
                let found = match kind {
                    RowKind::Rows => "depends on the inputs",
                    RowKind::Count => "depends on the number of rows",
                    RowKind::Fixed => "is the same for all rows",
                };
                return Err(format!("its input {i} {found}"));
            }
        }
        Ok(())
    }

    /// Inputs meet element by element: rows meet rows, and what is fixed is the same for all rows.
    pub fn elementwise(&self) -> Result<(), String> {
        let rank = self.node().outputs()[0].fact.shape.rank().unwrap_or(0);
        let attrs = self.node().op().attrs();
        let broadcast = attrs.iter().find(|(name, _)| name == "auto_broadcast").and_then(|(_, v)| v.to_text());
        if broadcast.is_some_and(|b| b.eq_ignore_ascii_case("pdpd")) {
            return Err("it broadcasts along an axis of its own".into());
        }
        for (i, kind) in self.kinds.iter().enumerate() {
            match kind {
                RowKind::Rows if self.rank(i) == rank => {}
                RowKind::Rows => return Err(format!("the rows of its input {i} meet another dimension")),
                RowKind::Fixed if self.rank(i) < rank || self.shape(i).dim(0).size() == Some(1) => {}
                RowKind::Fixed => return Err(format!("its input {i} has rows of its own")),
                RowKind::Count => return Err(format!("its input {i} depends on the number of rows")),
            }
        }
        Ok(())
    }

    /// The axes that an input lists are all known and none of them is the first of input 0.
    pub fn axes_leave_rows(&self, input: usize) -> Result<(), String> {
        let axes = self.ints(input).ok_or("its axes are not known")?;
        axes.into_iter().try_for_each(|a| self.axis_leaves_rows(a))
    }

    /// The axis is not the first of input 0.
    pub fn axis_leaves_rows(&self, axis: i64) -> Result<(), String> {
        match normalize_axis(axis, self.rank(0)) {
            Ok(0) => Err("it works along the rows".into()),
            Ok(_) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    }
}
