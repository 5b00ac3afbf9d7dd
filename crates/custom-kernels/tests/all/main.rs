//! Kernel files as a whole.

mod halves;
mod mutations;
