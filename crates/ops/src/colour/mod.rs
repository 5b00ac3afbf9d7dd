//! Colour conversion between RGB and YUV with quarter-size chroma (BT.601, limited range). Bytes are rounded half away from
//! zero, floats are not rounded; both are cut to 0..255.

mod to_yuv;
mod yuv;

opset! {
    bgr_to_nv12::{BgrToNv12},
    i420_to_bgr::{I420ToBgr},
    i420_to_rgb::{I420ToRgb},
    nv12_to_bgr::{Nv12ToBgr},
    nv12_to_rgb::{Nv12ToRgb},
    rgb_to_nv12::{RgbToNv12},
}
