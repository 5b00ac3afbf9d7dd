//! How a value lies in memory: the order of its axes, and axes cut into blocks that lie innermost. The words are enough for
//! plain tensors, channels last, `nChw16c`, and the `fs_b_yx_fsv32` and `bs_fs_yx_bsv16_fsv16` formats of OpenCL devices.

use carafe_tensor::{ElementType, Tensor, TensorError};

/// Order of the axes outside of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AxisOrder {
    /// As the model says.
    #[default]
    Plain,
    /// Axis 1 last: `N, H, W, C`.
    ChannelsLast,
    /// Axis 1 in front: `C, N, H, W`.
    ChannelsFirst,
}

/// An axis cut into blocks. The elements of a block lie innermost; the last block is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Block {
    /// The axis, as the model counts.
    pub axis: u8,
    /// Elements of a block; 0 for no block.
    pub size: u16,
}

/// Layout of a value. Values of fewer than three axes lie plainly in every layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    /// Order of the axes, or of their blocks.
    pub order: AxisOrder,
    /// Blocks, the innermost last.
    pub blocks: [Block; 2],
}

/// Layout and element type in which a step reads or writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The layout.
    pub layout: Layout,
    /// `None` for the type that the model says.
    pub ty: Option<ElementType>,
}

impl Form {
    /// A layout with another element type than the model's.
    pub fn typed(layout: Layout, ty: ElementType) -> Form {
        Form { layout, ty: Some(ty) }
    }
}

impl From<Layout> for Form {
    fn from(layout: Layout) -> Form {
        Form { layout, ty: None }
    }
}

impl Layout {
    /// Row-major, as the model says.
    pub const PLAIN: Layout = Layout { order: AxisOrder::Plain, blocks: [Block { axis: 0, size: 0 }; 2] };
    /// Axis 1 last: `N, H, W, C` for what the model calls `N, C, H, W`.
    pub const CHANNELS_LAST: Layout =
        Layout { order: AxisOrder::ChannelsLast, blocks: [Block { axis: 0, size: 0 }; 2] };

    /// Plain, with the channels in blocks that lie innermost: `nChw16c` for 16.
    pub const fn channel_blocks(size: u16) -> Layout {
        Layout { order: AxisOrder::Plain, blocks: [Block { axis: 0, size: 0 }, Block { axis: 1, size }] }
    }

    /// Whether it pads and cuts axes.
    pub fn is_blocked(self) -> bool {
        self.blocks.iter().any(|b| b.size > 0)
    }

    /// Which axis of the model lies at each position in memory, blocks aside.
    pub fn order(self, rank: usize) -> Vec<usize> {
        match self.order {
            AxisOrder::ChannelsLast if rank > 2 => {
                std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect()
            }
            AxisOrder::ChannelsFirst if rank > 2 => [1, 0].into_iter().chain(2..rank).collect(),
            _ => (0..rank).collect(),
        }
    }

    /// Where an axis of the model lies in memory, blocks aside.
    pub fn axis(self, axis: usize, rank: usize) -> usize {
        match self.order {
            AxisOrder::ChannelsLast if rank > 2 && axis == 1 => rank - 1,
            AxisOrder::ChannelsLast if rank > 2 && axis > 1 => axis - 1,
            AxisOrder::ChannelsFirst if rank > 2 && axis < 2 => 1 - axis,
            _ => axis,
        }
    }

    // The blocks that a value of so many axes has, the innermost last.
    fn blocks_of(self, rank: usize) -> impl DoubleEndedIterator<Item = Block> {
        self.blocks.into_iter().filter(move |b| b.size > 0 && rank > 2 && usize::from(b.axis) < rank)
    }

    // Axis and size of each dimension in memory.
    fn axes_and_sizes(self, shape: &[usize]) -> Vec<(usize, usize)> {
        let rank = shape.len();
        let outer = |axis: usize| {
            let parts: usize =
                self.blocks_of(rank).filter(|b| usize::from(b.axis) == axis).map(|b| usize::from(b.size)).product();
            (axis, shape[axis].div_ceil(parts))
        };
        let inner = self.blocks_of(rank).map(|b| (usize::from(b.axis), usize::from(b.size)));
        self.order(rank).into_iter().map(outer).chain(inner).collect()
    }

    /// The dimensions as they lie in memory: the axes, then the blocks.
    pub fn dims(self, shape: &[usize]) -> Vec<usize> {
        match self.is_blocked() {
            true => self.axes_and_sizes(shape).into_iter().map(|(_, n)| n).collect(),
            false => self.order(shape.len()).into_iter().map(|a| shape[a]).collect(),
        }
    }

    /// Elements in memory, padding of blocks among them.
    pub fn elements(self, shape: &[usize]) -> usize {
        if self.is_blocked() { self.dims(shape).iter().product() } else { shape.iter().product() }
    }

    /// Whether the layouts put this shape into the same bytes.
    pub fn same_for(self, other: Layout, shape: &[usize]) -> bool {
        let lies = |layout: Layout| layout.axes_and_sizes(shape).into_iter().filter(|(_, n)| *n != 1);
        self == other || shape.len() < 3 || lies(self).eq(lies(other))
    }

    /// Gives the element of a plain value that lies at each position in memory; `None` for padding.
    pub fn plain_index(self, shape: &[usize]) -> impl FnMut(usize) -> Option<usize> {
        let (axes, shape) = (self.axes_and_sizes(shape), shape.to_vec());
        let (mut index, mut scale) = (vec![0; shape.len()], vec![1; shape.len()]);
        move |mut position| {
            index.fill(0);
            scale.fill(1);
            for &(axis, n) in axes.iter().rev() {
                index[axis] += position % n * scale[axis];
                scale[axis] *= n;
                position /= n;
            }
            shape.iter().zip(&index).try_fold(0, |flat, (&n, &i)| (i < n).then_some(flat * n + i))
        }
    }

    /// A plain tensor put into this layout. It keeps its shape where nothing is padded; else it is a list of elements.
    pub fn pack(self, tensor: &Tensor) -> Result<Tensor, TensorError> {
        let shape = tensor.shape();
        let packed = tensor.select(&[self.elements(shape)], self.plain_index(shape))?;
        if packed.len() == tensor.len() { packed.reshaped(shape) } else { Ok(packed) }
    }

    /// The plain tensor of a shape whose elements lie in this layout.
    pub fn unpack(self, packed: &Tensor, shape: &[usize]) -> Result<Tensor, TensorError> {
        let mut positions = vec![None; shape.iter().product()];
        let mut plain = self.plain_index(shape);
        for position in 0..self.elements(shape) {
            if let Some(flat) = plain(position) {
                positions[flat] = Some(position);
            }
        }
        packed.select(shape, |flat| positions[flat])
    }

    /// The name in reports, such as `channels_last` or `plain_c16`.
    pub fn name(self) -> String {
        let mut name = match self.order {
            AxisOrder::Plain => "plain",
            AxisOrder::ChannelsLast => "channels_last",
            AxisOrder::ChannelsFirst => "channels_first",
        }
        .to_string();
        for block in self.blocks.iter().filter(|b| b.size > 0) {
            let axis = ["n", "c", "d", "h", "w"].get(usize::from(block.axis)).copied().unwrap_or("x");
            name += &format!("_{axis}{}", block.size);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 4] = [2, 3, 2, 2];

    fn counted() -> Tensor {
        let n: usize = SHAPE.iter().product();
        Tensor::from_vec(&SHAPE, (0..n).map(|i| i as f32).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_layout_gives_back_what_was_put_into_it() {
        let double =
            Layout { order: AxisOrder::Plain, blocks: [Block { axis: 0, size: 16 }, Block { axis: 1, size: 16 }] };
        let first = Layout { order: AxisOrder::ChannelsFirst, ..Layout::channel_blocks(32) };
        for layout in [Layout::PLAIN, Layout::CHANNELS_LAST, Layout::channel_blocks(2), first, double] {
            let packed = layout.pack(&counted()).unwrap();
            assert_eq!(packed.len(), layout.elements(&SHAPE));
            assert!(layout.unpack(&packed, &SHAPE).unwrap().content_eq(&counted()), "{}", layout.name());
        }
    }

    #[test]
    fn blocks_lie_innermost_and_are_padded() {
        let blocked = Layout::channel_blocks(2);
        assert_eq!((blocked.dims(&SHAPE), blocked.elements(&SHAPE)), (vec![2, 2, 2, 2, 2], 32));
        let packed = blocked.pack(&counted()).unwrap();
        assert_eq!(packed.as_slice::<f32>().unwrap()[..10], [0., 4., 1., 5., 2., 6., 3., 7., 8., 0.]);
        assert_eq!(blocked.name(), "plain_c2");
    }

    #[test]
    fn layouts_are_the_same_where_the_bytes_are() {
        let (plain, last) = (Layout::PLAIN, Layout::CHANNELS_LAST);
        assert!(
            plain.same_for(last, &[4, 1, 3, 3]) && plain.same_for(last, &[4, 7, 1, 1]) && plain.same_for(last, &[4, 7])
        );
        assert!(!plain.same_for(last, &[4, 7, 1, 2]));
        assert!(Layout::channel_blocks(8).same_for(last, &[2, 8, 3, 3]));
        assert!(!Layout::channel_blocks(8).same_for(last, &[2, 7, 3, 3]));
    }
}
