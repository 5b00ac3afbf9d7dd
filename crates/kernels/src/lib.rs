//! Kernels of the CPU device. Every public function is safe: it checks the lengths it is given at the door and panics on a
//! caller's mistake; what runs behind it is chosen by [`Isa`] at run time. Data is row-major; images lie channels last.
//!
//! This crate knows neither graphs nor tensors: it takes slices and numbers.

mod arena;
mod buffer;
pub mod cast;
pub mod eltwise;
mod epilogue;
mod exec;
mod isa;
pub mod norm;
mod pool;
pub mod reduce;
mod shared;
pub mod softmax;
pub mod vmath;

pub use arena::{Arena, MAX_PARTS, Part};
pub use buffer::Buffer;
pub use epilogue::{Act, Epilogue, Finish, Tile};
pub use exec::{Exec, Scratch};
pub use isa::Isa;
pub use pool::{Pool, PoolOptions};
pub use shared::{SharedMut, part_of};
