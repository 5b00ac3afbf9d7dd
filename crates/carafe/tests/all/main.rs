//! Tests of reading, converting and running through the facade, in one binary: linking costs more than running.

mod async_requests;
mod caffe_conversion;
mod caffe_shapes;
mod conversion;
#[cfg(feature = "gpu")]
mod custom_kernels;
mod custom_layers;
mod decoded_library;
mod denormals;
mod device;
mod examples;
mod explain;
mod facade;
#[cfg(feature = "gpu")]
mod gpu;
mod kernels;
mod loop_weights;
mod mean_file;
mod model_cache;
mod pipeline;
mod portable_ir;
mod pruning;
mod replacement;
mod sequences;
mod silence;
mod six_lines;
mod targets;
mod tf_detection;
mod unread_attributes;
