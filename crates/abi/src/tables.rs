//! The boundary itself: every type here is `repr(C)` and is printed into `include/carafe.h` by a test. A table begins
//! with its size, so that either side may be older: a field is there only if the size covers it. Fields are added at the
//! end and never change their meaning. No Rust type, allocation or unwinding crosses; text is UTF-8.

use std::ffi::{c_char, c_void};

/// Libraries and engines with the same major number understand each other.
pub const CARAFE_ABI_MAJOR: u32 = 1;
/// Counts additions at the ends of tables.
pub const CARAFE_ABI_MINOR: u32 = 3;
/// First word of `carafe_abi`: tells a Carafe library from any other that exports `create_extensions`.
pub const CARAFE_ABI_MAGIC: u32 = 0x4652_4143;

/// What a library is built for. A library exports one such constant under the name `carafe_abi`; it is read before any
/// code of the library is called.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeAbi {
    pub magic: u32,
    pub major: u32,
    pub minor: u32,
    /// Size of a pointer in bytes.
    pub pointer: u32,
}

/// 0 is success. The text that belongs to a failure is set with `CarafeHost::set_error` before it is returned.
pub type CarafeStatus = i32;
pub const CARAFE_OK: i32 = 0;
/// The model, file or tensor is wrong.
pub const CARAFE_INVALID: i32 = 1;
/// Well formed, but nobody here can handle it.
pub const CARAFE_UNSUPPORTED: i32 = 2;
/// A name or value that does not exist. For a question, the answer "not known".
pub const CARAFE_NOT_FOUND: i32 = 3;
/// The operating system said no.
pub const CARAFE_IO: i32 = 4;
/// An interface was used wrongly.
pub const CARAFE_USAGE: i32 = 5;
/// A request is running and cannot be touched.
pub const CARAFE_BUSY: i32 = 6;
/// The work was cancelled.
pub const CARAFE_CANCELLED: i32 = 7;
/// A panic or an exception was stopped at the boundary.
pub const CARAFE_PANIC: i32 = 8;

/// Text by pointer and length; not terminated by zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeStr {
    pub data: *const c_char,
    pub len: usize,
}

// Element types. The numbers are frozen.
pub const CARAFE_DYNAMIC: u32 = 0;
pub const CARAFE_BOOLEAN: u32 = 1;
pub const CARAFE_BF16: u32 = 2;
pub const CARAFE_F16: u32 = 3;
pub const CARAFE_F32: u32 = 4;
pub const CARAFE_F64: u32 = 5;
pub const CARAFE_I4: u32 = 6;
pub const CARAFE_I8: u32 = 7;
pub const CARAFE_I16: u32 = 8;
pub const CARAFE_I32: u32 = 9;
pub const CARAFE_I64: u32 = 10;
pub const CARAFE_U1: u32 = 11;
pub const CARAFE_U2: u32 = 12;
pub const CARAFE_U3: u32 = 13;
pub const CARAFE_U4: u32 = 14;
pub const CARAFE_U6: u32 = 15;
pub const CARAFE_U8: u32 = 16;
pub const CARAFE_U16: u32 = 17;
pub const CARAFE_U32: u32 = 18;
pub const CARAFE_U64: u32 = 19;
pub const CARAFE_NF4: u32 = 20;
pub const CARAFE_F8E4M3: u32 = 21;
pub const CARAFE_F8E5M2: u32 = 22;
pub const CARAFE_F8E8M0: u32 = 23;
pub const CARAFE_F4E2M1: u32 = 24;
pub const CARAFE_STRING: u32 = 25;
pub const CARAFE_F8E4M3FNUZ: u32 = 26;
pub const CARAFE_F8E5M2FNUZ: u32 = 27;
pub const CARAFE_I2: u32 = 28;

/// One dimension of a shape, known or within bounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CarafeDim {
    pub min: i64,
    /// -1 when there is no upper bound; equal to `min` when the dimension is known.
    pub max: i64,
    /// Equal symbols mean equal dimensions; 0 for none.
    pub symbol: u32,
    pub reserved: u32,
}

/// What is known of a value: element type and partial shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeFact {
    pub element_type: u32,
    /// -1 when the rank is unknown.
    pub rank: i32,
    pub dims: *const CarafeDim,
}

/// A tensor in memory, row-major. For `CARAFE_STRING` the data are `CarafeStr` elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeTensor {
    pub element_type: u32,
    pub rank: u32,
    pub shape: *const usize,
    pub data: *const c_void,
    pub bytes: usize,
}

// Kinds of attributes. The numbers are frozen.
/// As it stood in a text file, without a declared kind.
pub const CARAFE_ATTR_TEXT: u32 = 0;
pub const CARAFE_ATTR_BOOL: u32 = 1;
pub const CARAFE_ATTR_INT: u32 = 2;
pub const CARAFE_ATTR_FLOAT: u32 = 3;
pub const CARAFE_ATTR_STR: u32 = 4;
pub const CARAFE_ATTR_INTS: u32 = 5;
pub const CARAFE_ATTR_FLOATS: u32 = 6;
pub const CARAFE_ATTR_STRS: u32 = 7;
pub const CARAFE_ATTR_TYPE: u32 = 8;
pub const CARAFE_ATTR_TYPES: u32 = 9;
pub const CARAFE_ATTR_SHAPE: u32 = 10;
pub const CARAFE_ATTR_TENSOR: u32 = 11;

/// One attribute with its value. Which field holds it follows from `kind`: `i` for a bool (0 or 1), an integer and an
/// element type; `f`; `s` for text and strings; for lists `n` elements at `ints`, `floats`, `strs` or `types`; a shape
/// has `n` dimensions at `dims`, or `i` = -1 when its rank is unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeAttr {
    pub name: CarafeStr,
    pub kind: u32,
    pub reserved: u32,
    pub i: i64,
    pub f: f64,
    pub s: CarafeStr,
    pub n: usize,
    pub ints: *const i64,
    pub floats: *const f64,
    pub strs: *const CarafeStr,
    pub types: *const u32,
    pub dims: *const CarafeDim,
    pub tensor: CarafeTensor,
}

/// Attributes in a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeAttrs {
    pub list: *const CarafeAttr,
    pub n: usize,
}

/// A port of an operation's declaration.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafePort {
    pub name: *const c_char,
    /// May be left out; only behind all required ports.
    pub optional: u32,
    /// Stands for any number of ports; only as the last one.
    pub variadic: u32,
}

/// An attribute of an operation's declaration.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeAttrInfo {
    pub name: *const c_char,
    pub kind: u32,
    /// 1: a node without it is refused.
    pub required: u32,
    /// Value of a node without it; may be null.
    pub default_value: *const CarafeAttr,
    pub doc: *const c_char,
}

/// What `infer` of an operation sees and fills in. What it hands out is valid until `infer` returns. Threads take turns at
/// it.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeInfer {
    pub fns: *const CarafeInferFns,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeInferFns {
    pub size: usize,
    pub n_inputs: unsafe extern "C" fn(cx: *mut CarafeInfer) -> usize,
    pub input: unsafe extern "C" fn(cx: *mut CarafeInfer, input: usize, fact: *mut CarafeFact) -> CarafeStatus,
    /// The elements of an input where they are known, otherwise `CARAFE_NOT_FOUND`.
    pub value: unsafe extern "C" fn(cx: *mut CarafeInfer, input: usize, tensor: *mut CarafeTensor) -> CarafeStatus,
    /// The elements of an integer input as intervals, otherwise `CARAFE_NOT_FOUND`.
    pub intervals: unsafe extern "C" fn(
        cx: *mut CarafeInfer,
        input: usize,
        dims: *mut *const CarafeDim,
        n: *mut usize,
    ) -> CarafeStatus,
    pub set_output: unsafe extern "C" fn(cx: *mut CarafeInfer, output: usize, fact: *const CarafeFact) -> CarafeStatus,
    /// Says the elements of an output, after `set_output`.
    pub set_value:
        unsafe extern "C" fn(cx: *mut CarafeInfer, output: usize, tensor: *const CarafeTensor) -> CarafeStatus,
    /// Says the elements of an integer output of static shape as intervals, after `set_output`.
    pub set_intervals:
        unsafe extern "C" fn(cx: *mut CarafeInfer, output: usize, dims: *const CarafeDim, n: usize) -> CarafeStatus,
    /// A symbol that only this axis of this node has.
    pub symbol: unsafe extern "C" fn(cx: *mut CarafeInfer, axis: usize) -> u32,
    /// 1 when every shape is exact and an evaluation follows.
    pub exact: unsafe extern "C" fn(cx: *mut CarafeInfer) -> u32,
}

/// What `eval` of an operation sees and fills in. What it hands out is valid until `eval` returns. Threads take turns at
/// it, so that the parts of a loop may ask.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeEval {
    pub fns: *const CarafeEvalFns,
}

/// Gives memory back to the side that made it. Called once, on any thread. The rule for all memory that is given with such
/// a function: a call that succeeds takes the memory, and the taker calls `release`; a call that fails takes nothing, the
/// memory stays with the caller and `release` is not called.
pub type CarafeRelease = Option<unsafe extern "C" fn(owner: *mut c_void)>;
/// A part of a loop: the indices `begin..end`.
pub type CarafeLoop = Option<unsafe extern "C" fn(user: *mut c_void, begin: usize, end: usize)>;
/// A part of a loop that can fail; its text is set with `CarafeHost::set_error` on the thread of the part. Since 1.2.
pub type CarafeTryLoop = Option<unsafe extern "C" fn(user: *mut c_void, begin: usize, end: usize) -> CarafeStatus>;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeEvalFns {
    pub size: usize,
    pub n_inputs: unsafe extern "C" fn(cx: *mut CarafeEval) -> usize,
    pub input: unsafe extern "C" fn(cx: *mut CarafeEval, input: usize, tensor: *mut CarafeTensor) -> CarafeStatus,
    pub n_outputs: unsafe extern "C" fn(cx: *mut CarafeEval) -> usize,
    /// What was inferred for an output; an unknown dimension is decided by the evaluation.
    pub output_fact: unsafe extern "C" fn(cx: *mut CarafeEval, output: usize, fact: *mut CarafeFact) -> CarafeStatus,
    /// Makes the memory of an output, zeroed, for numbers of a whole number of bytes. Once for each output: the memory is in
    /// the author's hands until `eval` returns, so nothing else can take its place.
    pub output: unsafe extern "C" fn(
        cx: *mut CarafeEval,
        output: usize,
        element_type: u32,
        rank: u32,
        shape: *const usize,
        data: *mut *mut c_void,
    ) -> CarafeStatus,
    /// Sets an output by copying a tensor; the way for strings.
    pub set_output:
        unsafe extern "C" fn(cx: *mut CarafeEval, output: usize, tensor: *const CarafeTensor) -> CarafeStatus,
    /// Sets an output without copying: the memory stays with its maker until `release(owner)` is called. When the call
    /// fails, the memory is still the author's and `release` is not called; a null `release` is refused.
    pub give_output: unsafe extern "C" fn(
        cx: *mut CarafeEval,
        output: usize,
        tensor: *const CarafeTensor,
        owner: *mut c_void,
        release: CarafeRelease,
    ) -> CarafeStatus,
    /// An output that is an input, not copied.
    pub forward: unsafe extern "C" fn(cx: *mut CarafeEval, output: usize, input: usize) -> CarafeStatus,
    /// Keeps the memory of an input alive after `eval` returns, until `CarafeHost::drop_owner`.
    pub keep_input: unsafe extern "C" fn(cx: *mut CarafeEval, input: usize, owner: *mut *mut c_void) -> CarafeStatus,
    /// Name of the node.
    pub name: unsafe extern "C" fn(cx: *mut CarafeEval, name: *mut CarafeStr) -> CarafeStatus,
    /// Value of a variable, or `CARAFE_NOT_FOUND`.
    pub variable: unsafe extern "C" fn(cx: *mut CarafeEval, id: CarafeStr, tensor: *mut CarafeTensor) -> CarafeStatus,
    pub assign: unsafe extern "C" fn(cx: *mut CarafeEval, id: CarafeStr, tensor: *const CarafeTensor) -> CarafeStatus,
}

/// Inputs may be swapped.
pub const CARAFE_OP_COMMUTATIVE: u32 = 1;
/// Two evaluations may differ; such a node is never folded.
pub const CARAFE_OP_RANDOM: u32 = 2;
/// Reads or writes a variable.
pub const CARAFE_OP_STATEFUL: u32 = 4;
/// Kept although nothing reads its output.
pub const CARAFE_OP_SINK: u32 = 8;
/// Takes attributes that it does not declare; they arrive as text.
pub const CARAFE_OP_ANY_ATTRS: u32 = 16;
/// Works on every element of the first input alone; further inputs are single numbers. This and the following: since 1.3.
pub const CARAFE_OP_ELEMENTWISE: u32 = 32;
/// Works on the elements of all inputs, broadcast together as NumPy does.
pub const CARAFE_OP_BROADCASTS: u32 = 64;
/// The first output has the shape of the first input.
pub const CARAFE_OP_KEEPS_SHAPE: u32 = 128;
/// Gives 0 for 0 and treats every channel alike.
pub const CARAFE_OP_KEEPS_ZERO: u32 = 256;
/// Done twice it gives what it gives once.
pub const CARAFE_OP_IDEMPOTENT: u32 = 512;
/// Done twice it gives back what it was given.
pub const CARAFE_OP_INVOLUTION: u32 = 1024;
/// Rounds to the numbers of a smaller type: the model is meant for one.
pub const CARAFE_OP_QUANTIZES: u32 = 2048;
/// Reads nothing of its inputs but their shapes.
pub const CARAFE_OP_SHAPE_ONLY: u32 = 4096;
/// Does so much work that preparing a kernel pays even for shapes that never come again.
pub const CARAFE_OP_HEAVY: u32 = 8192;

/// An operation. One table serves all its nodes; `create` makes what a node needs beyond it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeOp {
    pub size: usize,
    pub abi: u32,
    pub flags: u32,
    pub name: *const c_char,
    /// Name of the opset; null for `extension`. The name of a numbered opset replaces the built-in operation.
    pub opset: *const c_char,
    pub doc: *const c_char,
    pub inputs: *const CarafePort,
    pub n_inputs: usize,
    pub outputs: *const CarafePort,
    pub n_outputs: usize,
    pub attrs: *const CarafeAttrInfo,
    pub n_attrs: usize,
    /// Handed to `create`.
    pub user: *mut c_void,
    /// Makes the instance of a node from its attributes; may be null, then `user` is the instance.
    pub create:
        Option<unsafe extern "C" fn(user: *mut c_void, attrs: CarafeAttrs, instance: *mut *mut c_void) -> CarafeStatus>,
    /// Types and shapes of the outputs. Also the place where a bad node is refused.
    pub infer: Option<unsafe extern "C" fn(instance: *const c_void, cx: *mut CarafeInfer) -> CarafeStatus>,
    /// Computes the outputs; may be null, then a kernel must run the node. Called by several threads at once.
    pub eval: Option<unsafe extern "C" fn(instance: *const c_void, cx: *mut CarafeEval) -> CarafeStatus>,
    /// Ends an instance that `create` made.
    pub release: Option<unsafe extern "C" fn(instance: *mut c_void)>,
    /// Attributes as the instance has them, valid as long as it lives; null when they are the declared ones.
    pub instance_attrs: Option<unsafe extern "C" fn(instance: *const c_void, attrs: *mut CarafeAttrs) -> CarafeStatus>,
    /// Inputs whose elements are only moved; lets partial shape values flow through.
    pub moves: *const usize,
    pub n_moves: usize,
    /// Since 1.2. Whether the instance has an evaluation, where a class that has `eval` may be without; null when all have.
    pub evaluates: Option<unsafe extern "C" fn(instance: *const c_void) -> u32>,
    /// Since 1.2. Places in `attrs` of those that are internal: used while converting and running, never written to the
    /// files of an IR. None of them can be required; a node that was read from a file has the default.
    pub internal_attrs: *const usize,
    pub n_internal_attrs: usize,
    /// Since 1.3. Inputs that decide the shape of an output; what flows into them keeps its precision.
    pub shape_inputs: *const usize,
    pub n_shape_inputs: usize,
    /// Since 1.3. Inputs whose rows (parts along the first axis) stay apart, each giving a row of every output, while all other
    /// inputs are the same for all rows; lets BATCH run requests together.
    pub rows: *const usize,
    pub n_rows: usize,
    /// Since 1.3. Multiply-accumulates of a node with these inputs and outputs, `CARAFE_NOT_FOUND` where a size that counts is
    /// not known; may be null, then none.
    pub macs: Option<
        unsafe extern "C" fn(
            instance: *const c_void,
            inputs: *const CarafeFact,
            n_inputs: usize,
            outputs: *const CarafeFact,
            n_outputs: usize,
            macs: *mut u64,
        ) -> CarafeStatus,
    >,
}

/// One output of one node.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarafeValue {
    pub node: u32,
    pub port: u32,
}

/// A node of a source file being translated. What it hands out is valid until the rule returns. Threads take turns at it.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeNode {
    pub fns: *const CarafeNodeFns,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeNodeFns {
    pub size: usize,
    pub op_type: unsafe extern "C" fn(cx: *mut CarafeNode, text: *mut CarafeStr) -> CarafeStatus,
    pub domain: unsafe extern "C" fn(cx: *mut CarafeNode, text: *mut CarafeStr) -> CarafeStatus,
    pub name: unsafe extern "C" fn(cx: *mut CarafeNode, text: *mut CarafeStr) -> CarafeStatus,
    /// Version of the operation set that the model imports for the domain.
    pub version: unsafe extern "C" fn(cx: *mut CarafeNode) -> i64,
    pub n_inputs: unsafe extern "C" fn(cx: *mut CarafeNode) -> usize,
    /// `CARAFE_NOT_FOUND` when the input was left out.
    pub input: unsafe extern "C" fn(cx: *mut CarafeNode, input: usize, value: *mut CarafeValue) -> CarafeStatus,
    /// How many values a named port holds, for formats with named ports.
    pub n_inputs_named: unsafe extern "C" fn(cx: *mut CarafeNode, port: CarafeStr) -> usize,
    pub input_named: unsafe extern "C" fn(
        cx: *mut CarafeNode,
        port: CarafeStr,
        index: usize,
        value: *mut CarafeValue,
    ) -> CarafeStatus,
    pub n_outputs: unsafe extern "C" fn(cx: *mut CarafeNode) -> usize,
    pub output_name: unsafe extern "C" fn(cx: *mut CarafeNode, output: usize, text: *mut CarafeStr) -> CarafeStatus,
    /// All attributes; counts as reading them.
    pub attrs: unsafe extern "C" fn(cx: *mut CarafeNode, attrs: *mut CarafeAttrs) -> CarafeStatus,
    /// One attribute, or `CARAFE_NOT_FOUND`. Attributes that a rule does not ask for have no effect, which a warning says.
    pub attr: unsafe extern "C" fn(cx: *mut CarafeNode, name: CarafeStr, attr: *mut CarafeAttr) -> CarafeStatus,
    /// What is known of a value.
    pub fact: unsafe extern "C" fn(cx: *mut CarafeNode, value: CarafeValue, fact: *mut CarafeFact) -> CarafeStatus,
    /// The elements of a value where they are known, otherwise `CARAFE_NOT_FOUND`.
    pub constant_of:
        unsafe extern "C" fn(cx: *mut CarafeNode, value: CarafeValue, tensor: *mut CarafeTensor) -> CarafeStatus,
    /// Adds a node. `op` is `Type`, `opsetN::Type` or `opset_name::Type`. Gives its first output; the others have the
    /// same node and the ports 1, 2, ...
    pub emit: unsafe extern "C" fn(
        cx: *mut CarafeNode,
        op: CarafeStr,
        inputs: *const CarafeValue,
        n_inputs: usize,
        attrs: CarafeAttrs,
        first: *mut CarafeValue,
    ) -> CarafeStatus,
    pub constant:
        unsafe extern "C" fn(cx: *mut CarafeNode, tensor: *const CarafeTensor, value: *mut CarafeValue) -> CarafeStatus,
    /// Says what the source node's output is; every output that the model uses needs one.
    pub set_output: unsafe extern "C" fn(cx: *mut CarafeNode, output: usize, value: CarafeValue) -> CarafeStatus,
    /// Number of sub-graphs among the attributes, and the name of each.
    pub n_graphs: unsafe extern "C" fn(cx: *mut CarafeNode) -> usize,
    pub graph_name: unsafe extern "C" fn(cx: *mut CarafeNode, graph: usize, text: *mut CarafeStr) -> CarafeStatus,
    /// Puts the nodes of a sub-graph into the model, with these values for its inputs.
    pub inline_graph: unsafe extern "C" fn(
        cx: *mut CarafeNode,
        name: CarafeStr,
        inputs: *const CarafeValue,
        n_inputs: usize,
        outputs: *mut CarafeValue,
        n_outputs: *mut usize,
    ) -> CarafeStatus,
    /// Since 1.2. Says that an attribute was not read after all, for whoever asked for all of them to look for a few. What no rule of
    /// an extension reads is told in a warning.
    pub leave_attr: Option<unsafe extern "C" fn(cx: *mut CarafeNode, name: CarafeStr) -> CarafeStatus>,
}

/// A translator from one operation of a source format to nodes: a conversion extension.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeRule {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    /// `onnx`, `tensorflow`, `tflite`, `caffe`, `mxnet`, `kaldi`, `paddle`; null for all.
    pub framework: *const c_char,
    /// Null for every domain, "" for the default one.
    pub domain: *const c_char,
    pub op_type: *const c_char,
    /// First version of the operation set it is for; 1 for all.
    pub since: i64,
    pub user: *mut c_void,
    pub convert: Option<unsafe extern "C" fn(user: *mut c_void, cx: *mut CarafeNode) -> CarafeStatus>,
}

/// Two names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafePair {
    pub first: *const c_char,
    pub second: *const c_char,
}

/// An attribute that a source format gives as a constant input.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeInputAttr {
    pub attr: *const c_char,
    pub input: usize,
}

/// One operation of a source format as one operation of ours, told by data alone: an op extension.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeMapping {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    /// As in `CarafeRule`.
    pub framework: *const c_char,
    pub domain: *const c_char,
    /// Type in the source format; null when it is that of `op`.
    pub op_type: *const c_char,
    /// `Type`, `opsetN::Type`, `opsetN.Type` or `opset_name::Type`.
    pub op: *const c_char,
    /// Our attribute, source attribute. An attribute that is not here has the same name in both.
    pub attr_names: *const CarafePair,
    pub n_attr_names: usize,
    /// Attributes with fixed values.
    pub attr_values: CarafeAttrs,
    /// Attributes that come from constant inputs; inputs from the first of them on are not inputs of our operation.
    pub input_attrs: *const CarafeInputAttr,
    pub n_input_attrs: usize,
    /// Ports by name, for formats that have them; null when inputs are taken in order.
    pub input_names: *const *const c_char,
    pub n_input_names: usize,
    pub output_names: *const *const c_char,
    pub n_output_names: usize,
}

/// A model being looked at or rewritten.
///
/// Threads: every function may be called by any thread; they take turns, but `evaluate` computes outside of its turn, so
/// several nodes are evaluated at once. A graph cannot be used from inside of a call to itself, as when an operation that
/// `add` makes uses the graph it is added to; that is refused.
///
/// Lifetimes: what the getters hand out is valid until the callback returns, and for a retained graph until its `release`.
/// Asked again, a getter gives the same memory, so a graph that does not change needs no more memory however often it is
/// asked. A change does not touch what was handed out before it. A graph of `scratch` or `copy` hands out what is valid
/// until its last node is removed: then it begins anew, also with its ids.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeGraph {
    pub fns: *const CarafeGraphFns,
}

/// A node as others see it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeNodeInfo {
    pub name: CarafeStr,
    pub op_type: CarafeStr,
    pub opset: CarafeStr,
    pub n_inputs: usize,
    pub n_outputs: usize,
}

/// One input of one node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeUse {
    pub node: u32,
    pub input: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeGraphFns {
    pub size: usize,
    /// Ids of all nodes, producers before consumers.
    pub nodes: unsafe extern "C" fn(g: *mut CarafeGraph, ids: *mut *const u32, n: *mut usize) -> CarafeStatus,
    pub parameters: unsafe extern "C" fn(g: *mut CarafeGraph, ids: *mut *const u32, n: *mut usize) -> CarafeStatus,
    pub results: unsafe extern "C" fn(g: *mut CarafeGraph, ids: *mut *const u32, n: *mut usize) -> CarafeStatus,
    pub node: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, info: *mut CarafeNodeInfo) -> CarafeStatus,
    pub attrs: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, attrs: *mut CarafeAttrs) -> CarafeStatus,
    pub input:
        unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, input: usize, value: *mut CarafeValue) -> CarafeStatus,
    pub fact: unsafe extern "C" fn(g: *mut CarafeGraph, value: CarafeValue, fact: *mut CarafeFact) -> CarafeStatus,
    /// The tensor of a constant, otherwise `CARAFE_NOT_FOUND`.
    pub constant_of:
        unsafe extern "C" fn(g: *mut CarafeGraph, value: CarafeValue, tensor: *mut CarafeTensor) -> CarafeStatus,
    pub users: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        value: CarafeValue,
        uses: *mut *const CarafeUse,
        n: *mut usize,
    ) -> CarafeStatus,
    /// A text of the node's runtime information, such as `affinity`, or `CARAFE_NOT_FOUND`.
    pub info: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, key: CarafeStr, text: *mut CarafeStr) -> CarafeStatus,
    pub set_info: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, key: CarafeStr, text: CarafeStr) -> CarafeStatus,
    /// Adds a node; `op` as in `CarafeNodeFns::emit`.
    pub add: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        name: CarafeStr,
        op: CarafeStr,
        inputs: *const CarafeValue,
        n_inputs: usize,
        attrs: CarafeAttrs,
        id: *mut u32,
    ) -> CarafeStatus,
    pub add_constant: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        name: CarafeStr,
        tensor: *const CarafeTensor,
        value: *mut CarafeValue,
    ) -> CarafeStatus,
    /// Lets every user of `old` read `new`; tensor names move along.
    pub replace: unsafe extern "C" fn(g: *mut CarafeGraph, old: CarafeValue, new_value: CarafeValue) -> CarafeStatus,
    pub set_input: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, input: usize, value: CarafeValue) -> CarafeStatus,
    pub set_name: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32, name: CarafeStr) -> CarafeStatus,
    /// Removes a node that nothing uses.
    pub remove: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32) -> CarafeStatus,
    /// Computes one node by its reference evaluation; the outputs are filled through `out`: `give_output`, or `set_output`
    /// for strings. A node that reads or writes variables also uses `variable` and `assign` of `out`; without them it
    /// fails. A retained model may be used by several threads at once for this.
    pub evaluate: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        id: u32,
        inputs: *const CarafeTensor,
        n_inputs: usize,
        out: *mut CarafeEval,
    ) -> CarafeStatus,
    /// The whole model as IR text, and where its weights lie: `offset` and `size` attributes of the text name places in
    /// a sequence of buffers.
    pub ir: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        xml: *mut CarafeStr,
        buffers: *mut *const CarafeBuffer,
        n: *mut usize,
    ) -> CarafeStatus,
    /// The model as it is now, to be kept and asked after the callback; ended by `release`. What the graph itself handed
    /// out is not kept: ask the retained one. Null on failure.
    pub retain: unsafe extern "C" fn(g: *mut CarafeGraph) -> *mut CarafeGraph,
    pub release: unsafe extern "C" fn(g: *mut CarafeGraph),
    /// An empty model that can be filled, with the same operations at hand; ended by `release`. A device evaluates
    /// operations of others through it. Null on failure.
    pub scratch: unsafe extern "C" fn(g: *mut CarafeGraph) -> *mut CarafeGraph,
    /// Names of the operations outside of the numbered opsets, as `opset::Type`.
    pub ops: unsafe extern "C" fn(g: *mut CarafeGraph, names: *mut *const CarafeStr, n: *mut usize) -> CarafeStatus,
    /// Tensor names of a value; of a result, those of the model's output.
    pub tensor_names: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        value: CarafeValue,
        names: *mut *const CarafeStr,
        n: *mut usize,
    ) -> CarafeStatus,
    /// Since 1.2. Name of the model.
    pub model_name: unsafe extern "C" fn(g: *mut CarafeGraph, name: *mut CarafeStr) -> CarafeStatus,
    /// Since 1.2. `CARAFE_OK` when `evaluate` can run the node, `CARAFE_UNSUPPORTED` when its operation is unknown or has
    /// no evaluation, with the reason as the text of the failure.
    pub can_evaluate: unsafe extern "C" fn(g: *mut CarafeGraph, id: u32) -> CarafeStatus,
    /// Since 1.2. Reads back what `ir` gave: a model with the operations of `g` at hand, ended by `release`. The text and
    /// the weights are copied. It is shown as a model is to a device: it cannot be changed, but copied.
    pub read_ir: unsafe extern "C" fn(
        g: *mut CarafeGraph,
        xml: CarafeStr,
        buffers: *const CarafeBuffer,
        n: usize,
        model: *mut *mut CarafeGraph,
    ) -> CarafeStatus,
    /// Since 1.2. A copy of the model that can be changed, ended by `release`; weights are shared.
    pub copy: unsafe extern "C" fn(g: *mut CarafeGraph, model: *mut *mut CarafeGraph) -> CarafeStatus,
    /// Since 1.2. Writes the model as IR text without weights: what `CarafeCompiled::runtime_model` must write. What runs
    /// a node is told by `set_info` of `execOrder` and `primitiveType`.
    pub write_text: unsafe extern "C" fn(g: *mut CarafeGraph, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus,
}

/// Bytes of the weights that begin at `offset`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeBuffer {
    pub offset: u64,
    pub data: *const c_void,
    pub bytes: usize,
}

// When a rewrite runs.
/// On the graph as decoded, before translation, for formats that have such a form (ONNX, Caffe). There `opset` of a node
/// is the domain of the format, every name is an operation that `CarafeGraphFns::add` makes (with the attribute
/// `carafe.n_outputs` when it has not one output), an input that is left out comes from a node `Nothing`, and a value that
/// only a sub-graph reads comes through a node `Captured`.
pub const CARAFE_PHASE_DECODED: u32 = 0;
/// On the translated model, before anything else.
pub const CARAFE_PHASE_FRONT: u32 = 1;
/// Among the common passes.
pub const CARAFE_PHASE_MIDDLE: u32 = 2;
/// After the common passes, before the model is written or compiled.
pub const CARAFE_PHASE_BACK: u32 = 3;

// What a matcher rewrite says of a node.
pub const CARAFE_NO_MATCH: u32 = 0;
pub const CARAFE_SKIPPED: u32 = 1;
pub const CARAFE_DONE: u32 = 2;

/// A rewrite of models: `run` for the whole model, or `at` for one node at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafePass {
    pub size: usize,
    pub abi: u32,
    pub phase: u32,
    pub name: *const c_char,
    /// Names of rewrites that this one runs before or after.
    pub before: *const *const c_char,
    pub n_before: usize,
    pub after: *const *const c_char,
    pub n_after: usize,
    pub user: *mut c_void,
    /// Rewrites the model; says how often it fired.
    pub run: Option<unsafe extern "C" fn(user: *mut c_void, g: *mut CarafeGraph, fired: *mut usize) -> CarafeStatus>,
    /// Type of the root node for `at`; null for every node.
    pub root: *const c_char,
    /// Looks at one node; `outcome` becomes one of `CARAFE_NO_MATCH`, `CARAFE_SKIPPED` (the reason by `set_error`) and
    /// `CARAFE_DONE`.
    pub at: Option<
        unsafe extern "C" fn(user: *mut c_void, g: *mut CarafeGraph, id: u32, outcome: *mut u32) -> CarafeStatus,
    >,
    /// Since 1.1: 1 when it runs only if the user asks for it by name.
    pub disabled: usize,
}

/// A part of a graph that an entry of a replacement file names. Everything is lent for the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeMatch {
    pub size: usize,
    /// The scope, or the name of the replacement.
    pub name: CarafeStr,
    /// Values that come in and go out, in the order of the user's lists.
    pub inputs: *const CarafeValue,
    pub n_inputs: usize,
    pub outputs: *const CarafeValue,
    pub n_outputs: usize,
    /// Everything between; none when the whole graph is meant.
    pub nodes: *const u32,
    pub n_nodes: usize,
    /// What the user wants the replacement to know (`custom_attributes`), and the same as JSON.
    pub attrs: CarafeAttrs,
    pub json: CarafeStr,
}

/// Puts something in place of what an entry of a replacement file names. Since 1.1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeReplacement {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    /// The `id` of the entries it is for.
    pub id: *const c_char,
    pub user: *mut c_void,
    /// Adds nodes and lets users of the match's outputs read them; what nothing needs any more is removed afterwards. The
    /// graph is the one of `CARAFE_PHASE_DECODED` in formats that have it; there an operation of the engine or of an
    /// extension is added as `carafe.replacement::opset::Type`.
    pub replace:
        Option<unsafe extern "C" fn(user: *mut c_void, g: *mut CarafeGraph, found: *const CarafeMatch) -> CarafeStatus>,
}

/// Memory form of one port of a kernel. Axis `order[k]` of the tensor is laid out as dimension `k` of `blocks`; a blocked
/// layout such as nChw8c repeats the axis: order 0 1 2 3 1, blocks N C/8 H W 8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeLayout {
    pub element_type: u32,
    /// 0 for plain row-major, where `blocks` and `order` are not looked at.
    pub rank: u32,
    pub blocks: *const usize,
    pub order: *const usize,
    /// Outputs: the input whose memory it may use, or -1.
    pub in_place: i32,
    /// Inputs: 1 when the value must be a constant.
    pub constant: u32,
}

/// One way in which a kernel can run a node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeConfig {
    pub inputs: *const CarafeLayout,
    pub n_inputs: usize,
    pub outputs: *const CarafeLayout,
    pub n_outputs: usize,
}

/// As the model says. Since 1.3, as all kinds of layouts.
pub const CARAFE_LAYOUT_PLAIN: u32 = 0;
/// Axis 1 last: N H W C for what the model calls N C H W.
pub const CARAFE_LAYOUT_CHANNELS_LAST: u32 = 1;
/// Axis 1 in blocks that lie innermost, the last one padded with zeros: nChw8c for 8.
pub const CARAFE_LAYOUT_BLOCKED: u32 = 2;
/// Any other.
pub const CARAFE_LAYOUT_OTHER: u32 = 3;

/// A layout by kind. Since 1.3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeLayoutKind {
    /// One of `CARAFE_LAYOUT_*`.
    pub kind: u32,
    /// Elements of a block.
    pub block: u32,
}

// Elementwise functions, with the numbers that `CarafeEpilogueOp::numbers` holds. The codes are frozen. Since 1.3.
pub const CARAFE_RELU: u32 = 1;
/// Smallest and largest value.
pub const CARAFE_CLAMP: u32 = 2;
/// Factor below zero.
pub const CARAFE_LEAKY_RELU: u32 = 3;
/// Factor of exp(x) - 1 below zero.
pub const CARAFE_ELU: u32 = 4;
/// Alpha and scale.
pub const CARAFE_SELU: u32 = 5;
pub const CARAFE_SIGMOID: u32 = 6;
pub const CARAFE_TANH: u32 = 7;
/// Beta of x * sigmoid(beta * x).
pub const CARAFE_SWISH: u32 = 8;
pub const CARAFE_HSWISH: u32 = 9;
pub const CARAFE_HSIGMOID: u32 = 10;
/// Alpha and beta of clamp(alpha * x + beta, 0, 1).
pub const CARAFE_HARD_SIGMOID: u32 = 11;
pub const CARAFE_GELU_ERF: u32 = 12;
pub const CARAFE_GELU_TANH: u32 = 13;
pub const CARAFE_MISH: u32 = 14;
pub const CARAFE_SOFT_PLUS: u32 = 15;
pub const CARAFE_SOFT_SIGN: u32 = 16;
pub const CARAFE_ABS: u32 = 32;
pub const CARAFE_NEGATIVE: u32 = 33;
pub const CARAFE_EXP: u32 = 34;
pub const CARAFE_LOG: u32 = 35;
pub const CARAFE_SQRT: u32 = 36;
pub const CARAFE_FLOOR: u32 = 37;
pub const CARAFE_CEILING: u32 = 38;
pub const CARAFE_ROUND_TO_EVEN: u32 = 39;
pub const CARAFE_ROUND_AWAY: u32 = 40;
pub const CARAFE_SIGN: u32 = 41;
pub const CARAFE_SIN: u32 = 42;
pub const CARAFE_COS: u32 = 43;
pub const CARAFE_TAN: u32 = 44;
pub const CARAFE_ASIN: u32 = 45;
pub const CARAFE_ACOS: u32 = 46;
pub const CARAFE_ATAN: u32 = 47;
pub const CARAFE_SINH: u32 = 48;
pub const CARAFE_COSH: u32 = 49;
pub const CARAFE_ASINH: u32 = 50;
pub const CARAFE_ACOSH: u32 = 51;
pub const CARAFE_ATANH: u32 = 52;
pub const CARAFE_ERF: u32 = 53;
pub const CARAFE_ADD: u32 = 64;
pub const CARAFE_SUBTRACT: u32 = 65;
pub const CARAFE_MULTIPLY: u32 = 66;
pub const CARAFE_DIVIDE: u32 = 67;
pub const CARAFE_MAXIMUM: u32 = 68;
pub const CARAFE_MINIMUM: u32 = 69;
pub const CARAFE_POWER: u32 = 70;
pub const CARAFE_SQUARED_DIFFERENCE: u32 = 71;
pub const CARAFE_MOD: u32 = 72;
pub const CARAFE_FLOOR_MOD: u32 = 73;
/// The second operand is the slope below zero.
pub const CARAFE_PRELU: u32 = 74;
/// Limits of what is read, limits of the result, steps between them.
pub const CARAFE_QUANTIZE: u32 = 96;

/// One elementwise operation behind a node. Since 1.3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeEpilogueOp {
    /// One of the functions above.
    pub function: u32,
    pub n_operands: u32,
    /// Constants of the function.
    pub numbers: *const f64,
    pub n_numbers: usize,
    /// An operand from 0 on is an input of the site: of the shape of the result, one number, or one number for each index of
    /// axis 1. -1 is what the node gives, -2 what the first operation of the epilogue gives, and so on.
    pub operands: *const i64,
}

/// What the configuration that was offered last asks for besides its layouts. Since 1.3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeNeeds {
    pub size: usize,
    /// How many operations of the epilogue the kernel does, from the first on. Its inputs are then those of the node and the
    /// operands of these.
    pub epilogue: usize,
    /// Bytes of memory for itself while it runs.
    pub workspace: usize,
    /// Bytes of memory for each thread of `CarafeKernelIo::each`.
    pub scratch: usize,
}

/// Takes the needs of the configuration that was offered last. Since 1.3.
pub type CarafeNeedsSink = Option<unsafe extern "C" fn(sink: *mut c_void, needs: *const CarafeNeeds) -> CarafeStatus>;

/// The node that a kernel is asked about: exact types, shapes as far as they are known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeSite {
    pub size: usize,
    pub name: CarafeStr,
    pub op_type: CarafeStr,
    pub opset: CarafeStr,
    pub attrs: CarafeAttrs,
    pub inputs: *const CarafeFact,
    pub n_inputs: usize,
    pub outputs: *const CarafeFact,
    pub n_outputs: usize,
    /// Since 1.3. Null, or for each input its value where it is a constant, else null.
    pub constants: *const *const CarafeTensor,
    /// Since 1.3. Layouts that cost the device little: values lie in them between its own steps. Others are copied.
    pub layouts: *const CarafeLayoutKind,
    pub n_layouts: usize,
    /// Since 1.3. Null, or how each input lies now.
    pub input_layouts: *const CarafeLayoutKind,
    /// Since 1.3. Elementwise work that follows output 0 and that the kernel may take. Operands of it stand behind the inputs of
    /// the node, in its order.
    pub epilogue: *const CarafeEpilogueOp,
    pub n_epilogue: usize,
    /// Since 1.3. Called after an offer, with the sink of `configs`; null where the device has no such memory to give.
    pub needs: CarafeNeedsSink,
}

/// Takes the configurations of a kernel.
pub type CarafeConfigSink = unsafe extern "C" fn(sink: *mut c_void, config: *const CarafeConfig) -> CarafeStatus;

/// Memory of an output. Since 1.3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeOutput {
    pub element_type: u32,
    pub rank: u32,
    pub shape: *const usize,
    pub data: *mut c_void,
    pub bytes: usize,
}

/// A part of a kernel's loop, with the scratch of the thread that runs it. A failure sets its text on that thread. Since 1.3.
pub type CarafePart = Option<
    unsafe extern "C" fn(user: *mut c_void, part: usize, scratch: *mut c_void, scratch_bytes: usize) -> CarafeStatus,
>;

/// What a kernel reads and writes while it runs: memory that the device planned, lent for the call. Since 1.3.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeKernelIo {
    pub size: usize,
    /// Inputs in the forms of the configuration, a blocked one with its blocks as shape.
    pub inputs: *const CarafeTensor,
    pub n_inputs: usize,
    /// Memory to fill, in the forms of the configuration; it holds anything before. Where the configuration allows it, the
    /// memory of output 0 is that of an input.
    pub outputs: *const CarafeOutput,
    pub n_outputs: usize,
    /// As large as the configuration asked for; it holds anything before.
    pub workspace: *mut c_void,
    pub workspace_bytes: usize,
    /// Threads of this inference.
    pub threads: usize,
    /// Calls `body` once for each part from 0 on, on these threads, and returns when all are done. Gives the first failure.
    pub each: Option<
        unsafe extern "C" fn(
            io: *const CarafeKernelIo,
            parts: usize,
            body: CarafePart,
            user: *mut c_void,
        ) -> CarafeStatus,
    >,
}

/// A fast kernel for an operation on a device. The device chooses one of the configurations, calls `init` with it and
/// then `run`, or `execute`, with memory in the chosen form. What `execute` gives in another form than that is an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeKernel {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub device: *const c_char,
    pub op: *const c_char,
    /// Null for every opset.
    pub opset: *const c_char,
    /// Shown in reports.
    pub name: *const c_char,
    pub user: *mut c_void,
    /// Offers configurations, the best first; none declines the node.
    pub configs: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            site: *const CarafeSite,
            offer: CarafeConfigSink,
            sink: *mut c_void,
        ) -> CarafeStatus,
    >,
    /// Makes the kernel of a node for the configuration with this number.
    pub init: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            site: *const CarafeSite,
            config: usize,
            kernel: *mut *mut c_void,
        ) -> CarafeStatus,
    >,
    /// Inputs arrive in the chosen form, a blocked one with its blocks as shape; outputs are made in the chosen form
    /// likewise. `output_fact` tells the plain shape. One call at a time for each kernel that `init` made; a device that wants
    /// more makes more. May be null where `run` is not: then the kernel takes only nodes whose results have known shapes.
    pub execute: Option<unsafe extern "C" fn(kernel: *mut c_void, cx: *mut CarafeEval) -> CarafeStatus>,
    pub release: Option<unsafe extern "C" fn(kernel: *mut c_void)>,
    /// Since 1.3. Runs in memory that the device planned, without copies. Called by several threads at once for one kernel.
    pub run: Option<unsafe extern "C" fn(kernel: *const c_void, io: *const CarafeKernelIo) -> CarafeStatus>,
    /// Since 1.3. 1 when the kernel may take elementwise work that follows; only then is it asked with an epilogue.
    pub fuses: u32,
    pub reserved2: u32,
}

/// OpenCL source for an operation on GPU or VPU: the text of the custom-layer description and of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeClKernel {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    /// `GPU` or `VPU`.
    pub device: *const c_char,
    /// The `<CustomLayer>` element as it would stand in the .xml file.
    pub xml: *const c_char,
    /// Kernel source; files that the description names are looked up in this text first.
    pub source: *const c_char,
}

/// Hears of progress: part done (0 to 1), steps in all, steps done.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeProgress {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub user: *mut c_void,
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, part: f32, total: u32, done: u32)>,
}

/// Hears of events: `kind` is `event`, `error` or `stack_trace`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeTelemetry {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub user: *mut c_void,
    pub send: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            kind: CarafeStr,
            category: CarafeStr,
            action: CarafeStr,
            label: CarafeStr,
            value: i64,
        ),
    >,
}

/// Takes what a library brings. Handed to `create_extensions`, valid during that call; later uses are refused. Tables, lists and texts given to it
/// are copied; functions and `user` pointers must live as long as the library.
#[repr(C)]
#[derive(Debug)]
pub struct CarafeRegistrar {
    pub fns: *const CarafeRegistrarFns,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeRegistrarFns {
    pub size: usize,
    /// Name and version of the extension, for listings and for models that need it.
    pub describe: unsafe extern "C" fn(r: *mut CarafeRegistrar, name: CarafeStr, version: CarafeStr) -> CarafeStatus,
    pub add_op: unsafe extern "C" fn(r: *mut CarafeRegistrar, op: *const CarafeOp) -> CarafeStatus,
    pub add_rule: unsafe extern "C" fn(r: *mut CarafeRegistrar, rule: *const CarafeRule) -> CarafeStatus,
    pub add_mapping: unsafe extern "C" fn(r: *mut CarafeRegistrar, mapping: *const CarafeMapping) -> CarafeStatus,
    pub add_pass: unsafe extern "C" fn(r: *mut CarafeRegistrar, pass: *const CarafePass) -> CarafeStatus,
    pub add_kernel: unsafe extern "C" fn(r: *mut CarafeRegistrar, kernel: *const CarafeKernel) -> CarafeStatus,
    pub add_cl_kernel: unsafe extern "C" fn(r: *mut CarafeRegistrar, kernel: *const CarafeClKernel) -> CarafeStatus,
    pub add_progress: unsafe extern "C" fn(r: *mut CarafeRegistrar, progress: *const CarafeProgress) -> CarafeStatus,
    pub add_telemetry: unsafe extern "C" fn(r: *mut CarafeRegistrar, telemetry: *const CarafeTelemetry) -> CarafeStatus,
    /// Since 1.1.
    pub add_replacement:
        unsafe extern "C" fn(r: *mut CarafeRegistrar, replacement: *const CarafeReplacement) -> CarafeStatus,
}

/// What the engine offers to libraries. Lives until the process ends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeHost {
    pub size: usize,
    pub major: u32,
    pub minor: u32,
    /// Version of the engine.
    pub version: CarafeStr,
    /// Sets the text of the failure that this thread is about to return.
    pub set_error: unsafe extern "C" fn(text: CarafeStr),
    /// Text of the failure that the last call of this thread returned; valid until the next call.
    pub last_error: unsafe extern "C" fn(text: *mut CarafeStr),
    /// Runs `body` over `0..n` in parts on the engine's threads and waits for all of them. A body that can fail goes to
    /// `try_parallel_for`.
    pub parallel_for: unsafe extern "C" fn(n: usize, body: CarafeLoop, user: *mut c_void),
    /// Ends what `keep_input` gave.
    pub drop_owner: unsafe extern "C" fn(owner: *mut c_void),
    /// A line for the user: level 0 error, 1 warning, 2 info, 3 debug.
    pub log: unsafe extern "C" fn(level: u32, text: CarafeStr),
    /// Since 1.2: as `parallel_for`, with a body that can fail. Gives the first failure, with its text; parts that did not
    /// begin before it are left out.
    pub try_parallel_for: unsafe extern "C" fn(n: usize, body: CarafeTryLoop, user: *mut c_void) -> CarafeStatus,
}

/// The symbol `create_extensions` of an extension library.
pub type CarafeCreateExtensions =
    unsafe extern "C" fn(host: *const CarafeHost, registrar: *mut CarafeRegistrar) -> CarafeStatus;

/// Takes text or bytes in parts.
pub type CarafeWrite = unsafe extern "C" fn(sink: *mut c_void, data: *const c_void, bytes: usize) -> CarafeStatus;

/// One row of a device's property table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeProperty {
    pub name: *const c_char,
    /// 0 text, 1 bool, 2 integer from `min` to `max`, 3 one of `words`.
    pub kind: u32,
    /// 1 when it can be set.
    pub writable: u32,
    pub min: i64,
    pub max: i64,
    pub words: *const *const c_char,
    pub n_words: usize,
    pub default_value: *const c_char,
    pub doc: *const c_char,
}

/// Properties in force, as text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeProperties {
    pub list: *const CarafeSetting,
    pub n: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeSetting {
    pub name: CarafeStr,
    pub value: CarafeStr,
}

/// Takes the answer about one node: `reason` is empty when the device takes it.
pub type CarafeAnswer = unsafe extern "C" fn(sink: *mut c_void, node: u32, reason: CarafeStr) -> CarafeStatus;

/// A device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeDevice {
    pub size: usize,
    pub abi: u32,
    pub n_properties: u32,
    /// Shown where no other name was given.
    pub name: *const c_char,
    pub version: *const c_char,
    pub description: *const c_char,
    pub properties: *const CarafeProperty,
    pub instance: *mut c_void,
    /// Writes the value of a read-only property.
    pub metric: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            name: CarafeStr,
            write: CarafeWrite,
            sink: *mut c_void,
        ) -> CarafeStatus,
    >,
    /// Says for every node whether the device takes it. An answer about a node that the model does not have, or a second
    /// one that says otherwise, is an error.
    pub query: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            g: *mut CarafeGraph,
            properties: CarafeProperties,
            answer: CarafeAnswer,
            sink: *mut c_void,
        ) -> CarafeStatus,
    >,
    pub compile: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            g: *mut CarafeGraph,
            properties: CarafeProperties,
            compiled: *mut CarafeCompiled,
        ) -> CarafeStatus,
    >,
    /// Reads what `CarafeCompiled::export_to` wrote; null when the device cannot. The bytes live until `import` returns.
    /// `ops` is an empty model with the engine's operations at hand.
    pub import: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            ops: *mut CarafeGraph,
            data: *const c_void,
            bytes: usize,
            properties: CarafeProperties,
            compiled: *mut CarafeCompiled,
        ) -> CarafeStatus,
    >,
    pub release: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// Since 1.2. Takes the kernels that extensions bring for the name of the device, all of them each time that changes; null when
    /// the device has no use for them. The tables and all they point to live until the next call that succeeds, and, for calls
    /// that run then and for models that were compiled before, until those end; a kernel that `init` made ends before them.
    pub set_kernels:
        Option<unsafe extern "C" fn(device: *mut c_void, kernels: *const CarafeKernel, n: usize) -> CarafeStatus>,
}

/// An input or output of a compiled model.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeModelPort {
    pub name: CarafeStr,
    /// All tensor names.
    pub names: *const CarafeStr,
    pub n_names: usize,
    pub fact: CarafeFact,
}

/// A model made ready for one device. The device fills in the table in `compile` and `import`; `size` and `abi` are set by
/// the caller beforehand. Called by several threads at once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeCompiled {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub instance: *mut c_void,
    /// Ports live as long as the compiled model. They are those of the model: as many, in the same order, of types and
    /// shapes that agree with its.
    pub inputs: *const CarafeModelPort,
    pub n_inputs: usize,
    pub outputs: *const CarafeModelPort,
    pub n_outputs: usize,
    pub property: Option<
        unsafe extern "C" fn(
            compiled: *mut c_void,
            name: CarafeStr,
            write: CarafeWrite,
            sink: *mut c_void,
        ) -> CarafeStatus,
    >,
    /// The graph that really runs, as IR text without weights; null when there is none.
    pub runtime_model:
        Option<unsafe extern "C" fn(compiled: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus>,
    pub export_to:
        Option<unsafe extern "C" fn(compiled: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus>,
    pub create_request:
        Option<unsafe extern "C" fn(compiled: *mut c_void, request: *mut CarafeRequest) -> CarafeStatus>,
    pub release: Option<unsafe extern "C" fn(compiled: *mut c_void)>,
}

/// What one node did in the last inference.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeProfile {
    pub name: CarafeStr,
    pub op_type: CarafeStr,
    pub kernel: CarafeStr,
    /// 0 not run, 1 optimised out, 2 executed.
    pub status: u32,
    pub reserved: u32,
    pub real_ns: u64,
    pub cpu_ns: u64,
}

pub type CarafeProfileSink = unsafe extern "C" fn(sink: *mut c_void, row: *const CarafeProfile) -> CarafeStatus;

/// One inference at a time. Used by one thread at a time, but for `cancel`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CarafeRequest {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub instance: *mut c_void,
    /// Binds memory without copying; it stays with the caller until `release(owner)` is called. A device that answers with
    /// a failure has taken nothing and does not call `release`.
    pub set_input: Option<
        unsafe extern "C" fn(
            request: *mut c_void,
            input: usize,
            tensor: *const CarafeTensor,
            owner: *mut c_void,
            release: CarafeRelease,
        ) -> CarafeStatus,
    >,
    pub infer: Option<unsafe extern "C" fn(request: *mut c_void) -> CarafeStatus>,
    /// Output of the last inference; the memory lives until the next inference, or until `release(owner)` when an owner
    /// is given. Type and shape must agree with the port.
    pub output: Option<
        unsafe extern "C" fn(
            request: *mut c_void,
            output: usize,
            tensor: *mut CarafeTensor,
            owner: *mut *mut c_void,
            release: *mut Option<unsafe extern "C" fn(owner: *mut c_void)>,
        ) -> CarafeStatus,
    >,
    /// Stops a running inference between two nodes; called from another thread.
    pub cancel: Option<unsafe extern "C" fn(request: *mut c_void)>,
    pub profile:
        Option<unsafe extern "C" fn(request: *mut c_void, row: CarafeProfileSink, sink: *mut c_void) -> CarafeStatus>,
    /// Writes the ids of the variables, each ended by a zero byte.
    pub variables:
        Option<unsafe extern "C" fn(request: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus>,
    /// `CARAFE_NOT_FOUND` before the first assignment; the memory lives until the next call.
    pub variable:
        Option<unsafe extern "C" fn(request: *mut c_void, id: CarafeStr, tensor: *mut CarafeTensor) -> CarafeStatus>,
    pub set_variable:
        Option<unsafe extern "C" fn(request: *mut c_void, id: CarafeStr, tensor: *const CarafeTensor) -> CarafeStatus>,
    pub reset: Option<unsafe extern "C" fn(request: *mut c_void)>,
    pub release: Option<unsafe extern "C" fn(request: *mut c_void)>,
    /// Stages of an inference, each ended by a zero byte, name and executor in turn; null for a single one.
    pub stages:
        Option<unsafe extern "C" fn(request: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus>,
    pub run_stage: Option<unsafe extern "C" fn(request: *mut c_void, stage: usize) -> CarafeStatus>,
}

/// The symbol `CreatePluginEngine` of a plugin library. `device` has `size` and `abi` set.
pub type CarafeCreatePluginEngine =
    unsafe extern "C" fn(host: *const CarafeHost, device: *mut CarafeDevice) -> CarafeStatus;
