//! Rotary embeddings as exporters spell them, against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, compile, ints};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::math::Negative;
use carafe_ops::movement::{Concat, Reshape, Slice, Split, Transpose, Unsqueeze};
use carafe_tensor::{ElementType, PartialShape, Tensor};

struct Net {
    m: Model,
}

impl Net {
    fn op<O: carafe_graph::Op>(&mut self, op: O, inputs: &[Value]) -> Value {
        let name = format!("{}{}", op.info().name, self.m.slots());
        self.m.add(name, op, inputs).unwrap().into()
    }
    fn input(&mut self, shape: &str) -> Value {
        let name = format!("x{}", self.m.parameters().len());
        self.m.parameter(&name, ElementType::F32, shape.parse::<PartialShape>().unwrap()).unwrap()
    }
    fn every(&mut self, x: Value, from: i64, to: i64, step: i64) -> Value {
        let lists = [from, to, step, -1].map(|n| ints(&mut self.m, &[n]));
        self.op(Slice, &[x, lists[0], lists[1], lists[2], lists[3]])
    }
    fn transposed(&mut self, x: Value) -> Value {
        let order = ints(&mut self.m, &[0, 2, 1, 3]);
        self.op(Transpose, &[x, order])
    }
    fn stacked(&mut self, a: Value, b: Value) -> Value {
        let last = ints(&mut self.m, &[-1]);
        let (a, b) = (self.op(Unsqueeze, &[a, last]), self.op(Unsqueeze, &[b, last]));
        let pairs = self.op(Concat { axis: -1 }, &[a, b]);
        let shape = ints(&mut self.m, &[0, 0, 0, -1]);
        self.op(Reshape { special_zero: true }, &[pairs, shape])
    }
    // x * cos + turned(x) * sin
    fn added(&mut self, x: Value, cos: Value, sin: Value, size: i64, interleaved: bool) -> Value {
        let turned = if interleaved {
            let (a, b) = (self.every(x, 0, i64::MAX, 2), self.every(x, 1, i64::MAX, 2));
            let b = self.op(Negative, &[b]);
            self.stacked(b, a)
        } else {
            let (a, b) = (self.every(x, 0, size / 2, 1), self.every(x, size / 2, i64::MAX, 1));
            let b = self.op(Negative, &[b]);
            self.op(Concat { axis: -1 }, &[b, a])
        };
        let (left, right) = (self.op(Multiply::default(), &[x, cos]), self.op(Multiply::default(), &[turned, sin]));
        self.op(Add::default(), &[left, right])
    }
    // The halves apart.
    fn apart(&mut self, x: Value, cos: Value, sin: Value, interleaved: bool) -> Value {
        let (a, b) = if interleaved {
            (self.every(x, 0, i64::MAX, 2), self.every(x, 1, i64::MAX, 2))
        } else {
            let axis = self.m.constant("axis", Tensor::scalar(3i64)).unwrap();
            let a = self.op(Split { num_splits: 2 }, &[x, axis]);
            (a, Value { port: 1, ..a })
        };
        let times = |n: &mut Net, a: Value, b: Value| n.op(Multiply::default(), &[a, b]);
        let (ac, bs, bc, as_) = (times(self, cos, a), times(self, sin, b), times(self, cos, b), times(self, sin, a));
        let (y, z) = (self.op(Subtract::default(), &[ac, bs]), self.op(Add::default(), &[as_, bc]));
        if interleaved { self.stacked(y, z) } else { self.op(Concat { axis: 3 }, &[y, z]) }
    }
    // The steps of the plan for the inputs.
    fn check(mut self, y: Value, inputs: &[Tensor]) {
        self.m.result("y", y).unwrap();
        assert_like_eval(&self.m, inputs, 1e-5);
        let compiled = compile(&self.m, &Properties::new().with("PERF_COUNT", "YES"));
        let mut request = compiled.clone().create_request();
        inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
        request.infer().unwrap();
        let run: Vec<String> = request
            .profile()
            .into_iter()
            .map(|p| p.kernel)
            .filter(|k| k != "none" && !k.starts_with("fused"))
            .collect();
        assert_eq!(run, ["rope_f32"], "{}", carafe_graph::dump::text(&compiled.runtime_model()));
    }
}

fn net() -> Net {
    Net { m: Model::new("rotary") }
}

#[test]
fn heads_that_lie_behind_positions_are_read_in_their_place() {
    for (interleaved, size) in [(false, 16), (true, 16), (false, 6), (true, 34)] {
        for shape in ["2,7,3", "?,?,3"] {
            let mut g = net();
            let x = g.input(&format!("{shape},{size}"));
            let (cos, sin) = (g.input(&format!("1,1,?,{size}")), g.input(&format!("1,1,?,{size}")));
            let x = g.transposed(x);
            let y = g.added(x, cos, sin, size as i64, interleaved);
            let n = &mut Numbers(5);
            let inputs = [n.tensor(&[2, 7, 3, size]), n.tensor(&[1, 1, 7, size]), n.tensor(&[1, 1, 7, size])];
            g.check(y, &inputs);
        }
    }
}

#[test]
fn halves_apart_are_written_in_the_order_wanted() {
    for interleaved in [false, true] {
        let mut g = net();
        let x = g.input("2,3,7,24");
        let (cos, sin) = (g.input("2,1,7,12"), g.input("2,1,7,12"));
        let y = g.apart(x, cos, sin, interleaved);
        let y = g.transposed(y);
        let n = &mut Numbers(6);
        g.check(y, &[n.tensor(&[2, 3, 7, 24]), n.tensor(&[2, 1, 7, 12]), n.tensor(&[2, 1, 7, 12])]);
    }
}

#[test]
fn heads_behind_positions_and_numbers_that_stay() {
    let mut g = net();
    let x = g.input("2,7,3,24");
    let (cos, sin) = (g.input("7,1,8"), g.input("7,1,8"));
    let (moving, rest) = (g.every(x, 0, 8, 1), g.every(x, 8, i64::MAX, 1));
    let turned = g.added(moving, cos, sin, 8, false);
    let y = g.op(Concat { axis: -1 }, &[turned, rest]);
    let n = &mut Numbers(7);
    g.check(y, &[n.tensor(&[2, 7, 3, 24]), n.tensor(&[7, 1, 8]), n.tensor(&[7, 1, 8])]);
}

#[test]
fn tables_that_widen_the_data_or_differ_in_shape_still_give_what_they_should() {
    for (cos, sin) in [("4,1,7,8", "4,1,7,8"), ("1,1,7,8", "2,1,1,8")] {
        let shape = |s: &str| s.split(',').map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
        let mut g = net();
        let data = if cos.starts_with('4') { "1,3,7,8" } else { "2,3,7,8" };
        let x = g.input(data);
        let (c, s) = (g.input(cos), g.input(sin));
        let y = g.added(x, c, s, 8, false);
        g.m.result("y", y).unwrap();
        let n = &mut Numbers(8);
        assert_like_eval(&g.m, &[n.tensor(&shape(data)), n.tensor(&shape(cos)), n.tensor(&shape(sin))], 1e-5);
    }
}
