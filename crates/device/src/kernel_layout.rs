//! Order of elements in memory, as a kernel asks for it: plain, channels last, channels in blocks, or any cutting of axes into
//! blocks. Converting walks over runs of elements; nothing is computed for each.

use carafe_graph::{Error, Result};
use carafe_tensor::{Tensor, elements, strides};

/// Layout of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Row-major, as the model says.
    #[default]
    Plain,
    /// Axis 1 last: `N, H, W, C` for what the model calls `N, C, H, W`.
    ChannelsLast,
    /// Axis 1 in blocks of so many, which lie innermost; the last block is padded with zeros: `nChw8c` for 8.
    BlockedBy(usize),
    /// Any other.
    Other(Blocked),
}

/// Axis `order[k]` of the tensor is laid out as dimension `k` of `blocks`; an axis that stands several times is cut into
/// blocks. `nChw8c` has the order 0 1 2 3 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocked {
    /// Dimensions in memory.
    pub blocks: Vec<usize>,
    /// Axis of each dimension.
    pub order: Vec<usize>,
}

impl Layout {
    /// The layout that a list of blocks means for this shape.
    pub fn of(blocked: Blocked, shape: &[usize]) -> Layout {
        let last = blocked.blocks.last().copied().unwrap_or(0);
        let known = [Layout::Plain, Layout::ChannelsLast, Layout::BlockedBy(last)];
        let same = |layout: &Layout| layout.blocked(shape) == blocked;
        known.into_iter().find(same).unwrap_or(Layout::Other(blocked))
    }
    /// The dimensions in memory of a value of this shape, and their axes.
    pub fn blocked(&self, shape: &[usize]) -> Blocked {
        let rank = shape.len();
        let mut order: Vec<usize> = match self {
            Layout::Other(blocked) => return blocked.clone(),
            Layout::ChannelsLast if rank > 2 => std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect(),
            _ => (0..rank).collect(),
        };
        let mut blocks: Vec<usize> = order.iter().map(|&a| shape[a]).collect();
        if let (Layout::BlockedBy(n), true) = (self, rank > 1) {
            blocks[1] = shape[1].div_ceil((*n).max(1));
            blocks.push((*n).max(1));
            order.push(1);
        }
        Blocked { blocks, order }
    }
    /// The dimensions in memory of a value of this shape.
    pub fn dims(&self, shape: &[usize]) -> Vec<usize> {
        self.blocked(shape).blocks
    }
    /// Plain to this layout. The result has the dimensions in memory as its shape.
    pub fn pack(&self, tensor: &Tensor) -> Result<Tensor> {
        if *self == Layout::Plain { Ok(tensor.clone()) } else { self.blocked(tensor.shape()).pack(tensor) }
    }
    /// This layout to plain.
    pub fn unpack(&self, tensor: &Tensor, shape: &[usize]) -> Result<Tensor> {
        if *self == Layout::Plain { Ok(tensor.reshaped(shape)?) } else { self.blocked(shape).unpack(tensor, shape) }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layout::Plain => write!(f, "plain"),
            Layout::ChannelsLast => write!(f, "channels last"),
            Layout::BlockedBy(n) => write!(f, "blocked by {n}"),
            Layout::Other(b) => write!(f, "blocks {:?} in order {:?}", b.blocks, b.order),
        }
    }
}

impl Blocked {
    /// Whether the form can hold a tensor of this shape: every axis present, its blocks multiply to at least its size.
    pub fn fits(&self, shape: &[usize]) -> bool {
        self.blocks.len() == self.order.len()
            && self.order.iter().all(|&a| a < shape.len())
            && shape.iter().enumerate().all(|(axis, &n)| {
                let parts = self.order.iter().zip(&self.blocks).filter(|(a, _)| **a == axis);
                let mut product = None;
                for (_, &b) in parts {
                    product = Some(product.unwrap_or(1usize).saturating_mul(b));
                }
                product.is_some_and(|p| p >= n)
            })
    }

    fn refused(&self, shape: &[usize]) -> Error {
        Error::invalid(format!("blocks {:?} in order {:?} do not hold {shape:?}", self.blocks, self.order))
    }

    /// Row-major to this form; padding is zero.
    pub fn pack(&self, tensor: &Tensor) -> Result<Tensor> {
        if !self.fits(tensor.shape()) {
            return Err(self.refused(tensor.shape()));
        }
        if !moves_bytes(tensor) {
            let mut positions = vec![None; elements(&self.blocks).unwrap_or(0)];
            Runs::of(self, tensor.shape()).each(|plain, step, blocked, n| {
                (0..n).for_each(|k| positions[blocked + k] = Some(plain + k * step));
            });
            return Ok(tensor.select(&self.blocks, |i| positions[i])?);
        }
        let size = tensor.element_type().bits() / 8;
        let mut packed = Tensor::zeros(tensor.element_type(), &self.blocks)?;
        self.pack_bytes(tensor.shape(), size, tensor.bytes(), packed.bytes_mut());
        Ok(packed)
    }

    /// This form to row-major of the given shape.
    pub fn unpack(&self, tensor: &Tensor, shape: &[usize]) -> Result<Tensor> {
        if !self.fits(shape) || elements(&self.blocks) != Some(tensor.len()) {
            return Err(self.refused(shape));
        }
        if !moves_bytes(tensor) {
            let mut positions = vec![None; elements(shape).unwrap_or(0)];
            Runs::of(self, shape).each(|plain, step, blocked, n| {
                (0..n).for_each(|k| positions[plain + k * step] = Some(blocked + k));
            });
            return Ok(tensor.select(shape, |i| positions[i])?);
        }
        let size = tensor.element_type().bits() / 8;
        let mut plain = Tensor::zeros(tensor.element_type(), shape)?;
        self.unpack_bytes(shape, size, tensor.bytes(), plain.bytes_mut());
        Ok(plain)
    }

    /// As [`pack`](Blocked::pack), of elements of so many bytes. `to` must be zero where it is padded; lengths must fit.
    pub fn pack_bytes(&self, shape: &[usize], size: usize, from: &[u8], to: &mut [u8]) {
        Runs::of(self, shape).each(|plain, step, blocked, n| {
            let to = &mut to[blocked * size..(blocked + n) * size];
            if step == 1 {
                return to.copy_from_slice(&from[plain * size..(plain + n) * size]);
            }
            let from = from[plain * size..].chunks_exact(size).step_by(step);
            match size {
                4 => to.chunks_exact_mut(4).zip(from).for_each(|(to, from)| to.copy_from_slice(&from[..4])),
                _ => to.chunks_exact_mut(size).zip(from).for_each(|(to, from)| to.copy_from_slice(from)),
            }
        });
    }

    /// As [`unpack`](Blocked::unpack), of elements of so many bytes. Lengths must fit.
    pub fn unpack_bytes(&self, shape: &[usize], size: usize, from: &[u8], to: &mut [u8]) {
        Runs::of(self, shape).each(|plain, step, blocked, n| {
            let from = &from[blocked * size..(blocked + n) * size];
            if step == 1 {
                return to[plain * size..(plain + n) * size].copy_from_slice(from);
            }
            let to = to[plain * size..].chunks_exact_mut(size).step_by(step);
            match size {
                4 => to.zip(from.chunks_exact(4)).for_each(|(to, from)| to.copy_from_slice(&from[..4])),
                _ => to.zip(from.chunks_exact(size)).for_each(|(to, from)| to.copy_from_slice(from)),
            }
        });
    }
}

// Strings and elements of less than a byte are moved one by one.
fn moves_bytes(tensor: &Tensor) -> bool {
    tensor.strings().is_err() && tensor.element_type().bits().is_multiple_of(8)
}

/// Runs of elements that lie side by side in the blocked form and at equal distances in the plain one.
struct Runs<'a> {
    shape: &'a [usize],
    /// Axis, length and how many indices of the axis one step is, of each dimension in memory.
    dims: Vec<(usize, usize, usize)>,
    strides: Vec<usize>,
}

impl Runs<'_> {
    fn of<'a>(form: &Blocked, shape: &'a [usize]) -> Runs<'a> {
        let mut scale = vec![1; shape.len()];
        let mut dims: Vec<(usize, usize, usize)> = vec![];
        // Inner blocks count first, so from the last dimension to the first.
        for (&axis, &n) in form.order.iter().zip(&form.blocks).rev() {
            dims.push((axis, n, scale[axis]));
            scale[axis] *= n;
        }
        dims.reverse();
        Runs { shape, dims, strides: strides(shape) }
    }

    // Calls with the first plain element, the distance to the next, the first blocked element, and how many.
    fn each(&self, mut run: impl FnMut(usize, usize, usize, usize)) {
        let Some((&(axis, len, scale), outer)) = self.dims.split_last() else { return run(0, 1, 0, 1) };
        if self.shape.contains(&0) || self.dims.iter().any(|d| d.1 == 0) {
            return;
        }
        let mut counters = vec![0; outer.len()];
        let mut index = vec![0; self.shape.len()];
        let mut blocked = 0;
        loop {
            let inside = index.iter().zip(self.shape).enumerate().all(|(a, (i, n))| a == axis || i < n);
            if inside && index[axis] < self.shape[axis] {
                let plain = index.iter().zip(&self.strides).map(|(i, s)| i * s).sum();
                let n = len.min((self.shape[axis] - index[axis]).div_ceil(scale));
                run(plain, self.strides[axis] * scale, blocked, n);
            }
            blocked += len;
            let mut k = outer.len();
            loop {
                if k == 0 {
                    return;
                }
                k -= 1;
                let (a, n, step) = outer[k];
                counters[k] += 1;
                index[a] += step;
                if counters[k] < n {
                    break;
                }
                index[a] -= step * n;
                counters[k] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_tensor::ElementType;

    #[test]
    fn a_blocked_form_pads_and_comes_back() {
        let t = Tensor::from_slice(&[1, 3, 2, 1], &[0f32, 1., 2., 3., 4., 5.]).unwrap();
        let n_chw2c = Layout::BlockedBy(2);
        let packed = n_chw2c.pack(&t).unwrap();
        assert_eq!(packed.shape(), [1, 2, 2, 1, 2]);
        assert_eq!(packed.as_slice::<f32>().unwrap(), [0., 2., 1., 3., 4., 0., 5., 0.]);
        assert!(n_chw2c.unpack(&packed, &[1, 3, 2, 1]).unwrap().content_eq(&t));
    }

    #[test]
    fn every_form_and_type_comes_back() {
        let shape = [2, 5, 3, 4];
        let twice = Blocked { blocks: vec![2, 1, 3, 2, 2, 2, 3], order: vec![0, 1, 2, 3, 1, 3, 1] };
        let layouts = [
            Layout::Plain,
            Layout::ChannelsLast,
            Layout::BlockedBy(2),
            Layout::BlockedBy(8),
            Layout::Other(Blocked { blocks: vec![4, 3, 5, 2], order: vec![3, 2, 1, 0] }),
            Layout::Other(twice),
        ];
        let counted: Vec<f64> = (0..120).map(f64::from).collect();
        for ty in [ElementType::F32, ElementType::F64, ElementType::U8, ElementType::I16, ElementType::U4] {
            let t = Tensor::from_f64(ty, &shape, &counted.iter().map(|x| x % 16.0).collect::<Vec<_>>()).unwrap();
            for layout in &layouts {
                let back = layout.unpack(&layout.pack(&t).unwrap(), &shape).unwrap();
                assert!(back.content_eq(&t), "{ty} {layout}");
            }
        }
        let last = Layout::ChannelsLast.pack(&Tensor::from_vec(&shape, counted).unwrap()).unwrap();
        assert_eq!(last.as_slice::<f64>().unwrap()[..6], [0., 12., 24., 36., 48., 1.]);
    }

    #[test]
    fn lists_of_blocks_are_known_by_what_they_mean() {
        let of = |blocks: &[usize], order: &[usize]| {
            Layout::of(Blocked { blocks: blocks.to_vec(), order: order.to_vec() }, &[1, 5, 2, 3])
        };
        assert_eq!(of(&[1, 5, 2, 3], &[0, 1, 2, 3]), Layout::Plain);
        assert_eq!(of(&[1, 2, 3, 5], &[0, 2, 3, 1]), Layout::ChannelsLast);
        assert_eq!(of(&[1, 2, 2, 3, 4], &[0, 1, 2, 3, 1]), Layout::BlockedBy(4));
        assert!(matches!(of(&[1, 3, 2, 3, 4], &[0, 1, 2, 3, 1]), Layout::Other(_)));
    }

    #[test]
    fn blocks_that_are_too_small_are_refused() {
        let t = Tensor::from_slice(&[3], &[0f32, 1., 2.]).unwrap();
        assert!(Blocked { blocks: vec![1, 2], order: vec![0, 0] }.pack(&t).is_err());
    }
}
