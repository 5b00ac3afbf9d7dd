//! The part that GenerateProposals and its Detectron predecessor share: anchors moved by deltas, clipped to the image and
//! checked for size. Deltas and scores are channel by channel, anchors and results cell by cell.

use super::boxes::Corners;

/// Logarithmic growth is limited to 1000 pixels from a stride of 16.
const MAX_LOG_SIZE: f32 = 4.135_166_6;

/// Where boxes are clipped, and how small they may be.
pub(super) struct Image {
    pub(super) height: f32,
    pub(super) width: f32,
    pub(super) least_height: f32,
    pub(super) least_width: f32,
}

/// A refined anchor.
pub(super) struct Refined {
    pub(super) corners: Corners,
    pub(super) score: f32,
    pub(super) large_enough: bool,
}

/// Refines `anchors * cells` boxes. `offset` is 1 where boxes count pixels inclusively.
pub(super) fn refine_anchors(
    anchors: &[f32],
    deltas: &[f32],
    scores: &[f32],
    cells: usize,
    image: &Image,
    offset: f32,
) -> Vec<Refined> {
    let per_cell = scores.len().checked_div(cells).unwrap_or(0);
    let mut refined = Vec::with_capacity(scores.len());
    for cell in 0..cells {
        for a in 0..per_cell {
            let d = |i: usize| deltas[(4 * a + i) * cells + cell];
            let corners = Corners::at(anchors, cell * per_cell + a)
                .refined([d(0), d(1), d(2), d(3)], MAX_LOG_SIZE, offset, offset)
                .clipped(image.width - offset, image.height - offset);
            let large_enough =
                image.least_width <= corners.width(offset) && image.least_height <= corners.height(offset);
            refined.push(Refined { corners, score: scores[a * cells + cell], large_enough });
        }
    }
    refined
}
