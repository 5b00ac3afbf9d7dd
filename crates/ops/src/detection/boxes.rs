//! Boxes as two corners: overlap, clipping and the usual refinement by deltas. Operations disagree about whether a box
//! of pixels `x1..x2` is `x2 - x1` wide or one more, so the `offset` (0 or 1) is always passed.

/// A box; not necessarily with `x1 <= x2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Corners {
    pub(super) x1: f32,
    pub(super) y1: f32,
    pub(super) x2: f32,
    pub(super) y2: f32,
}

impl Corners {
    /// The `i`-th group of four numbers `x1, y1, x2, y2`.
    pub(super) fn at(data: &[f32], i: usize) -> Corners {
        let b = &data[4 * i..4 * i + 4];
        Corners { x1: b[0], y1: b[1], x2: b[2], y2: b[3] }
    }
    pub(super) fn to_array(self) -> [f32; 4] {
        [self.x1, self.y1, self.x2, self.y2]
    }
    pub(super) fn width(self, offset: f32) -> f32 {
        self.x2 - self.x1 + offset
    }
    pub(super) fn height(self, offset: f32) -> f32 {
        self.y2 - self.y1 + offset
    }
    /// Each corner brought into `0..=width` and `0..=height`.
    pub(super) fn clipped(self, width: f32, height: f32) -> Corners {
        let clip = |v: f32, high: f32| v.min(high).max(0.0);
        Corners {
            x1: clip(self.x1, width),
            y1: clip(self.y1, height),
            x2: clip(self.x2, width),
            y2: clip(self.y2, height),
        }
    }
    /// Whether the two share at least an edge, the offset not counted.
    pub(super) fn touches(self, other: Corners) -> bool {
        self.x1 <= other.x2 && other.x1 <= self.x2 && self.y1 <= other.y2 && other.y1 <= self.y2
    }
    /// Intersection over union; 0 when either box is empty.
    pub(super) fn iou(self, other: Corners, offset: f32) -> f32 {
        let w = self.x2.min(other.x2) - self.x1.max(other.x1) + offset;
        let h = self.y2.min(other.y2) - self.y1.max(other.y1) + offset;
        let both = w.max(0.0) * h.max(0.0);
        if both <= 0.0 {
            return 0.0;
        }
        let area = |b: Corners| b.width(offset) * b.height(offset);
        both / (area(self) + area(other) - both)
    }
    /// As `iou`, but boxes that do not touch have none even if less than the offset apart.
    pub(super) fn iou_touching(self, other: Corners, offset: f32) -> f32 {
        if self.touches(other) { self.iou(other, offset) } else { 0.0 }
    }
    /// Moves the centre by parts of the size and scales the size by exponentials: `d = [dx, dy, log w, log h]`.
    /// `end_offset` is taken off the far corner again by operations that count pixels inclusively.
    pub(super) fn refined(self, d: [f32; 4], max_log: f32, offset: f32, end_offset: f32) -> Corners {
        let (w, h) = (self.width(offset), self.height(offset));
        let (cx, cy) = (self.x1 + 0.5 * w, self.y1 + 0.5 * h);
        let (cx, cy) = (d[0] * w + cx, d[1] * h + cy);
        let (w, h) = (d[2].min(max_log).exp() * w, d[3].min(max_log).exp() * h);
        Corners {
            x1: cx - 0.5 * w,
            y1: cy - 0.5 * h,
            x2: cx + 0.5 * w - end_offset,
            y2: cy + 0.5 * h - end_offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corners(b: [f32; 4]) -> Corners {
        Corners::at(&b, 0)
    }

    #[test]
    fn a_box_covers_itself() {
        assert_eq!(corners([0.0, 0.0, 2.0, 3.0]).iou(corners([0.0, 0.0, 2.0, 3.0]), 0.0), 1.0);
    }

    #[test]
    fn empty_and_turned_boxes_overlap_nothing() {
        let unit = corners([0.0, 0.0, 1.0, 1.0]);
        assert_eq!(unit.iou(corners([0.5, 0.5, 0.5, 0.5]), 0.0), 0.0);
        assert_eq!(unit.iou(corners([1.0, 1.0, 0.0, 0.0]), 0.0), 0.0);
    }

    #[test]
    fn counted_pixels_overlap_where_edges_are_apart() {
        let (a, b) = (corners([0.0, 0.0, 1.0, 1.0]), corners([1.5, 0.0, 2.5, 1.0]));
        assert!(a.iou(b, 1.0) > 0.0);
        assert_eq!(a.iou_touching(b, 1.0), 0.0);
    }
}
