//! Graphs made at random from the operations that the tidying passes know. Tidied, they must give the same results under
//! the same names, with sizes known and with sizes unknown, and for other sizes than those they were made with.

use carafe_graph::{Model, Notes, OpRef, Result, Value, run_passes};
use carafe_ops::activation::Softmax;
use carafe_ops::arithmetic::{Add, Divide, Maximum, Multiply, Power, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::linear::MatMul;
use carafe_ops::math::{Abs, Exp, Floor, Negative, Tanh};
use carafe_ops::movement::pad::{Pad, PadMode};
use carafe_ops::movement::{
    Concat, Reshape, Slice, Split, Squeeze, StridedSlice, Tile, Transpose, Unsqueeze, VariadicSplit,
};
use carafe_ops::reduce::{ReduceMax, ReduceSum};
use carafe_ops::search::CumSum;
use carafe_ops::shape::ShapeOf;
use carafe_passes::TIDY;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

const GRAPHS: u64 = 400;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
    fn order(&mut self, rank: usize) -> Vec<i64> {
        // Mostly those between channels first and last, so that some meet and undo each other.
        match (rank, self.roll(6)) {
            (3, 0..4) => return vec![0, 2, 1],
            (4, 0 | 1) => return vec![0, 3, 1, 2],
            (4, 2 | 3) => return vec![0, 2, 3, 1],
            _ => {}
        }
        let mut order: Vec<i64> = (0..rank as i64).collect();
        for i in (1..rank).rev() {
            order.swap(i, self.roll(i + 1));
        }
        order
    }
}

struct Maker {
    model: Model,
    dice: Dice,
    values: Vec<Value>,
    made: usize,
}

impl Maker {
    fn ints(&mut self, list: &[i64]) -> Result<Value> {
        self.made += 1;
        self.model.constant(&format!("c{}", self.made), Tensor::from_slice(&[list.len()], list)?)
    }
    fn int(&mut self, n: i64) -> Result<Value> {
        self.made += 1;
        self.model.constant(&format!("c{}", self.made), Tensor::scalar(n))
    }
    fn add(&mut self, op: OpRef, inputs: &[Value]) -> Result<Value> {
        self.made += 1;
        let id = self.model.add_ref(format!("n{}", self.made), op, inputs)?;
        Ok(Value { node: id, port: 0 })
    }
    fn pick(&mut self) -> Value {
        // Recent values are likelier, so that chains grow.
        let n = self.values.len();
        let back = self.dice.roll(n).min(self.dice.roll(n));
        self.values[n - 1 - back]
    }
    fn rank(&self, v: Value) -> usize {
        self.model.fact(v).shape.rank().unwrap_or(0)
    }
    fn number(&mut self, v: Value) -> Result<Value> {
        let ty = self.model.fact(v).ty;
        let x = [0.0, 1.0, 1.0, 2.0, 0.5][self.dice.roll(5)];
        let rank = self.rank(v);
        let mut shape = vec![1; self.dice.roll(rank + 1)];
        if self.dice.roll(3) == 0
            && let (Some(last), Some(size)) = (shape.last_mut(), self.model.fact(v).shape.dim(rank.max(1) - 1).size())
        {
            *last = size;
        }
        let n: usize = shape.iter().product();
        let data: Vec<f64> = if self.dice.roll(3) == 0 { (0..n).map(|i| i as f64 * 0.5).collect() } else { vec![x; n] };
        self.made += 1;
        self.model.constant(&format!("c{}", self.made), Tensor::from_f64(ty, &shape, &data)?)
    }

    fn step(&mut self) -> Result<Value> {
        let x = self.pick();
        let rank = self.rank(x);
        match self.dice.roll(26) {
            0 => {
                let ops: [OpRef; 5] =
                    [Arc::new(Abs), Arc::new(Exp), Arc::new(Floor), Arc::new(Negative), Arc::new(Tanh)];
                let op = ops[self.dice.roll(5)].clone();
                self.add(op, &[x])
            }
            1 | 2 => {
                let y = self.pick();
                let op: OpRef =
                    if self.dice.roll(2) == 0 { Arc::new(Add::default()) } else { Arc::new(Maximum::default()) };
                self.add(op, &[x, y])
            }
            3 | 4 => {
                let c = self.number(x)?;
                let ops: [OpRef; 5] = [
                    Arc::new(Add::default()),
                    Arc::new(Subtract::default()),
                    Arc::new(Multiply::default()),
                    Arc::new(Divide::default()),
                    Arc::new(Power::default()),
                ];
                let op = ops[self.dice.roll(5)].clone();
                if self.dice.roll(3) == 0 { self.add(op, &[c, x]) } else { self.add(op, &[x, c]) }
            }
            5..=8 => {
                let order = self.dice.order(rank);
                let order = self.ints(&order)?;
                let t = self.add(Arc::new(Transpose), &[x, order])?;
                if self.dice.roll(2) == 0 {
                    return Ok(t);
                }
                self.values.push(t);
                let between = self.step()?;
                let back = self.dice.order(self.rank(between));
                let back = self.ints(&back)?;
                self.add(Arc::new(Transpose), &[between, back])
            }
            9 | 10 => {
                let pattern = match self.dice.roll(4) {
                    0 => vec![0; rank],
                    1 => vec![-1],
                    2 => vec![0, -1],
                    _ => vec![1, -1, 2],
                };
                let target = self.ints(&pattern)?;
                self.add(Arc::new(Reshape { special_zero: true }), &[x, target])
            }
            11 => {
                let axis = self.dice.roll(rank + 1) as i64;
                let axes = self.ints(&[axis])?;
                let y = self.add(Arc::new(Unsqueeze), &[x, axes])?;
                let again = [axis, self.dice.roll(rank + 1) as i64][self.dice.roll(2)];
                let axes = self.ints(&[again])?;
                self.add(Arc::new(Squeeze { allow_axis_skip: false }), &[y, axes]).or(Ok(y))
            }
            12 => {
                let y = self.pick();
                let axis = self.dice.roll(rank) as i64;
                let parts = if self.dice.roll(4) == 0 { vec![x] } else { vec![x, y] };
                self.add(Arc::new(Concat { axis }), &parts)
            }
            13 => {
                let n = 1 + self.dice.roll(2);
                let axis = self.dice.roll(rank) as i64;
                let axis = self.int(axis)?;
                let part = self.add(Arc::new(Split { num_splits: n }), &[x, axis])?;
                Ok(Value { port: self.dice.roll(n), ..part })
            }
            14 => {
                let stop = [i64::MAX, 2, -1][self.dice.roll(3)];
                let start = self.dice.roll(2) as i64;
                let (start, stop, step) = (self.ints(&[start])?, self.ints(&[stop])?, self.ints(&[1])?);
                let axis = self.dice.roll(rank) as i64;
                let axis = self.ints(&[axis])?;
                self.add(Arc::new(Slice), &[x, start, stop, step, axis])
            }
            15 => {
                let ty = [ElementType::F64, ElementType::F32, ElementType::F16][self.dice.roll(3)];
                let own = self.model.fact(x).ty;
                let y = self.add(Arc::new(Convert { destination_type: ty }), &[x])?;
                self.add(Arc::new(Convert { destination_type: own }), &[y])
            }
            16 => {
                let pads = |d: &mut Dice| (0..rank).map(|_| d.roll(2) as i64 * d.roll(2) as i64).collect::<Vec<_>>();
                let (a, b) = (pads(&mut self.dice), pads(&mut self.dice));
                let (a, b) = (self.ints(&a)?, self.ints(&b)?);
                self.add(Arc::new(Pad { pad_mode: PadMode::Constant }), &[x, a, b])
            }
            17 => {
                let axes: Vec<i64> = (0..rank as i64).filter(|_| self.dice.roll(3) == 0).collect();
                let axes = self.ints(&axes)?;
                let keep_dims = self.dice.roll(2) == 0;
                let op: OpRef = if self.dice.roll(2) == 0 {
                    Arc::new(ReduceMax { keep_dims })
                } else {
                    Arc::new(ReduceSum { keep_dims })
                };
                self.add(op, &[x, axes])
            }
            18 => {
                let y = self.pick();
                let (transpose_a, transpose_b) = (self.dice.roll(2) == 0, self.dice.roll(2) == 0);
                self.add(Arc::new(MatMul { transpose_a, transpose_b }), &[x, y])
            }
            19 => {
                let repeats: Vec<i64> = (0..rank).map(|_| 1 + i64::from(self.dice.roll(6) == 0)).collect();
                let repeats = self.ints(&repeats)?;
                self.add(Arc::new(Tile), &[x, repeats])
            }
            20 => self.through_shape(x, rank),
            21 => {
                let axis = self.dice.roll(rank) as i64 - (self.dice.roll(2) * rank) as i64;
                self.add(Arc::new(Softmax { axis }), &[x])
            }
            22 => {
                let n = 1 + self.dice.roll(rank);
                let list = |d: &mut Dice, all: &[i64]| (0..n).map(|_| all[d.roll(all.len())]).collect::<Vec<i64>>();
                let (begin, end) = (list(&mut self.dice, &[0, 1, -2]), list(&mut self.dice, &[2, 3, -1]));
                let strides = list(&mut self.dice, &[1, 1, 2]);
                let (begin, end, strides) = (self.ints(&begin)?, self.ints(&end)?, self.ints(&strides)?);
                let mut mask = || list(&mut self.dice, &[0, 1]);
                let (begin_mask, end_mask) = (mask(), mask());
                let ellipsis_mask = if self.dice.roll(4) == 0 { vec![1] } else { vec![] };
                let (new_axis_mask, shrink_axis_mask) = (vec![], vec![]);
                let op = StridedSlice { begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask };
                self.add(Arc::new(op), &[x, begin, end, strides])
            }
            23 => {
                let axis = self.dice.roll(rank) as i64;
                let (axis, lengths) = (self.int(axis)?, self.ints(&[1, -1])?);
                let part = self.add(Arc::new(VariadicSplit), &[x, axis, lengths])?;
                Ok(Value { port: self.dice.roll(2), ..part })
            }
            24 => {
                let axis = self.dice.roll(rank) as i64;
                let axis = self.int(axis)?;
                self.add(Arc::new(CumSum { exclusive: false, reverse: self.dice.0 & 64 == 0 }), &[x, axis])
            }
            _ => {
                let list: Vec<i64> = (0..1 + self.dice.roll(3) as i64).collect();
                let (list, axis) = (self.ints(&list)?, self.dice.roll(rank) as i64);
                let axis = self.int(axis)?;
                self.add(Arc::new(Gather { batch_dims: 0 }), &[x, list, axis])
            }
        }
    }

    // `Reshape(y, Concat(Gather(ShapeOf(x), i), ..., -1))`, y mostly being x.
    fn through_shape(&mut self, x: Value, rank: usize) -> Result<Value> {
        let parts = 1 + self.dice.roll(3);
        let mut entries = Vec::new();
        for i in 0..parts {
            let shape = self.add(Arc::new(ShapeOf { output_type: ElementType::I64 }), &[x])?;
            let axis = self.int(0)?;
            let at = if self.dice.roll(4) == 0 { self.dice.roll(rank) } else { i } as i64;
            entries.push(if self.dice.roll(2) == 0 {
                let at = self.ints(&[at])?;
                self.add(Arc::new(Gather { batch_dims: 0 }), &[shape, at, axis])?
            } else {
                let at = self.int(at)?;
                let one = self.add(Arc::new(Gather { batch_dims: 0 }), &[shape, at, axis])?;
                let zero = self.int(0)?;
                self.add(Arc::new(Unsqueeze), &[one, zero])?
            });
        }
        entries.push(self.ints(&[-1])?);
        let target = self.add(Arc::new(Concat { axis: 0 }), &entries)?;
        let y = if self.dice.roll(3) == 0 { self.pick() } else { x };
        self.add(Arc::new(Reshape { special_zero: self.dice.0 & 1 == 0 }), &[y, target])
    }
}

fn make(seed: u64) -> Model {
    let mut maker = Maker { model: Model::new("random"), dice: Dice(seed * 7919 + 17), values: vec![], made: 0 };
    maker.dice.roll(2);
    for name in ["x", "y"] {
        let shape = PartialShape::of(&[2, 3, 4, 3][..2 + maker.dice.roll(3)]);
        let v = maker.model.parameter(name, ElementType::F32, shape).unwrap();
        maker.values.push(v);
    }
    for _ in 0..6 + maker.dice.roll(14) {
        // What does not fit is refused by the model, and another try follows.
        if let Ok(v) = maker.step()
            && maker.model.fact(v).shape.elements().is_some_and(|n| n < 2000)
        {
            maker.values.push(v);
        }
    }
    for i in 0..3 {
        let v = maker.values[maker.values.len().saturating_sub(1 + i * 2)];
        if maker.dice.roll(2) == 0 {
            maker.model.add_tensor_name(v, format!("tensor_{i}"));
        }
        maker.model.result(&format!("result_{i}"), v).unwrap();
    }
    maker.model.prune();
    maker.model
}

fn wave(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let data: Vec<f32> = (0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) / 8.0).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

fn feed(model: &Model, first: usize) -> Vec<Tensor> {
    let of = |p: &carafe_graph::NodeId| {
        let rank = model.fact((*p).into()).shape.rank().unwrap();
        let mut shape = [2, 3, 4, 3][..rank].to_vec();
        shape[0] = first;
        wave(&shape)
    };
    model.parameters().iter().map(of).collect()
}

fn foreseen(plain: &Model, open: &Model) -> bool {
    plain.nodes().all(|(id, node)| {
        let ports = node.outputs().iter().zip(open.node(id).outputs());
        ports.into_iter().all(|(a, b)| a.fact.shape.compatible(&b.fact.shape))
    })
}

// An empty tensor has the number of elements of many shapes, so a size that is left open may come out otherwise.
fn has_empty(model: &Model) -> bool {
    let empty = |v: &Value| model.fact(*v).ty == ElementType::F32 && model.fact(*v).shape.elements() == Some(0);
    model.nodes().any(|(_, n)| n.inputs().iter().any(empty))
}

fn assert_same(seed: u64, what: &str, wanted: &[Tensor], found: &[Tensor]) {
    for (i, (w, f)) in wanted.iter().zip(found).enumerate() {
        assert_eq!((w.element_type(), w.shape()), (f.element_type(), f.shape()), "graph {seed}, {what}, result {i}");
        let (w, f) = (w.to_vec::<f64>().unwrap(), f.to_vec::<f64>().unwrap());
        for (a, b) in w.iter().zip(f.iter()) {
            let close = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-4 * (1.0 + a.abs());
            assert!(close, "graph {seed}, {what}, result {i}: expected {a}, found {b}");
        }
    }
}

#[test]
fn tidied_graphs_compute_the_same() {
    let (mut before, mut after, mut other_sizes) = (0, 0, 0);
    let graphs = std::env::var("CARAFE_RANDOM_GRAPHS").ok().and_then(|n| n.parse().ok()).unwrap_or(GRAPHS);
    for seed in 0..graphs {
        let plain = make(seed);
        let inputs = feed(&plain, 2);
        let Ok(wanted) = plain.evaluate(&inputs) else { continue };
        let names: Vec<_> = plain.results().iter().map(|&r| plain.result_names(r)).collect();

        let mut tidy = plain.clone();
        run_passes(&mut tidy, TIDY, &mut Notes::enabled()).unwrap_or_else(|e| panic!("graph {seed}: {e}"));
        assert_same(
            seed,
            "sizes known",
            &wanted,
            &tidy.evaluate(&inputs).unwrap_or_else(|e| panic!("graph {seed}: {e}")),
        );
        for (&r, names) in tidy.results().iter().zip(&names) {
            assert!(names.is_subset(&tidy.result_names(r)), "graph {seed} lost {names:?}");
        }

        let mut open = plain.clone();
        let any = |p: &carafe_graph::NodeId| PartialShape::any_of_rank(plain.fact((*p).into()).shape.rank().unwrap());
        let shapes: HashMap<usize, PartialShape> = plain.parameters().iter().map(any).enumerate().collect();
        // A Squeeze lets a listed axis stay that is not 1, which cannot be foreseen when its size is unknown.
        if open.reshape(&shapes).is_err() || !foreseen(&plain, &open) {
            continue;
        }
        let unchanged = open.clone();
        before += open.len();
        run_passes(&mut open, TIDY, &mut Notes::enabled()).unwrap_or_else(|e| panic!("graph {seed}: {e}"));
        open.infer().unwrap_or_else(|e| panic!("graph {seed}: {e}"));
        after += open.len();
        assert_same(
            seed,
            "sizes unknown",
            &wanted,
            &open.evaluate(&inputs).unwrap_or_else(|e| panic!("graph {seed}: {e}")),
        );
        for first in [1, 4] {
            let inputs = feed(&plain, first);
            let mut resized = plain.clone();
            let shapes = inputs.iter().map(|t| PartialShape::of(t.shape())).enumerate().collect();
            if resized.reshape(&shapes).is_err() || !foreseen(&resized, &unchanged) || has_empty(&resized) {
                continue;
            }
            if let Ok(wanted) = resized.evaluate(&inputs) {
                let found = open.evaluate(&inputs).unwrap_or_else(|e| panic!("graph {seed} with {first}: {e}"));
                assert_same(seed, "another size", &wanted, &found);
                other_sizes += 1;
            }
        }
    }
    assert!(after < before && other_sizes > 50, "{before} nodes became {after}; {other_sizes} runs with other sizes");
}
