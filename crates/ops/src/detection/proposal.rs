//! Proposal: the region proposals of Faster R-CNN. Anchors are made here, moved by the deltas, ranked by foreground
//! probability and suppressed; rows are `image, x1, y1, x2, y2`. Each image has `post_nms_topn` rows, the first unused
//! one with image -1 and the rest zero. A box below the minimum size only loses its score, it is not removed.

use super::boxes::Corners;
use super::expect::{dim_is, put_f32, same_dim, same_float, zeros};
use super::nms_core::{Kept, greedy, ranked};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Proposals and their probabilities.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, inputs = "class_probs, bbox_deltas, image_shape", outputs = "rois, probs", also = "experimental, extension")]
pub struct Proposal {
    /// Side of the square that anchors are made of.
    pub base_size: u32,
    /// Boxes that enter suppression.
    pub pre_nms_topn: u32,
    /// Boxes of an image that come out.
    pub post_nms_topn: u32,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_thresh: f32,
    /// Image pixels a cell.
    pub feat_stride: u32,
    /// Smaller boxes lose their score.
    pub min_size: u32,
    /// Heights to widths of anchors.
    pub ratio: Vec<f32>,
    /// Sizes of anchors.
    pub scale: Vec<f32>,
    /// Clip boxes to the image first.
    #[attr(default = true)]
    pub clip_before_nms: bool,
    /// Clip the boxes that come out.
    #[attr(default = false)]
    pub clip_after_nms: bool,
    /// Divide the result by the image size.
    #[attr(default = false)]
    pub normalize: bool,
    /// Divisor of size deltas.
    #[attr(default = 1.0)]
    pub box_size_scale: f32,
    /// Divisor of centre deltas.
    #[attr(default = 1.0)]
    pub box_coordinate_scale: f32,
    /// `tensorflow`, or anything else for Caffe.
    #[attr(default = String::new())]
    pub framework: String,
}

/// Proposals.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Proposal", since = 1, until = 3, inputs = "class_probs, bbox_deltas, image_shape", outputs = "rois")]
pub struct ProposalV1 {
    /// Side of the square that anchors are made of.
    pub base_size: u32,
    /// Boxes that enter suppression.
    pub pre_nms_topn: u32,
    /// Boxes of an image that come out.
    pub post_nms_topn: u32,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_thresh: f32,
    /// Image pixels a cell.
    pub feat_stride: u32,
    /// Smaller boxes lose their score.
    pub min_size: u32,
    /// Heights to widths of anchors.
    pub ratio: Vec<f32>,
    /// Sizes of anchors.
    pub scale: Vec<f32>,
    /// Clip boxes to the image first.
    #[attr(default = true)]
    pub clip_before_nms: bool,
    /// Clip the boxes that come out.
    #[attr(default = false)]
    pub clip_after_nms: bool,
    /// Divide the result by the image size.
    #[attr(default = false)]
    pub normalize: bool,
    /// Divisor of size deltas.
    #[attr(default = 1.0)]
    pub box_size_scale: f32,
    /// Divisor of centre deltas.
    #[attr(default = 1.0)]
    pub box_coordinate_scale: f32,
    /// `tensorflow`, or anything else for Caffe.
    #[attr(default = String::new())]
    pub framework: String,
}

impl ProposalV1 {
    fn newest(&self) -> Proposal {
        Proposal {
            base_size: self.base_size,
            pre_nms_topn: self.pre_nms_topn,
            post_nms_topn: self.post_nms_topn,
            nms_thresh: self.nms_thresh,
            feat_stride: self.feat_stride,
            min_size: self.min_size,
            ratio: self.ratio.clone(),
            scale: self.scale.clone(),
            clip_before_nms: self.clip_before_nms,
            clip_after_nms: self.clip_after_nms,
            normalize: self.normalize,
            box_size_scale: self.box_size_scale,
            box_coordinate_scale: self.box_coordinate_scale,
            framework: self.framework.clone(),
        }
    }
}

impl Op for Proposal {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (ty, rows) = infer_rois(self, cx)?;
        cx.set(1, ty, PartialShape::new([rows]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(self, cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if cx.only_outputs(1) { Version::of::<ProposalV1>(self, cx) } else { None }
    }
}

impl Op for ProposalV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_rois(&self.newest(), cx).map(|_| ())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(&self.newest(), cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Proposal>(self, cx)
    }
}

fn infer_rois(op: &Proposal, cx: &mut InferCx<'_>) -> Result<(ElementType, Dim)> {
    let ty = same_float(cx, &[0, 1, 2])?;
    cx.require_rank(0, &[4])?;
    cx.require_rank(1, &[4])?;
    cx.require_rank(2, &[1])?;
    let images = same_dim(cx, (0, 0), (1, 0))?;
    same_dim(cx, (0, 2), (1, 2))?;
    same_dim(cx, (0, 3), (1, 3))?;
    let anchors = (op.ratio.len() as i64).saturating_mul(op.scale.len() as i64);
    dim_is(cx, 0, 1, anchors.saturating_mul(2))?;
    dim_is(cx, 1, 1, anchors.saturating_mul(4))?;
    let numbers = cx.dim(2, 0);
    cx.require(numbers.contains(3) || numbers.contains(4), || {
        format!("{} must be height, width and one or two scales, found [{}]", cx.port_name(2), cx.shape(2))
    })?;
    let rows = images.mul(Dim::known(i64::from(op.post_nms_topn)));
    cx.set(0, ty, PartialShape::new([rows, Dim::known(5)]));
    Ok((ty, rows))
}

/// Where the two frameworks differ.
struct Convention {
    /// A box of pixels is this much wider than its corners are apart.
    offset: f32,
    tensorflow: bool,
}

impl Proposal {
    fn convention(&self) -> Convention {
        let tensorflow = self.framework.eq_ignore_ascii_case("tensorflow");
        Convention { offset: if tensorflow { 0.0 } else { 1.0 }, tensorflow }
    }

    /// Anchors around the origin, ratio by ratio.
    fn anchors(&self) -> Vec<Corners> {
        let Convention { offset, tensorflow } = self.convention();
        let base = self.base_size as f32;
        let center = 0.5 * (base - offset) - if tensorflow { 0.5 * base } else { 0.0 };
        let mut anchors = Vec::new();
        for &ratio in &self.ratio {
            let mut w = (base * base / ratio).sqrt();
            if !tensorflow {
                w = w.round();
            }
            let mut h = w * ratio;
            if !tensorflow {
                h = h.round();
            }
            for &scale in &self.scale {
                let (half_w, half_h) = (0.5 * (w * scale - offset), 0.5 * (h * scale - offset));
                anchors.push(Corners {
                    x1: center - half_w,
                    y1: center - half_h,
                    x2: center + half_w,
                    y2: center + half_h,
                });
            }
        }
        anchors
    }
}

/// The image that boxes are clipped to.
struct Image {
    height: f32,
    width: f32,
    least_height: f32,
    least_width: f32,
}

fn eval(op: &Proposal, cx: &mut EvalCx<'_>) -> Result<()> {
    let offset = op.convention().offset;
    let post = op.post_nms_topn as usize;
    let shape = cx.out_shape(0)?;
    let mut rois = zeros(&shape)?;
    let mut probs = zeros(&shape[..1])?;
    {
        let (scores, deltas, info) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?, cx.get::<f32>(2)?);
        let &[images, _, height, width] = cx.shape(0) else { return Err(cx.fail("class_probs must have rank 4")) };
        let scale_w = if info.len() > 3 { info[3] } else { info[2] };
        // TensorFlow's x runs down the image.
        let (image_h, image_w) = if op.convention().tensorflow { (info[1], info[0]) } else { (info[0], info[1]) };
        let image = Image {
            height: image_h,
            width: image_w,
            least_height: op.min_size as f32 * info[2],
            least_width: op.min_size as f32 * scale_w,
        };
        let anchors = op.anchors();
        let boxes = anchors.len() * height * width;
        let (rois, probs) = (rois.as_slice_mut::<f32>()?, probs.as_slice_mut::<f32>()?);
        for n in 0..images {
            let deltas = &deltas[n * boxes * 4..(n + 1) * boxes * 4];
            let foreground = &scores[(2 * n + 1) * boxes..(2 * n + 2) * boxes];
            let (found, scores) = propose(op, &anchors, (height, width), deltas, foreground, &image);
            let order = ranked(&scores, |_| true, Some(op.pre_nms_topn as usize));
            let kept = greedy(&order, post, |i| found[i], &mut Kept::new(offset, true), op.nms_thresh);
            for (row, &i) in kept.iter().enumerate() {
                let mut b = found[i];
                if op.clip_after_nms {
                    b = b.clipped(image.width, image.height);
                }
                if op.normalize {
                    b = Corners {
                        x1: b.x1 / image.width,
                        y1: b.y1 / image.height,
                        x2: b.x2 / image.width,
                        y2: b.y2 / image.height,
                    };
                }
                let at = n * post + row;
                rois[5 * at] = n as f32;
                rois[5 * at + 1..5 * at + 5].copy_from_slice(&b.to_array());
                probs[at] = scores[i];
            }
            if kept.len() < post {
                rois[5 * (n * post + kept.len())] = -1.0;
            }
        }
    }
    put_f32(cx, 0, rois)?;
    if cx.n_outputs() > 1 { put_f32(cx, 1, probs) } else { Ok(()) }
}

/// Boxes and scores of one image, cell by cell and then anchor by anchor.
fn propose(
    op: &Proposal,
    anchors: &[Corners],
    (height, width): (usize, usize),
    deltas: &[f32],
    scores: &[f32],
    image: &Image,
) -> (Vec<Corners>, Vec<f32>) {
    let Convention { offset, tensorflow } = op.convention();
    let area = height * width;
    let stride = op.feat_stride as f32;
    let (mut boxes, mut kept_scores) = (Vec::with_capacity(scores.len()), Vec::with_capacity(scores.len()));
    for cell in 0..area {
        let (row, column) = ((cell / width) as f32, (cell % width) as f32);
        let (x, y) = if tensorflow { (row * stride, column * stride) } else { (column * stride, row * stride) };
        for (a, anchor) in anchors.iter().enumerate() {
            let d = |i: usize| deltas[(4 * a + i) * area + cell];
            let (centre, size) = (op.box_coordinate_scale, op.box_size_scale);
            let mut b = Corners { x1: x + anchor.x1, y1: y + anchor.y1, x2: x + anchor.x2, y2: y + anchor.y2 };
            if tensorflow {
                b = b.clipped(image.width, image.height);
            }
            b = b.refined([d(0) / centre, d(1) / centre, d(2) / size, d(3) / size], f32::INFINITY, offset, 0.0);
            if op.clip_before_nms {
                b = b.clipped(image.width - offset, image.height - offset);
            }
            let large = image.least_width <= b.width(offset) && image.least_height <= b.height(offset);
            boxes.push(b);
            kept_scores.push(if large { scores[a * area + cell] } else { 0.0 });
        }
    }
    (boxes, kept_scores)
}
