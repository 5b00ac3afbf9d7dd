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
    /// A stored blob in this shape. Its own shape does not matter, the number of values does.
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
    fn blob(&mut self, index: usize, shape: &[usize]) -> Result<Value> {
        let tensor = self.blob_tensor(index)?;
        let wanted = carafe_tensor::elements(shape);
        if wanted != Some(tensor.len()) {
            let wanted = wanted.map_or("more than memory holds".to_string(), |n| n.to_string());
            let found = tensor.len();
            return Err(self.fail(format!("blob {index} has {found} values, expected {wanted} = {shape:?}")));
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
