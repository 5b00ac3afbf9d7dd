//! Reads Kaldi models: nnet1, nnet2 and nnet3, as text and in binary, with or without a transition model in front. What they have
//! in common is a [`net::Net`]; `schedule` turns its offsets of time into delays and memories, so that the model takes one frame
//! at a time and keeps the rest in variables, and `graph` makes the `SourceGraph`. `left_context` and `right_context` of the
//! model's info say how many frames around an utterance its outputs look at: an output comes `right_context` steps after its
//! frame, and those of the first `left_context + right_context` steps mean nothing.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod component;
mod counts;
mod descriptor;
mod dialect;
mod dims;
mod expand;
mod graph;
mod memory;
mod net;
mod nnet1;
mod nnet2;
mod nnet3;
mod ops;
mod schedule;
mod timed;
mod training;
mod transition;

use carafe_ark::{ArkError, ErrorKind, Scanner};
use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use dialect::KaldiDialect;
use graph::Options;
use net::Net;
use std::path::Path;
use std::sync::LazyLock;

/// The format Kaldi: `final.mdl`, `.raw` and `.nnet` files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kaldi;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Format for Kaldi {
    fn name(&self) -> &'static str {
        "Kaldi"
    }
    fn framework(&self) -> &'static str {
        "kaldi"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        let s = Scanner::new(head, 0);
        // A token is short, whatever follows it.
        let cut = head.len().min(s.at() + 256);
        let text = String::from_utf8_lossy(&head[s.at()..cut]);
        let mut words = text.split_whitespace();
        match words.next() {
            Some("<Nnet3>" | "<TransitionModel>") => true,
            Some("<Nnet>") => words.next().is_none_or(|w| w.starts_with('<')),
            Some(token) => nnet1::begins_component(token),
            None => false,
        }
    }
    fn endings(&self) -> &'static [&'static str] {
        &["mdl", "nnet"]
    }
    fn options(&self) -> &'static [&'static str] {
        &["counts", "remove_memory", "remove_output_softmax"]
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let bytes = request.model.map()?;
        let mut net = read(bytes.as_slice()).map_err(|e| e.with_code(89))?;
        match request.option("counts") {
            Some("") => {
                let priors = net.priors.as_ref().ok_or_else(|| {
                    Error::usage("the model has no priors of its own; option `--counts` needs a file with counts")
                })?;
                let priors = priors.tensor(bytes.as_slice()).map_err(wrong)?;
                let priors: Vec<f64> = priors.to_vec::<f64>()?.into_owned();
                counts::apply(&mut net, &priors)?;
            }
            Some(path) => counts::apply(&mut net, &counts::read(Path::new(path))?)?,
            None if net.priors.is_some() => {
                request
                    .log
                    .warn("the model has priors, which are not used; `--counts \"\"` puts them into the network");
            }
            None => {}
        }
        if request.flag("remove_output_softmax")? {
            counts::remove_softmax(&mut net);
        }
        net.prune();
        expand::expand(&mut net)?;
        let options = Options { remove_memory: request.flag("remove_memory")?, shapes: request.input_shapes };
        let mut graph = graph::graph(&net, &bytes, options, &request.log)?;
        graph.bytes = bytes.len();
        let stem = request.model.path().and_then(Path::file_stem);
        graph.name = stem.map_or(String::new(), |s| s.to_string_lossy().into_owned());
        graph.versions.otherwise = 1;
        Ok(Source::Graph(Box::new(graph), Box::new(KaldiDialect)))
    }
}

/// Names of all components that Kaldi knows: of nnet1, nnet2 and nnet3.
pub fn components() -> Vec<&'static str> {
    let mut all: Vec<&str> = nnet1::component_names().chain(ops::KALDI_COMPONENTS.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

// The network of a file of any of the three generations.
fn read(bytes: &[u8]) -> Result<Net> {
    let mut s = Scanner::new(bytes, 0);
    if s.peek() == Some("<TransitionModel>") {
        transition::skip(&mut s).map_err(|e| wrong(e).at("transition model"))?;
    }
    let mut ahead = s.clone();
    match s.peek() {
        Some("<Nnet3>") => nnet3::read(&mut s).map_err(|e| e.at("nnet3")),
        Some("<Nnet>") if ahead.token().is_ok() && ahead.peek() == Some("<NumComponents>") => {
            nnet2::read(&mut s).map_err(|e| e.at("nnet2"))
        }
        Some(token) if token == "<Nnet>" || nnet1::begins_component(token) => {
            nnet1::read(&mut s).map_err(|e| e.at("nnet1"))
        }
        Some("<DIMENSION>") => {
            Err(Error::unsupported("the model is made of Gaussian mixtures; only neural networks are read"))
        }
        _ => Err(Error::invalid("not a Kaldi model: expected `<Nnet>`, `<Nnet3>` or `<TransitionModel>`")),
    }
}

/// The error of a file, of the engine's kind.
pub(crate) fn wrong(e: ArkError) -> Error {
    match e.kind() {
        ErrorKind::Unsupported => Error::unsupported(e.to_string()),
        ErrorKind::Invalid => Error::invalid(e.to_string()),
    }
}
