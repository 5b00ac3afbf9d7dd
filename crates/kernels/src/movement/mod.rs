//! Moving elements without changing them. [`StridedCopy`] is the one engine behind permutations, slices, pads, tiles,
//! broadcasts, concatenations and splits; gathers and scatters are the moves that depend on data. Elements are bytes of a
//! given size here, so one kernel serves all types of that size.

mod bags;
mod gather;
pub(crate) mod indices;
mod join;
mod pad;
mod rows;
mod scatter;
mod scatter_elements;
mod strided;
mod tiles;
mod transpose;
mod view;
mod walk;
mod weave;

pub use bags::EmbeddingBag;
pub use gather::{Gather, GatherElements, GatherNd};
pub use indices::{BadIndex, Indices, IndicesMut};
pub use join::{Concat, RowPiece, Split};
pub use pad::{Pad, PadMode, Roll};
pub use scatter::{Reduction, ScatterNd, ScatterUpdate};
pub use scatter_elements::ScatterElements;
pub use strided::StridedCopy;
pub use view::View;

pub(crate) use strided::chunks_of;
pub(crate) use view::product;
