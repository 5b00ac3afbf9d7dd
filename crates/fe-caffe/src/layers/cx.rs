//! What the rules of Caffe need of a layer: its bottoms and stored blobs apart, and short words for operations that composed
//! rules are made of.

use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Add, Divide, Maximum, Multiply, Power, Subtract};
use carafe_ops::movement::Slice;
use carafe_tensor::{ElementType, Tensor};

/// A layer being translated.
pub(crate) trait LayerCx {
    /// All bottoms.
    fn bottoms(&mut self) -> Result<Vec<Value>>;
    /// The bottoms, as many as the layer takes.
    fn bottoms_of<const N: usize>(&mut self) -> Result<[Value; N]>;
    /// The only bottom.
    fn bottom(&mut self) -> Result<Value>;
    /// How many blobs are stored.
    fn n_blobs(&mut self) -> Result<usize>;
    /// Refuses a layer with more stored blobs than it reads: net and weights do not belong together then.
    fn takes_blobs(&mut self, most: usize) -> Result<()>;
    /// A stored blob in this shape. Its own shape may have axes joined or split, as files of other versions have, but it must
    /// be of the same order.
    fn blob(&mut self, index: usize, shape: &[usize]) -> Result<Value>;
    /// The values of a stored blob, as many as there are.
    fn blob_tensor(&mut self, index: usize) -> Result<Tensor>;

    /// A vector of floats as a constant.
    fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<Value>;
    fn plus(&mut self, a: Value, b: Value) -> Result<Value>;
    fn minus(&mut self, a: Value, b: Value) -> Result<Value>;
    fn times(&mut self, a: Value, b: Value) -> Result<Value>;
    fn over(&mut self, a: Value, b: Value) -> Result<Value>;
    fn larger(&mut self, a: Value, b: Value) -> Result<Value>;
    /// `x * factor`, or `x` itself.
    fn times_number(&mut self, x: Value, factor: f64) -> Result<Value>;
    /// `x + number`, or `x` itself.
    fn plus_number(&mut self, x: Value, number: f64) -> Result<Value>;
    fn power_number(&mut self, x: Value, exponent: f64) -> Result<Value>;
    /// Elements `start..stop` of an axis; each bound is an i64 vector of one.
    fn cut(&mut self, x: Value, start: Value, stop: Value, axis: i64) -> Result<Value>;
}

impl LayerCx for NodeCx<'_> {
    fn bottoms(&mut self) -> Result<Vec<Value>> {
        self.inputs_named("bottom")
    }
    fn bottoms_of<const N: usize>(&mut self) -> Result<[Value; N]> {
        let all = self.bottoms()?;
        all.try_into().map_err(|all: Vec<Value>| self.fail(format!("takes {N} bottoms, has {}", all.len())))
    }
    fn bottom(&mut self) -> Result<Value> {
        match self.bottoms()?[..] {
            [one] => Ok(one),
            ref all => Err(self.fail(format!("takes one bottom, has {}", all.len()))),
        }
    }
    fn n_blobs(&mut self) -> Result<usize> {
        Ok(self.inputs_named("blob")?.len())
    }
    fn takes_blobs(&mut self, most: usize) -> Result<()> {
        let found = self.n_blobs()?;
        if found <= most {
            return Ok(());
        }
        let text = match most {
            0 => "takes no blobs".to_string(),
            1 => "takes one blob".to_string(),
            most => format!("takes {most} blobs"),
        };
        Err(self.fail(format!(
            "{text} as the net describes it, {found} are stored; do the net and the weights belong together?"
        )))
    }
    fn blob(&mut self, index: usize, shape: &[usize]) -> Result<Value> {
        let tensor = self.blob_tensor(index)?;
        let wanted = carafe_tensor::elements(shape);
        if wanted != Some(tensor.len()) {
            let wanted = wanted.map_or("more than memory holds".to_string(), |n| n.to_string());
            let found = tensor.len();
            return Err(self.fail(format!("blob {index} has {found} values, expected {wanted} = {shape:?}")));
        }
        if !same_order(tensor.shape(), shape) {
            let found = tensor.shape();
            return Err(self.fail(format!(
                "blob {index} has the shape {found:?}, expected {shape:?}; do the net and the weights belong together?"
            )));
        }
        if tensor.shape() == shape {
            return Ok(self.inputs_named("blob")?[index]);
        }
        let name = match index {
            0 => "weights".to_string(),
            1 => "biases".to_string(),
            i => format!("custom_{i}"),
        };
        self.named_constant(&name, tensor.reshaped(shape)?)
    }
    fn blob_tensor(&mut self, index: usize) -> Result<Tensor> {
        let all = self.inputs_named("blob")?;
        let Some(&v) = all.get(index) else {
            return Err(self.fail(match all.len() {
                0 => "needs stored weights and has none; give the `.caffemodel` that belongs to the net".to_string(),
                n => format!("needs blob {index}, {n} are stored"),
            }));
        };
        let tensor = self.tensor(v).cloned();
        tensor.ok_or_else(|| self.fail(format!("blob {index} is no constant")))
    }

    fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<Value> {
        self.constant(Tensor::from_slice(shape, values)?)
    }
    fn plus(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Add::default(), &[a, b])
    }
    fn minus(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Subtract::default(), &[a, b])
    }
    fn times(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Multiply::default(), &[a, b])
    }
    fn over(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Divide::default(), &[a, b])
    }
    fn larger(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Maximum::default(), &[a, b])
    }
    fn times_number(&mut self, x: Value, factor: f64) -> Result<Value> {
        if factor == 1.0 {
            return Ok(x);
        }
        let factor = self.scalar_like(x, factor)?;
        self.times(x, factor)
    }
    fn plus_number(&mut self, x: Value, number: f64) -> Result<Value> {
        if number == 0.0 {
            return Ok(x);
        }
        let number = self.scalar_like(x, number)?;
        self.plus(x, number)
    }
    fn power_number(&mut self, x: Value, exponent: f64) -> Result<Value> {
        let exponent = self.scalar(ElementType::F32, exponent)?;
        self.emit(Power::default(), &[x, exponent])
    }
    fn cut(&mut self, x: Value, start: Value, stop: Value, axis: i64) -> Result<Value> {
        let (step, axis) = (self.i64s(&[1])?, self.i64s(&[axis])?);
        self.emit(Slice, &[x, start, stop, step, axis])
    }
}

// Whether one shape is the other with axes joined, which leaves all values where they are.
fn same_order(a: &[usize], b: &[usize]) -> bool {
    let borders = |shape: &[usize]| -> Vec<usize> {
        let mut product = 1usize;
        let mut all = vec![];
        for dim in shape.iter().filter(|d| **d != 1) {
            product = product.saturating_mul(*dim);
            all.push(product);
        }
        all
    };
    let (a, b) = (borders(a), borders(b));
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    few.last() == Some(&0) || few.iter().all(|border| many.contains(border))
}

#[cfg(test)]
mod tests {
    use super::same_order;

    #[test]
    fn shapes_of_one_order_differ_in_joined_axes_alone() {
        assert!(same_order(&[1, 1, 4, 6], &[4, 6]));
        assert!(same_order(&[24], &[2, 3, 4]));
        assert!(same_order(&[4, 6], &[4, 2, 3]));
        assert!(same_order(&[4, 1, 3], &[2, 2, 1, 3]));
        assert!(same_order(&[], &[1]));
        assert!(same_order(&[0, 3], &[3, 0]));
        assert!(!same_order(&[3, 2, 3, 3], &[2, 3, 3, 3]));
        assert!(!same_order(&[6, 4], &[4, 6]));
    }
}
