//! The rules, one file a family. Each file has its table in front: operation, first version, translator.

pub mod common;
