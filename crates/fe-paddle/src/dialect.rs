//! What only Paddle has: operators without names, slots, and attributes of libraries that say nothing about the result.

use crate::attributes::is_without_meaning;
use crate::ops::is_over_sequences;
use crate::types::element_type;
use carafe_frontend::{Dialect, Log, RuleSet, SourceGraph, SourceNode, Words};
use carafe_graph::AttrValue;
use carafe_tensor::ElementType;
use std::collections::BTreeSet;

static WORDS: Words = Words {
    node: "operator",
    operation: "operator type",
    output: "output",
    value: "variable",
    graph: "program",
    wants: "the program fetches",
    version: "version",
    domain: "paddle",
    input_port: "X",
    output_port: "Out",
};

/// Attributes of fused and quantized kernels. Exported programs carry them at values that change nothing.
const OF_KERNELS: &[&str] = &[
    "ALGO",
    "Bits",
    "Scale_in",
    "Scale_in_eltwise",
    "Scale_out",
    "Scale_weights",
    "Scale_x",
    "Scale_y",
    "activation_bits",
    "cudnn_version",
    "enable_cache",
    "exhaustive_search",
    "force_fp32_output",
    "fuse_activation",
    "fuse_alpha",
    "fuse_beta",
    "fuse_brelu",
    "fuse_brelu_threshold",
    "fuse_relu",
    "fuse_relu_before_depthwise_conv",
    "fuse_residual_connection",
    "fuse_with_relu",
    "fused_reshape_Out",
    "fused_reshape_X",
    "fused_reshape_Y",
    "fused_transpose_Out",
    "fused_transpose_X",
    "fused_transpose_Y",
    "head_number",
    "matmul_method",
    "op_fused",
    "out_threshold",
    "quantization_type",
    "skip_quant",
    "trainable_statistics",
    "use_addto",
    "workspace_size_MB",
    "x_data_format",
    "y_data_format",
];

pub(crate) struct PaddleDialect;

// Whether a switch is on, or a name or a list is given.
fn is_set(value: &AttrValue) -> bool {
    match value {
        AttrValue::Bool(on) => *on,
        AttrValue::Str(name) => !name.is_empty(),
        AttrValue::Ints(list) => !list.is_empty(),
        _ => false,
    }
}

// Operators over packed sequences, of a program and its blocks.
fn over_sequences<'g>(graph: &'g SourceGraph, into: &mut BTreeSet<&'g str>) {
    for node in &graph.nodes {
        if is_over_sequences(&node.op_type) {
            into.insert(&node.op_type);
        }
        node.graphs().for_each(|(_, inner)| over_sequences(inner, into));
    }
}

impl Dialect for PaddleDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn prepare(&self, graph: &SourceGraph, _rules: &RuleSet, log: &Log<'_>) {
        let mut found = BTreeSet::new();
        over_sequences(graph, &mut found);
        if !found.is_empty() {
            let names = found.into_iter().collect::<Vec<_>>().join(", ");
            log.warn(format!(
                "the program has operators over packed sequences (LoD): {names}; all rows of an input \
                 are one sequence here, so run one sequence at a time"
            ));
        }
    }
    fn is_annotation(&self, node: &SourceNode, attribute: &str) -> bool {
        // Work that a pass of a device fused into the operator is no annotation.
        let is_fused = attribute.starts_with("fuse") && node.attrs.get(attribute).is_some_and(is_set);
        if is_fused {
            return false;
        }
        // `X0_threshold`: the scale that a slot was observed to have.
        let slot = attribute.strip_suffix("_threshold");
        let is_scale = slot.is_some_and(|s| s.ends_with(|c: char| c.is_ascii_digit()));
        is_without_meaning(attribute) || OF_KERNELS.contains(&attribute) || is_scale
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        element_type(code)
    }
}
