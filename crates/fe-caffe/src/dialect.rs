//! What only Caffe has: layers and blobs in messages, fields that no `.proto` declares, layers of training, and who handles
//! a layer type (`lookup.rs`).

use crate::custom_layers::CustomLayers;
use crate::input;
use crate::misspelt;
use crate::net::Layer;
use crate::schema::Schema;
use crate::undeclared::{self, Undeclared};
use carafe_frontend::{Dialect, Found, Log, Origin, RuleSet, SourceGraph, SourceNode, Words};
use carafe_graph::{Error, Result};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

static WORDS: Words = Words {
    node: "layer",
    operation: "layer type",
    output: "top",
    value: "blob",
    graph: "net",
    wants: "the net names",
    version: "version",
    domain: "caffe",
    input_port: "bottom",
    output_port: "top",
};

pub(crate) struct CaffeDialect {
    pub(crate) layers: Vec<Layer>,
    pub(crate) schema: Cow<'static, Schema>,
    pub(crate) custom: Option<CustomLayers>,
    /// What the net itself says that no schema has.
    pub(crate) undeclared: Undeclared,
    /// Names of rules by their plain form, once they are known.
    pub(crate) names: OnceCell<HashMap<String, String>>,
    /// Types of custom layers whose unused output shape was reported.
    pub(crate) told: RefCell<HashSet<String>>,
    /// All names of blobs.
    pub(crate) tops: HashSet<String>,
}

impl CaffeDialect {
    /// The layer of a node; a node that a rewrite made says nothing but its name and type.
    pub(crate) fn layer(&self, node: &SourceNode) -> Cow<'_, Layer> {
        match node.index.and_then(|i| self.layers.get(i)) {
            Some(layer) => Cow::Borrowed(layer),
            None => Cow::Owned(Layer { name: node.name.clone(), ty: node.op_type.clone(), ..Layer::default() }),
        }
    }

    // With a .proto of the user at hand, what it does not declare is worth a word.
    fn guessed(&self, layer: &Layer, log: &Log<'_>) {
        if layer.at.line == 0 || std::ptr::eq(&*self.schema, Schema::built_in()) {
            return;
        }
        let all = misspelt::undeclared(layer, &self.schema);
        if !all.is_empty() {
            let all = all.join("; ");
            let text = "the .proto of --caffe_parser_path does not declare it, so its kind is guessed";
            log.warn(format!("{}: {all}; {text}", layer.location()));
        }
    }
}

impl Dialect for CaffeDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn location(&self, node: &SourceNode) -> String {
        self.layer(node).location()
    }
    fn find<'r>(&'r self, rules: &'r RuleSet, node: &SourceNode) -> Option<Found<'r>> {
        self.handler(rules, node)
    }
    fn prepare(&self, _graph: &SourceGraph, rules: &RuleSet, log: &Log<'_>) {
        self.shadowed(rules).iter().for_each(|text| log.warn(text));
        if let Some(custom) = &self.custom {
            let idle = custom.idle_shapes(&self.layers, |layer| self.winner(rules, layer));
            idle.iter().for_each(|text| log.warn(text));
        }
        if !self.undeclared.is_empty() {
            log.warn(format!("the net: {}", self.undeclared.words()));
        }
    }
    fn unhandled(&self, nodes: &[&SourceNode], general: Error) -> Error {
        let training = nodes.iter().filter(|n| input::is_training(&n.op_type));
        let training: Vec<(&str, &str)> = training.map(|n| (n.label(), n.op_type.as_str())).collect();
        if !training.is_empty() {
            return input::training_error(&training).with_code(79);
        }
        let hint = "a layer that shall go into the IR as it is may also be listed in a CustomLayersMapping.xml (-k)";
        let python = match nodes.iter().any(|n| n.op_type == "Python") {
            true => {
                "; a Python layer needs `python_param { module: \"m\" layer: \"C\" }`, and an extension a rule for `m.C` (`carafe explain E0087`)"
            }
            false => "",
        };
        Error::unsupported(format!("{general}; {hint}{python}"))
    }
    fn check_node(&self, node: &SourceNode, origin: Option<&Origin<'_>>, log: &Log<'_>) -> Result<()> {
        let layer = self.layer(node);
        undeclared::judge(&layer, &self.schema, origin, log).map_err(|e| e.with_code(1))?;
        self.guessed(&layer, log);
        Ok(())
    }
    fn checks_inputs(&self) -> bool {
        false
    }
    fn node_failed(&self, node: &SourceNode, e: Error) -> Error {
        misspelt::told(e, &self.layer(node), &self.schema)
    }
    // A layer that became nothing is still found by its name, unless that is the name of a blob.
    fn passed_on<'n>(&self, node: &'n SourceNode) -> Option<&'n str> {
        Some(node.name.as_str()).filter(|name| !name.is_empty() && !self.tops.contains(*name))
    }
}
