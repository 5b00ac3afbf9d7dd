//! Which values of a graph are quantised, and by which names they are known. Inside of a graph a quantised value is a float that
//! lies on the grid of its scale; inputs, outputs and stored tensors of the file keep their integers. Nodes of the domain
//! [`DOMAIN`] stand between the two forms: `Dequantize`, `FakeQuantize`, `Quantize`.

use crate::types::element_type;
use crate::wire::{Quantization, TensorInfo};
use carafe_frontend::{MARK, SourceNode};
use carafe_graph::AttrValue;
use carafe_tensor::ElementType;

/// Domain of the nodes that this file makes.
pub(crate) const DOMAIN: &str = "quantization";

/// How a tensor is quantised, if it is: a list of sizes or indexes is not.
pub(crate) fn of(info: &TensorInfo, is_stored: bool) -> Option<&Quantization> {
    use ElementType as E;
    let quantization = info.quantization.as_ref()?;
    let is_quantized = match element_type(info.ty).ok()? {
        E::I8 | E::U8 | E::I16 | E::U16 => true,
        // Biases and weights.
        E::I4 | E::U4 | E::I2 | E::I32 | E::I64 => is_stored,
        _ => false,
    };
    is_quantized.then_some(quantization)
}

/// Name of the float form of a stored tensor or an input.
pub(crate) fn dequantized(name: &str) -> String {
    format!("{MARK}{name}{MARK}dequantized")
}
/// Name of what an operator gives before it is rounded to the grid.
pub(crate) fn exact(name: &str) -> String {
    format!("{MARK}{name}{MARK}exact")
}
/// Name of the integer form of what an operator gives; it is shown by the name of the tensor.
pub(crate) fn integer(name: &str) -> String {
    format!("{name}{MARK}integer")
}

/// A node between two forms of a tensor.
pub(crate) fn node(op_type: &str, info: &TensorInfo, q: &Quantization, from: String, to: String) -> SourceNode {
    let mut node = SourceNode {
        name: format!("{}/{op_type}", info.name),
        op_type: op_type.to_string(),
        domain: DOMAIN.to_string(),
        version: 1,
        inputs: vec![from],
        outputs: vec![to],
        ..SourceNode::default()
    };
    node.attrs.set("type", AttrValue::Type(element_type(info.ty).unwrap_or(ElementType::Dynamic)));
    node.attrs.set("scale", AttrValue::Floats(q.scale.iter().map(|s| f64::from(*s)).collect()));
    node.attrs.set("zero_point", AttrValue::Ints(q.zero_point.clone()));
    node.attrs.set("axis", AttrValue::Int(i64::from(q.axis)));
    node
}

/// Whether an operator gives values that lie on the grid of its output already, because it only moves those of its inputs,
/// which have the same one.
pub(crate) fn stays_on_grid(op: &SourceNode, inputs: &[Option<&Quantization>], output: &Quantization) -> bool {
    let data: &[usize] = match op.op_type.as_str() {
        "BATCH_TO_SPACE_ND" | "DEPTH_TO_SPACE" | "EXPAND_DIMS" | "GATHER" | "GATHER_ND" | "MAX_POOL_2D"
        | "MIRROR_PAD" | "PAD" | "RESHAPE" | "REVERSE_V2" | "SLICE" | "SPACE_TO_BATCH_ND" | "SPACE_TO_DEPTH"
        | "SPLIT_V" | "SQUEEZE" | "STRIDED_SLICE" | "TILE" | "TOPK_V2" | "TRANSPOSE" | "UNPACK" | "BROADCAST_TO"
        | "REDUCE_MAX" | "REDUCE_MIN" => &[0],
        "SPLIT" => &[1],
        "RESIZE_NEAREST_NEIGHBOR" => &[0],
        "CONCATENATION" | "PACK" => &[],
        _ => return false,
    };
    let activation = op.attrs.get("fused_activation_function");
    let is_plain =
        activation.is_none_or(|a| *a == AttrValue::Str("NONE".into()) || *a == AttrValue::Str("RELU".into()));
    let same = |q: &Option<&Quantization>| q.is_some_and(|q| q == output);
    let all_same = match data {
        [] => inputs.iter().all(same),
        data => data.iter().all(|i| inputs.get(*i).is_some_and(same)),
    };
    is_plain && all_same
}
