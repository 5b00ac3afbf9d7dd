//! Products of `com.microsoft` beyond the fused ones: distances of rows, and weights of 4 bits that stand for entries of a
//! table.

use super::contrib::MS;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Error, Result};
use carafe_tensor::float8::NF4_LEVELS;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "CDist", 1, distances),
    rule_in(MS, "MatMulBnb4", 1, mat_mul_bnb4),
    rule_in(MS, "MatMulInteger16", 1, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        let (a, b) = (n.convert(a, ElementType::I32)?, n.convert(b, ElementType::I32)?);
        Ok(n.product(a, b, false)?.into())
    }),
];

fn distances(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let metric: String = n.attr("metric", "sqeuclidean".to_string())?;
    let root = match metric.as_str() {
        "sqeuclidean" => false,
        "euclidean" => true,
        other => {
            return Err(n.unsupported(format!("metric `{other}` is not supported; supported: euclidean, sqeuclidean")));
        }
    };
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (a, b) = (n.unsqueeze(a, &[1])?, n.unsqueeze(b, &[0])?);
    let apart = n.minus(a, b)?;
    let square = n.times(apart, apart)?;
    let sum = n.sum_over(square, &[2], false)?;
    Ok(if root { n.sqrt(sum)? } else { sum }.into())
}

// What the 16 codes stand for, by `quant_type`.
const FP4: [f32; 16] = [
    0.0,
    0.005_208_333_4,
    0.666_666_7,
    1.0,
    0.333_333_34,
    0.5,
    0.166_666_67,
    0.25,
    -0.0,
    -0.005_208_333_4,
    -0.666_666_7,
    -1.0,
    -0.333_333_34,
    -0.5,
    -0.166_666_67,
    -0.25,
];

fn mat_mul_bnb4(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let size = |name: &str, value: i64| {
        let size = usize::try_from(value).ok().filter(|&v| v > 0);
        size.ok_or_else(|| Error::invalid(format!("{name} must be above 0, found {value}")))
    };
    let (k, columns) = (size("K", n.required("K")?)?, size("N", n.required("N")?)?);
    let block = size("block_size", n.required("block_size")?)?;
    let table = match n.required::<i64>("quant_type")? {
        0 => FP4,
        1 => NF4_LEVELS,
        other => return Err(n.fail(format!("quant_type must be 0 (FP4) or 1 (NF4), found {other}"))),
    };
    n.ignore(&["training_mode"]);
    let transposed = n.attr("transB", 1i64)? != 0;
    let (a, packed, largest) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let count = k.checked_mul(columns).ok_or_else(|| n.fail("the weights have too many elements"))?;
    let bytes = n.tensor(packed).map(|t| t.bytes().to_vec());
    let bytes = bytes.ok_or_else(|| n.unsupported("packed weights must be constant"))?;
    if bytes.len() < count.div_ceil(2) {
        return Err(n.fail(format!("{count} weights need {} bytes, found {}", count.div_ceil(2), bytes.len())));
    }
    // The high half comes first here; elements of 4 bits have the low one in front.
    let swapped: Vec<u8> = bytes[..count.div_ceil(2)].iter().map(|b| b.rotate_left(4)).collect();
    let codes = n.constant(Tensor::from_bytes(ElementType::U4, &[count], &swapped)?)?;
    let codes = n.convert(codes, ElementType::I32)?;
    let table = n.constant(Tensor::from_slice(&[16], &table)?)?;
    let table = n.convert_like(table, a)?;
    let weights = n.gather(table, codes, 0)?;
    let blocks = count.div_ceil(block);
    let largest = n.convert_like(largest, a)?;
    let largest = n.reshape(largest, &[-1])?;
    let weights = if blocks * block == count {
        let weights = n.reshape(weights, &[blocks as i64, block as i64])?;
        let scale = n.unsqueeze(largest, &[1])?;
        n.times(weights, scale)?
    } else {
        let of_each: Vec<i64> = (0..blocks as i64).flat_map(|b| std::iter::repeat_n(b, block)).take(count).collect();
        let of_each = n.i64s(&of_each)?;
        let scale = n.gather(largest, of_each, 0)?;
        n.times(weights, scale)?
    };
    let weights = n.reshape(weights, &[columns as i64, k as i64])?;
    Ok(n.product(a, weights, transposed)?.into())
}
