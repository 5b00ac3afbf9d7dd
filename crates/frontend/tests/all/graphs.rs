//! What a `SourceGraph` carries for formats that are not here yet: values like TensorFlow's `node:1`, control edges, functions,
//! outputs that nobody declares, names that are used again.

use carafe_frontend::{
    Content, Dialect, Explained, Format, Held, MARK, NodeCx, Outputs, Progress, ReadRequest, RuleSet, Source,
    SourceFunction, SourceGraph, SourceNode, SourceTensor, SourceValue, Words, read, rule,
};
use carafe_graph::{AttrMap, AttrValue, Error, ItemType, Model, Result};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_tensor::{Dim, ElementType, PartialShape, SharedBytes, Tensor};
use std::cell::RefCell;
use std::path::Path;
use std::sync::LazyLock;

/// A format whose file is a graph that the test makes.
struct Made(fn() -> SourceGraph);

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let add = |n: &mut NodeCx<'_>| -> Result<Outputs> {
        let by = n.attr("by", 1.0f32)?;
        let x = n.input(0)?;
        let by = n.scalar_like(x, by.into())?;
        Ok(n.emit(Add::default(), &[x, by])?.into())
    };
    let two = |n: &mut NodeCx<'_>| -> Result<Outputs> {
        let x = n.input(0)?;
        let by = n.scalar_like(x, 10.0)?;
        let y = n.emit(Multiply::default(), &[x, by])?;
        Ok(vec![x, y].into())
    };
    RuleSet::new([rule("Add", 1, add), rule("Two", 1, two)])
});

impl Format for Made {
    fn name(&self) -> &'static str {
        "Made"
    }
    fn recognizes(&self, _: &[u8]) -> bool {
        true
    }
    fn decode(&self, _: &ReadRequest<'_>) -> Result<Source> {
        Ok(Source::Graph(Box::new((self.0)()), Box::new(Words::default()) as Box<dyn Dialect>))
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
}

fn node(op_type: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> SourceNode {
    let all = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
    SourceNode {
        name: name.into(),
        op_type: op_type.into(),
        version: 1,
        inputs: all(inputs),
        outputs: all(outputs),
        ..SourceNode::default()
    }
}

fn graph(nodes: Vec<SourceNode>) -> SourceGraph {
    let ty = ItemType::Tensor(ElementType::F32, PartialShape::new([Dim::known(1)]));
    SourceGraph { inputs: vec![SourceValue::new("x", Ok(ty))], nodes, ..SourceGraph::default() }
}

fn request() -> ReadRequest<'static> {
    ReadRequest::new(Path::new(""))
}

fn run(model: &Model) -> Vec<(String, f32)> {
    let values = model.evaluate(&[Tensor::from_slice(&[1], &[1.0f32]).unwrap()]).unwrap();
    let names = model.results().iter().map(|r| model.result_name(*r));
    names.zip(values.iter().map(|t| t.to_vec::<f32>().unwrap()[0])).collect()
}

#[test]
fn outputs_by_number_and_those_that_nobody_declares() {
    let made = Made(|| graph(vec![node("Add", "b", &["a:1"], &["b"]), node("Two", "a", &["x"], &["a", "a:1"])]));
    let model = read(&made, &request()).unwrap();
    assert_eq!(run(&model), [("b".to_string(), 11.0), ("a".to_string(), 1.0)]);
}

#[test]
fn control_edges_decide_the_order() {
    let made = Made(|| {
        let first = SourceNode { controls: vec!["second".into()], ..node("Add", "first", &["x"], &["f"]) };
        graph(vec![first, node("Add", "second", &["x"], &["s"])])
    });
    let model = read(&made, &request()).unwrap();
    let at = |name: &str| model.find_node(name).unwrap();
    assert!(at("second") < at("first"));
}

#[test]
fn functions_take_attributes_of_their_callers() {
    let made = Made(|| {
        let mut inner = node("Add", "inner", &["a"], &["b"]);
        inner.held.push(("by".into(), Held::Reference("step".into())));
        let mut attrs = AttrMap::new();
        attrs.set("step", AttrValue::Float(100.0));
        let function = SourceFunction {
            name: "Step".into(),
            graph: SourceGraph {
                inputs: vec![SourceValue::unknown("a")],
                outputs: Some(vec![SourceValue::unknown("b")]),
                nodes: vec![inner],
                ..SourceGraph::default()
            },
            attrs,
            ..SourceFunction::default()
        };
        let mut small = node("Step", "small", &["x"], &["s"]);
        small.attrs.set("step", AttrValue::Float(5.0));
        let large = node("Step", "large", &["s"], &["l"]);
        SourceGraph { functions: vec![function], ..graph(vec![small, large]) }
    });
    let model = read(&made, &request()).unwrap();
    assert_eq!(run(&model), [("l".to_string(), 106.0)]);
    assert!(model.find_node("small/inner").is_some());
}

#[test]
fn a_name_that_is_used_again_belongs_to_the_latest() {
    let made = Made(|| {
        let second = format!("v{MARK}1");
        graph(vec![node("Add", "one", &["x"], &["v"]), node("Add", "two", &["v"], &[&second])])
    });
    let model = read(&made, &request()).unwrap();
    assert_eq!(run(&model), [("v".to_string(), 3.0)]);
    let bearers = model.nodes().flat_map(|(_, n)| n.outputs()).filter(|o| o.names.contains("v")).count();
    // The value and its Result.
    assert_eq!(bearers, 2);
}

#[test]
fn tensors_of_a_node_are_read_when_a_rule_asks() {
    let made = Made(|| {
        let mut add = node("Two", "add", &["x", "own"], &["", "y"]);
        add.stored.push(SourceTensor::lazy("own", || Err(Error::invalid("it was read"))));
        graph(vec![add])
    });
    // A built-in rule that leaves an input is wrong; one that reads it is told what is broken.
    let e = read(&made, &request()).unwrap_err().to_string();
    assert!(e.contains("takes 1 input: `own` would have no effect"), "{e}");
}

#[test]
fn a_reference_outside_of_functions_is_refused_and_cycles_are_named() {
    let made = Made(|| {
        let mut add = node("Add", "add", &["x"], &["y"]);
        add.held.push(("by".into(), Held::Reference("step".into())));
        graph(vec![add])
    });
    let e = read(&made, &request()).unwrap_err().to_string();
    assert!(e.contains("node `add` (Add)") && e.contains("attribute `by` is `step` of the function around it"), "{e}");
    let made = Made(|| graph(vec![node("Add", "a", &["q"], &["p"]), node("Add", "b", &["p"], &["q"])]));
    let e = read(&made, &request()).unwrap_err().to_string();
    assert!(e.contains("the graph has a cycle through `a`, `b`"), "{e}");
}

// Kept nodes, and inputs that lost their readers.
fn cut(wanted: &[&str]) -> (Vec<String>, usize) {
    let made = Made(|| {
        let second = format!("c{MARK}1");
        let nodes = vec![
            node("Add", "conv", &["x"], &["c"]),
            node("Add", "relu", &["c"], &[&second]),
            node("Add", "c2", &["y"], &["t"]),
            node("Sum", "sum", &[&second, "t"], &["s"]),
        ];
        let mut graph = graph(nodes);
        graph.inputs.push(SourceValue { name: "y".into(), ..graph.inputs[0].clone() });
        graph
    });
    let wanted: Vec<String> = wanted.iter().map(|s| s.to_string()).collect();
    let heard = RefCell::new(0);
    let count = |_: usize, total: usize, _: &str| *heard.borrow_mut() = total;
    let request = ReadRequest { wanted: &wanted, keep_unknown: true, progress: Progress::to(&count), ..request() };
    let bytes = SharedBytes::from_vec(vec![]);
    let mut model = read(&made, &ReadRequest { model: Content::Bytes(&bytes), ..request }).unwrap();
    let kept = ["conv", "relu", "c2", "sum"].into_iter().filter(|n| model.find_node(n).is_some());
    let kept: Vec<String> = kept.map(str::to_string).collect();
    assert_eq!(*heard.borrow(), kept.len());
    (kept, carafe_frontend::take_cut_off(&mut model).len())
}

#[test]
fn nodes_that_no_name_needs_are_left_out() {
    let is = |wanted: &[&str], nodes: &[&str], cut_off: usize| {
        let (kept, idle) = cut(wanted);
        assert_eq!(
            (kept.iter().map(String::as_str).collect::<Vec<_>>(), idle),
            (nodes.to_vec(), cut_off),
            "{wanted:?}"
        );
    };
    is(&["conv"], &["conv"], 1);
    is(&["conv:0"], &["conv"], 1);
    is(&["c"], &["conv", "relu"], 1);
    is(&["0:c2"], &["c2"], 1);
    is(&["conv", "t"], &["conv", "c2"], 0);
    is(&["conv", "y"], &["conv"], 0);
    // A name of nothing may mean something in the translated model.
    is(&["conv", "conv/WithoutBiases"], &["conv", "relu", "c2", "sum"], 0);
    is(&["x"], &["conv", "relu", "c2", "sum"], 0);
}

#[test]
fn a_node_without_outputs_stays_with_whoever_makes_its_first_input() {
    let made = Made(|| {
        let nodes = vec![
            node("Add", "read", &["x"], &["state"]),
            node("Add", "use", &["state"], &["u"]),
            node("Add", "next", &["x"], &["n"]),
            node("Store", "store", &["state", "n"], &[]),
            node("Add", "other", &["x"], &["o"]),
            node("Store", "other_store", &["o", "n"], &[]),
        ];
        graph(nodes)
    });
    let (wanted, bytes) = (["use".to_string()], SharedBytes::from_vec(vec![]));
    let request = ReadRequest { wanted: &wanted, keep_unknown: true, explain: true, ..request() };
    let model = read(&made, &ReadRequest { model: Content::Bytes(&bytes), ..request }).unwrap();
    let gone = Explained::gone(&model).into_iter().filter(|(e, _)| e.why.starts_with("left out"));
    assert_eq!(gone.map(|(e, _)| e.source).collect::<Vec<_>>(), ["other", "other_store"]);
}
