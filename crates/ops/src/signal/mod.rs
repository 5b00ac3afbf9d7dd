//! Fourier transforms. A complex tensor is a real one with a last axis of 2 (re, im), which no axis number counts; only
//! RDFT, whose input is real, counts axes over the whole rank.

mod axes;
mod fourier;
mod frames;

opset! {
    dft::{Dft, Idft},
    irdft::{Irdft},
    istft::{Istft},
    rdft::{Rdft},
    stft::{Stft},
}
