//! Extensions through real dynamic libraries. The same questions go to the same library written in Rust, in C and in C++;
//! then come libraries that are wrong, older or newer.

mod bad_files;
mod bad_tables;
mod by_documents;
mod elementwise;
mod examples;
mod growth;
mod internal;
mod kaldi;
mod kernels;
mod kinds;
mod misuse;
mod mri;
mod mxnet;
mod needed;
mod paddle;
mod registering;
mod support;
mod tensorflow;
mod tflite;
