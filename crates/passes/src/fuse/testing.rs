//! Small graphs for the tests of recognisers. A graph that fires is tried in f32 and f16, with known and unknown
//! dimensions and ranks, with its constants compressed, and once for every value inside it that is made an output.

use crate::CompressToFp16;
use carafe_graph::{Constant, Model, NodeId, Notes, Op, Parameter, Pass, ResultOp, Value, verify};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

/// What is known of the shapes of inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Dims,
    Rank,
    Nothing,
}

/// A model under construction.
pub(super) struct Sketch {
    pub model: Model,
    ty: ElementType,
    known: Known,
    shapes: Vec<Vec<usize>>,
}

impl Sketch {
    fn new(ty: ElementType, known: Known) -> Sketch {
        Sketch { model: Model::new("sketch"), ty, known, shapes: vec![] }
    }
    /// An input of the model.
    pub(super) fn input(&mut self, shape: &[usize]) -> Value {
        let shape_now = match self.known {
            Known::Dims => PartialShape::of(shape),
            Known::Rank => PartialShape::new(shape.iter().map(|_| Dim::ANY)),
            Known::Nothing => PartialShape::dynamic(),
        };
        self.shapes.push(shape.to_vec());
        self.model.parameter(&format!("x{}", self.shapes.len()), self.ty, shape_now).unwrap()
    }
    /// A scalar constant.
    pub(super) fn c(&mut self, value: f64) -> Value {
        self.tensor(&[], &[value])
    }
    /// A constant of the type of the model.
    pub(super) fn tensor(&mut self, shape: &[usize], values: &[f64]) -> Value {
        let name = format!("c{}", self.model.slots());
        self.model.constant(&name, Tensor::from_f64(self.ty, shape, values).unwrap()).unwrap()
    }
    /// A constant full of different numbers around `middle`.
    pub(super) fn noise(&mut self, shape: &[usize], middle: f64) -> Value {
        let n: usize = shape.iter().product();
        let seed = self.model.slots();
        self.tensor(shape, &(0..n).map(|i| middle + 0.5 * wave(i, seed)).collect::<Vec<_>>())
    }
    pub(super) fn ints(&mut self, values: &[i64]) -> Value {
        self.ints_of(&[values.len()], values)
    }
    pub(super) fn ints_of(&mut self, shape: &[usize], values: &[i64]) -> Value {
        let name = format!("c{}", self.model.slots());
        self.model.constant(&name, Tensor::from_slice(shape, values).unwrap()).unwrap()
    }
    pub(super) fn int(&mut self, value: i64) -> Value {
        let name = format!("c{}", self.model.slots());
        self.model.constant(&name, Tensor::scalar(value)).unwrap()
    }
    pub(super) fn op<O: Op>(&mut self, op: O, inputs: &[Value]) -> Value {
        let name = format!("{}{}", op.info().name, self.model.slots());
        self.model.add(name, op, inputs).unwrap().into()
    }
    fn data(&self) -> Vec<Tensor> {
        let one = |(k, shape): (usize, &Vec<usize>)| {
            let n: usize = shape.iter().product();
            let values: Vec<f64> = (0..n).map(|i| 5.0 * wave(i, k)).collect();
            Tensor::from_f64(self.ty, shape, &values).unwrap()
        };
        self.shapes.iter().enumerate().map(one).collect()
    }
}

// Between -1 and 1, without a pattern that sums to zero.
fn wave(i: usize, seed: usize) -> f64 {
    let x = (i as f64 * 12.9898 + seed as f64 * 78.233).sin() * 43758.5453;
    2.0 * (x - x.floor()) - 1.0
}

/// Types of the computing nodes in order: `Convolution Add`.
pub(super) fn kinds(model: &Model) -> String {
    let order = model.topological_order().unwrap();
    let names = order
        .iter()
        .map(|id| model.node(*id).op())
        .filter(|op| !(op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>()));
    names.map(|op| op.info().name).collect::<Vec<_>>().join(" ")
}

fn run(pass: &dyn Pass, model: &mut Model) -> (usize, Vec<String>) {
    let mut notes = Notes::enabled();
    let fired = pass.run(model, &mut notes).unwrap();
    verify(model).unwrap();
    (fired, notes.lines)
}

fn same(before: &Model, after: &Model, data: &[Tensor], tolerance: f64) {
    let (a, b) = (before.evaluate(data).unwrap(), after.evaluate(data).unwrap());
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.element_type(), a.shape()), (b.element_type(), b.shape()));
        for (x, y) in a.to_vec::<f64>().unwrap().iter().zip(b.to_vec::<f64>().unwrap().iter()) {
            let near = (x - y).abs() <= tolerance * (1.0 + x.abs()) || (x.is_nan() && y.is_nan()) || x == y;
            assert!(near, "{x} became {y}\n{}", carafe_graph::dump::text(after));
        }
    }
}

fn sketched(ty: ElementType, known: Known, build: &dyn Fn(&mut Sketch) -> Value) -> Sketch {
    let mut g = Sketch::new(ty, known);
    let y = build(&mut g);
    g.model.add_tensor_name(y, "y");
    g.model.result("result", y).unwrap();
    g.model.prune();
    g
}

/// The pass fires once and leaves these kinds of nodes, whatever the type and however little is known of the shapes.
#[track_caller]
pub(super) fn fires(pass: &dyn Pass, left: &str, build: impl Fn(&mut Sketch) -> Value) {
    for known in [Known::Dims, Known::Rank] {
        fires_if(pass, left, known, &build);
    }
    unknown_rank(pass, &build);
}

/// As [`fires`], where the pass needs known dimensions.
#[track_caller]
pub(super) fn fires_static(pass: &dyn Pass, left: &str, build: impl Fn(&mut Sketch) -> Value) {
    fires_if(pass, left, Known::Dims, &build);
    unknown_rank(pass, &build);
}

// Whether or not it fires then, it must not go wrong.
fn unknown_rank(pass: &dyn Pass, build: &dyn Fn(&mut Sketch) -> Value) {
    for known in [Known::Rank, Known::Nothing] {
        let g = sketched(ElementType::F32, known, build);
        let mut after = g.model.clone();
        run(pass, &mut after);
        same(&g.model, &after, &g.data(), 1e-5);
    }
}

#[track_caller]
fn fires_if(pass: &dyn Pass, left: &str, known: Known, build: &dyn Fn(&mut Sketch) -> Value) {
    for (ty, tolerance) in [(ElementType::F32, 1e-5), (ElementType::F16, 4e-2)] {
        let g = sketched(ty, known, build);
        let mut after = g.model.clone();
        let (fired, notes) = run(pass, &mut after);
        assert_eq!(kinds(&after), left, "{ty}, known {known:?}: {notes:?}");
        assert!(fired > 0);
        assert_eq!(after.result_names(after.results()[0]), ["y".to_string()].into());
        same(&g.model, &after, &g.data(), tolerance);
        if ty == ElementType::F32 {
            compressed(pass, &g);
            outputs_inside(pass, &g);
        }
    }
}

// Whether or not it fires then, it must not go wrong.
fn compressed(pass: &dyn Pass, g: &Sketch) {
    let mut before = g.model.clone();
    run(&CompressToFp16, &mut before);
    let mut after = before.clone();
    run(pass, &mut after);
    same(&before, &after, &g.data(), 1e-2);
}

fn outputs_inside(pass: &dyn Pass, g: &Sketch) {
    let root = g.model.result_value(g.model.results()[0]).node;
    let inside: Vec<NodeId> = g.model.nodes().map(|(id, _)| id).collect();
    for id in inside {
        let op = g.model.node(id).op();
        if id == root || op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>() {
            continue;
        }
        let mut before = g.model.clone();
        before.result("inside", id.into()).unwrap();
        let mut after = before.clone();
        run(pass, &mut after);
        same(&before, &after, &g.data(), 1e-5);
    }
}

/// The pass does nothing and says why; an empty reason when it has nothing to say.
#[track_caller]
pub(super) fn stays(pass: &dyn Pass, reason: &str, build: impl Fn(&mut Sketch) -> Value) {
    let mut g = sketched(ElementType::F32, Known::Dims, &build);
    let before = kinds(&g.model);
    let (fired, notes) = run(pass, &mut g.model);
    assert_eq!((fired, kinds(&g.model)), (0, before), "{notes:?}");
    let said = notes.join("\n");
    assert!(if reason.is_empty() { said.is_empty() } else { said.contains(reason) }, "said {said:?}");
}
