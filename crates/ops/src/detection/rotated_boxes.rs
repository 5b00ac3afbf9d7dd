//! Turned boxes and how much two of them overlap: one is cut by the four edges of the other, in f64.

/// A box around its centre, turned by an angle in radians.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turned {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) angle: f32,
}

type Point = [f64; 2];

impl Turned {
    /// Intersection over union; 0 when either box is empty.
    pub(super) fn iou(&self, other: &Turned) -> f32 {
        let (a, b) = (self.area(), other.area());
        if !(a > 0.0 && b > 0.0) {
            return 0.0;
        }
        let both = intersection(&self.corners(), &other.corners());
        (both / (a + b - both)) as f32
    }

    fn area(&self) -> f64 {
        f64::from(self.width) * f64::from(self.height)
    }

    fn corners(&self) -> [Point; 4] {
        let (sin, cos) = f64::from(self.angle).sin_cos();
        let (w, h) = (f64::from(self.width) / 2.0, f64::from(self.height) / 2.0);
        [[-w, -h], [w, -h], [w, h], [-w, h]]
            .map(|[x, y]| [f64::from(self.x) + x * cos - y * sin, f64::from(self.y) + x * sin + y * cos])
    }
}

/// Area of the overlap of two convex polygons whose corners run in the same direction, that of growing angles.
fn intersection(subject: &[Point; 4], clip: &[Point; 4]) -> f64 {
    let mut polygon = subject.to_vec();
    for i in 0..4 {
        let (from, to) = (clip[i], clip[(i + 1) % 4]);
        // Positive on the inner side of the edge.
        let side = |p: Point| (to[0] - from[0]) * (p[1] - from[1]) - (to[1] - from[1]) * (p[0] - from[0]);
        let mut cut = Vec::with_capacity(polygon.len() + 1);
        for j in 0..polygon.len() {
            let (p, q) = (polygon[j], polygon[(j + 1) % polygon.len()]);
            let (sp, sq) = (side(p), side(q));
            if sp >= 0.0 {
                cut.push(p);
            }
            if (sp > 0.0 && sq < 0.0) || (sp < 0.0 && sq > 0.0) {
                let t = sp / (sp - sq);
                cut.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
            }
        }
        polygon = cut;
    }
    let twice: f64 = (0..polygon.len())
        .map(|i| {
            let (p, q) = (polygon[i], polygon[(i + 1) % polygon.len()]);
            p[0] * q[1] - p[1] * q[0]
        })
        .sum();
    (twice / 2.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(x: f32, angle: f32) -> Turned {
        Turned { x, y: 0.0, width: 2.0, height: 2.0, angle }
    }

    #[test]
    fn upright_boxes_overlap_as_usual() {
        assert!((square(0.0, 0.0).iou(&square(1.0, 0.0)) - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(square(0.0, 0.0).iou(&square(5.0, 0.3)), 0.0);
    }

    #[test]
    fn a_quarter_turn_of_a_square_changes_nothing() {
        assert!((square(0.0, 0.0).iou(&square(0.0, std::f32::consts::FRAC_PI_2)) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn an_eighth_turn_cuts_the_corners() {
        let octagon = 8.0 * (2f32.sqrt() - 1.0);
        let iou = square(0.0, 0.0).iou(&square(0.0, std::f32::consts::FRAC_PI_4));
        assert!((iou - octagon / (8.0 - octagon)).abs() < 1e-6);
    }
}
