"""Forms of the IR file itself: compressed weights, version 10, other opsets, odd but legal spellings."""

import re

import numpy as np

from ..case import const, dynamic, literal, net, raw_ir, uniform


def cases():
    yield from compressed()
    yield from spellings()
    yield from version_10()
    yield from graphs()


def small_network(g):
    x = g.input(uniform("f32", 1, 3, 8, 8))
    y = g.op("Convolution", 1, [x, const("f32", uniform("f32", 8, 3, 3, 3))],
             {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]})
    y = g.op("Relu", 1, [g.op("Add", 1, [y, const("f32", uniform("f32", 1, 8, 1, 1))])])
    y = g.op("ReduceMean", 1, [y, const("i64", [2, 3])], {"keep_dims": False})
    y = g.op("MatMul", 1, [y, const("f32", uniform("f32", 5, 8))], {"transpose_a": False, "transpose_b": True})
    return [g.op("Softmax", 8, [y], {"axis": 1})]


def compressed():
    yield net("Convolution", 1, "f16-compressed-network", small_network, fp16=True, fixture=True, rtol=1e-3, atol=1e-3)
    yield net("MatMul", 1, "f16-compressed", lambda g: [g.op("MatMul", 1, [g.input(uniform("f32", 3, 16)), const("f32", uniform("f32", 16, 4))],
                                                             {"transpose_a": False, "transpose_b": False})], fp16=True, rtol=1e-3, atol=1e-3)

    def beyond_half(g):
        """Constants that f16 cannot hold stay f32; a few large ones are clamped."""
        x = g.input(uniform("f32", 4))
        return [g.op("Multiply", 1, [x, const("f32", [1e-9, 2e-9, 3e-9, 1e-8])]), g.op("Add", 1, [x, const("f32", [1e6, 1.0, 2.0, 3.0])])]
    yield net("Multiply", 1, "f16-compressed-out-of-range", beyond_half, fp16=True, rtol=1e-3)


def spellings():
    """The same tiny model, its text edited the way other writers spell it."""
    def tiny(g):
        x = g.input(uniform("f32", 2, 3))
        y = g.op("MatMul", 1, [x, const("f32", uniform("f32", 4, 3))], {"transpose_a": False, "transpose_b": True})
        return [g.op("Clamp", 1, [g.op("Relu", 1, [y])], {"min": 0.25, "max": 1.5})]

    def edit(pattern, replacement):
        return lambda text: re.sub(pattern, replacement, text)
    for tag, change in {
            "lower-case-type": edit('type="MatMul"', 'type="matmul"'),
            "later-opset": edit('type="MatMul" version="opset1"', 'type="MatMul" version="opset8"'),
            "bool-as-number": edit('transpose_b="true"', 'transpose_b="1"'),
            "no-default-attribute": edit('transpose_a="false" ', ""),
            "unknown-attribute": edit('transpose_a="false"', 'transpose_a="false" colour="blue"'),
            "comma-without-blank": edit('shape="4, 3"', 'shape="4,3"'),
            "sparse-ids": lambda text: re.sub(r'(layer id|from-layer|to-layer)="(\d+)"', lambda m: f'{m[1]}="{int(m[2]) * 7 + 3}"', text),
            "no-input-precision": lambda text: re.sub(r"(<input>.*?</input>)", lambda m: re.sub(r' precision="\w+"', "", m[1]), text, flags=re.S),
            "no-rt-info": lambda text: re.sub(r"<rt_info>.*?</rt_info>", "", text, flags=re.S),
            "wrong-port-shapes": edit("<dim>4</dim>", "<dim>77</dim>"),
    }.items():
        yield net("MatMul", 1, f"ir-{tag}", tiny, rewrite=change, fixture=True)

    def commas(g):
        x = g.input(uniform("f32", 3), name="left,right")
        return [g.op("Relu", 1, [x])]
    yield net("Relu", 1, "ir-comma-in-name", commas)

    def shared(text):
        return text
    yield net("Add", 1, "ir-shared-constant-bytes", lambda g: [g.op("Add", 1, [g.op("Add", 1, [g.input(uniform("f32", 2, 3)),
              const("f32", [[1, 2, 3]])]), const("f32", [1, 2, 3])])], rewrite=shared)


def version_10():
    for tag, kind in (("f32", "f32"), ("f16-input", "f16"), ("i64-output", "i64"), ("u8-output", "u8"), ("boolean-output", "boolean")):
        yield raw_ir("Parameter", 1, f"v10-{tag}", lambda rng, kind=kind: old_model(rng, kind), fixture=True,
                     rtol=1e-3 if kind == "f16" else None)
    yield raw_ir("Parameter", 1, "v10-pre-process", mean_values)


PRECISION = {"f32": "FP32", "f16": "FP16", "i64": "I64", "u8": "U8", "boolean": "BOOL"}


def old_model(rng, kind):
    """A version 10 file: no rt_info, no input precisions, old API rules for types of inputs and outputs."""
    input_kind = "f16" if kind == "f16" else "f32"
    numpy_kind = {"f32": np.float32, "f16": np.float16}[input_kind]
    if kind in ("f32", "f16"):
        tail = f"""<layer id="2" name="result_op" type="ReLU" version="opset1">
      <input><port id="0"><dim>2</dim><dim>3</dim></port></input>
      <output><port id="1" precision="{PRECISION[kind]}"><dim>2</dim><dim>3</dim></port></output></layer>"""
    else:
        tail = f"""<layer id="2" name="result_op" type="Convert" version="opset1"><data destination_type="{kind}"/>
      <input><port id="0"><dim>2</dim><dim>3</dim></port></input>
      <output><port id="1" precision="{PRECISION[kind]}"><dim>2</dim><dim>3</dim></port></output></layer>"""
    xml = f"""<?xml version="1.0" ?>
<net name="old" version="10">
  <layers>
    <layer id="0" name="data" type="Parameter" version="opset1"><data element_type="{input_kind}" shape="2,3"/>
      <output><port id="0" precision="{PRECISION[input_kind]}"><dim>2</dim><dim>3</dim></port></output></layer>
    <layer id="1" name="shift" type="Const" version="opset1"><data element_type="{input_kind}" offset="0" shape="1,3" size="{3 * numpy_kind().nbytes}"/>
      <output><port id="1" precision="{PRECISION[input_kind]}"><dim>1</dim><dim>3</dim></port></output></layer>
    <layer id="4" name="sum" type="Add" version="opset1">
      <input><port id="0"><dim>2</dim><dim>3</dim></port><port id="1"><dim>1</dim><dim>3</dim></port></input>
      <output><port id="2" precision="{PRECISION[input_kind]}"><dim>2</dim><dim>3</dim></port></output></layer>
    {tail}
    <layer id="3" name="result_op/sink_port_0" type="Result" version="opset1">
      <input><port id="0"><dim>2</dim><dim>3</dim></port></input></layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="4" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="4" to-port="1"/>
    <edge from-layer="4" from-port="2" to-layer="2" to-port="0"/>
    <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
  </edges>
  <meta_data>
    <MO_version value="2021.4"/>
    <cli_parameters><framework value="onnx"/><unset unset_cli_parameters="batch, input"/></cli_parameters>
  </meta_data>
</net>
"""
    # The old API shows an f16 input as f32.
    value = rng.uniform(0.1, 5, (2, 3)).astype(np.float32)
    return xml, rng.uniform(0.1, 2, 3).astype(numpy_kind).tobytes(), {"data": ("f32", value)}


def mean_values(rng):
    """A version 10 file with a pre-process section: per-channel means are subtracted from the input."""
    xml = """<?xml version="1.0" ?>
<net name="old" version="10">
  <layers>
    <layer id="0" name="data" type="Parameter" version="opset1"><data element_type="f32" shape="1,2,2,2"/>
      <output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></output></layer>
    <layer id="1" name="act" type="ReLU" version="opset1">
      <input><port id="0"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></input>
      <output><port id="1" precision="FP32"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></output></layer>
    <layer id="2" name="act/sink_port_0" type="Result" version="opset1">
      <input><port id="0"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></input></layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
  </edges>
  <pre-process mean-precision="FP32" reference-layer-name="data">
    <channel id="0"><mean value="0.5"/></channel>
    <channel id="1"><mean value="-0.5"/></channel>
  </pre-process>
</net>
"""
    return xml, b"", {"data": ("f32", rng.uniform(-1, 1, (1, 2, 2, 2)).astype(np.float32))}


def graphs():
    """Models of several inputs, outputs and shared values."""
    def diamond(g):
        x = g.input(uniform("f32", 2, 4))
        a, b = g.op("Relu", 1, [x]), g.op("Negative", 1, [x])
        return [g.op("Add", 1, [a, b]), a, g.op("Concat", 1, [a, b, x], {"axis": 1})]
    yield net("Result", 1, "diamond", diamond, fixture=True)

    def pass_through(g):
        x = g.input(uniform("f32", 2, 3))
        return [x, g.op("Relu", 1, [x])]
    yield net("Result", 1, "input-is-output", pass_through)

    def twice(g):
        y = g.op("Relu", 1, [g.input(uniform("f32", 2, 3))])
        return [y, y]
    yield net("Result", 1, "same-value-twice", twice)

    def constant_output(g):
        return [g.op("Relu", 1, [g.input(uniform("f32", 2))]), g.op("Add", 1, [const("f32", [1, 2]), const("f32", [3, 4])])]
    yield net("Result", 1, "constant-output", constant_output)

    def unused(g):
        g.input(uniform("f32", 3))
        return [g.op("Relu", 1, [g.input(uniform("f32", 2))])]
    yield net("Parameter", 1, "unused-input", unused)

    def ranges(g):
        x = g.input(uniform("f32", 2, 3, 4), shape="1..8,3,?")
        return [g.op("Softmax", 8, [x], {"axis": -1})]
    yield net("Parameter", 1, "interval-dimension", ranges)

    def any_rank(g):
        return [g.op("Relu", 1, [g.input(uniform("f32", 2, 3), shape="...")])]
    yield net("Parameter", 1, "unknown-rank", any_rank)

    def layer_norm(g):
        x = g.input(uniform("f32", 2, 5, 8), shape="?,?,8")
        mean = g.op("ReduceMean", 1, [x, const("i64", [-1])], {"keep_dims": True})
        centred = g.op("Subtract", 1, [x, mean])
        variance = g.op("ReduceMean", 1, [g.op("Multiply", 1, [centred, centred]), const("i64", [-1])], {"keep_dims": True})
        y = g.op("Divide", 1, [centred, g.op("Sqrt", 1, [g.op("Add", 1, [variance, const("f32", 1e-5)])])])
        return [g.op("Add", 1, [g.op("Multiply", 1, [y, const("f32", uniform("f32", 8))]), const("f32", uniform("f32", 8))])]
    yield net("ReduceMean", 1, "layer-norm", layer_norm)

    def nonzero_gather(g):
        x = g.input(uniform("f32", 4, 3))
        rows = g.op("ReduceSum", 1, [x, const("i64", [1])], {"keep_dims": False})
        where = g.op("NonZero", 3, [g.op("Greater", 1, [rows, const("f32", 0.0)])], {"output_type": "i64"})
        return [g.op("Gather", 8, [x, g.op("Squeeze", 1, [where, const("i64", [0])]), const("i64", 0)], {"batch_dims": 0})]
    yield net("NonZero", 3, "select-rows", nonzero_gather)
