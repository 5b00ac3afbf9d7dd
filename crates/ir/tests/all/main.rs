//! Tests of IR files, in one binary: linking costs more than running.

mod attributes;
mod bodies;
mod common;
mod files;
mod hostile;
mod op_names;
mod openvino_files;
mod read;
mod unknown;
mod version_10;
mod versions;
mod write;
