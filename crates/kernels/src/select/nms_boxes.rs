//! Boxes of a suppression: corners out of either encoding, and their overlap.

/// What the four numbers of a box are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxEncoding {
    /// Any two diagonal corners: `y1, x1, y2, x2`.
    Corner,
    /// `x_center, y_center, width, height`.
    Center,
    /// `x1, y1, x2, y2` as they are; a box that is turned around overlaps nothing, and an overlap that is no number
    /// suppresses nothing.
    Sides,
}

/// Two corners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corners {
    pub(super) x1: f32,
    pub(super) y1: f32,
    pub(super) x2: f32,
    pub(super) y2: f32,
}

impl Corners {
    /// Box `i` of the list.
    #[inline(always)]
    pub(super) fn at(boxes: &[f32], i: usize, encoding: BoxEncoding) -> Corners {
        let b = &boxes[4 * i..4 * i + 4];
        match encoding {
            BoxEncoding::Corner => {
                Corners { x1: b[1].min(b[3]), y1: b[0].min(b[2]), x2: b[1].max(b[3]), y2: b[0].max(b[2]) }
            }
            BoxEncoding::Center => {
                let (w, h) = (b[2] / 2.0, b[3] / 2.0);
                Corners { x1: b[0] - w, y1: b[1] - h, x2: b[0] + w, y2: b[1] + h }
            }
            BoxEncoding::Sides => Corners { x1: b[0], y1: b[1], x2: b[2], y2: b[3] },
        }
    }

    #[inline(always)]
    pub(super) fn area(self) -> f32 {
        (self.x2 - self.x1) * (self.y2 - self.y1)
    }

    /// Intersection over union; 0 when either box is empty.
    #[inline(always)]
    pub(super) fn iou(self, area: f32, other: Corners, other_area: f32) -> f32 {
        let w = self.x2.min(other.x2) - self.x1.max(other.x1);
        let h = self.y2.min(other.y2) - self.y1.max(other.y1);
        let both = w.max(0.0) * h.max(0.0);
        if both <= 0.0 { 0.0 } else { both / (area + other_area - both) }
    }
}

/// Selected boxes, so many coordinates of a kind together that one candidate meets a vector of boxes.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    blocks: Vec<Boxes>,
    len: usize,
}

/// Selected boxes a candidate meets at once.
const AT_ONCE: usize = 16;

/// Places that hold no box yet hold an empty one.
#[derive(Clone, Copy, Debug, Default)]
struct Boxes {
    x1: [f32; AT_ONCE],
    y1: [f32; AT_ONCE],
    x2: [f32; AT_ONCE],
    y2: [f32; AT_ONCE],
    area: [f32; AT_ONCE],
}

impl Kept {
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.len = 0;
    }

    pub(super) fn push(&mut self, b: Corners) {
        let lane = self.len % AT_ONCE;
        if lane == 0 {
            self.blocks.push(Boxes::default());
        }
        let block = &mut self.blocks[self.len / AT_ONCE];
        (block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane]) = (b.x1, b.y1, b.x2, b.y2);
        block.area[lane] = b.area();
        self.len += 1;
    }

    pub(super) fn at(&self, i: usize) -> (Corners, f32) {
        let (block, l) = (&self.blocks[i / AT_ONCE], i % AT_ONCE);
        (Corners { x1: block.x1[l], y1: block.y1[l], x2: block.x2[l], y2: block.y2[l] }, block.area[l])
    }

    /// Whether `hit` holds for the overlap of the candidate with any of them. Where it holds for some overlap, it holds
    /// for greater ones.
    #[inline(always)]
    pub(super) fn any(&self, b: Corners, hit: impl Fn(f32) -> bool) -> bool {
        if hit(0.0) {
            return self.len > 0;
        }
        let area = b.area();
        for block in &self.blocks {
            let mut both = [0.0; AT_ONCE];
            let mut meet = false;
            for l in 0..AT_ONCE {
                let w = b.x2.min(block.x2[l]) - b.x1.max(block.x1[l]);
                let h = b.y2.min(block.y2[l]) - b.y1.max(block.y1[l]);
                both[l] = w.max(0.0) * h.max(0.0);
                meet |= overlaps(both[l]);
            }
            // Boxes apart from each other are the usual case, and need no division.
            if meet {
                let mut any = false;
                for l in 0..AT_ONCE {
                    let iou = both[l] / (area + block.area[l] - both[l]);
                    any |= overlaps(both[l]) & hit(iou);
                }
                if any {
                    return true;
                }
            }
        }
        false
    }
}

// Infinite boxes may share an area that is no number.
#[inline(always)]
fn overlaps(both: f32) -> bool {
    (both > 0.0) | both.is_nan()
}
