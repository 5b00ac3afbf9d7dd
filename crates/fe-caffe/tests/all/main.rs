//! Tests of Caffe files, in one binary: linking costs more than running.

mod bad_nets;
mod common;
mod forms;
mod layers;
mod layers_of_shape;
mod other_shapes;
mod raw_blobs;
mod real;
mod references;
mod undeclared;
