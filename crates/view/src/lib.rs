//! Pictures of models: [`Graph`] is what there is to show, [`layout`] says where each box lies, [`page()`] makes one HTML page of both
//! and [`model_explorer()`] a file for Google's Model Explorer. Nothing here writes a file or opens a connection.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod explorer;
mod graph;
pub mod layout;
mod page;
mod sheets;
mod weights;

pub use explorer::model_explorer;
pub use graph::{Edge, Graph, Kind, NodeBox};
pub use page::page;
pub use sheets::{Item, Sheet, sheets};
pub use weights::Weights;
