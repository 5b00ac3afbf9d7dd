//! Brings a component to the size of the picture as libjpeg does: between two samples by three parts of the nearer and one of
//! the farther, with a rounding that alternates, and by repetition where the ratio is another or a row is too short.

use super::{Component, Frame, zeros};
use crate::{Result, broken};

/// The component at the size of the picture.
pub(super) fn plane(component: &Component, frame: &Frame) -> Result<Vec<u8>> {
    let (width, height) = (frame.width, frame.height);
    if !frame.most.0.is_multiple_of(component.across) || !frame.most.1.is_multiple_of(component.down) {
        return Err(broken("colours are sampled at a ratio that is not whole"));
    }
    let ratio = (frame.most.0 / component.across, frame.most.1 / component.down);
    let samples = component.samples()?;
    let stride = component.blocks.0 * 8;
    let row = |y: usize| &samples[y * stride..y * stride + component.width];
    let mut out = zeros(width * height)?;
    // One sample more than the picture may come out of a row.
    let mut wide = zeros(component.width * ratio.0)?;
    for (y, out) in out.chunks_exact_mut(width).enumerate() {
        let own = (y / ratio.1).min(component.height - 1);
        // The row above for the upper half of a sample, the one below for the lower; the picture's last rows repeat.
        let other = if y % 2 == 0 { own.saturating_sub(1) } else { (own + 1).min(component.height - 1) };
        match ratio {
            (1, 1) => wide.copy_from_slice(row(own)),
            (1, 2) => between_rows(row(own), row(other), y % 2 == 0, &mut wide),
            (2, 1) if component.width > 2 => between_samples(row(own), &mut wide),
            (2, 2) if component.width > 2 => between_both(row(own), row(other), &mut wide),
            (across, _) => {
                for (x, wide) in wide.iter_mut().enumerate() {
                    *wide = row(own)[x / across];
                }
            }
        }
        out.copy_from_slice(&wide[..width]);
    }
    Ok(out)
}

fn between_rows(near: &[u8], far: &[u8], upper: bool, out: &mut [u8]) {
    let round = if upper { 1 } else { 2 };
    for ((near, far), out) in near.iter().zip(far).zip(out) {
        *out = ((3 * u32::from(*near) + u32::from(*far) + round) >> 2) as u8;
    }
}

fn between_samples(row: &[u8], out: &mut [u8]) {
    let last = row.len() - 1;
    for (x, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let at = |x: usize| u32::from(row[x]);
        let left = if x == 0 { at(0) } else { (3 * at(x) + at(x - 1) + 1) >> 2 };
        let right = if x == last { at(last) } else { (3 * at(x) + at(x + 1) + 2) >> 2 };
        *out = [left as u8, right as u8];
    }
}

fn between_both(near: &[u8], far: &[u8], out: &mut [u8]) {
    let last = near.len() - 1;
    for (x, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        // Sixteenths, four of them for each step between rows.
        let at = |x: usize| 3 * u32::from(near[x]) + u32::from(far[x]);
        let left = 3 * at(x) + at(x.saturating_sub(1)) + 8;
        let right = 3 * at(x) + at((x + 1).min(last)) + 7;
        *out = [(left >> 4) as u8, (right >> 4) as u8];
    }
}
