//! PyTorch's own operations, which exporters write down by name: `ATen` with an attribute `operator`, and operations of the
//! domain `org.pytorch.aten`. Where PyTorch has arguments, the node has inputs.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::embedding::{BagReduction, EmbeddingBagOffsets, EmbeddingBagOffsetsSum, EmbeddingBagPacked, EmbeddingBagPackedSum};
use carafe_ops::pooling::AdaptiveAvgPool;
use carafe_tensor::ElementType;

const ATEN: &str = "org.pytorch.aten";

pub(crate) const RULES: &[StaticRule] = &[
    rule("ATen", 1, aten),
    rule_in(super::contrib::MS, "ATen", 1, aten),
    rule_in(ATEN, "ATen", 1, aten),
    rule_in(ATEN, "adaptive_avg_pool2d", 1, adaptive_avg_pool),
];

fn aten(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let operator: String = n.required("operator")?;
    n.ignore(&["overload_name"]);
    match operator.as_str() {
        "embedding_bag" => embedding_bag(n),
        "embedding" => {
            let (table, indices) = (n.input(0)?, n.input(1)?);
            // Index of padding and the two flags concern gradients.
            for i in 2..n.n_inputs() {
                n.opt(i)?;
            }
            n.ignore(&["padding_idx", "scale_grad_by_freq", "sparse"]);
            Ok(n.gather(table, indices, 0)?.into())
        }
        "adaptive_avg_pool2d" | "_adaptive_avg_pool2d" => adaptive_avg_pool(n),
        other => Err(n.unsupported(format!(
            "the ATen operator `{other}` is not supported; supported: adaptive_avg_pool2d, embedding, embedding_bag"
        ))),
    }
}

fn adaptive_avg_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, size) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(AdaptiveAvgPool, &[x, size])?.into())
}

fn embedding_bag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["scale_grad_by_freq", "sparse", "include_last_offset", "padding_idx"]);
    if n.attr("include_last_offset", 0i64)? != 0 || n.attr("padding_idx", -1i64)? >= 0 {
        return Err(n.unsupported("embedding_bag with include_last_offset or padding_idx is not supported"));
    }
    let mean = match n.required::<i64>("mode")? {
        0 => false,
        1 => true,
        mode => return Err(n.unsupported(format!("embedding_bag mode {mode} is not supported; supported: 0 (sum), 1 (mean)"))),
    };
    let (table, indices) = (n.input(0)?, n.input(1)?);
    let (offsets, weights) = (n.opt(2)?, n.opt(3)?);
    if mean && weights.is_some() {
        return Err(n.fail("embedding_bag takes weights of samples in mode 0 (sum) alone"));
    }
    let y = match offsets {
        None => {
            let mut inputs = vec![table, indices];
            inputs.extend(weights);
            match mean {
                true => n.emit(EmbeddingBagPacked { reduction: BagReduction::Mean }, &inputs)?,
                false => n.emit(EmbeddingBagPackedSum, &inputs)?,
            }
        }
        Some(offsets) => {
            let offsets = n.convert_like(offsets, indices)?;
            let mut inputs = vec![table, indices, offsets];
            if let Some(weights) = weights {
                let (table, nothing) = with_zeros(n, table, indices)?;
                inputs = vec![table, indices, offsets, nothing, weights];
            }
            match mean {
                true => n.emit(EmbeddingBagOffsets { reduction: BagReduction::Mean }, &inputs)?,
                false => n.emit(EmbeddingBagOffsetsSum, &inputs)?,
            }
        }
    };
    // The others serve training.
    Ok(vec![y; n.n_outputs()].into())
}

// The table with a row of zeros behind it, and the index of that row: what an empty bag gives.
fn with_zeros(n: &mut NodeCx<'_>, table: Value, indices: Value) -> Result<(Value, Value)> {
    let (one, width) = (n.i64s(&[1])?, n.size(table, 1)?);
    let shape = n.concat(&[one, width], 0)?;
    let zero = n.scalar_like(table, 0.0)?;
    let zeros = n.stretch(zero, shape)?;
    let last = n.length(table, 0)?;
    let last = match n.ty(indices) {
        ElementType::I64 => last,
        ty => n.convert(last, ty)?,
    };
    Ok((n.concat(&[table, zeros], 0)?, last))
}
