//! `ov_layout.h`: what the axes of a tensor are.

use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::pointers::{Out, Text};
use crate::status::{Status, guard, guard_or};
use carafe::preprocess::Layout;
use std::ffi::c_char;
use std::sync::Arc;

/// `ov_layout_t`.
#[derive(Debug)]
pub struct LayoutObject(pub(crate) Layout);

impl Object for LayoutObject {
    const KIND: &'static str = "ov_layout_t";
}

/// Reads a layout: `NCHW`, `[N,C,H,W]`, `N...C`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_layout_create(layout_desc: Text, layout: Out<Handle<LayoutObject>>) -> Status {
    guard(|| {
        layout.check("layout")?;
        let object = LayoutObject(layout_desc.get("layout_desc")?.parse()?);
        layout.set(hand_out(Arc::new(object)), "layout")
    })
}

/// Frees a layout.
#[unsafe(no_mangle)]
pub extern "C" fn ov_layout_free(layout: Handle<LayoutObject>) {
    drop(layout.take());
}

/// Such as `[N,C,H,W]`, or words that say what is wrong with the handle; to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_layout_to_string(layout: Handle<LayoutObject>) -> *const c_char {
    guard_or(std::ptr::null(), || {
        let text = match layout.get("layout") {
            Ok(object) => object.0.to_string(),
            Err(failure) => format!("Error: {failure}"),
        };
        Ok(heap::text(&text)?.cast_const())
    })
}
