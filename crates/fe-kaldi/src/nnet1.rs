//! nnet1: a chain of components that give their sizes, the output's first, and then their data without names.

use crate::component::{Component, Field, field, name_of};
use crate::descriptor::Descriptor;
use crate::net::{Body, ChainNames, Net};
use crate::wrong;
use carafe_ark::{Result as Scan, Scanner};
use carafe_graph::{Error, Result};

/// Nets inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 16;

/// Every component, and the names of its arrays in the order of the file.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("AddShift", &["Bias"]),
    ("AffineTransform", &["LinearParams", "BiasParams"]),
    ("AveragePoolingComponent", &[]),
    ("BlockSoftmax", &[]),
    ("BlstmProjected", &[]),
    ("BlstmProjectedStreams", &[]),
    ("ConvolutionalComponent", &[]),
    ("Copy", &[]),
    ("Dropout", &[]),
    ("FramePoolingComponent", &[]),
    ("HiddenSoftmax", &[]),
    ("KlHmm", &["Stats"]),
    ("LengthNormComponent", &[]),
    ("LinearTransform", &["Params"]),
    ("LstmProjected", LSTM),
    ("LstmProjectedStreams", LSTM),
    ("MaxPoolingComponent", &[]),
    ("MultiBasisComponent", &[]),
    ("ParallelComponent", &[]),
    ("ParametricRelu", &["Alpha", "Beta"]),
    ("Rbm", &["LinearParams", "VisibleBias", "BiasParams"]),
    ("RecurrentComponent", &["ForwardParams", "RecurrentParams", "BiasParams"]),
    ("Rescale", &["Scales"]),
    ("SentenceAveragingComponent", &[]),
    ("Sigmoid", &[]),
    ("SimpleSentenceAveragingComponent", &[]),
    ("Softmax", &[]),
    ("Splice", &[]),
    ("Tanh", &[]),
];
const LSTM: &[&str] = &[
    "InputParams",
    "RecurrentParams",
    "BiasParams",
    "PeepholeInput",
    "PeepholeForget",
    "PeepholeOutput",
    "ProjectionParams",
];

/// Names of all components.
pub(crate) fn component_names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().map(|(name, _)| *name)
}

// The component of a token; files write it in any case.
fn find(token: &str) -> Option<&'static (&'static str, &'static [&'static str])> {
    let name = name_of(token)?;
    COMPONENTS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))
}

/// Whether a file without `<Nnet>` begins with a component.
pub(crate) fn begins_component(token: &str) -> bool {
    find(token).is_some()
}

/// What `mo` calls the input.
const INPUT: &str = "Parameter";

/// Reads a network.
pub(crate) fn read(s: &mut Scanner<'_>) -> Result<Net> {
    let mut net = Net::default();
    let mut reader = Reader { net: &mut net, names: ChainNames::default() };
    let (last, input) = reader.chain(s, Descriptor::node(INPUT), 0)?;
    let Descriptor::Node(name) = &last else { return Err(Error::invalid("a chain ends with a node")) };
    let name = name.clone();
    net.inputs.push((INPUT.into(), input));
    net.outputs.push((name, last));
    Ok(net)
}

struct Reader<'n> {
    net: &'n mut Net,
    names: ChainNames,
}

impl Reader<'_> {
    // The components up to `</Nnet>` or the end; the last node, and how many columns the first component reads.
    fn chain(&mut self, s: &mut Scanner<'_>, mut last: Descriptor, depth: usize) -> Result<(Descriptor, usize)> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("nets are nested deeper than {MAX_DEPTH}")));
        }
        if s.peek() == Some("<Nnet>") {
            s.token().map_err(wrong)?;
        }
        let mut input = None;
        loop {
            s.skip_space();
            if s.rest().is_empty() && depth == 0 {
                break;
            }
            let expected = s.expected("a component or `</Nnet>`");
            let token = s.token().map_err(wrong)?;
            if token.eq_ignore_ascii_case("</Nnet>") {
                break;
            }
            let kind = name_of(token).filter(|k| !k.starts_with('/')).ok_or_else(|| wrong(expected))?;
            let (kind, arrays) = find(token).copied().unwrap_or((kind, &[]));
            let name = self.names.of(kind);
            let at = |e: Error| e.at(format!("component `{name}` ({kind})"));
            let sizes = (s.int(), s.int());
            let (output, read) = match sizes {
                (Ok(output @ 1..=0x7fff_ffff), Ok(read @ 1..=0x7fff_ffff)) => (output, read),
                (Err(e), _) | (_, Err(e)) => return Err(at(wrong(e))),
                (Ok(o), Ok(i)) => {
                    return Err(at(Error::invalid(format!("a component cannot have {i} inputs and {o} outputs"))));
                }
            };
            input = input.or(Some(read as usize));
            last = match kind {
                "ParallelComponent" => self.parallel(s, &name, last, depth).map_err(at)?,
                _ => {
                    let made = data(s, kind, arrays, output, read).map_err(|e| at(wrong(e)))?;
                    self.add(&name, made, last).map_err(at)?
                }
            };
            if s.peek() == Some("<!EndOfComponent>") {
                s.token().map_err(wrong)?;
            }
        }
        let input = input.ok_or_else(|| Error::invalid("the network has no components"))?;
        Ok((last, input))
    }

    // Splicing is a descriptor, and what remembers reads itself.
    fn add(&mut self, name: &str, mut made: Component, last: Descriptor) -> Result<Descriptor> {
        let itself = || Descriptor::node(name).later(-1).if_defined();
        match made.kind.as_str() {
            "Splice" => {
                let offsets = made.ints("Context").unwrap_or(&[]).to_vec();
                Ok(self.net.add_node(name, Body::Same, last.window(&offsets, |_| true)))
            }
            "RecurrentComponent" => {
                let input = Descriptor::Append(vec![last, itself()]);
                Ok(self.net.add(name, made, input))
            }
            "LstmProjected" | "LstmProjectedStreams" => {
                let shape = made.shape("ProjectionParams").unwrap_or_default();
                let &[projected, cells] = &shape[..] else {
                    return Err(Error::invalid("the projection must be a matrix"));
                };
                made.kind = "LstmProjected".into();
                let state = format!("{name}/state");
                made.set("OutputDim", Field::Int((projected + cells) as i64));
                let before = Descriptor::node(&state).later(-1).if_defined();
                let state = self.net.add(&state, made, Descriptor::Append(vec![last, before]));
                Ok(self.net.add_node(name, Body::Range { offset: 0, dim: projected as i64 }, state))
            }
            _ => Ok(self.net.add(name, made, last)),
        }
    }

    // Nets beside each other, each with its part of the columns.
    fn parallel(&mut self, s: &mut Scanner<'_>, name: &str, last: Descriptor, depth: usize) -> Result<Descriptor> {
        s.expect("<NestedNnetCount>").map_err(wrong)?;
        let count = s.int().map_err(wrong)?;
        let whole = self.net.add_node(&format!("{name}/input"), Body::Same, last);
        let (mut offset, mut ends) = (0, vec![]);
        for i in 0..count {
            s.expect("<NestedNnet>").map_err(wrong)?;
            s.int().map_err(wrong)?;
            let part = format!("{name}/input{i}");
            let (end, dim) = self.chain(s, Descriptor::node(&part), depth + 1).map_err(|e| e.at(format!("net {i}")))?;
            self.net.add_node(&part, Body::Range { offset, dim: dim as i64 }, whole.clone());
            offset += dim as i64;
            ends.push(end);
        }
        s.expect("</ParallelComponent>").map_err(wrong)?;
        if ends.is_empty() {
            return Err(Error::invalid("a ParallelComponent has no nets"));
        }
        Ok(self.net.add_node(name, Body::Same, Descriptor::Append(ends)))
    }
}

// Fields and arrays up to the next component.
fn data(s: &mut Scanner<'_>, kind: &str, arrays: &[&str], output: i64, input: i64) -> Scan<Component> {
    let mut made = Component { kind: kind.to_string(), ..Component::default() };
    made.set("OutputDim", Field::Int(output));
    made.set("InputDim", Field::Int(input));
    let mut found = 0;
    match kind {
        "Splice" | "BlockSoftmax" => made.set("Context", Field::Ints(s.ints()?)),
        "Copy" => made.set("ColumnMap", Field::Ints(s.ints()?.iter().map(|i| i - 1).collect())),
        "Rbm" => {
            for side in ["VisibleType", "HiddenType"] {
                let word = s.token()?.to_string();
                made.set(side, Field::Text(word));
            }
        }
        _ => {}
    }
    loop {
        s.skip_text_space();
        if s.rest().first() != Some(&b'<') {
            if s.rest().is_empty() {
                return Ok(made);
            }
            let name = arrays.get(found).map_or_else(|| format!("Array{found}"), |n| n.to_string());
            found += 1;
            let array = s.array()?;
            made.fields.push((name, Field::Array(array)));
            continue;
        }
        let token = s.peek().unwrap_or_default();
        if token == "<!EndOfComponent>" || token.starts_with("</") || find(token).is_some() {
            return Ok(made);
        }
        let wrong = s.expected("a field");
        let name = name_of(s.token()?).ok_or(wrong)?;
        match name {
            "FrameWeight" => {
                while s.rest().first().is_some_and(|b| *b != b'<') {
                    let array = s.array()?;
                    made.fields.push((format!("FrameWeight{found}"), Field::Array(array)));
                    found += 1;
                    s.skip_text_space();
                }
            }
            // A component of a net inside that this reader does not build.
            "Nnet" | "Selector" | "NumBasis" | "Basis" => return Err(wrong_net(s)),
            _ => {
                if let Some(value) = field(s, name)? {
                    made.fields.push((name.to_string(), value));
                }
            }
        }
    }
}

fn wrong_net(s: &Scanner<'_>) -> carafe_ark::ArkError {
    carafe_ark::ArkError::Unsupported(format!("a net inside of a component at byte {} has no translation", s.at()))
}
