//! Tests of the command as a process, in one binary: linking costs more than running.

mod api_pages;
mod bench;
mod c_api;
mod cache;
mod caffe;
mod commands;
mod common;
mod convert_options;
mod crash;
mod explain;
mod extension;
mod faq;
mod isolate;
mod kaldi;
mod limits;
mod mapping;
mod mxnet;
mod onnx_models;
mod paddle;
mod quantize;
mod reference_pages;
mod sequences;
mod tensorflow;
mod view;
