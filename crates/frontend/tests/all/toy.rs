//! What a format costs: a toy one, complete. Its files are lines of text; nodes name their ports, and a node may hold a
//! sub-graph. Recognising, decoding and the rules are here; all else is the crate's.

use carafe_frontend::{
    Content, Explained, Format, Held, Item, NodeCx, Outputs, ReadRequest, Rule, RuleSet, Source, SourceGraph,
    SourceNode, SourceTensor, SourceValue, Words, read, read_decoded, rule,
};
use carafe_graph::{AttrValue, Error, FrameworkNode, ItemType, Model, Notes, Pass, Result};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_tensor::{Dim, ElementType, PartialShape, SharedBytes, Tensor};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

struct Toy;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new([rule("Sum", 1, sum), rule("Twice", 1, twice)]));

impl Format for Toy {
    fn name(&self) -> &'static str {
        "Toy"
    }
    fn framework(&self) -> &'static str {
        "toy"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        head.starts_with(b"toy\n")
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let bytes = request.model.map()?;
        let text = std::str::from_utf8(bytes.as_slice()).map_err(|e| Error::invalid(e.to_string()))?;
        let graph = graph(&mut text.lines().skip(1).map(str::trim))?;
        Ok(Source::Graph(Box::new(graph), Box::new(Words { domain: "toy", ..Words::default() })))
    }
}

// `input NAME SIZE`, `tensor NAME VALUES`, `output NAME`, or a node, `TYPE NAME PORT=VALUE .. attribute:NUMBER .. -> PORT=VALUE ..`;
// one that ends with `{` holds the graph of the lines up to `}`.
fn graph<'t>(lines: &mut impl Iterator<Item = &'t str>) -> Result<SourceGraph> {
    let mut graph = SourceGraph { outputs: Some(vec![]), ..SourceGraph::default() };
    let number = |text: &str| text.parse::<f32>().map_err(|_| Error::invalid(format!("`{text}` is no number")));
    while let Some(line) = lines.next().filter(|line| *line != "}") {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["input", name, size] => {
                let shape = PartialShape::new([Dim::known(number(size)? as i64)]);
                graph.inputs.push(SourceValue::new(name, Ok(ItemType::Tensor(ElementType::F32, shape))));
            }
            ["tensor", name, ..] => {
                let values = words[2..].iter().map(|w| number(w)).collect::<Result<Vec<_>>>()?;
                graph.tensors.push(SourceTensor::lazy(name, move || Ok(Tensor::from_slice(&[values.len()], &values)?)));
            }
            ["output", name] => graph.outputs.get_or_insert_default().push(SourceValue::unknown(name)),
            [op_type, name, ..] => {
                let mut node =
                    SourceNode { name: name.into(), op_type: op_type.into(), version: 1, ..SourceNode::default() };
                let mut is_output = false;
                for word in &words[2..] {
                    if let Some((port, value)) = word.split_once('=') {
                        let (names, ports) = match is_output {
                            true => (&mut node.outputs, &mut node.output_ports),
                            false => (&mut node.inputs, &mut node.input_ports),
                        };
                        names.push(value.to_string());
                        ports.push(port.to_string());
                    } else if let Some((attribute, value)) = word.split_once(':') {
                        node.attrs.set(attribute, AttrValue::Float(number(value)?.into()));
                    }
                    is_output |= *word == "->";
                }
                if words.last() == Some(&"{") {
                    node.held.push(("body".into(), Held::Graph(Rc::new(self::graph(lines)?))));
                }
                graph.nodes.push(node);
            }
            _ => return Err(Error::invalid(format!("`{line}` is no line of a toy"))),
        }
    }
    Ok(graph)
}

// The sum of all values of the port `X`.
fn sum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut all = n.inputs_named("X")?.into_iter();
    let first = all.next().ok_or_else(|| n.fail("port `X` is empty"))?;
    Ok(all.try_fold(first, |a, b| n.emit(Add::default(), &[a, b]))?.into())
}

// Its sub-graph over its input, and once more over the result.
fn twice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.input(0)?;
    for _ in 0..2 {
        let fact = n.fact(x).clone();
        let body = n.body("body", &[fact])?;
        let [Item::Tensor(y)] = n.inline(&body, &[x])?[..] else { return Err(n.fail("a body gives one tensor")) };
        x = y;
    }
    Ok(x.into())
}

const TEXT: &str = "toy
input x 2
tensor w 10 20
Sum start X=x X=w X=w -> Out=s
Twice loop X=s -> Out=t {
    input a 2
    Sum inside X=a X=w -> Out=b
    output b
}
Scale end X=t by:0.5 -> Out=y
output y
output t";

fn model(text: &str, request: &ReadRequest<'_>) -> Result<Model> {
    let bytes = SharedBytes::from_vec(text.as_bytes().to_vec());
    read(&Toy, &ReadRequest { model: Content::Bytes(&bytes), ..*request })
}

fn request() -> ReadRequest<'static> {
    ReadRequest::new(Path::new(""))
}

// The rule that an extension brings for what the format lacks.
fn scale() -> Rule {
    let translate = |n: &mut NodeCx<'_>| {
        let (x, by) = (n.inputs_named("X")?[0], n.required::<f32>("by")?);
        let by = n.scalar_like(x, by.into())?;
        Ok(n.emit(Multiply::default(), &[x, by])?.into())
    };
    Rule::new("Scale", translate).framework("toy").origin("acme")
}

#[test]
fn a_model_with_a_sub_graph_named_ports_and_a_users_rule_runs() {
    assert!(Toy.recognizes(TEXT.as_bytes()));
    let rules = [scale()];
    let found = model(TEXT, &ReadRequest { rules: &rules, ..request() }).unwrap();
    let outputs = found.evaluate(&[Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap()]).unwrap();
    let values: Vec<Vec<f32>> = outputs.iter().map(|t| t.to_vec::<f32>().unwrap().into_owned()).collect();
    assert_eq!(values, [[20.5, 41.0], [41.0, 82.0]]);
}

#[test]
fn what_has_no_rule_is_listed_with_its_nodes() {
    let e = model(TEXT, &request()).unwrap_err().to_string();
    assert!(e.contains("1 node of 1 operation cannot be translated: 1 x `Scale`") && e.contains("node `end`"), "{e}");
}

#[test]
fn what_has_no_rule_can_be_kept_or_cut_off() {
    let kept = model(TEXT, &ReadRequest { keep_unknown: true, ..request() }).unwrap();
    assert!(kept.node(kept.find_node("end").unwrap()).op().is::<FrameworkNode>());
    let wanted = ["t".to_string()];
    let cut = model(TEXT, &ReadRequest { wanted: &wanted, explain: true, ..request() }).unwrap();
    assert_eq!(cut.results().len(), 1);
    let gone: Vec<String> = Explained::gone(&cut).into_iter().map(|(e, _)| e.source).collect();
    assert_eq!(gone, ["end"]);
}

#[test]
fn errors_name_the_node() {
    let e = model("toy\ninput x 2\nSum s Y=x -> Out=y\noutput y", &request()).unwrap_err().to_string();
    assert!(e.contains("node `s` (Sum)") && e.contains("port `X` is empty"), "{e}");
    let e = model("toy\nnonsense", &request()).unwrap_err().to_string();
    assert!(e.contains("`nonsense` is no line of a toy"), "{e}");
}

/// Calls every Scale a Sum.
struct Rename;

impl Pass for Rename {
    fn name(&self) -> &'static str {
        "rename"
    }
    fn run(&self, model: &mut Model, _: &mut Notes) -> Result<usize> {
        let id = model.find_node("end").ok_or_else(|| Error::not_found("there is no `end`"))?;
        model.set_op(id, Arc::new(FrameworkNode::new("toy", "Sum")))?;
        Ok(1)
    }
}

#[test]
fn rewrites_reach_the_graph_before_it_is_translated() {
    let bytes = SharedBytes::from_vec(TEXT.as_bytes().to_vec());
    let decoded = read_decoded(&Toy, &ReadRequest::from_bytes(&bytes)).unwrap().unwrap();
    assert_eq!(decoded.op_at::<FrameworkNode>(decoded.find_node("end").unwrap()).unwrap().type_name, "Scale");
    let passes: [Arc<dyn Pass>; 1] = [Arc::new(Rename)];
    let found = model(TEXT, &ReadRequest { decoded: &passes, ..request() }).unwrap();
    let outputs = found.evaluate(&[Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap()]).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap().as_ref(), [41.0, 82.0]);
}
