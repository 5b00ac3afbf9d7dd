//! Keys and values that are kept between calls: `[batch, head, room, size]`, of which the first rows are in use. A cache may
//! be quantized, and one of fixed size for a window of the last tokens drops what has left the window.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_tensor::ElementType;

/// Where the rows of a cache and the new ones behind them come to lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Append {
    /// For each row to be, its place in the old rows followed by the new ones; `[batch, row]`.
    order: Value,
    /// Rows in use afterwards; `[batch, 1]`.
    filled: Value,
}

impl Append {
    /// `stored` rows of a cache with `room` rows are in use, `fresh` ones follow, and there are `total` in the end. `stored`
    /// is `[batch, 1]`, the others are scalars or vectors of one.
    pub(super) fn new(n: &mut NodeCx<'_>, stored: Value, [room, fresh, total]: [Value; 3]) -> Result<Append> {
        let total = n.reshape(total, &[])?;
        let t = n.count_to(total, ElementType::I64)?;
        let old = n.less(t, stored)?;
        let shift = n.minus(room, stored)?;
        let new = n.plus(t, shift)?;
        let order = n.choose(old, t, new)?;
        Ok(Append { order, filled: n.plus(stored, fresh)? })
    }

    /// Rows behind the last one in use hold zeros.
    pub(super) fn rows(self, n: &mut NodeCx<'_>, cache: Value, new: Value) -> Result<Value> {
        let all = n.concat(&[cache, new], 2)?;
        taken(n, all, self.order, self.filled)
    }
}

/// Rows in the given order, zeros from `filled` on. Indices behind the end are allowed there.
fn taken(n: &mut NodeCx<'_>, rows: Value, order: Value, filled: Value) -> Result<Value> {
    let length = n.length(rows, 2)?;
    let one = n.i64(1)?;
    let last = n.minus(length, one)?;
    let order = n.min(order, last)?;
    let axis = n.i64(2)?;
    let rows = n.emit(Gather { batch_dims: 1 }, &[rows, order, axis])?;
    let count = n.length(rows, 2)?;
    let t = n.count_to(count, ElementType::I64)?;
    let there = n.less(t, filled)?;
    let there = n.unsqueeze(there, &[1, 3])?;
    let zero = n.scalar_like(rows, 0.0)?;
    n.choose(there, rows, zero)
}

/// A buffer with new rows written from row `at` (a vector of one) on; all others stay.
pub(super) fn overwritten(n: &mut NodeCx<'_>, buffer: Value, new: Value, at: Value) -> Result<Value> {
    let (room, fresh) = (n.length(buffer, 2)?, n.length(new, 2)?);
    let j = n.count_to(room, ElementType::I64)?;
    let end = n.plus(at, fresh)?;
    let (behind, before) = (n.greater_equal(j, at)?, n.less(j, end)?);
    let within = n.and(behind, before)?;
    let shift = n.minus(room, at)?;
    let written = n.plus(j, shift)?;
    let order = n.choose(within, written, j)?;
    let all = n.concat(&[buffer, new], 2)?;
    n.gather(all, order, 2)
}

/// The rows of a buffer of beams as each beam sees its own past: `beams[i, j, k]` is the beam of group `i` that row `k` of
/// beam `j` came from. Rows from `at` on are the beam's own.
pub(super) fn of_beams(n: &mut NodeCx<'_>, buffer: Value, beams: Value, at: Value) -> Result<Value> {
    let shape = n.shape_of(buffer)?;
    let rest = n.part(shape, 1, i64::MAX, 0)?;
    let (groups, width) = (n.i64s(&[-1])?, n.size(beams, 1)?);
    let apart = n.concat(&[groups, width, rest], 0)?;
    let apart = n.reshaped(buffer, apart, false)?;
    // [group, row, beam, head, size]
    let rows = n.transpose(apart, &[0, 3, 1, 2, 4])?;
    let room = n.size(buffer, 2)?;
    let none = n.i64s(&[0])?;
    let beams = n.convert(beams, ElementType::I64)?;
    let beams = n.cut(beams, none, room, 2)?;
    let k = n.length(beams, 2)?;
    let k = n.count_to(k, ElementType::I64)?;
    let past = n.less(k, at)?;
    let own = n.length(beams, 1)?;
    let own = n.count_to(own, ElementType::I64)?;
    let own = n.unsqueeze(own, &[1])?;
    let beams = n.choose(past, beams, own)?;
    let beams = n.transpose(beams, &[0, 2, 1])?;
    let axis = n.i64(2)?;
    let rows = n.emit(Gather { batch_dims: 2 }, &[rows, beams, axis])?;
    let rows = n.transpose(rows, &[0, 2, 3, 1, 4])?;
    n.reshaped(rows, shape, false)
}

/// A cache of fixed size for the last tokens. Its rows move to the front only when the next ones would not fit, and then by
/// as many as the window allows, so that where they lie follows from the number of tokens alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sliding {
    room: Value,
    gap: Value,
}

impl Sliding {
    /// For a cache and a window of at most as many rows.
    pub(super) fn new(n: &mut NodeCx<'_>, cache: Value, window: i64) -> Result<Sliding> {
        if let Some(room) = n.shape(cache).dim(2).get()
            && room < window
        {
            return Err(n.fail(format!(
                "sliding_window_cache needs a cache of at least local_window_size = {window} rows, found {room}"
            )));
        }
        let room = n.size(cache, 2)?;
        let gap = n.plus_number(room, 1.0 - window as f64)?;
        Ok(Sliding { room, gap })
    }

    /// Rows in use after so many tokens.
    pub(super) fn in_use(self, n: &mut NodeCx<'_>, tokens: Value) -> Result<Value> {
        let none = n.i64(0)?;
        let surplus = n.minus(tokens, self.room)?;
        let surplus = n.max(surplus, none)?;
        let up = n.plus_number(self.gap, -1.0)?;
        let blocks = n.plus(surplus, up)?;
        let blocks = n.over(blocks, self.gap)?;
        let dropped = n.times(blocks, self.gap)?;
        n.minus(tokens, dropped)
    }

    /// What is left in the cache of `rows`, the first `filled` of which are in use, when `kept` are to be.
    pub(super) fn rest(self, n: &mut NodeCx<'_>, rows: Value, filled: Value, kept: Value) -> Result<Value> {
        let room = n.reshape(self.room, &[])?;
        let j = n.count_to(room, ElementType::I64)?;
        let first = n.minus(filled, kept)?;
        let order = n.plus(j, first)?;
        taken(n, rows, order, kept)
    }
}

/// How a quantized cache stores its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantized {
    scale: Value,
    form: Form,
    /// Elements of a row, where known; -1 otherwise.
    size: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// One signed byte each.
    Bytes,
    /// Two in a byte, the even one in the low half, 8 standing for 0.
    Halves,
    /// Small floats.
    Floats(ElementType),
}

impl Quantized {
    /// `kind` is the attribute, `scale` its input; nothing for an ordinary cache. `rows` are keys or values with their heads.
    pub(super) fn read(
        n: &mut NodeCx<'_>,
        kind: &str,
        scale: usize,
        rows: Value,
        cache: Option<Value>,
    ) -> Result<Option<Quantized>> {
        let per_channel = match n.attr(kind, "NONE".to_string())?.as_str() {
            "NONE" => return Ok(None),
            "PER_TENSOR" => false,
            "PER_CHANNEL" => true,
            other => {
                return Err(n.fail(format!("{kind} must be NONE, PER_TENSOR or PER_CHANNEL, found `{other}`")));
            }
        };
        let bits: i64 = n.attr("kv_cache_bit_width", 0)?;
        let form = match (bits, cache.map(|c| n.ty(c))) {
            (4, None | Some(ElementType::U8)) => Form::Halves,
            (8, None | Some(ElementType::I8)) => Form::Bytes,
            (8, Some(ty @ (ElementType::F8E4M3 | ElementType::F8E5M2))) => Form::Floats(ty),
            (4 | 8, Some(ty)) => return Err(n.fail(format!("a cache of {bits} bits cannot be of type {ty}"))),
            _ => return Err(n.fail(format!("kv_cache_bit_width of a quantized cache must be 4 or 8, found {bits}"))),
        };
        let heads = n.shape(rows).dim(1).get().unwrap_or(-1);
        let size = n.shape(rows).dim(3).get().unwrap_or(-1);
        super::quantized::check_scale(n, scale, true)?;
        let scale = n.input(scale)?;
        let scale = n.convert(scale, ElementType::F32)?;
        let scale = if per_channel { n.reshape(scale, &[1, heads, 1, size])? } else { n.reshape(scale, &[])? };
        Ok(Some(Quantized { scale, form, size }))
    }

    /// Rows of a cache as they are moved around: small floats are widened, their scale left out.
    pub(super) fn widened(self, n: &mut NodeCx<'_>, cache: Value) -> Result<Value> {
        if matches!(self.form, Form::Floats(_)) { n.convert(cache, ElementType::F32) } else { Ok(cache) }
    }

    /// The opposite of `widened`.
    pub(super) fn stored(self, n: &mut NodeCx<'_>, rows: Value) -> Result<Value> {
        match self.form {
            Form::Floats(ty) => n.convert(rows, ty),
            _ => Ok(rows),
        }
    }

    /// New rows as they are moved around.
    pub(super) fn encoded(self, n: &mut NodeCx<'_>, rows: Value) -> Result<Value> {
        let rows = n.convert(rows, ElementType::F32)?;
        // The reciprocal is what decides ties.
        let one = n.scalar(ElementType::F32, 1.0)?;
        let inverse = n.over(one, self.scale)?;
        let rows = n.times(rows, inverse)?;
        match self.form {
            Form::Bytes => {
                let rows = n.round(rows)?;
                let rows = n.between(rows, -128.0, 127.0)?;
                n.convert(rows, ElementType::I8)
            }
            Form::Halves => {
                let rows = n.round(rows)?;
                let rows = n.between(rows, -8.0, 7.0)?;
                let rows = n.plus_number(rows, 8.0)?;
                let half = if self.size < 0 { -1 } else { self.size / 2 };
                let pairs = n.reshape(rows, &[0, 0, 0, half, 2])?;
                let parts = n.split_equally(pairs, -1, 2)?;
                let high = n.times_number(parts[1], 16.0)?;
                let both = n.plus(parts[0], high)?;
                let both = n.squeeze(both, &[-1])?;
                n.convert(both, ElementType::U8)
            }
            Form::Floats(ty) => {
                let largest = if ty == ElementType::F8E4M3 { 448.0 } else { 57344.0 };
                let rows = n.between(rows, -largest, largest)?;
                let rows = n.convert(rows, ty)?;
                n.convert(rows, ElementType::F32)
            }
        }
    }

    /// The numbers that rows stand for, in the type of `like`.
    pub(super) fn decoded(self, n: &mut NodeCx<'_>, rows: Value, like: Value) -> Result<Value> {
        let mut numbers = n.convert(rows, ElementType::F32)?;
        if self.form == Form::Halves {
            let high = n.times_number(numbers, 1.0 / 16.0)?;
            let high = n.floor(high)?;
            let shifted = n.times_number(high, 16.0)?;
            let low = n.minus(numbers, shifted)?;
            let (low, high) = (n.unsqueeze(low, &[-1])?, n.unsqueeze(high, &[-1])?);
            let pairs = n.concat(&[low, high], -1)?;
            let flat = n.reshape(pairs, &[0, 0, 0, self.size])?;
            numbers = n.plus_number(flat, -8.0)?;
        }
        let numbers = n.times(numbers, self.scale)?;
        n.convert_like(numbers, like)
    }
}
