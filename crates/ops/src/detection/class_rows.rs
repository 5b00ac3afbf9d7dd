//! Results of suppression over many classes, as MatrixNms and MulticlassNms give them: rows `class, score, x1, y1, x2,
//! y2`, a flat index for each row and a count for each image. Rows come image by image unless sorted across the batch.

use super::boxes::Corners;
use super::expect::{index_type, up_to};
use super::nms_core::{descending, limit};
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::cmp::Ordering;

carafe_graph::attr_enum! {
    /// What the result is ordered by.
    pub enum SortResult { ClassId = "classid", Score = "score", None = "none" }
}

/// One selected box.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) image: usize,
    pub(super) class: usize,
    /// Position within the boxes of the image and class.
    pub(super) index: usize,
    pub(super) score: f32,
    pub(super) corners: Corners,
}

/// How many boxes, classes and images there are, for the bound on rows.
pub(super) struct Counts {
    pub(super) boxes: Dim,
    pub(super) classes: Dim,
    pub(super) images: Dim,
}

/// Sets the three outputs. Negative limits mean none; the background class is not taken off the bound.
pub(super) fn infer_rows(
    cx: &mut InferCx<'_>,
    counts: Counts,
    (nms_top_k, keep_top_k): (i64, i64),
    output_type: ElementType,
) -> Result<()> {
    index_type(cx, "output_type", output_type)?;
    let at_most = |d: Dim, n: i64| if n > -1 { d.min_of(Dim::known(n)) } else { d };
    let per_image = at_most(at_most(counts.boxes, nms_top_k).mul(counts.classes), keep_top_k);
    let rows = up_to(per_image.mul(counts.images));
    cx.set(0, cx.ty(0), PartialShape::new([rows, Dim::known(6)]));
    cx.set(1, output_type, PartialShape::new([rows, Dim::known(1)]));
    cx.set(2, output_type, PartialShape::new([counts.images]));
    Ok(())
}

/// Brings the rows of one image into order of score and keeps the best.
pub(super) fn keep_best(rows: &mut Vec<Row>, keep_top_k: i64) {
    carafe_graph::sort_by(rows, |a, b| descending(a.score, b.score).then((a.class, a.index).cmp(&(b.class, b.index))));
    rows.truncate(limit(keep_top_k).unwrap_or(usize::MAX));
}

/// Class, then score, then index.
pub(super) fn by_class(a: &Row, b: &Row) -> Ordering {
    a.class.cmp(&b.class).then(descending(a.score, b.score)).then(a.index.cmp(&b.index))
}

/// Stores the images' rows; `flat` gives the index that is reported for a row.
pub(super) fn put_rows(
    cx: &mut EvalCx<'_>,
    images: Vec<Vec<Row>>,
    across_batch: bool,
    sort: SortResult,
    flat: &dyn Fn(&Row) -> usize,
) -> Result<()> {
    let counts: Vec<i64> = images.iter().map(|rows| rows.len() as i64).collect();
    let mut rows: Vec<Row> = images.into_iter().flatten().collect();
    if across_batch {
        match sort {
            SortResult::Score => carafe_graph::sort_by(&mut rows, |a, b| {
                descending(a.score, b.score)
                    .then_with(|| (a.image, a.class, a.index).cmp(&(b.image, b.class, b.index)))
            }),
            SortResult::ClassId => carafe_graph::sort_by(&mut rows, |a, b| {
                (a.class, a.image).cmp(&(b.class, b.image)).then(descending(a.score, b.score)).then(a.index.cmp(&b.index))
            }),
            SortResult::None => {}
        }
    }
    let n = rows.len();
    let mut outputs = Vec::with_capacity(6 * n);
    for r in &rows {
        outputs.extend([r.class as f32, r.score]);
        outputs.extend(r.corners.to_array());
    }
    cx.put(0, &[n, 6], outputs)?;
    cx.put(1, &[n, 1], rows.iter().map(|r| flat(r) as i64).collect::<Vec<i64>>())?;
    let images = counts.len();
    cx.put(2, &[images], counts)
}
