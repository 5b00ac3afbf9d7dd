//! PaddlePaddle models. `wire` and `params` decode a `ProgramDesc` and the stream of parameters, `pir` the programs of Paddle 3 in JSON;
//! both become a `Program` of blocks, `graph` makes a `SourceGraph` of it, and the rules in `ops` translate one operator each.
//!
//! What a rule sees of Paddle: ports are the slots of an operator (`X`, `Y`, `Out`), several values of one slot are several inputs of
//! one port. An attribute that is computed is an input of the attribute's name, or of the slot that Paddle has for it
//! (`StartsTensor`). Operators of Paddle 3 come under the names of a `ProgramDesc` (`reshape2`, `elementwise_add`), element types in
//! attributes as `Type` there and as the number of `VarType` here. An array of tensors is a sequence while its length is known, and
//! inside of loops one tensor with its elements along the first axis. There is no level of detail (LoD): all rows are one sequence.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attributes;
mod dialect;
mod files;
mod graph;
mod ops;
mod params;
mod pir;
mod program;
mod recognise;
mod select_pairs;
mod types;
mod wire;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use dialect::PaddleDialect;
use program::Program;
use prost::Message;
use recognise::{Kind, recognise};
use std::path::Path;
use std::sync::LazyLock;

/// The format PaddlePaddle: `.pdmodel` with `.pdiparams`, folders with `__model__`, and programs of Paddle 3 in JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paddle;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Format for Paddle {
    fn name(&self) -> &'static str {
        "PaddlePaddle"
    }
    fn framework(&self) -> &'static str {
        "paddle"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        recognise(head).is_some()
    }
    fn recognizes_folder(&self, folder: &Path) -> bool {
        files::program_in(folder).is_some()
    }
    fn endings(&self) -> &'static [&'static str] {
        &["pdmodel", "pdiparams"]
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let (bytes, path) = files::program(request)?;
        let program = match recognise(bytes.as_slice()) {
            Some(Kind::Json) => pir::program(bytes.as_slice())?,
            Some(Kind::Program) => {
                let message = wire::ProgramDesc::decode(bytes.as_slice());
                Program::of(message.map_err(|e| Error::invalid(format!("not a program of Paddle: {e}")))?)?
            }
            None => return Err(Error::invalid("not a program of Paddle: it begins neither with a block nor as JSON")),
        };
        let tensors = files::parameters(request, path.as_deref(), &program.parameters())?;
        let mut graph = graph::source(&program, tensors, request.wanted)?;
        graph.bytes = bytes.len();
        graph.versions.otherwise = program.version;
        Ok(Source::Graph(Box::new(graph), Box::new(PaddleDialect)))
    }
}
