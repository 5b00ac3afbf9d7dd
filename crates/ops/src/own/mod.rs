//! Operations that no numbered opset has and that cannot be composed from it. They are written to files under the opset
//! `carafe`, which other readers refuse.

mod text;

opset! {
    bit_cast::{BitCast}, convert_text::{ConvertText}, det::{Det}, ngram_counts::{NgramCounts}, rms_norm::{RmsNorm}, text_concat::{TextConcat},
    text_index::{TextIndex}, text_normalize::{TextNormalize}, text_split::{TextSplit},
}
