"""Control flow and state: If, Loop, TensorIterator, ReadValue and Assign."""

import numpy as np
import openvino as ov
import openvino.opset1 as opset1
import openvino.opset5 as opset5
import openvino.opset6 as opset6
import openvino.opset8 as opset8

from ..case import Dyn, const, factory, literal, make_constant, net, raw_ir, uniform


def cases():
    yield from branches()
    yield from loops()
    yield from iterators()
    yield from state()


def parameter(kind, shape):
    return opset1.parameter(ov.PartialShape(shape), getattr(ov.Type, kind))


def op(name, opset, ins, attrs=None):
    return factory(opset).create(name, ins, attrs or {})


def number(kind, value):
    return make_constant(kind, np.array(value, {"f32": np.float32, "i64": np.int64, "i32": np.int32, "boolean": np.bool_}[kind]))


def branches():
    def simple(g, condition, run_time):
        x = g.input(uniform("f32", 2, 3))
        flag = g.input(literal("boolean", condition)) if run_time else g.const("boolean", condition)
        p = parameter("f32", [2, 3])
        then = ov.Model([op("Multiply", 1, [p, number("f32", 2.0)])], [p], "then")
        q = parameter("f32", [2, 3])
        other = ov.Model([op("Add", 1, [q, number("f32", 10.0)])], [q], "else")
        node = opset8.if_op(flag)
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x.output(0), p, q)
        node.set_output(then.get_results()[0], other.get_results()[0])
        return [node]
    for value in (True, False):
        yield net("If", 8, f"run-time-{value}".lower(), lambda g, v=value: simple(g, v, True), fixture=True)
        yield net("If", 8, f"constant-{value}".lower(), lambda g, v=value: simple(g, v, False))
        yield net("If", 8, f"one-element-{value}".lower(), lambda g, v=value: simple(g, [v], True))

    def different_shapes(g, value):
        x, flag = g.input(uniform("f32", 2, 3)), g.input(literal("boolean", value))
        p, q = parameter("f32", [2, 3]), parameter("f32", [2, 3])
        then = ov.Model([op("Concat", 1, [p, p], {"axis": 0})], [p], "then")
        other = ov.Model([op("Relu", 1, [q])], [q], "else")
        node = opset8.if_op(flag)
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x.output(0), p, q)
        node.set_output(then.get_results()[0], other.get_results()[0])
        return [node]
    for value in (True, False):
        yield net("If", 8, f"different-shapes-{value}".lower(), lambda g, v=value: different_shapes(g, v), fixture=value)

    def two_outputs(g):
        a, b, flag = g.input(uniform("f32", 4)), g.input(uniform("f32", 4)), g.input(literal("boolean", True))
        pa, pb, qb = parameter("f32", [4]), parameter("f32", [4]), parameter("f32", [4])
        then = ov.Model([op("Add", 1, [pa, pb]), op("Subtract", 1, [pa, pb])], [pa, pb], "then")
        other = ov.Model([op("Relu", 1, [qb]), op("Negative", 1, [qb])], [qb], "else")
        node = opset8.if_op(flag)
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(a.output(0), pa, None)
        node.set_input(b.output(0), pb, qb)
        for i in range(2):
            node.set_output(then.get_results()[i], other.get_results()[i])
        return list(node.outputs())
    yield net("If", 8, "two-outputs", two_outputs)

    def no_inputs(g):
        flag = g.input(literal("boolean", False))
        then = ov.Model([op("Relu", 1, [number("f32", [1.0, 2.0])])], [], "then")
        other = ov.Model([op("Relu", 1, [number("f32", [3.0, 4.0])])], [], "else")
        node = opset8.if_op(flag)
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_output(then.get_results()[0], other.get_results()[0])
        return [node]
    yield net("If", 8, "constant-bodies", no_inputs)


def loops():
    def counting(g, trips, run_time, stop_at=None, first=True):
        """state += iteration; the scan output collects the state of every iteration."""
        x = g.input(literal("f32", [10.0, 20.0]))
        trip = g.input(literal("i64", trips)) if run_time else g.const("i64", trips)
        index, s = parameter("i64", []), parameter("f32", [2])
        step = op("Convert", 1, [index], {"destination_type": "f32"})
        new = op("Add", 1, [s, step])
        if stop_at is None:
            go = number("boolean", True)
        else:
            go = op("Less", 1, [index, number("i64", stop_at)])
        scan = op("Unsqueeze", 1, [new, number("i64", [0])])
        body = ov.Model([go, new, scan], [index, s], "body")
        node = opset5.loop(trip, g.const("boolean", first))
        node.set_function(body)
        node.set_special_body_ports([0, 0])
        node.set_merged_input(s, x.output(0), new.output(0))
        last = node.get_iter_value(new.output(0), -1)
        if not first:
            return [last]
        all_of_them = node.get_concatenated_slices(scan.output(0), 0, 1, 1, -1, 0)
        return [last, all_of_them]
    yield net("Loop", 5, "three-trips", lambda g: counting(g, 3, False), fixture=True)
    yield net("Loop", 5, "run-time-trips", lambda g: counting(g, 4, True), fixture=True)
    yield net("Loop", 5, "one-trip", lambda g: counting(g, 1, False))
    yield net("Loop", 5, "condition-stops", lambda g: counting(g, 10, True, stop_at=2), fixture=True)
    yield net("Loop", 5, "infinite-until-condition", lambda g: counting(g, -1, False, stop_at=3))
    yield net("Loop", 5, "never-starts", lambda g: counting(g, 3, True, first=False), reference=lambda x, trips: [x],
              known="the CPU device returns an empty tensor instead of the initial value")

    def sliced(g):
        """Slices an input over axis 1, carries a sum, adds an invariant."""
        x, bias = g.input(uniform("f32", 2, 4, 3)), g.input(uniform("f32", 2, 1, 3))
        piece, total, same = parameter("f32", [2, 1, 3]), parameter("f32", [2, 1, 3]), parameter("f32", [2, 1, 3])
        new = op("Add", 1, [total, op("Multiply", 1, [piece, same])])
        go = number("boolean", True)
        body = ov.Model([go, new], [piece, total, same], "body")
        node = opset5.loop(g.const("i64", 4), g.const("boolean", True))
        node.set_function(body)
        node.set_special_body_ports([-1, 0])
        node.set_sliced_input(piece, x.output(0), 0, 1, 1, -1, 1)
        node.set_merged_input(total, bias.output(0), new.output(0))
        node.set_invariant_input(same, bias.output(0))
        return [node.get_iter_value(new.output(0), -1), node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 1)]
    yield net("Loop", 5, "sliced-input", sliced, fixture=True)

    def growing(g):
        """The carried state grows in every iteration."""
        x = g.input(uniform("f32", 1, 2))
        s = parameter("f32", "[?,2]")
        new = op("Concat", 1, [s, op("Multiply", 1, [s, number("f32", 2.0)])], {"axis": 0})
        go = number("boolean", True)
        body = ov.Model([go, new], [s], "body")
        node = opset5.loop(g.const("i64", 3), g.const("boolean", True))
        node.set_function(body)
        node.set_special_body_ports([-1, 0])
        node.set_merged_input(s, x.output(0), new.output(0))
        return [node.get_iter_value(new.output(0), -1)]
    yield net("Loop", 5, "growing-state", growing)


def iterators():
    def iterator(g, start, stride, end, part, dynamic=False):
        data = uniform("f32", 2, 4, 3)
        x = g.input(data, shape="?,?,3" if dynamic else None)
        h = g.input(uniform("f32", 2, part, 3))
        piece, carried = parameter("f32", "[?,%d,3]" % part if dynamic else [2, part, 3]), parameter("f32", [2, part, 3])
        new = op("Tanh", 1, [op("Add", 1, [piece, op("Multiply", 1, [carried, number("f32", 0.5)])])])
        body = ov.Model([new], [piece, carried], "body")
        node = opset1.tensor_iterator()
        node.set_body(body)
        node.set_sliced_input(piece, x.output(0), start, stride, part, end, 1)
        node.set_merged_input(carried, h.output(0), new.output(0))
        return [node.get_iter_value(new.output(0), -1), node.get_concatenated_slices(new.output(0), start, stride, part, end, 1)]
    yield net("TensorIterator", 1, "forward", lambda g: iterator(g, 0, 1, -1, 1), fixture=True)
    yield net("TensorIterator", 1, "backward", lambda g: iterator(g, -1, -1, 0, 1), fixture=True)
    yield net("TensorIterator", 1, "pairs", lambda g: iterator(g, 0, 2, -1, 2), fixture=True)
    yield net("TensorIterator", 1, "dynamic", lambda g: iterator(g, 0, 1, -1, 1, dynamic=True))

    def lstm(g):
        """An LSTM cell inside a TensorIterator, as older converters write a recurrent layer."""
        x, h, c = g.input(uniform("f32", 2, 5, 3)), g.input(uniform("f32", 2, 4)), g.input(uniform("f32", 2, 4))
        px, ph, pc = parameter("f32", [2, 1, 3]), parameter("f32", [2, 4]), parameter("f32", [2, 4])
        flat = op("Squeeze", 1, [px, number("i64", [1])])
        w = [make_constant("f32", g.rng.uniform(-0.5, 0.5, s).astype(np.float32)) for s in ((16, 3), (16, 4), (16,))]
        cell = op("LSTMCell", 4, [flat, ph, pc, *w], {"hidden_size": 4})
        out = op("Unsqueeze", 1, [cell.output(0), number("i64", [1])])
        body = ov.Model([opset1.result(cell.output(0)), opset1.result(cell.output(1)), opset1.result(out.output(0))], [px, ph, pc], "body")
        node = opset1.tensor_iterator()
        node.set_body(body)
        node.set_sliced_input(px, x.output(0), 0, 1, 1, -1, 1)
        node.set_merged_input(ph, h.output(0), cell.output(0))
        node.set_merged_input(pc, c.output(0), cell.output(1))
        return [node.get_concatenated_slices(out.output(0), 0, 1, 1, -1, 1), node.get_iter_value(cell.output(1), -1)]
    yield net("TensorIterator", 1, "lstm", lstm)


def state():
    def accumulator(g, initial):
        """Adds the input to a variable and returns the sum."""
        x = g.input(uniform("f32", 2, 3))
        variable = g.variable("total", "f32", [2, 3])
        read = opset6.read_value(g.const("f32", initial), variable) if initial is not None else \
            opset6.read_value(variable)
        total = g.op("Add", 1, [read, x])
        g.sinks.append(opset6.assign(total, variable))
        return [total]
    for runs in (1, 3):
        yield net("ReadValue", 6, f"accumulate-{runs}", lambda g: accumulator(g, np.zeros((2, 3))), repeat=runs, fixture=True)
        yield net("Assign", 6, f"initial-value-{runs}", lambda g: accumulator(g, np.full((2, 3), 5.0)), repeat=runs)

    def returns_old(g):
        """The output is the value from before the assignment."""
        x = g.input(uniform("f32", 4))
        variable = g.variable("last", "f32", [4])
        read = opset6.read_value(g.const("f32", np.zeros(4)), variable)
        g.sinks.append(opset6.assign(g.op("Add", 1, [g.op("Multiply", 1, [read, const("f32", 0.5)]), x]), variable))
        return [g.op("Multiply", 1, [read, const("f32", 1.0)])]
    yield net("ReadValue", 6, "old-value", returns_old, repeat=3)

    def cache(g):
        """A key cache: the variable grows by one row per inference."""
        x = g.input(uniform("f32", 1, 1, 4))
        variable = g.variable("keys", "f32", "[1,?,4]")
        read = opset6.read_value(g.const("f32", np.zeros((1, 0, 4))), variable)
        grown = g.op("Concat", 1, [read, x], {"axis": 1})
        g.sinks.append(opset6.assign(grown, variable))
        return [g.op("ReduceSum", 1, [grown, const("i64", [2])], {"keep_dims": False})]
    yield net("Assign", 6, "growing-cache", cache, repeat=3)
    for runs in (1, 3):
        yield raw_ir("ReadValue", 3, f"accumulate-{runs}", version_3_state, repeat=runs)
        yield raw_ir("Assign", 3, f"accumulate-{runs}", version_3_state, repeat=runs)


def version_3_state(rng):
    """State operations of opset3, whose constructors the Python API does not have."""
    xml = """<?xml version="1.0"?>
<net name="state3" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/>
      <output><port id="0" precision="FP32" names="x"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="1" name="init" type="Const" version="opset1"><data element_type="f32" shape="2, 3" offset="0" size="24"/>
      <output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="2" name="read" type="ReadValue" version="opset3"><data variable_id="v"/>
      <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
      <output><port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="3" name="sum" type="Add" version="opset1"><data auto_broadcast="numpy"/>
      <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port><port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
      <output><port id="2" precision="FP32" names="y0"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="4" name="write" type="Assign" version="opset3"><data variable_id="v"/>
      <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
      <output><port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="5" name="y0/result" type="Result" version="opset1" output_names="y0">
      <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input></layer>
  </layers>
  <edges>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
    <edge from-layer="0" from-port="0" to-layer="3" to-port="1"/>
    <edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
    <edge from-layer="3" from-port="2" to-layer="5" to-port="0"/>
  </edges>
  <rt_info/>
</net>
"""
    initial = rng.uniform(-1, 1, (2, 3)).astype(np.float32)
    return xml, initial.tobytes(), {"x": ("f32", rng.uniform(-1, 1, (2, 3)).astype(np.float32))}
