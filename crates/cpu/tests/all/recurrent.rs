//! Recurrent operations of random sizes against their plain evaluation.

use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::{AttrMap, AttrValue, Model, Op, OpFactory, OpRef, Value};
use carafe_ops::recurrent::{
    AugruCell, AugruSequence, Direction, GruCell, GruSequence, LstmCell, LstmCellV1, LstmSequence, RnnCell, RnnSequence,
};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 20) as usize % n
    }
    fn floats(&mut self, shape: &[usize]) -> Tensor {
        let size = 2.0 / (*shape.last().unwrap_or(&1) as f32).sqrt();
        let data = (0..shape.iter().product()).map(|_| ((self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0) * size);
        Tensor::from_vec(shape, data.collect()).unwrap()
    }
}

/// Sizes of an operation.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    batch: usize,
    time: usize,
    input: usize,
    hidden: usize,
}

fn sizes(random: &mut Random) -> Sizes {
    Sizes {
        batch: 1 + random.below(9),
        time: 1 + random.below(7),
        input: 1 + random.below(40),
        hidden: [1, 3, 8, 16, 17, 31, 48, 65, 100][random.below(9)],
    }
}

/// How the lengths of the rows come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    Full,
    Short(ElementType),
    /// As an input of the model.
    Asked(ElementType),
}

const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Bidirectional];
const ROWS: [Rows; 5] = [
    Rows::Full,
    Rows::Short(ElementType::I64),
    Rows::Short(ElementType::I32),
    Rows::Asked(ElementType::I32),
    Rows::Asked(ElementType::I64),
];

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

/// A model of one operation, and the tensors for its inputs: the data are inputs, the weights constants.
struct Built {
    model: Model,
    inputs: Vec<Tensor>,
}

fn model(
    op: OpRef,
    data: Vec<Tensor>,
    lengths: Option<(Tensor, bool)>,
    weights: Vec<Tensor>,
    more: Vec<Tensor>,
) -> Built {
    let mut model = Model::new("recurrent");
    let mut inputs = vec![];
    let mut values: Vec<Value> = vec![];
    let mut ask = |model: &mut Model, tensor: Tensor| {
        let shape = PartialShape::new(tensor.shape().iter().map(|&n| n.into()));
        let value = model.parameter(&format!("in{}", inputs.len()), tensor.element_type(), shape);
        inputs.push(tensor);
        value.unwrap()
    };
    for tensor in data {
        values.push(ask(&mut model, tensor));
    }
    if let Some((tensor, asked)) = lengths {
        values.push(if asked { ask(&mut model, tensor) } else { model.constant("lengths", tensor).unwrap() });
    }
    for (i, tensor) in weights.into_iter().enumerate() {
        values.push(model.constant(&format!("weights{i}"), tensor).unwrap());
    }
    for tensor in more {
        values.push(ask(&mut model, tensor));
    }
    let node = model.add_ref("op", op, &values).unwrap();
    for port in 0..model.node(node).outputs().len() {
        model.result(&format!("out{port}"), Value { node, port }).unwrap();
    }
    Built { model, inputs }
}

fn check(built: &Built, what: &str) {
    let expected = built.model.evaluate(&built.inputs).unwrap();
    for threads in ["1", "2"] {
        let mut properties = Properties::new();
        properties.set("INFERENCE_NUM_THREADS", threads);
        // Numbers are compared strictly, also where another type is faster.
        properties.set("INFERENCE_PRECISION_HINT", "f32");
        let compiled = CpuDevice::default().compile(&built.model, &properties).unwrap();
        let runs = compiled.runtime_model();
        let slow = runs.nodes().any(|(_, node)| format!("{:?}", node.rt_info).contains("reference"));
        assert!(!slow, "{what} is evaluated plainly");
        let mut request = compiled.create_request();
        for (i, tensor) in built.inputs.iter().enumerate() {
            request.set_input(i, tensor.clone()).unwrap();
        }
        // What the first run leaves in memory must not matter to the second.
        for _ in 0..2 {
            request.infer().unwrap();
        }
        for (i, want) in expected.iter().enumerate() {
            let got = request.output(i).unwrap();
            assert_eq!(got.shape(), want.shape());
            let pairs = got.as_slice::<f32>().unwrap().iter().zip(want.as_slice::<f32>().unwrap());
            for (at, (&got, &want)) in pairs.enumerate() {
                assert!((got - want).abs() < 2e-5 + 2e-5 * want.abs(), "{what}, output {i}[{at}]: {got}, not {want}");
            }
        }
    }
}

fn lengths(random: &mut Random, rows: Rows, s: Sizes) -> Option<(Tensor, bool)> {
    let (ty, asked) = match rows {
        Rows::Full => (ElementType::I64, false),
        Rows::Short(ty) => (ty, false),
        Rows::Asked(ty) => (ty, true),
    };
    let n: Vec<i64> =
        (0..s.batch).map(|_| if rows == Rows::Full { s.time } else { random.below(s.time + 1) } as i64).collect();
    Some((Tensor::from_i64(ty, &[s.batch], &n).unwrap(), asked))
}

/// Every direction and every kind of lengths of a sequence operation.
fn check_sequence<O: Op>(seed: u64, states: usize, gates: usize, blocks: usize, make: impl Fn(u64, Direction) -> O) {
    let mut random = Random(seed);
    for direction in DIRECTIONS {
        let d = if direction == Direction::Bidirectional { 2 } else { 1 };
        for rows in ROWS {
            for _ in 0..3 {
                let s = sizes(&mut random);
                let mut data = vec![random.floats(&[s.batch, s.time, s.input])];
                data.extend((0..states).map(|_| random.floats(&[s.batch, d, s.hidden])));
                let lengths = lengths(&mut random, rows, s);
                let weights = vec![
                    random.floats(&[d, gates * s.hidden, s.input]),
                    random.floats(&[d, gates * s.hidden, s.hidden]),
                    random.floats(&[d, blocks * s.hidden]),
                ];
                let op = make(s.hidden as u64, direction);
                check(&model(Arc::new(op), data, lengths, weights, vec![]), &format!("{direction:?} {rows:?} {s:?}"));
            }
        }
    }
}

/// A cell of several sizes, with and without bias.
fn check_cell<O: Op>(seed: u64, states: usize, gates: usize, blocks: usize, make: impl Fn(u64) -> O) {
    let mut random = Random(seed);
    for i in 0..12 {
        let s = sizes(&mut random);
        let mut data = vec![random.floats(&[s.batch, s.input])];
        data.extend((0..states).map(|_| random.floats(&[s.batch, s.hidden])));
        let mut weights =
            vec![random.floats(&[gates * s.hidden, s.input]), random.floats(&[gates * s.hidden, s.hidden])];
        if i % 3 > 0 {
            weights.push(random.floats(&[blocks * s.hidden]));
        }
        check(&model(Arc::new(make(s.hidden as u64)), data, None, weights, vec![]), &format!("{s:?}"));
    }
}

fn lstm_sequence(hidden_size: u64, direction: Direction, activations: &[&str], clip: f32) -> LstmSequence {
    let activations = names(activations);
    LstmSequence { hidden_size, activations, activations_alpha: vec![], activations_beta: vec![], clip, direction }
}

#[test]
fn lstm_sequences_agree_with_their_evaluation() {
    check_sequence(11, 2, 4, 4, |n, d| lstm_sequence(n, d, &["sigmoid", "tanh", "tanh"], 0.0));
}

#[test]
fn lstm_sequences_with_other_functions_and_a_limit_agree() {
    check_sequence(12, 2, 4, 4, |n, d| lstm_sequence(n, d, &["HardSigmoid", "relu", "Tanh"], 0.7));
}

fn gru_sequence(hidden_size: u64, direction: Direction, linear_before_reset: bool) -> GruSequence {
    GruSequence {
        hidden_size,
        activations: names(&["sigmoid", "tanh"]),
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
        direction,
        linear_before_reset,
    }
}

#[test]
fn gru_sequences_agree_with_their_evaluation() {
    check_sequence(13, 1, 3, 3, |n, d| gru_sequence(n, d, false));
}

#[test]
fn gru_sequences_that_multiply_before_the_reset_agree() {
    check_sequence(14, 1, 3, 4, |n, d| gru_sequence(n, d, true));
}

#[test]
fn rnn_sequences_agree_with_their_evaluation() {
    check_sequence(15, 1, 1, 1, |hidden_size, direction| RnnSequence {
        hidden_size,
        activations: names(&["relu"]),
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.9,
        direction,
    });
}

#[test]
fn lstm_cells_agree_with_their_evaluation() {
    check_cell(16, 2, 4, 4, |hidden_size| LstmCell {
        hidden_size,
        activations: names(&["sigmoid", "tanh", "tanh"]),
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
    });
}

#[test]
fn lstm_cells_with_peepholes_and_coupled_gates_agree() {
    let mut random = Random(17);
    for input_forget in [false, true, false, true] {
        let s = sizes(&mut random);
        let data = vec![
            random.floats(&[s.batch, s.input]),
            random.floats(&[s.batch, s.hidden]),
            random.floats(&[s.batch, s.hidden]),
        ];
        let weights = vec![
            random.floats(&[4 * s.hidden, s.input]),
            random.floats(&[4 * s.hidden, s.hidden]),
            random.floats(&[4 * s.hidden]),
            random.floats(&[3 * s.hidden]),
        ];
        let mut attributes = AttrMap::new();
        attributes.set("hidden_size", AttrValue::Int(s.hidden as i64));
        attributes.set("input_forget", AttrValue::Bool(input_forget));
        let op = OpFactory::of::<LstmCellV1>().create(&attributes).unwrap();
        check(&model(op, data, None, weights, vec![]), &format!("{input_forget} {s:?}"));
    }
}

#[test]
fn gru_cells_agree_with_their_evaluation() {
    for (seed, linear_before_reset) in [(18, false), (19, true)] {
        check_cell(seed, 1, 3, 3 + usize::from(linear_before_reset), |hidden_size| GruCell {
            hidden_size,
            activations: names(&["sigmoid", "tanh"]),
            activations_alpha: vec![],
            activations_beta: vec![],
            clip: 0.0,
            linear_before_reset,
        });
    }
}

#[test]
fn rnn_cells_agree_with_their_evaluation() {
    check_cell(20, 1, 1, 1, |hidden_size| RnnCell {
        hidden_size,
        activations: names(&["tanh"]),
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
    });
}

#[test]
fn attention_reaches_the_update_gate_of_cells_and_sequences() {
    let mut random = Random(21);
    for rows in ROWS {
        let s = sizes(&mut random);
        let hidden_size = s.hidden as u64;
        let (activations, none) = (names(&["sigmoid", "tanh"]), Vec::<f32>::new);
        let weights = |random: &mut Random, d: &[usize]| {
            [vec![3 * s.hidden, s.input], vec![3 * s.hidden, s.hidden], vec![3 * s.hidden]]
                .map(|shape| random.floats(&[d, &shape].concat()))
                .to_vec()
        };
        let cell = AugruCell {
            linear_before_reset: false,
            hidden_size,
            activations: activations.clone(),
            activations_alpha: none(),
            activations_beta: none(),
            clip: 0.0,
        };
        let data = vec![random.floats(&[s.batch, s.input]), random.floats(&[s.batch, s.hidden])];
        let (w, a) = (weights(&mut random, &[]), vec![random.floats(&[s.batch, 1])]);
        check(&model(Arc::new(cell), data, None, w, a), &format!("cell {s:?}"));
        let sequence = AugruSequence {
            direction: Direction::Forward,
            linear_before_reset: false,
            hidden_size,
            activations,
            activations_alpha: none(),
            activations_beta: none(),
            clip: 0.0,
        };
        let data = vec![random.floats(&[s.batch, s.time, s.input]), random.floats(&[s.batch, 1, s.hidden])];
        let lengths = lengths(&mut random, rows, s);
        let (w, a) = (weights(&mut random, &[1]), vec![random.floats(&[s.batch, s.time, 1])]);
        check(&model(Arc::new(sequence), data, lengths, w, a), &format!("sequence {s:?} {rows:?}"));
    }
}

#[test]
fn a_length_beyond_the_time_is_refused() {
    let mut random = Random(22);
    let s = Sizes { batch: 2, time: 3, input: 4, hidden: 5 };
    let data = vec![random.floats(&[2, 3, 4]), random.floats(&[2, 1, 5])];
    let weights = vec![random.floats(&[1, 15, 4]), random.floats(&[1, 15, 5]), random.floats(&[1, 15])];
    let lengths = Tensor::from_slice(&[2], &[3i64, 4]).unwrap();
    let op = gru_sequence(s.hidden as u64, Direction::Forward, false);
    let built = model(Arc::new(op), data, Some((lengths, true)), weights, vec![]);
    let mut request = CpuDevice::default().compile(&built.model, &Properties::new()).unwrap().create_request();
    for (i, tensor) in built.inputs.iter().enumerate() {
        request.set_input(i, tensor.clone()).unwrap();
    }
    let error = request.infer().unwrap_err().to_string();
    assert!(error.contains("sequence length 4 is not within 0..3"), "{error}");
}
