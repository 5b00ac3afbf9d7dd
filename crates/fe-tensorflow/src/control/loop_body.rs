//! The body of a loop in the making. A loop that counts has a number of iterations. What it reads of an outer tensor at its
//! counter is a part that the loop cuts out; a list that it only sets at its counter, or pushes to, is what the loop joins.
//! What remains is carried.

use super::ports::graft;
use super::truth::boolean;
use carafe_frontend::{Compose, Item, NodeCx, SubModel};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Model, NodeId, Result, Slicing, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::compare::{Greater, Less};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::{Gather, ScatterUpdate};
use carafe_ops::logic::LogicalAnd;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Concat, Reshape, Squeeze, Unsqueeze};
use carafe_tensor::{Dim, PartialShape};
use std::collections::HashSet;

/// What is known of a carried value from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) is_list: bool,
    /// It begins as the integer 0.
    pub(super) from_zero: bool,
}

/// `counter < limit`, for a carried value that grows by 1 and a value of the condition that is the same in every iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) counter: usize,
    pub(super) limit: Value,
}

/// Where a parameter of the body comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Feed {
    Carried(usize),
    Captured(Value),
    Sliced(Value),
}

/// How a carried value leaves the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// As it was in the last iteration.
    Last,
    /// As a counter: what it began as, and the number of iterations.
    Counted,
    /// As the elements that were set at 0, 1, ... in front of what the list began with behind them.
    Set,
    /// As the elements that were pushed behind what the list began with.
    Pushed,
}

pub(super) struct LoopBody {
    model: Model,
    states: Vec<State>,
    /// Parameters of the carried values; `None` for one that is not carried any more.
    parameters: Vec<Option<NodeId>>,
    /// The values for the next iteration, or what is joined.
    nexts: Vec<Value>,
    leaves: Vec<Leaves>,
    feeds: Vec<(NodeId, Feed)>,
    condition: Option<Value>,
    is_counted: bool,
}

impl LoopBody {
    /// Of a translated body whose first parameters are the carried values.
    pub(super) fn new(sub: SubModel, states: Vec<State>, nexts: Vec<Value>) -> Result<LoopBody> {
        let SubModel { mut model, captured, .. } = sub;
        // Results are made anew at the end; until then those of the next values keep them alive.
        for result in model.results().to_vec() {
            model.remove(result)?;
        }
        let list = model.parameters().to_vec();
        let own = list.len() - captured.len();
        if own != states.len() {
            return Err(Error::invalid(format!("the body takes {own} carried values, there are {}", states.len())));
        }
        let mut feeds: Vec<(NodeId, Feed)> = (0..own).map(|i| (list[i], Feed::Carried(i))).collect();
        feeds.extend(captured.iter().map(|(v, at)| (list[*at], Feed::Captured(*v))));
        let parameters = list[..own].iter().copied().map(Some).collect();
        let leaves = vec![Leaves::Last; own];
        Ok(LoopBody { model, states, parameters, nexts, leaves, feeds, condition: None, is_counted: false })
    }

    pub(super) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Outer values that the body captures.
    pub(super) fn captured(&self) -> impl Iterator<Item = Value> + '_ {
        self.feeds.iter().filter_map(|(_, feed)| match feed {
            Feed::Captured(v) => Some(*v),
            _ => None,
        })
    }

    // Whether the next of a carried value is that value and 1.
    fn counts(&self, k: usize) -> bool {
        let (Some(parameter), Some((node, _))) = (self.parameters[k], self.model.producer::<Add>(self.nexts[k])) else {
            return false;
        };
        let inputs = self.model.node(node).inputs();
        let is_one = |v: Value| {
            let fact = self.model.fact(v);
            fact.shape.rank() == Some(0) && fact.ty.is_integer() && fact.ints().is_some_and(|i| i == [1])
        };
        let parameter = Value::from(parameter);
        self.model.fact(parameter).shape.rank() == Some(0)
            && ((inputs[0] == parameter && is_one(inputs[1])) || (inputs[1] == parameter && is_one(inputs[0])))
    }

    /// The bounds that the condition consists of, where it is made of nothing else.
    pub(super) fn bounds(&self, condition: &SubModel, test: Value) -> Option<Vec<Bound>> {
        let model = &condition.model;
        let own: Vec<NodeId> = model.parameters().iter().copied().take(self.states.len()).collect();
        let (mut bounds, mut open) = (vec![], vec![test]);
        while let Some(v) = open.pop() {
            if bounds.len() + open.len() > 8 {
                return None;
            }
            if let Some((and, _)) = model.producer::<LogicalAnd>(v) {
                open.extend(model.node(and).inputs());
                continue;
            }
            let (small, large) = match (model.producer::<Less>(v), model.producer::<Greater>(v)) {
                (Some((node, _)), _) => (model.node(node).inputs()[0], model.node(node).inputs()[1]),
                (_, Some((node, _))) => (model.node(node).inputs()[1], model.node(node).inputs()[0]),
                _ => return None,
            };
            let counter = own.iter().position(|p| Value::from(*p) == small)?;
            let fixed = model.fact(large).shape.rank() == Some(0) && !depends(model, large, &own);
            if !fixed || !self.counts(counter) {
                return None;
            }
            bounds.push(Bound { counter, limit: large });
        }
        (!bounds.is_empty()).then_some(bounds)
    }

    /// The number of iterations decides alone.
    pub(super) fn always_goes_on(&mut self) -> Result<()> {
        self.condition = Some(self.model.fixed(boolean(true)?)?);
        self.is_counted = true;
        Ok(())
    }

    /// Each further iteration is decided by the condition on the new values.
    pub(super) fn goes_on_while(&mut self, condition: &SubModel) -> Result<()> {
        let mut captured: Vec<(Value, NodeId)> = vec![];
        for (parameter, feed) in &self.feeds {
            if let Feed::Captured(v) = feed {
                captured.push((*v, *parameter));
            }
        }
        let had = captured.len();
        let items = graft(&mut self.model, &mut captured, condition, &self.nexts)?;
        self.feeds.extend(captured[had..].iter().map(|(v, parameter)| (*parameter, Feed::Captured(*v))));
        match items.first() {
            Some(Item::Tensor(v)) => self.condition = Some(*v),
            _ => return Err(Error::invalid("the condition gives no tensor")),
        }
        Ok(())
    }

    // The counter from 0 that an index is, whatever its type and number of axes.
    fn counter_of(&self, index: Value) -> Option<usize> {
        let at = self.through(index);
        let k = self.parameters.iter().position(|p| p.is_some_and(|p| Value::from(p) == at))?;
        (self.states[k].from_zero && self.counts(k)).then_some(k)
    }

    // What a value is but for its type and axes of 1.
    fn through(&self, mut v: Value) -> Value {
        for _ in 0..8 {
            let op = self.model.node(v.node).op();
            let moves = op.is::<Convert>() || op.is::<Reshape>() || op.is::<Unsqueeze>() || op.is::<Squeeze>();
            match self.model.node(v.node).inputs().first() {
                Some(input) if moves && self.model.fact(*input).shape.elements() == Some(1) => v = *input,
                _ => break,
            }
        }
        v
    }

    /// `Gather(outer, counter)` along the first axis becomes a part of it. `shapes` are those of the captured values.
    pub(super) fn slice_reads(&mut self, shapes: &[PartialShape]) -> Result<()> {
        let captured: Vec<(NodeId, Value)> = self
            .feeds
            .iter()
            .filter_map(|(parameter, feed)| match feed {
                Feed::Captured(v) => Some((*parameter, *v)),
                _ => None,
            })
            .collect();
        for ((parameter, outer), shape) in captured.into_iter().zip(shapes) {
            let reads = self.reads_at_counter(parameter);
            let Some(dims) = shape.dims().filter(|d| !d.is_empty() && !reads.is_empty()) else { continue };
            let plain = dims[1..].iter().map(|d| Dim::range(d.min(), d.max()));
            let part = PartialShape::new(std::iter::once(Dim::known(1)).chain(plain));
            let ty = self.model.fact(parameter.into()).ty;
            let part = self.model.parameter(&format!("part/{}", self.model.slots()), ty, part)?;
            self.feeds.push((part.node, Feed::Sliced(outer)));
            let row = self.model.without_axes(part, &[0])?;
            for read in reads {
                self.model.replace_value(read.into(), row);
                self.nexts.iter_mut().chain(&mut self.condition).filter(|v| v.node == read).for_each(|v| *v = row);
            }
        }
        Ok(())
    }

    fn reads_at_counter(&self, parameter: NodeId) -> Vec<NodeId> {
        let users = self.model.users(parameter.into()).iter().filter(|u| u.input == 0).map(|u| u.node);
        let is_read = |node: &NodeId| {
            let Some(gather) = self.model.op_at::<Gather>(*node) else { return false };
            let inputs = self.model.node(*node).inputs();
            gather.batch_dims == 0
                && self.model.fact(inputs[1]).shape.rank() == Some(0)
                && self.model.fact(inputs[2]).ints().is_some_and(|a| a == [0])
                && self.counter_of(inputs[1]).is_some()
        };
        users.filter(is_read).collect()
    }

    /// Lists that are only set at the counter, or pushed to, are joined.
    pub(super) fn join_writes(&mut self) -> Result<()> {
        for k in 0..self.states.len() {
            let Some(parameter) = self.parameters[k].filter(|_| self.states[k].is_list) else { continue };
            let Some((row, leaves)) = self.written(k) else { continue };
            if self.reaches(parameter, k, row) {
                continue;
            }
            self.nexts[k] = row;
            self.leaves[k] = leaves;
            self.parameters[k] = None;
        }
        Ok(())
    }

    // The row that is added to a list in each iteration.
    fn written(&self, k: usize) -> Option<(Value, Leaves)> {
        if let Some((node, _)) = self.model.producer::<ScatterUpdate>(self.nexts[k]) {
            let inputs = self.model.node(node).inputs();
            let is_first = self.model.fact(inputs[3]).ints().is_some_and(|a| a == [0]);
            let one = self.model.fact(inputs[1]).shape.dims().is_some_and(|d| d.len() == 1 && d[0].get() == Some(1));
            return (is_first && one && self.counter_of(inputs[1]).is_some()).then_some((inputs[2], Leaves::Set));
        }
        let (node, concat) = self.model.producer::<Concat>(self.nexts[k])?;
        let inputs = self.model.node(node).inputs();
        let row = *inputs.get(1).filter(|_| inputs.len() == 2 && concat.axis == 0)?;
        let one = self.model.fact(row).shape.dims().is_some_and(|d| d.first().is_some_and(|d| d.get() == Some(1)));
        one.then_some((row, Leaves::Pushed))
    }

    // Whether a carried list is needed for anything once `row` is joined in its place.
    fn reaches(&self, parameter: NodeId, k: usize, row: Value) -> bool {
        let roots = self.nexts.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, v)| *v);
        let mut open: Vec<NodeId> = roots.chain(self.condition).chain([row]).map(|v| v.node).collect();
        let mut seen: HashSet<NodeId> = open.iter().copied().collect();
        while let Some(node) = open.pop() {
            if node == parameter {
                return true;
            }
            open.extend(self.model.node(node).inputs().iter().map(|v| v.node).filter(|id| seen.insert(*id)));
        }
        false
    }

    /// Counters that nothing else needs do not go around; the number of iterations says what they end as.
    pub(super) fn drop_counters(&mut self) {
        for k in 0..self.states.len() {
            let Some(parameter) = self.parameters[k].filter(|_| self.counts(k)) else { continue };
            let other = self.nexts[k];
            let roots = self.nexts.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, v)| *v).chain(self.condition);
            let mut open: Vec<NodeId> = roots.map(|v| v.node).collect();
            let mut seen: HashSet<NodeId> = open.iter().copied().collect();
            let mut is_needed = false;
            while let Some(node) = open.pop() {
                if node == parameter || node == other.node {
                    is_needed = true;
                    break;
                }
                open.extend(self.model.node(node).inputs().iter().map(|v| v.node).filter(|id| seen.insert(*id)));
            }
            if !is_needed {
                self.leaves[k] = Leaves::Counted;
                self.parameters[k] = None;
            }
        }
    }

    /// The body with its ports, what the loop reads, and how each carried value leaves.
    pub(super) fn finish(
        mut self,
        trips: Value,
        first: Value,
        starts: &[Value],
    ) -> Result<(Body, Vec<Value>, Vec<End>)> {
        let condition = self.condition.ok_or_else(|| Error::invalid("the loop has no condition"))?;
        self.model.result("goes_on", condition)?;
        let mut results = vec![None; self.states.len()];
        for (k, leaves) in self.leaves.iter().enumerate().filter(|(_, l)| **l != Leaves::Counted) {
            results[k] = Some(self.model.results().len());
            let name = if *leaves == Leaves::Last { "next" } else { "row" };
            self.model.result(&format!("{name}/{k}"), self.nexts[k])?;
        }
        self.model.prune();
        for (parameter, feed) in std::mem::take(&mut self.feeds) {
            let is_carried = matches!(feed, Feed::Carried(k) if self.parameters[k].is_some());
            if is_carried || !self.model.users(parameter.into()).is_empty() {
                self.feeds.push((parameter, feed));
            } else {
                self.model.remove(parameter)?;
            }
        }
        self.model.infer()?;
        let mut inputs = vec![trips, first];
        let mut ports = vec![];
        for (at, parameter) in self.model.parameters().iter().enumerate() {
            let feed = self.feeds.iter().find(|(p, _)| p == parameter).map(|(_, feed)| *feed);
            let outer = Some(inputs.len());
            let (value, slicing, back_edge) = match feed {
                Some(Feed::Carried(k)) => (starts[k], None, results[k]),
                Some(Feed::Captured(v)) => (v, None, None),
                Some(Feed::Sliced(v)) => (v, Some(Slicing::along(0)), None),
                None => return Err(Error::invalid("a parameter of the body has no source")),
            };
            ports.push(BodyInput { outer, parameter: at, slicing, back_edge });
            inputs.push(value);
        }
        let mut ends = vec![];
        let mut outputs = vec![];
        for (k, leaves) in self.leaves.iter().enumerate() {
            let output = results[k].map(|result| {
                let slicing = matches!(leaves, Leaves::Set | Leaves::Pushed).then(|| Slicing::along(0));
                outputs.push(BodyOutput { outer: outputs.len(), result, slicing });
                outputs.len() - 1
            });
            ends.push(End { leaves: *leaves, output });
        }
        let mut body = Body::new(self.model);
        body.inputs = ports;
        body.outputs = outputs;
        body.execution_condition = Some(0);
        Ok((body, inputs, ends))
    }
}

// Whether a value is computed of any of these nodes.
fn depends(model: &Model, v: Value, on: &[NodeId]) -> bool {
    let mut open = vec![v.node];
    let mut seen: HashSet<NodeId> = open.iter().copied().collect();
    while let Some(node) = open.pop() {
        if on.contains(&node) {
            return true;
        }
        open.extend(model.node(node).inputs().iter().map(|v| v.node).filter(|id| seen.insert(*id)));
    }
    false
}

/// How a carried value leaves the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    leaves: Leaves,
    output: Option<usize>,
}

impl End {
    /// Its value behind the loop, whose outputs are `values`.
    pub(super) fn value(self, n: &mut NodeCx<'_>, start: Value, trips: Value, values: &[Value]) -> Result<Value> {
        let output = self.output.map(|i| values[i]);
        match (self.leaves, output) {
            (Leaves::Last, Some(v)) => Ok(v),
            (Leaves::Counted, _) => {
                let count = n.convert(trips, n.ty(start))?;
                let rank = n.rank(start);
                let count = if n.rank(count) == rank { count } else { n.reshape(count, &[])? };
                if n.ints(start).is_some_and(|s| s == [0]) { Ok(count) } else { n.plus(start, count) }
            }
            (Leaves::Set, Some(rows)) => {
                let tail = self.tail(n, start, rows)?;
                tail.map_or(Ok(rows), |tail| n.concat(&[rows, tail], 0))
            }
            (Leaves::Pushed, Some(rows)) => {
                if n.shape(start).dims().is_some_and(|d| d.first().is_some_and(|d| d.get() == Some(0))) {
                    return Ok(rows);
                }
                let head = like_rows(n, start, rows)?;
                n.concat(&[head, rows], 0)
            }
            (_, None) => Err(n.fail("a loop variable is lost")),
        }
    }

    // What the list began with behind the rows that were set; `None` when there is nothing.
    fn tail(self, n: &mut NodeCx<'_>, start: Value, rows: Value) -> Result<Option<Value>> {
        let (have, set) = (n.shape(start).dim(0), n.shape(rows).dim(0));
        let same = match (have.get(), set.get()) {
            (Some(have), Some(set)) => have <= set,
            _ => have.symbol().is_some() && have.symbol() == set.symbol(),
        };
        if same {
            return Ok(None);
        }
        let set = n.size(rows, 0)?;
        let end = n.i64s(&[i64::MAX])?;
        let tail = n.cut(start, set, end, 0)?;
        like_rows(n, tail, rows).map(Some)
    }
}

// The elements of a list, as large as the rows of a tensor.
fn like_rows(n: &mut NodeCx<'_>, list: Value, rows: Value) -> Result<Value> {
    let (a, b) = (n.shape(list).clone(), n.shape(rows).clone());
    let same = |(a, b): (&Dim, &Dim)| a.get().is_some() && a.get() == b.get();
    if let (Some(a), Some(b)) = (a.dims(), b.dims())
        && a.len() == b.len()
        && a[1..].iter().zip(&b[1..]).all(same)
    {
        return Ok(list);
    }
    let count = n.size(list, 0)?;
    let shape = n.shape_of(rows)?;
    let sizes = n.part(shape, 1, i64::MAX, 0)?;
    let target = n.concat(&[count, sizes], 0)?;
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[list, target])
}
