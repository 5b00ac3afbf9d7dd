//! Resizing of images, and blocks that move between axes.

use carafe_fe_tensorflow::ops::common::resize::{Corners, bilinear, nearest};
use carafe_fe_tensorflow::ops::common::{Layout, space};
use carafe_frontend::{NodeCx, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BATCH_TO_SPACE_ND", 1, |n| {
        let (x, block, crops) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(space::batch_to_space(n, x, block, crops)?.into())
    }),
    rule("DEPTH_TO_SPACE", 1, |n| {
        let (x, block) = (n.input(0)?, n.required("block_size")?);
        Ok(space::depth_to_space(n, x, block, Layout::ChannelsLast)?.into())
    }),
    rule("RESIZE_BILINEAR", 1, |n| {
        let (x, size, corners) = (n.input(0)?, n.input(1)?, corners(n)?);
        Ok(bilinear(n, x, size, corners)?.into())
    }),
    rule("RESIZE_NEAREST_NEIGHBOR", 1, |n| {
        let (x, size, corners) = (n.input(0)?, n.input(1)?, corners(n)?);
        Ok(nearest(n, x, size, corners)?.into())
    }),
    rule("SPACE_TO_BATCH_ND", 1, |n| {
        let (x, block, pads) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(space::space_to_batch(n, x, block, pads)?.into())
    }),
    rule("SPACE_TO_DEPTH", 1, |n| {
        let (x, block) = (n.input(0)?, n.required("block_size")?);
        Ok(space::space_to_depth(n, x, block, Layout::ChannelsLast)?.into())
    }),
];

fn corners(n: &NodeCx<'_>) -> Result<Corners> {
    Ok(Corners {
        align_corners: n.attr("align_corners", false)?,
        half_pixel_centers: n.attr("half_pixel_centers", false)?,
    })
}
