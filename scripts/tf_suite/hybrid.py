"""TFLite files with int8 weights and float activations. The interpreter's kernels round activations to 8 bits while they run,
each in its own way, so that its answer is off by parts of a hundred: what such a file says is judged with its weights widened."""

import numpy as np


def widened(data):
    """The file with the int8 weights of operators on floats as floats; the same bytes where there are none."""
    from ai_edge_litert import schema_py_generated as schema
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    found = False
    for graph in model.subgraphs:
        tensors = graph.tensors
        for op in graph.operators or []:
            code = model.operatorCodes[op.opcodeIndex]
            kind = max(code.builtinCode, code.deprecatedBuiltinCode)
            is_float = kind != schema.BuiltinOperator.DEQUANTIZE and any(tensors[t].type == schema.TensorType.FLOAT32 for t in op.outputs)
            for t in op.inputs if is_float else []:
                found |= t >= 0 and widen(schema, model, tensors[t])
    if not found:
        return data
    import flatbuffers
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def widen(schema, model, tensor):
    stored = model.buffers[tensor.buffer].data
    q = tensor.quantization
    if tensor.type != schema.TensorType.INT8 or stored is None or not len(stored) or q is None or q.scale is None or not len(q.scale):
        return False
    values = np.asarray(stored, np.uint8).view(np.int8).reshape(tensor.shape).astype(np.float32)
    shape = [1] * values.ndim
    if len(q.scale) > 1:
        shape[q.quantizedDimension] = -1
    zero = np.asarray(q.zeroPoint, np.float32).reshape(shape)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(((values - zero) * np.asarray(q.scale, np.float32).reshape(shape)).tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.buffer, tensor.type, tensor.quantization = len(model.buffers) - 1, schema.TensorType.FLOAT32, None
    return True
