//! Tests of the CPU device, in one binary: linking costs more than running.

mod bf16;
mod denormals;
mod detection;
mod embeddings;
mod empty;
mod gather;
mod halves;
mod integers;
mod layouts;
mod movement;
mod nets;
mod networks;
mod normalize;
mod parts;
mod priors;
mod quantize;
mod recurrent;
mod regions;
mod rotary;
mod sampling;
mod segments;
mod select;
mod separable;
mod shape_weights;
mod trees;
