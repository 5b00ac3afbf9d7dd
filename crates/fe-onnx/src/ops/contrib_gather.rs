//! GatherBlockQuantized of `com.microsoft`: rows of a table whose numbers are packed into bytes and scaled by blocks. Only
//! the rows that are asked for are unpacked.

use super::contrib::MS;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[rule_in(MS, "GatherBlockQuantized", 1, gather_block_quantized)];

fn gather_block_quantized(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (gather_axis, quantize_axis): (i64, i64) = (n.attr("gather_axis", 0)?, n.attr("quantize_axis", 1)?);
    let block: i64 = n.attr("block_size", 128)?;
    let bits: i64 = n.attr("bits", 4)?;
    if block < 16 || block & (block - 1) != 0 {
        return Err(n.fail(format!("block_size must be a power of 2 from 16 on, found {block}")));
    }
    let (data, indices, scales) = (n.input(0)?, n.input(1)?, n.input(2)?);
    super::quantized::check_scale(n, 2, false)?;
    let rank = n.known_rank(data)?;
    let (at, blocks) = (n.axis(gather_axis, rank)?, n.axis(quantize_axis, rank)?);
    let numbers = Numbers::of(n, data, bits)?;
    let indices_rank = n.known_rank(indices)?;

    let (rows, of_block) = if at == blocks {
        // Each index has the scale of its block; negative ones count from the end.
        let indices = n.convert(indices, ElementType::I64)?;
        let all = numbers.unpacked(n, data, scales)?;
        let length = n.length(all, at as i64)?;
        let zero = n.i64(0)?;
        let negative = n.less(indices, zero)?;
        let wrapped = n.plus(indices, length)?;
        let indices = n.choose(negative, wrapped, indices)?;
        let of_block = n.over_number(indices, block as f64)?;
        (n.gather(all, indices, at as i64)?, of_block)
    } else if at + 1 == rank && numbers.per_byte > 1 {
        let all = numbers.unpacked(n, data, scales)?;
        (n.gather(all, indices, at as i64)?, indices)
    } else {
        let packed = numbers.packed(n, data)?;
        let rows = n.gather(packed, indices, at as i64)?;
        (numbers.unpacked(n, rows, scales)?, indices)
    };
    let zeros = match n.opt(3)? {
        None => None,
        Some(zeros) => {
            let zeros = Numbers::of(n, zeros, bits)?.unpacked(n, zeros, scales)?;
            // The last byte may have room to spare.
            let (start, stop) = (n.i64s(&[0])?, n.size(scales, -1)?);
            let zeros = n.cut(zeros, start, stop, -1)?;
            Some(n.gather(zeros, of_block, at as i64)?)
        }
    };
    let scales = n.gather(scales, of_block, at as i64)?;
    let zeros = match zeros {
        Some(zeros) => zeros,
        None => n.scalar_like(scales, numbers.middle)?,
    };
    // Where the blocks lie once the indices have taken the position of their axis.
    let axis = if blocks > at { blocks + indices_rank - 1 } else { blocks };
    let spread = |n: &mut NodeCx<'_>, v: Value| -> Result<Value> {
        if n.rank(v) == Some(0) || at == blocks {
            return Ok(v);
        }
        repeated(n, v, axis as i64, block, rows)
    };
    let (scales, zeros) = (spread(n, scales)?, spread(n, zeros)?);
    let y = n.minus(rows, zeros)?;
    Ok(n.times(y, scales)?.into())
}

/// How a table stores its numbers.
struct Numbers {
    bits: i64,
    per_byte: i64,
    signed: bool,
    /// What stands for 0 unless zero points are given.
    middle: f64,
}

impl Numbers {
    fn of(n: &NodeCx<'_>, data: Value, bits: i64) -> Result<Numbers> {
        match (n.ty(data), bits) {
            (ElementType::U8, 2 | 4 | 8) => {
                Ok(Numbers { bits, per_byte: 8 / bits, signed: false, middle: f64::from(1 << (bits - 1)) })
            }
            (ElementType::U4, 4) => Ok(Numbers { bits, per_byte: 2, signed: false, middle: 0.0 }),
            (ElementType::I4, 4) => Ok(Numbers { bits, per_byte: 2, signed: true, middle: 0.0 }),
            (ty, _) => Err(n.unsupported(format!(
                "tables of {ty} with {bits} bits are not supported; supported: u8 with 2, 4 or 8, u4 and i4 with 4"
            ))),
        }
    }

    /// The bytes of the table, with as many fewer in the last axis. Elements of 4 bits must fill them row by row.
    fn packed(&self, n: &mut NodeCx<'_>, data: Value) -> Result<Value> {
        if n.ty(data) == ElementType::U8 {
            return Ok(data);
        }
        let tensor = n.tensor(data).ok_or_else(|| n.unsupported("a table of 4-bit elements must be constant"))?;
        let mut shape = tensor.shape().to_vec();
        match shape.last_mut() {
            Some(last) if *last % 2 == 0 => *last /= 2,
            // Rows begin in the middle of a byte: one byte each.
            _ => return n.convert(data, ElementType::F32),
        }
        let bytes = tensor.bytes().to_vec();
        n.constant(Tensor::from_bytes(ElementType::U8, &shape, &bytes)?)
    }

    /// Numbers in the type of `like`.
    fn unpacked(&self, n: &mut NodeCx<'_>, v: Value, like: Value) -> Result<Value> {
        if n.ty(v) != ElementType::U8 || self.per_byte == 1 {
            return n.convert_like(v, like);
        }
        let mut rest = n.convert(v, ElementType::F32)?;
        let base = f64::from(1 << self.bits);
        let mut parts = vec![];
        for last in (0..self.per_byte).map(|i| i + 1 == self.per_byte) {
            let part = if last {
                rest
            } else {
                let higher = n.times_number(rest, 1.0 / base)?;
                let higher = n.floor(higher)?;
                let shifted = n.times_number(higher, base)?;
                let part = n.minus(rest, shifted)?;
                rest = higher;
                part
            };
            parts.push(n.unsqueeze(part, &[-1])?);
        }
        let rank = n.known_rank(v)?;
        let parts = n.concat(&parts, -1)?;
        let pattern: Vec<i64> = (1..rank).map(|_| 0).chain([-1]).collect();
        let mut numbers = n.reshape(parts, &pattern)?;
        if self.signed {
            let half = n.number(numbers, base / 2.0)?;
            let negative = n.greater_equal(numbers, half)?;
            let lower = n.plus_number(numbers, -base)?;
            numbers = n.choose(negative, lower, numbers)?;
        }
        n.convert_like(numbers, like)
    }
}

// Every element of an axis `times` times in a row, as many as `like` has.
fn repeated(n: &mut NodeCx<'_>, v: Value, axis: i64, times: i64, like: Value) -> Result<Value> {
    let rank = n.known_rank(v)? as i64;
    let wide = n.unsqueeze(v, &[axis + 1])?;
    let pattern: Vec<i64> = (0..=rank).map(|i| if i == axis + 1 { times } else { 1 }).collect();
    let pattern = n.i64s(&pattern)?;
    let wide = n.stretch(wide, pattern)?;
    let shape = n.shape_of(v)?;
    let (front, own, back) = (n.part(shape, 0, axis, 0)?, n.part(shape, axis, axis + 1, 0)?, n.part(shape, axis + 1, rank, 0)?);
    let own = n.times_number(own, times as f64)?;
    let shape = n.concat(&[front, own, back], 0)?;
    let flat = n.reshaped(wide, shape, false)?;
    let (start, stop) = (n.i64s(&[0])?, n.size(like, axis)?);
    n.cut(flat, start, stop, axis)
}
