//! A loop over the rows of a sequence whose body is a recurrent cell written out becomes a sequence operation:
//!
//! ```text
//! Loop or TensorIterator {x[t], h, c -> cell -> h', c'}    ->    LSTMSequence, GRUSequence or RNNSequence
//! ```
//!
//! The states may leave as they were last, and the hidden state row by row. Weights must be stored in the body, and a Loop must
//! run as often as the sequence has rows.

use super::cells::{Cell, Kind, States};
use super::look::made_by;
use carafe_graph::{Body, BodyOutput, Constant, Model, NodeId, Outcome, Result, Rewrite, Slicing, Value};
use carafe_ops::control::{Loop, TensorIterator};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Reshape, Squeeze, Transpose, Unsqueeze};
use carafe_ops::recurrent::{Direction, GruSequence, LstmSequence, RnnSequence};
use carafe_ops::shape::ShapeOf;
use carafe_tensor::{Dim, ElementType, Tensor};

/// A loop over a recurrent cell becomes a sequence operation.
#[derive(Clone, Copy, Debug)]
pub struct FuseRecurrence;

/// Bodies with more carried values are no cells.
const MOST_STATES: usize = 8;

impl Rewrite for FuseRecurrence {
    fn name(&self) -> &'static str {
        "fuse_recurrence"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let (body, counted) = match (model.op_at::<Loop>(root), model.op_at::<TensorIterator>(root)) {
            (Some(op), _) => (op.body.clone(), true),
            (_, Some(op)) => (op.body.clone(), false),
            _ => return Ok(Outcome::NoMatch),
        };
        let Some(found) = Recurrence::of(&body) else { return Ok(Outcome::NoMatch) };
        let x = model.node(root).inputs()[found.sequence];
        if counted && !runs_over(model, root, &body, model.fact(x).shape.dim(found.axis)) {
            return Ok(Outcome::skip("the number of iterations is not known to be that of the rows"));
        }
        let wanted = |o: &&BodyOutput| !model.users(Value { node: root, port: o.outer }).is_empty();
        let mut leaves = vec![];
        for output in body.outputs.iter().filter(wanted) {
            match found.leaves(&body, output) {
                Some(how) => leaves.push((output.outer, how)),
                None => return Ok(Outcome::skip("it gives more than the states of its cell")),
            }
        }
        found.replace(model, root, &leaves)?;
        Ok(Outcome::Done)
    }
}

// Whether a Loop runs once for each of this many rows.
fn runs_over(model: &Model, root: NodeId, body: &Body, rows: Dim) -> bool {
    let inputs = model.node(root).inputs();
    let is_true = |v: Value, model: &Model| {
        model.fact(v).tensor().and_then(|t| t.to_vec::<u8>().ok()?.first().copied()).is_some_and(|b| b != 0)
    };
    let goes_on = body.execution_condition.is_none_or(|r| {
        let result = body.model.results()[r];
        is_true(body.model.result_value(result), &body.model)
    });
    let trips = model.fact(inputs[0]).dims().and_then(|d| d.first().copied());
    let same = trips.is_some_and(|trips| match (trips.get(), rows.get()) {
        (Some(a), Some(b)) => a == b,
        _ => trips.symbol().is_some() && trips.symbol() == rows.symbol(),
    });
    goes_on && same && is_true(inputs[1], model)
}

/// How an output of the loop follows from those of the sequence operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// All hidden states, joined on this axis.
    All(usize),
    /// The last hidden state, or the last cell state.
    Last(usize),
    /// The last hidden state with an axis in front.
    LastRow,
}

/// A cell in a loop.
struct Recurrence {
    cell: Cell,
    states: States,
    /// The outer input that is the sequence, the axis of its rows, and whether they come from the end.
    sequence: usize,
    axis: usize,
    backwards: bool,
    /// The outer inputs that the states begin as.
    starts: Vec<usize>,
    ty: ElementType,
}

// Whether parts are single rows of a whole axis, and from which end; the axis.
fn over_rows(s: &Slicing) -> Option<(usize, bool)> {
    let axis = usize::try_from(s.axis).ok()?;
    match (s.start, s.end, s.stride, s.part_size) {
        (0, -1, 1, 1) => Some((axis, false)),
        (-1, 0, -1, 1) => Some((axis, true)),
        _ => None,
    }
}

impl Recurrence {
    fn of(body: &Body) -> Option<Recurrence> {
        let model = &body.model;
        let mut sliced = body.inputs.iter().filter_map(|i| Some((i, i.slicing.as_ref()?)));
        let (Some((input, slicing)), None) = (sliced.next(), sliced.next()) else { return None };
        let (axis, backwards) = over_rows(slicing).filter(|(axis, _)| *axis < 2)?;
        let part = Value::from(model.parameters()[input.parameter]);
        let ty = model.fact(part).ty;
        if !matches!(ty, ElementType::F32 | ElementType::F16) || model.fact(part).shape.rank() != Some(3) {
            return None;
        }
        let mut rows = model.users(part).iter().map(|u| Value::from(u.node));
        let x = rows.next().filter(|row| without_axis(model, *row, part, axis))?;
        if rows.next().is_some() {
            return None;
        }
        let carried: Vec<_> = body
            .inputs
            .iter()
            .filter_map(|i| {
                let next = model.result_value(*model.results().get(i.back_edge?)?);
                Some((i.outer?, Value::from(model.parameters()[i.parameter]), next))
            })
            .filter(|(_, v, _)| model.fact(*v).shape.rank() == Some(2))
            .take(MOST_STATES)
            .collect();
        for (start, h, h_next) in &carried {
            let alone = States { x, h: *h, h_next: *h_next, cell: None };
            let pairs =
                carried.iter().filter(|(_, c, _)| c != h).map(|(start, c, next)| (Some(*start), Some((*c, *next))));
            for (second, cell) in pairs.chain([(None, None)]) {
                let states = States { cell, ..alone };
                let Some(cell) = states.cell(model) else { continue };
                let starts = std::iter::once(*start).chain(second).collect();
                let sequence = input.outer?;
                return Some(Recurrence { cell, states, sequence, axis, backwards, starts, ty });
            }
        }
        None
    }

    fn leaves(&self, body: &Body, output: &BodyOutput) -> Option<Leaves> {
        let model = &body.model;
        let v = model.result_value(model.results()[output.result]);
        let h = self.states.h_next;
        match &output.slicing {
            Some(s) => {
                let (axis, backwards) = over_rows(s)?;
                (backwards == self.backwards && axis < 2 && with_axis(model, v, h, axis)).then_some(Leaves::All(axis))
            }
            None if v == h => Some(Leaves::Last(0)),
            None if self.states.cell.is_some_and(|(_, c)| c == v) => Some(Leaves::Last(1)),
            None => with_axis(model, v, h, 0).then_some(Leaves::LastRow),
        }
    }

    fn replace(&self, model: &mut Model, root: NodeId, leaves: &[(usize, Leaves)]) -> Result<()> {
        let name = model.node(root).name().to_string();
        let inputs = model.node(root).inputs().to_vec();
        let mut b = Builder { model, name, count: 0 };
        let x = inputs[self.sequence];
        let batch_first = if self.axis == 0 { b.turned(x)? } else { x };
        let shape = b.add(ShapeOf { output_type: ElementType::I64 }, &[batch_first])?;
        let (batch, time) = (b.entry(shape, 0)?, b.entry(shape, 1)?);
        let lengths = b.add(Broadcast { mode: BroadcastMode::Numpy }, &[time, batch])?;
        let mut reads = vec![batch_first];
        for &start in &self.starts {
            let axis = b.ints(&[1])?;
            reads.push(b.add(Unsqueeze, &[inputs[start], axis])?);
        }
        reads.push(lengths);
        for (shape, data) in self.cell.tensors() {
            let tensor = Tensor::from_slice(&shape, &data)?.cast(self.ty)?;
            reads.push(b.constant(tensor)?);
        }
        let node = self.operation(&mut b, &reads)?;
        let mut lasts = vec![];
        for port in 1..=self.starts.len() {
            let axis = b.ints(&[1])?;
            lasts.push(b.add(Squeeze { allow_axis_skip: false }, &[Value { node, port }, axis])?);
        }
        for &(port, how) in leaves {
            let old = Value { node: root, port };
            let new = match how {
                Leaves::Last(i) => lasts[i],
                Leaves::LastRow => {
                    let axis = b.ints(&[0])?;
                    b.add(Unsqueeze, &[lasts[0], axis])?
                }
                Leaves::All(axis) => {
                    let direction = b.ints(&[1])?;
                    let rows = b.add(Squeeze { allow_axis_skip: false }, &[node.into(), direction])?;
                    if axis == 1 {
                        rows
                    } else {
                        // Whoever turns the rows around reads them as they are.
                        let turns: Vec<NodeId> =
                            b.model.users(old).iter().map(|u| u.node).filter(|u| turns(b.model, *u)).collect();
                        for turn in turns {
                            crate::shared::forward(b.model, turn.into(), rows);
                        }
                        let order = b.ints(&[1, 0, 2])?;
                        b.add(Transpose, &[rows, order])?
                    }
                }
            };
            b.model.replace_value(old, new);
        }
        Ok(())
    }

    fn operation(&self, b: &mut Builder<'_>, reads: &[Value]) -> Result<NodeId> {
        let hidden_size = self.cell.hidden as u64;
        let activations: Vec<String> = self.cell.activations.iter().map(|a| a.to_string()).collect();
        let direction = if self.backwards { Direction::Reverse } else { Direction::Forward };
        let (activations_alpha, activations_beta, clip) = (vec![], vec![], 0.0);
        let made: Value = match self.cell.kind {
            Kind::Lstm => {
                let op =
                    LstmSequence { hidden_size, activations, activations_alpha, activations_beta, clip, direction };
                b.add(op, reads)?
            }
            Kind::Gru { after } => {
                let linear_before_reset = after;
                let op = GruSequence {
                    hidden_size,
                    activations,
                    activations_alpha,
                    activations_beta,
                    clip,
                    direction,
                    linear_before_reset,
                };
                b.add(op, reads)?
            }
            Kind::Rnn => {
                let op = RnnSequence { hidden_size, activations, activations_alpha, activations_beta, clip, direction };
                b.add(op, reads)?
            }
        };
        Ok(made.node)
    }
}

// Whether `row` is `part` without an axis of 1.
fn without_axis(model: &Model, row: Value, part: Value, axis: usize) -> bool {
    let reads = |inputs: &[Value]| inputs.first() == Some(&part);
    if let Some(inputs) = made_by::<Squeeze>(model, row) {
        let axes = inputs.get(1).and_then(|v| model.fact(*v).ints());
        return reads(inputs) && axes.is_some_and(|a| matches!(a[..], [a] if a == axis as i64 || a == axis as i64 - 3));
    }
    // A Reshape from [1, n, k] to [n, k] moves nothing, whichever axis goes.
    made_by::<Reshape>(model, row).is_some_and(reads) && same_sizes(model, row, part, axis)
}

// Whether `row` is `of` with an axis of 1.
fn with_axis(model: &Model, row: Value, of: Value, axis: usize) -> bool {
    let reads = |inputs: &[Value]| inputs.first() == Some(&of);
    if let Some(inputs) = made_by::<Unsqueeze>(model, row) {
        let axes = inputs.get(1).and_then(|v| model.fact(*v).ints());
        return reads(inputs) && axes.is_some_and(|a| matches!(a[..], [a] if a == axis as i64 || a == axis as i64 - 3));
    }
    made_by::<Reshape>(model, row).is_some_and(reads) && same_sizes(model, of, row, axis)
}

// Whether the sizes of `flat` are surely those of `whole` without an axis of 1.
fn same_sizes(model: &Model, flat: Value, whole: Value, axis: usize) -> bool {
    let (Some(flat), Some(whole)) = (model.fact(flat).shape.dims(), model.fact(whole).shape.dims()) else {
        return false;
    };
    let mut rest = whole.to_vec();
    whole.len() == 3
        && rest.remove(axis).get() == Some(1)
        && flat.len() == 2
        && flat[1].get().is_some()
        && flat[1].get() == rest[1].get()
}

// Whether a node swaps the first two of three axes.
fn turns(model: &Model, id: NodeId) -> bool {
    crate::shared::transpose_order(model, id).is_some_and(|order| order == [1, 0, 2])
}

/// Adds nodes named behind the loop.
struct Builder<'m> {
    model: &'m mut Model,
    name: String,
    count: usize,
}

impl Builder<'_> {
    fn next_name(&mut self) -> String {
        self.count += 1;
        format!("{}/{}", self.name, self.count)
    }
    fn add<O: carafe_graph::Op>(&mut self, op: O, inputs: &[Value]) -> Result<Value> {
        let name = self.next_name();
        Ok(self.model.add(name, op, inputs)?.into())
    }
    fn constant(&mut self, tensor: Tensor) -> Result<Value> {
        self.add(Constant::new(tensor), &[])
    }
    fn ints(&mut self, list: &[i64]) -> Result<Value> {
        self.constant(Tensor::from_slice(&[list.len()], list)?)
    }
    // One entry of a shape, as a vector.
    fn entry(&mut self, shape: Value, at: i64) -> Result<Value> {
        let (at, axis) = (self.ints(&[at])?, self.constant(Tensor::scalar(0i64))?);
        self.add(Gather { batch_dims: 0 }, &[shape, at, axis])
    }
    // The first two axes swapped.
    fn turned(&mut self, v: Value) -> Result<Value> {
        if turns(self.model, v.node)
            && let Some(from) = self.model.input(v.node, 0)
        {
            return Ok(from);
        }
        let order = self.ints(&[1, 0, 2])?;
        self.add(Transpose, &[v, order])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::{BodyInput, Notes, Op, run_passes};
    use carafe_ops::activation::Sigmoid;
    use carafe_ops::arithmetic::{Add, Multiply, Subtract};
    use carafe_ops::linear::MatMul;
    use carafe_ops::math::Tanh;
    use carafe_ops::movement::{Concat, Split};
    use carafe_tensor::PartialShape;

    const TIME: usize = 4;
    const BATCH: usize = 2;
    const INPUT: usize = 3;
    const HIDDEN: usize = 5;

    /// A body under construction.
    struct Step {
        model: Model,
        x: Value,
        states: Vec<Value>,
    }

    impl Step {
        fn add(&mut self, op: impl Op, inputs: &[Value]) -> Value {
            let name = format!("n{}", self.model.slots());
            self.model.add(name, op, inputs).unwrap().into()
        }
        fn all(&mut self, op: impl Op, inputs: &[Value]) -> Vec<Value> {
            let node = self.add(op, inputs).node;
            (0..self.model.node(node).outputs().len()).map(|port| Value { node, port }).collect()
        }
        fn noise(&mut self, shape: &[usize]) -> Value {
            let seed = self.model.slots();
            let n: usize = shape.iter().product();
            let data: Vec<f32> = (0..n).map(|i| ((i * 7 + seed * 13) % 11) as f32 * 0.1 - 0.5).collect();
            self.model.constant("noise", Tensor::from_slice(shape, &data).unwrap()).unwrap()
        }
        fn axis(&mut self, axis: i64) -> Value {
            self.model.constant("axis", Tensor::scalar(axis)).unwrap()
        }
        fn times(&mut self, a: Value, b: Value) -> Value {
            self.add(Multiply::default(), &[a, b])
        }
        fn plus(&mut self, a: Value, b: Value) -> Value {
            self.add(Add::default(), &[a, b])
        }
        /// `a x noise + noise`.
        fn dense(&mut self, a: Value, k: usize, n: usize) -> Value {
            let (w, b) = (self.noise(&[k, n]), self.noise(&[n]));
            let product = self.add(MatMul { transpose_a: false, transpose_b: false }, &[a, w]);
            self.plus(product, b)
        }
        /// One minus.
        fn rest(&mut self, z: Value) -> Value {
            let one = self.model.constant("one", Tensor::scalar(1f32)).unwrap();
            self.add(Subtract::default(), &[one, z])
        }
    }

    // A loop over a sequence whose body makes the next states of x and the states; the first is joined too.
    fn looped(states: usize, time: Dim, step: impl Fn(&mut Step) -> Vec<Value>) -> Model {
        let mut inner = Model::new("step");
        let part = inner.parameter("part", ElementType::F32, PartialShape::of(&[1, BATCH, INPUT])).unwrap();
        let held: Vec<Value> = (0..states)
            .map(|i| inner.parameter(&format!("s{i}"), ElementType::F32, PartialShape::of(&[BATCH, HIDDEN])).unwrap())
            .collect();
        let mut s = Step { model: inner, x: part, states: held };
        let front = s.model.constant("front", Tensor::from_slice(&[1], &[0i64]).unwrap()).unwrap();
        s.x = s.add(Squeeze { allow_axis_skip: false }, &[part, front]);
        let nexts = step(&mut s);
        let row = s.add(Unsqueeze, &[nexts[0], front]);
        let goes_on = Tensor::from_f64(ElementType::Boolean, &[], &[1.0]).unwrap();
        let inner_goes_on = s.model.constant("on", goes_on.clone()).unwrap();
        for (i, v) in [inner_goes_on, row].into_iter().chain(nexts).enumerate() {
            s.model.result(&format!("r{i}"), v).unwrap();
        }
        let mut body = Body::new(s.model);
        body.execution_condition = Some(0);
        body.inputs.push(BodyInput { outer: Some(2), parameter: 0, slicing: Some(Slicing::along(0)), back_edge: None });
        body.outputs.push(BodyOutput { outer: 0, result: 1, slicing: Some(Slicing::along(0)) });
        for i in 0..states {
            body.inputs.push(BodyInput { outer: Some(3 + i), parameter: 1 + i, slicing: None, back_edge: Some(2 + i) });
            body.outputs.push(BodyOutput { outer: 1 + i, result: 2 + i, slicing: None });
        }
        let mut model = Model::new("looped");
        let shape = PartialShape::new([time, Dim::known(BATCH as i64), Dim::known(INPUT as i64)]);
        let x = model.parameter("x", ElementType::F32, shape).unwrap();
        let size = model.add("size", ShapeOf { output_type: ElementType::I64 }, &[x]).unwrap();
        let zero = model.constant("zero", Tensor::scalar(0i64)).unwrap();
        let trips = model.add("trips", Gather { batch_dims: 0 }, &[size.into(), zero, zero]).unwrap();
        let goes_on = model.constant("on", goes_on).unwrap();
        let mut inputs = vec![trips.into(), goes_on, x];
        for i in 0..states {
            let shape = PartialShape::of(&[BATCH, HIDDEN]);
            inputs.push(model.parameter(&format!("start{i}"), ElementType::F32, shape).unwrap());
        }
        let node = model.add("loop", Loop { body }, &inputs).unwrap();
        for port in 0..=states {
            model.result(&format!("out{port}"), Value { node, port }).unwrap();
        }
        model
    }

    fn check(states: usize, ty: &str, step: impl Fn(&mut Step) -> Vec<Value>) {
        for time in [Dim::known(TIME as i64), Dim::ANY] {
            let before = looped(states, time, &step);
            let mut after = before.clone();
            run_passes(&mut after, &[&FuseRecurrence], &mut Notes::default()).unwrap();
            assert_eq!(after.nodes().filter(|(_, n)| n.op().info().name == ty).count(), 1, "{ty} with {time:?} rows");
            let wave = |shape: &[usize]| {
                let n: usize = shape.iter().product();
                let data: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
                Tensor::from_slice(shape, &data).unwrap()
            };
            let mut inputs = vec![wave(&[TIME, BATCH, INPUT])];
            inputs.extend((0..states).map(|_| wave(&[BATCH, HIDDEN])));
            let (a, b) = (before.evaluate(&inputs).unwrap(), after.evaluate(&inputs).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a.shape(), b.shape());
                let (a, b) = (a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "{ty}: {a:?} and {b:?}");
            }
        }
    }

    fn lstm(s: &mut Step, z: Value) -> Vec<Value> {
        let axis = s.axis(1);
        let gates = s.all(Split { num_splits: 4 }, &[z, axis]);
        let (i, f, o) = (s.add(Sigmoid, &[gates[0]]), s.add(Sigmoid, &[gates[1]]), s.add(Sigmoid, &[gates[3]]));
        let g = s.add(Tanh, &[gates[2]]);
        let (kept, new) = (s.times(f, s.states[1]), s.times(i, g));
        let c = s.plus(kept, new);
        let squashed = s.add(Tanh, &[c]);
        vec![s.times(o, squashed), c]
    }

    #[test]
    fn an_lstm_of_two_products() {
        check(2, "LSTMSequence", |s| {
            let (a, b) = (s.dense(s.x, INPUT, 4 * HIDDEN), s.dense(s.states[0], HIDDEN, 4 * HIDDEN));
            let z = s.plus(a, b);
            lstm(s, z)
        });
    }

    #[test]
    fn an_lstm_of_one_product_over_joined_rows() {
        check(2, "LSTMSequence", |s| {
            let joined = s.add(Concat { axis: 1 }, &[s.x, s.states[0]]);
            let z = s.dense(joined, INPUT + HIDDEN, 4 * HIDDEN);
            lstm(s, z)
        });
    }

    #[test]
    fn a_gru_that_resets_after_the_product() {
        check(1, "GRUSequence", |s| {
            let h = s.states[0];
            let (a, b) = (s.dense(s.x, INPUT, 3 * HIDDEN), s.dense(h, HIDDEN, 3 * HIDDEN));
            let axis = s.axis(1);
            let (a, b) = (s.all(Split { num_splits: 3 }, &[a, axis]), s.all(Split { num_splits: 3 }, &[b, axis]));
            let (z, r) = (s.plus(a[0], b[0]), s.plus(a[1], b[1]));
            let (z, r) = (s.add(Sigmoid, &[z]), s.add(Sigmoid, &[r]));
            let scaled = s.times(r, b[2]);
            let n = s.plus(a[2], scaled);
            let n = s.add(Tanh, &[n]);
            let (rest, kept) = (s.rest(z), s.times(z, h));
            let new = s.times(rest, n);
            vec![s.plus(kept, new)]
        });
    }

    #[test]
    fn a_gru_that_resets_before_the_product() {
        check(1, "GRUSequence", |s| {
            let h = s.states[0];
            let joined = s.add(Concat { axis: 1 }, &[s.x, h]);
            let gates = s.dense(joined, INPUT + HIDDEN, 2 * HIDDEN);
            let (gates, axis) = (s.add(Sigmoid, &[gates]), s.axis(1));
            let gates = s.all(Split { num_splits: 2 }, &[gates, axis]);
            let (r, z) = (gates[0], gates[1]);
            let scaled = s.times(r, h);
            let joined = s.add(Concat { axis: 1 }, &[s.x, scaled]);
            let n = s.dense(joined, INPUT + HIDDEN, HIDDEN);
            let n = s.add(Tanh, &[n]);
            let (rest, kept) = (s.rest(z), s.times(z, h));
            let new = s.times(rest, n);
            vec![s.plus(new, kept)]
        });
    }

    #[test]
    fn a_plain_cell() {
        check(1, "RNNSequence", |s| {
            let (a, b) = (s.dense(s.x, INPUT, HIDDEN), s.dense(s.states[0], HIDDEN, HIDDEN));
            let sum = s.plus(a, b);
            vec![s.add(Tanh, &[sum])]
        });
    }

    #[test]
    fn a_loop_that_stops_early_stays() {
        let mut model = looped(1, Dim::known(TIME as i64), |s| {
            let (a, b) = (s.dense(s.x, INPUT, HIDDEN), s.dense(s.states[0], HIDDEN, HIDDEN));
            let sum = s.plus(a, b);
            vec![s.add(Tanh, &[sum])]
        });
        let root = model.find_node("loop").unwrap();
        let fewer = model.constant("fewer", Tensor::scalar(2i64)).unwrap();
        model.set_input(root, 0, fewer);
        run_passes(&mut model, &[&FuseRecurrence], &mut Notes::default()).unwrap();
        assert!(model.nodes().any(|(_, n)| n.op().is::<Loop>()));
    }
}
