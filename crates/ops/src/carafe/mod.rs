//! Operations that no numbered opset has and that cannot be composed from it. They are written to files under the opset
//! `carafe`, which other readers refuse.

mod sequence;
mod text;

opset! {
    bit_cast::{BitCast}, convert_text::{ConvertText}, decompress::{Decompress}, dequantize::{Dequantize}, det::{Det}, embedding_sum::{EmbeddingSum},
    image_decode::{ImageDecode},
    ngram_counts::{NgramCounts}, quantize_dequantize::{QuantizeDequantize}, rms_norm::{RmsNorm}, rotary_embedding::{RotaryEmbedding},
    sequence_at::{SequenceAt}, sequence_concat::{SequenceConcat},
    sequence_erase::{SequenceErase}, sequence_insert::{SequenceInsert}, sequence_length::{SequenceLength},
    sequence_pack::{SequencePack}, sequence_split::{SequenceSplit}, text_concat::{TextConcat},
    text_hash::{TextHash}, text_index::{TextIndex}, text_map::{TextMap}, text_matches::{TextMatches},
    text_ngrams::{TextNgrams}, text_part::{TextLength, TextPart}, text_pieces::{TextPieces},
    text_normalize::{TextNormalize}, text_replace::{TextReplace}, text_split::{TextSplit}, text_tokens::{TextTokens}, tree_walk::{TreeWalk},
}
