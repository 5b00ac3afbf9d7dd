"""What a case is, and the words the families are written in.

A case is one small model with its inputs. Nothing is built when a family lists its cases: a case
holds a function, and a worker process calls it. Random data is drawn from a generator seeded with
the name of the case, so that a case never changes when others come or go.

A single operation reads as one line::

    one("Clamp", 1, [uniform("f32", 2, 3)], {"min": -1.0, "max": 1.0})

and a small network as a function over a `Graph`::

    def reshape_by_shape(g):
        x = g.input(uniform("f32", 2, 3, 4), shape="?,3,?")
        rows = g.op("Gather", 8, [g.op("ShapeOf", 3, [x]), g.const("i64", [0]), g.const("i64", 0)])
        ...
        return [y]

    net("Reshape", 1, "by-shapeof", reshape_by_shape)
"""

import zlib
from dataclasses import dataclass, field
from typing import Callable, Optional

import numpy as np
import openvino as ov
import openvino.opset1 as opset1
from openvino.utils.node_factory import NodeFactory

from . import dtypes

_FACTORIES = {}


@dataclass
class Data:
    """A tensor to be: element type, shape, and how to draw the values."""

    dtype: str
    shape: tuple
    draw: Callable[[np.random.Generator], np.ndarray]

    def make(self, rng):
        storage = np.float32 if dtypes.travels_as_f32(self.dtype) else dtypes.NUMPY[self.dtype]
        # ascontiguousarray would lift a scalar to one dimension.
        return np.array(np.asarray(self.draw(rng)).astype(storage), order="C").reshape(self.shape)


def uniform(dtype, *shape, lo=-3.0, hi=3.0):
    """Uniform values in [lo, hi]; integers include both ends, booleans are fair coins."""
    def draw(rng):
        if dtype == "boolean":
            return rng.integers(0, 2, shape) > 0
        if dtype in dtypes.FLOATS:
            return rng.uniform(lo, hi, shape)
        low = max(int(lo), 0) if dtype.startswith("u") else int(lo)
        return rng.integers(low, int(hi) + 1, shape)
    return Data(dtype, shape, draw)


def literal(dtype, values):
    """The given values, shape taken from their nesting."""
    array = np.array(values)
    return Data(dtype, array.shape, lambda rng: array)


def counting(dtype, *shape, start=0, step=1):
    """start, start+step, ... in row-major order."""
    size = int(np.prod(shape, dtype=np.int64))
    return Data(dtype, shape, lambda rng: (start + step * np.arange(size)).reshape(shape))


def distinct(dtype, *shape, scale=1.0):
    """A random permutation of equally spaced values: no ties, for sorting operations."""
    size = int(np.prod(shape, dtype=np.int64))
    return Data(dtype, shape, lambda rng: ((rng.permutation(size) - size // 2) * scale).reshape(shape))


@dataclass
class Const:
    """An operand that is a constant of the model instead of an input."""

    data: Data


def const(dtype, values):
    """A constant operand with the given values (or a `Data`)."""
    return Const(values if isinstance(values, Data) else literal(dtype, values))


@dataclass
class Dyn:
    """An input whose declared shape is partial, e.g. `?,3` or `...`."""

    data: Data
    shape: str


class Graph:
    """Collects the parameters, inputs and sinks while a case builds its model."""

    def __init__(self, rng):
        self.rng = rng
        self.parameters = []
        self.inputs = {}
        self.sinks = []
        self.variables = []

    def input(self, data, shape=None, name=None):
        """Adds a model input fed with `data`; `shape` is its partial shape when not static."""
        name = name or f"x{len(self.parameters)}"
        value = data.make(self.rng)
        node = opset1.parameter(ov.PartialShape(_spell(shape, value)), ov_type(data.dtype), name=name)
        node.output(0).get_tensor().set_names({name})
        self.parameters.append(node)
        self.inputs[name] = (data.dtype, value)
        return node

    def const(self, dtype, values):
        """Adds a constant of any element type; `values` may be a `Data`."""
        data = values if isinstance(values, Data) else literal(dtype, values)
        return make_constant(data.dtype, data.make(self.rng))

    def op(self, name, opset, operands, attrs=None):
        """Adds an operation as it stands in `opset`; operands are nodes, outputs, `Data` or `Const`."""
        return factory(opset).create(name, [self.operand(x) for x in operands], attrs or {})

    def operand(self, what):
        if isinstance(what, Const):
            return self.const(what.data.dtype, what.data)
        if isinstance(what, Dyn):
            return self.input(what.data, what.shape)
        if isinstance(what, Data):
            return self.input(what)
        return what

    def variable(self, name, dtype, shape):
        """Declares a state variable for ReadValue and Assign of opset6."""
        info = ov.op.util.VariableInfo()
        info.data_shape = ov.PartialShape(shape)
        info.data_type = ov_type(dtype)
        info.variable_id = name
        variable = ov.op.util.Variable(info)
        self.variables.append(variable)
        return variable

    def model(self, outputs):
        """Closes the graph: names every output y0, y1, ..."""
        results = []
        for i, out in enumerate(outputs):
            port = out if isinstance(out, ov.Output) else out.output(0)
            names = set(port.get_tensor().get_names()) | {f"y{i}"}
            result = opset1.result(port, name=f"y{i}/result")
            result.output(0).get_tensor().set_names(names)
            results.append(result)
        if self.sinks or self.variables:
            return ov.Model(results, self.sinks, self.parameters, self.variables, "case")
        return ov.Model(results, self.parameters, "case")


@dataclass
class Case:
    """One model with inputs, and how its result is to be judged."""

    op: str
    version: int
    tag: str
    build: Callable[[Graph], list]
    family: str = ""
    repeat: int = 1
    judge: str = "values"
    rtol: Optional[float] = None
    atol: Optional[float] = None
    known: str = ""
    reference: Optional[Callable] = None
    trust: str = "reference"
    cpu: bool = True
    fp16: bool = False
    rewrite: Optional[Callable[[str], str]] = None
    text: Optional[Callable] = None
    fixture: bool = False
    extra: dict = field(default_factory=dict)

    @property
    def name(self):
        tail = f"-{self.tag}" if self.tag else ""
        return f"{self.op}-{self.version}{tail}"

    def rng(self):
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def net(op, version, tag, build, **options):
    """A case whose model is made by `build(graph) -> outputs`.

    Options: `repeat` (inferences in a row, the last one counts), `judge` (`values`; `shape`: only
    shapes and types; `rows`: rows of the output in any order), `rtol`, `atol`, `known` (why the CPU
    device is known to leave the reference here), `reference` (function of the inputs that returns
    the reference outputs where constant folding cannot), `trust` (whose numbers become the fixture when
    CPU and reference differ: `reference` or `cpu`), `cpu` (False when the CPU device must not be asked: it reads or
    writes outside of its memory there, and its answer differs from run to run), `fp16` (save with compressed weights),
    `rewrite` (edit of the saved XML text), `fixture` (belongs to the selection for `cargo test`).
    """
    return Case(op, version, tag, build, **options)


def one(op, version, operands, attrs=None, tag="", **options):
    """A case of a single operation; every output of the operation is a model output."""
    def build(g):
        node = g.op(op, version, operands, attrs)
        return list(node.outputs())
    return Case(op, version, tag, build, **options)


def raw_ir(op, version, tag, text, **options):
    """A case given as IR text: `text(rng) -> (xml, weights bytes, {input name: (dtype, array)})`."""
    return Case(op, version, tag, build=None, text=text, **options)


def dynamic(data):
    """The same input with every dimension unknown."""
    return Dyn(data, ",".join("?" * len(data.shape)))


def ov_type(name):
    return getattr(ov.Type, name)


def factory(opset):
    if opset not in _FACTORIES:
        _FACTORIES[opset] = NodeFactory(f"opset{opset}")
    return _FACTORIES[opset]


def make_constant(dtype, value):
    if dtype == "string":
        return ov.op.Constant(ov.Tensor(value))
    if value.size == 0:
        return ov.op.Constant(ov.Tensor(ov_type(dtype), ov.Shape(list(value.shape))))
    if dtypes.travels_as_f32(dtype):
        return ov.op.Constant(ov_type(dtype), ov.Shape(list(value.shape)), value.reshape(-1).tolist())
    return opset1.constant(value, ov_type(dtype))


def _spell(shape, value):
    if shape is None:
        return list(value.shape)
    return shape if shape == "..." else f"[{shape}]"
