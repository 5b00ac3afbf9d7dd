//! Small models built in code, quantized and compressed on CPU.

mod compression;
mod nets;
mod quantization;
