//! Operations that no numbered opset has and that cannot be composed from it. They are written to files under the opset
//! `carafe`, which other readers refuse.

opset! {
    bit_cast::{BitCast}, convert_text::{ConvertText}, det::{Det}, text_index::{TextIndex},
}
