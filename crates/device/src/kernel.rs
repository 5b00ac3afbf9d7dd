//! Fast kernels that an extension brings for an operation. A kernel is asked as a builder of the device is: it sees types,
//! shapes, the layouts that the device offers and the elementwise work that follows, and answers with the forms it wants and
//! how much of that work it takes. The device gives it memory in these forms, planned with everything else, and runs it on
//! all streams at once.

use crate::kernel_io::KernelIo;
use crate::kernel_layout::Layout;
use carafe_graph::{AttrMap, Error, Fact, Result};
use carafe_tensor::{ElementType, Tensor};

/// How a kernel wants one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// Element type; where it is not that of the model, the device converts.
    pub ty: ElementType,
    /// Order of the elements in memory; where the value lies otherwise, the device reorders it.
    pub layout: Layout,
    /// Outputs: the input whose memory it may use.
    pub in_place: Option<usize>,
    /// Inputs: the value must be a constant.
    pub constant: bool,
}

impl PortLayout {
    /// Elements of a type in a layout.
    pub fn new(ty: ElementType, layout: Layout) -> PortLayout {
        PortLayout { ty, layout, in_place: None, constant: false }
    }
    /// Row-major, as the model says.
    pub fn plain(ty: ElementType) -> PortLayout {
        PortLayout::new(ty, Layout::Plain)
    }
    /// An output that may lie in the memory of an input.
    pub fn in_place_of(mut self, input: usize) -> PortLayout {
        self.in_place = Some(input);
        self
    }
    /// An input that must be a constant.
    pub fn constant(mut self) -> PortLayout {
        self.constant = true;
        self
    }
}

/// One way in which a kernel can run a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Inputs of the node, then the operands of what is taken of the epilogue.
    pub inputs: Vec<PortLayout>,
    /// Outputs of the node.
    pub outputs: Vec<PortLayout>,
    /// How many operations of [`Site::epilogue`] it does, from the first on.
    pub epilogue: usize,
    /// Bytes of memory for itself while it runs.
    pub workspace: usize,
    /// Bytes of memory for each thread of [`KernelIo::each`].
    pub scratch: usize,
}

impl Config {
    /// Ports alone: nothing of the epilogue, no memory besides.
    pub fn new(inputs: Vec<PortLayout>, outputs: Vec<PortLayout>) -> Config {
        Config { inputs, outputs, ..Config::default() }
    }
}

/// The node a kernel is asked about.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Name of the node.
    pub name: String,
    /// Type of the operation.
    pub op_type: String,
    /// Opset of the operation.
    pub opset: String,
    /// Attributes of the operation.
    pub attrs: AttrMap,
    /// Inputs of the node, then further operands of the epilogue; constants with their values.
    pub inputs: Vec<Fact>,
    /// Outputs of the node.
    pub outputs: Vec<Fact>,
    /// Layouts that cost the device little: values lie in them between its own steps. Others are copied around the kernel.
    pub layouts: Vec<Layout>,
    /// How each input lies now, where that is decided; may be shorter than the inputs.
    pub input_layouts: Vec<Layout>,
    /// Elementwise work on output 0 that nobody else needs the inputs of. Offered to kernels that say [`Kernel::fuses`].
    pub epilogue: Vec<EpilogueOp>,
}

impl Site {
    /// Inputs of the node itself; those behind them belong to the epilogue.
    pub fn own_inputs(&self) -> usize {
        self.operands_before(0)
    }
    /// Inputs that a kernel reads which takes so many operations of the epilogue.
    pub fn inputs_with(&self, epilogue: usize) -> usize {
        self.operands_before(epilogue)
    }
    /// The node alone.
    pub(crate) fn without_epilogue(&self) -> Site {
        let mut site = self.clone();
        site.inputs.truncate(self.own_inputs());
        site.input_layouts.truncate(self.own_inputs());
        site.epilogue.clear();
        site
    }
    // Operands stand behind the node's inputs in the order of their operations.
    fn operands_before(&self, taken: usize) -> usize {
        let later = self.epilogue.iter().skip(taken).flat_map(|op| &op.operands);
        self.inputs.len() - later.filter(|o| matches!(o, Operand::Input(_))).count()
    }
}

/// One elementwise operation behind a node.
#[derive(Clone, Debug, PartialEq)]
pub struct EpilogueOp {
    /// What it computes.
    pub function: Function,
    /// Constants of the function, as [`Function`] lists them.
    pub numbers: Vec<f64>,
    /// What it computes with, in order.
    pub operands: Vec<Operand>,
}

/// An operand of elementwise work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// What the node gives (0), or the operation of the epilogue before the number.
    Result(usize),
    /// An input of the site: of the shape of the result, one number, or one number for each index of axis 1.
    Input(usize),
}

/// Elementwise functions, with the constants that [`EpilogueOp::numbers`] holds. The formulas are those of the operations of
/// the same names; the codes cross the boundary and are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Function {
    Relu = 1,
    /// Smallest and largest value.
    Clamp = 2,
    /// Factor below zero.
    LeakyRelu = 3,
    /// Factor of `exp(x) - 1` below zero.
    Elu = 4,
    /// Alpha and scale.
    Selu = 5,
    Sigmoid = 6,
    Tanh = 7,
    /// Beta of `x * sigmoid(beta * x)`.
    Swish = 8,
    HSwish = 9,
    HSigmoid = 10,
    /// Alpha and beta of `clamp(alpha * x + beta, 0, 1)`.
    HardSigmoid = 11,
    GeluErf = 12,
    GeluTanh = 13,
    Mish = 14,
    SoftPlus = 15,
    SoftSign = 16,
    Abs = 32,
    Negative = 33,
    Exp = 34,
    Log = 35,
    Sqrt = 36,
    Floor = 37,
    Ceiling = 38,
    RoundToEven = 39,
    RoundAway = 40,
    Sign = 41,
    Sin = 42,
    Cos = 43,
    Tan = 44,
    Asin = 45,
    Acos = 46,
    Atan = 47,
    Sinh = 48,
    Cosh = 49,
    Asinh = 50,
    Acosh = 51,
    Atanh = 52,
    Erf = 53,
    Add = 64,
    Subtract = 65,
    Multiply = 66,
    Divide = 67,
    Maximum = 68,
    Minimum = 69,
    Power = 70,
    SquaredDifference = 71,
    Mod = 72,
    FloorMod = 73,
    /// The second operand is the slope below zero.
    PRelu = 74,
    /// Limits of what is read, limits of the result, steps between them.
    Quantize = 96,
}

impl Function {
    /// Every function.
    #[rustfmt::skip]
    pub const ALL: [Function; 50] = {
        use Function::*;
        [
            Relu, Clamp, LeakyRelu, Elu, Selu, Sigmoid, Tanh, Swish, HSwish, HSigmoid, HardSigmoid, GeluErf, GeluTanh, Mish,
            SoftPlus, SoftSign, Abs, Negative, Exp, Log, Sqrt, Floor, Ceiling, RoundToEven, RoundAway, Sign, Sin, Cos, Tan,
            Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Erf, Add, Subtract, Multiply, Divide, Maximum, Minimum, Power,
            SquaredDifference, Mod, FloorMod, PRelu, Quantize,
        ]
    };
    /// The function of a code; `None` for one that this version does not know.
    pub fn of_code(code: u32) -> Option<Function> {
        Function::ALL.into_iter().find(|f| *f as u32 == code)
    }
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
    /// Whether it may take elementwise work that follows. Only then is it asked with an epilogue, and the work is not offered to
    /// anybody else first.
    fn fuses(&self) -> bool {
        false
    }
    /// Ways to run the node, the best first; none declines it. Asked when a model is compiled, again for each set of shapes
    /// where shapes are open then, and again where layouts and epilogue are decided.
    fn configs(&self, site: &Site) -> Result<Vec<Config>>;
    /// The kernel of a node for one of the configurations that `configs` gives for the same site. The place to pack constants.
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>>;
    /// Told by a device that the kernel should run this node and cannot: it failed, panicked or offered no usable layout. For
    /// whoever wraps a kernel to tell the user; the node is run by something else.
    fn report(&self, _site: &Site, _trouble: &str) {}
}

/// A kernel ready to run one node. All streams use it at once.
pub trait PreparedKernel: Send + Sync {
    /// Computes the outputs from the inputs, all in the forms of the configuration, in memory that the device planned. It should
    /// take no memory of its own: [`Config::workspace`] and [`Config::scratch`] ask for it.
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()>;
    /// For nodes whose results cannot be planned, because only the run knows their shapes or their elements are strings: makes
    /// them. Inputs and results are in the forms of the configuration; `outputs` says type and plain shape.
    fn make(&self, _inputs: &[Tensor], _outputs: &[Fact]) -> Result<Vec<Tensor>> {
        Err(Error::unsupported("the kernel runs only where the shapes of its results are known before"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_the_epilogue_stand_behind_the_inputs() {
        let add = |i| EpilogueOp {
            function: Function::Add,
            numbers: vec![],
            operands: vec![Operand::Result(0), Operand::Input(i)],
        };
        let fact = Fact::new(ElementType::F32, carafe_tensor::PartialShape::of(&[1]));
        let site = Site { inputs: vec![fact; 4], epilogue: vec![add(2), add(3)], ..Site::default() };
        assert_eq!([0, 1, 2].map(|taken| site.inputs_with(taken)), [2, 3, 4]);
        assert_eq!(site.own_inputs(), 2);
    }

    #[test]
    fn every_function_has_a_code_of_its_own() {
        for f in Function::ALL {
            assert_eq!(Function::of_code(f as u32), Some(f));
        }
        assert_eq!(Function::of_code(0), None);
    }
}
