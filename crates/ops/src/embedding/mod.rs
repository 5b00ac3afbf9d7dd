//! Sums and means of rows of an embedding table.

mod bags;
pub use bags::BagReduction;

opset! {
    embedding_bag_offsets::{EmbeddingBagOffsets, EmbeddingBagOffsetsSum},
    embedding_bag_packed::{EmbeddingBagPacked, EmbeddingBagPackedSum},
    embedding_segments_sum::{EmbeddingSegmentsSum},
}
