//! From a graph as decoded to a model, for every format: rewrites, cutting, the list of all that nobody handles, and then
//! node by node (`scope.rs`).

use crate::budget::Budget;
use crate::cut::cut;
use crate::dialect::Dialect;
use crate::functions::Functions;
use crate::missing::Missing;
use crate::request::ReadRequest;
use crate::rewrite::rewrite;
use crate::rule::RuleSet;
use crate::scope::Scope;
use crate::source::{SourceGraph, SourceNode};
use crate::telemetry;
use crate::unread::Unread;
use carafe_graph::{Model, Result, RtTree};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Sub-graphs are looked into as deep as they are translated.
const MAX_DEPTH: usize = 64;

/// What all scopes of one model share.
pub(crate) struct Context<'f> {
    pub(crate) dialect: &'f dyn Dialect,
    pub(crate) rules: &'f RuleSet,
    pub(crate) functions: Functions<'f>,
    pub(crate) budget: Budget,
    pub(crate) request: &'f ReadRequest<'f>,
    /// Whether any node was kept for want of a rule.
    pub(crate) kept: Cell<bool>,
    /// Operations that are newer than the version the model imports, as far as they were warned of.
    pub(crate) newer: RefCell<BTreeSet<String>>,
    /// Attributes that users' rules left.
    pub(crate) unread: Unread,
}

impl Context<'_> {
    /// Warns once for each operation.
    pub(crate) fn warn_of_newer(&self, node: &SourceNode, first: i64) {
        let ty = node.full_type();
        if self.newer.borrow_mut().insert(ty.clone()) {
            let (words, label, version) = (self.dialect.words(), node.label(), node.version);
            let (word, set) = (words.node, words.version);
            self.request.log.warn(format!(
                "{word} `{label}`: {ty} exists from {set} {first} on, the model imports {version}; it is taken as of {set} {first}"
            ));
        }
    }
}

/// Translates a graph with the rules of its format, `framework`, and those of the request.
pub(crate) fn translate(
    mut graph: SourceGraph,
    dialect: &dyn Dialect,
    framework: &str,
    rules: &RuleSet,
    request: &ReadRequest<'_>,
) -> Result<Model> {
    let log = &request.log;
    if !(request.rewrites.is_empty() && request.decoded.is_empty()) {
        graph = rewrite(graph, dialect, framework, request)?;
    }
    dialect.prepare(&graph, rules, log);
    if !request.wanted.is_empty() {
        cut(&mut graph, request.wanted);
    }
    telemetry::count(request, framework, &graph);
    log.debug(|| "stage extract".to_string());
    let cx = Context {
        dialect,
        rules,
        functions: Functions::of(&graph.functions),
        budget: Budget::of(graph.bytes.max(graph.weight())),
        request,
        kept: Cell::new(false),
        newer: RefCell::default(),
        unread: Unread::default(),
    };
    let checked = if request.keep_unknown { Ok(()) } else { check_handled(&graph, framework, &cx) };
    let done = checked.and_then(|()| Scope::new(&cx, None).graph(&graph, &[]));
    dialect.finish(log);
    cx.unread.warn(log);
    let mut model = done.map_err(|e| dialect.failed(e))?.model;
    if request.explain {
        graph.left_out.iter().for_each(|l| l.explain(&mut model));
    }
    let info =
        graph.metadata.iter().filter(|(key, _)| !key.is_empty()).map(|(k, v)| RtTree::leaf(k.clone(), v.clone()));
    let info: Vec<RtTree> = info.collect();
    if !info.is_empty() {
        model.rt_info.push(RtTree::branch("framework", info));
    }
    if graph.outputs.is_none() {
        // All that is made is read or an output, but for tensors that no rule asked for.
        model.prune();
    }
    Ok(model)
}

// Everything that has no rule, reported at once.
fn check_handled(graph: &SourceGraph, framework: &str, cx: &Context<'_>) -> Result<()> {
    let mut found = vec![];
    unhandled(&graph.nodes, cx, 0, &mut found);
    graph.functions.iter().for_each(|f| unhandled(&f.graph.nodes, cx, 0, &mut found));
    let mut missing = Missing::default();
    found.iter().for_each(|n| missing.add(&n.domain, &n.op_type, n.version, n.label()));
    telemetry::missing(cx.request, framework, &missing);
    missing.tell(&cx.request.log);
    let checked = missing.check(framework, cx.rules, cx.request.registry, cx.request.model.path());
    checked.map_err(|e| cx.dialect.unhandled(&found, e).with_code(24))
}

fn unhandled<'g>(nodes: &'g [SourceNode], cx: &Context<'_>, depth: usize, found: &mut Vec<&'g SourceNode>) {
    for node in nodes {
        if cx.functions.get(node).is_none() && cx.dialect.find(cx.rules, node).is_none() {
            found.push(node);
        }
        if depth < MAX_DEPTH {
            node.graphs().for_each(|(_, graph)| unhandled(&graph.nodes, cx, depth + 1, found));
        }
    }
}
