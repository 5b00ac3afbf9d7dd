//! MXNet models into graphs. `symbol` reads the topology of every version, `params` the arrays, `parts` finds the files that
//! belong together, `graph` makes a `SourceGraph` of them, and the rules in `ops` translate one operator each.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aliases;
mod attributes;
mod dialect;
mod graph;
mod inputs;
mod ops;
mod params;
mod parts;
mod symbol;
mod types;
mod upgrade;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::Result;
use dialect::MxnetDialect;
use std::sync::LazyLock;

/// The format MXNet: a symbol as JSON, and arrays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mxnet;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Format for Mxnet {
    fn name(&self) -> &'static str {
        "MXNet"
    }
    fn framework(&self) -> &'static str {
        "mxnet"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        parts::is_params(head) || is_symbol(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        // Symbols of every version are brought up to date as they are read.
        request.flag("legacy_mxnet_model")?;
        request.flag("enable_ssd_gluoncv")?;
        let parts = parts::open(request).map_err(|e| e.with_code(48))?;
        Ok(Source::Graph(Box::new(graph::of_parts(parts, request)?), Box::new(MxnetDialect)))
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn endings(&self) -> &'static [&'static str] {
        &["params"]
    }
    fn options(&self) -> &'static [&'static str] {
        &[
            "input_symbol",
            "nd_prefix_name",
            "pretrained_model_name",
            "save_params_from_nd",
            "legacy_mxnet_model",
            "enable_ssd_gluoncv",
        ]
    }
}

// An object whose first key is `nodes`, with a node that has an operator.
fn is_symbol(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = String::from_utf8_lossy(&head[..head.len().min(16 * 1024)]);
    let words: String = text.chars().filter(|c| !c.is_ascii_whitespace()).take(8 * 1024).collect();
    words.starts_with('{') && words.contains("\"nodes\":[") && words.contains("\"op\":\"")
}
