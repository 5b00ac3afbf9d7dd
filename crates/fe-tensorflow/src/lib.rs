//! TensorFlow models: frozen graphs, SavedModels, MetaGraphs and checkpoints.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ops;
