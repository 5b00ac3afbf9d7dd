//! Boxes of a suppression: corners out of either encoding, and their overlap.

/// What the four numbers of a box are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxEncoding {
    /// Any two diagonal corners: `y1, x1, y2, x2`.
    Corner,
    /// `x_center, y_center, width, height`.
    Center,
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

/// Selected boxes by coordinate, so that one candidate meets a vector of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    x1: Vec<f32>,
    y1: Vec<f32>,
    x2: Vec<f32>,
    y2: Vec<f32>,
    area: Vec<f32>,
}

/// Selected boxes a candidate meets at once.
const AT_ONCE: usize = 16;

impl Kept {
    pub(super) fn clear(&mut self) {
        let lists = [&mut self.x1, &mut self.y1, &mut self.x2, &mut self.y2, &mut self.area];
        lists.into_iter().for_each(Vec::clear);
    }

    pub(super) fn push(&mut self, b: Corners) {
        self.x1.push(b.x1);
        self.y1.push(b.y1);
        self.x2.push(b.x2);
        self.y2.push(b.y2);
        self.area.push(b.area());
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> (Corners, f32) {
        (Corners { x1: self.x1[i], y1: self.y1[i], x2: self.x2[i], y2: self.y2[i] }, self.area[i])
    }

    /// Whether `hit` holds for the overlap of the candidate with any of them.
    #[inline(always)]
    pub(super) fn any(&self, b: Corners, hit: impl Fn(f32) -> bool) -> bool {
        let (area, n) = (b.area(), self.x1.len());
        let lists = [&self.x1[..n], &self.y1[..n], &self.x2[..n], &self.y2[..n], &self.area[..n]];
        let mut i = 0;
        while i + AT_ONCE <= n {
            let [x1, y1, x2, y2, areas] = lists.map(|list| &list[i..i + AT_ONCE]);
            let mut any = false;
            for l in 0..AT_ONCE {
                let other = Corners { x1: x1[l], y1: y1[l], x2: x2[l], y2: y2[l] };
                any |= hit(b.iou(area, other, areas[l]));
            }
            if any {
                return true;
            }
            i += AT_ONCE;
        }
        (i..n).any(|i| {
            let (other, other_area) = self.at(i);
            hit(b.iou(area, other, other_area))
        })
    }
}
