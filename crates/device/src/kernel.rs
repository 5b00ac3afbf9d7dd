//! Fast kernels that an extension brings for an operation. A kernel offers the memory forms it can work in, the device
//! takes the first that suits it, and gives memory in that form. Blocked forms repeat an axis: nChw8c has the order
//! 0 1 2 3 1.

use carafe_graph::{AttrMap, Error, Fact, Result};
use carafe_tensor::{ElementType, Tensor};

/// Memory form of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// Element type.
    pub ty: ElementType,
    /// `None` for plain row-major.
    pub blocked: Option<Blocked>,
    /// Outputs: the input whose memory it may use.
    pub in_place: Option<usize>,
    /// Inputs: the value must be a constant.
    pub constant: bool,
}

/// Axis `order[k]` of the tensor is laid out as dimension `k` of `blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Sizes of the axes with their blocks.
    pub blocks: Vec<usize>,
    /// Which axis of the tensor each of them is.
    pub order: Vec<usize>,
}

/// One way in which a kernel can run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Of each input.
    pub inputs: Vec<PortLayout>,
    /// Of each output.
    pub outputs: Vec<PortLayout>,
}

/// The node a kernel is asked about.
#[derive(Clone, Debug)]
pub struct Site {
    /// Name of the node.
    pub name: String,
    /// Type of the operation.
    pub op_type: String,
    /// Its opset.
    pub opset: String,
    /// Its attributes.
    pub attrs: AttrMap,
    /// Types and shapes of the inputs.
    pub inputs: Vec<Fact>,
    /// Types and shapes of the outputs.
    pub outputs: Vec<Fact>,
}

/// A kernel class.
pub trait Kernel: Send + Sync {
    /// Device it is for, such as `CPU`.
    fn device(&self) -> &str;
    /// Type of the operation it runs.
    fn op(&self) -> &str;
    /// `None` for every opset.
    fn opset(&self) -> Option<&str>;
    /// Shown in reports.
    fn name(&self) -> &str;
    /// File name of the library it came from, for messages.
    fn library(&self) -> Option<&str> {
        None
    }
    /// Ways to run the node, the best first; none declines it. Asked when a model is compiled and, where shapes are open then,
    /// again for each set of shapes that comes.
    fn configs(&self, site: &Site) -> Result<Vec<Config>>;
    /// The kernel of a node for one of the configurations.
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>>;
    /// Told by a device that the kernel should run this node and cannot: it failed, panicked or offered no usable layout. For
    /// whoever wraps a kernel to tell the user; the node is run by something else.
    fn report(&self, _site: &Site, _trouble: &str) {}
}

/// A kernel ready to run one node.
pub trait PreparedKernel: Send {
    /// Inputs come in the chosen form; outputs go out in it. `outputs` says type and plain shape of each.
    fn execute(&mut self, inputs: &[Tensor], outputs: &[Fact]) -> Result<Vec<Tensor>>;
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

    // For each place in the blocked memory, the place in the row-major one; `None` for padding.
    fn source(&self, shape: &[usize], mut place: usize) -> Option<usize> {
        let mut index = vec![0usize; shape.len()];
        let mut scale = vec![1usize; shape.len()];
        // Inner blocks count first, so go from the last dimension to the first.
        for (&axis, &n) in self.order.iter().zip(&self.blocks).rev() {
            let at = place % n;
            place /= n;
            index[axis] += at * scale[axis];
            scale[axis] *= n;
        }
        let mut flat = 0;
        for (i, n) in index.iter().zip(shape) {
            if i >= n {
                return None;
            }
            flat = flat * n + i;
        }
        Some(flat)
    }

    /// Row-major to this form; padding is zero.
    pub fn pack(&self, tensor: &Tensor) -> Result<Tensor> {
        let shape = tensor.shape().to_vec();
        if !self.fits(&shape) {
            return Err(Error::invalid(format!(
                "blocks {:?} in order {:?} do not hold {shape:?}",
                self.blocks, self.order
            )));
        }
        Ok(tensor.select(&self.blocks, |place| self.source(&shape, place))?)
    }

    /// This form to row-major of the given shape.
    pub fn unpack(&self, tensor: &Tensor, shape: &[usize]) -> Result<Tensor> {
        if !self.fits(shape) || carafe_tensor::elements(&self.blocks) != Some(tensor.len()) {
            return Err(Error::invalid(format!(
                "blocks {:?} in order {:?} do not hold {shape:?}",
                self.blocks, self.order
            )));
        }
        let mut places = vec![None; carafe_tensor::elements(shape).unwrap_or(0)];
        for place in 0..tensor.len() {
            if let Some(flat) = self.source(shape, place) {
                places[flat] = Some(place);
            }
        }
        Ok(tensor.select(shape, |flat| places[flat])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_form_pads_and_comes_back() {
        let t = Tensor::from_slice(&[1, 3, 2, 1], &[0f32, 1., 2., 3., 4., 5.]).unwrap();
        let n_chw2c = Blocked { blocks: vec![1, 2, 2, 1, 2], order: vec![0, 1, 2, 3, 1] };
        let packed = n_chw2c.pack(&t).unwrap();
        assert_eq!(packed.as_slice::<f32>().unwrap(), [0., 2., 1., 3., 4., 0., 5., 0.]);
        assert!(n_chw2c.unpack(&packed, &[1, 3, 2, 1]).unwrap().content_eq(&t));
    }

    #[test]
    fn blocks_that_are_too_small_are_refused() {
        let t = Tensor::from_slice(&[3], &[0f32, 1., 2.]).unwrap();
        assert!(Blocked { blocks: vec![1, 2], order: vec![0, 0] }.pack(&t).is_err());
    }
}
