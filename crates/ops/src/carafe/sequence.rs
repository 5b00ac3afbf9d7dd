//! What the operations on packed sequences share. A packed sequence is a u8 vector with the bytes of
//! `carafe_tensor::pack_sequence`; how many tensors it holds, and which, is only known when it is evaluated.

use carafe_graph::{Error, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PackedSequence, PartialShape};

/// Refuses an input that cannot be a packed sequence.
pub(super) fn require_sequence(cx: &InferCx<'_>, input: usize) -> Result<()> {
    let ty = cx.ty(input);
    cx.require(matches!(ty, ElementType::U8 | ElementType::Dynamic), || {
        format!("{} must be a packed sequence of type u8, found {ty}", cx.port_name(input))
    })?;
    cx.require_rank(input, &[1])
}

/// Refuses a position that is not one integer.
pub(super) fn require_position(cx: &InferCx<'_>, input: usize) -> Result<()> {
    if input >= cx.n_inputs() {
        return Ok(());
    }
    cx.require_integer(input)?;
    cx.require(cx.shape(input).elements().is_none_or(|n| n == 1), || {
        format!("{} must have one element, found [{}]", cx.port_name(input), cx.shape(input))
    })
}

/// Says that an output is a packed sequence.
pub(super) fn set_sequence(cx: &mut InferCx<'_>, output: usize) {
    cx.set(output, ElementType::U8, PartialShape::new([Dim::ANY]));
}

/// A position among `positions`; negative ones count from the end of the `len` elements.
pub(super) fn position(at: i64, len: usize, positions: usize) -> Result<usize> {
    let from_start = if at < 0 { at.saturating_add_unsigned(len as u64) } else { at };
    let found = usize::try_from(from_start).ok().filter(|&i| i < positions);
    found.ok_or_else(|| Error::invalid(format!("position {at} is outside of a sequence of {len}")))
}

/// Refuses a further element of another type; a sequence holds one.
pub(super) fn require_element(sequence: &PackedSequence<'_>, item: ElementType) -> Result<()> {
    match sequence.types().next() {
        Some((ty, _)) if ty != item => {
            Err(Error::invalid(format!("a sequence holds one element type, found {ty} and {item}")))
        }
        _ => Ok(()),
    }
}
