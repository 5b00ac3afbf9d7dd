"""Inference on other people's engines: Ray Data and Ray Serve, Spark, Dask.

A `BatchPredictor` is what each of them sends to its workers. It pickles as a path and options; the model is compiled in the worker, once a
process. Weights are mapped from the file, so workers of one machine share their pages. Threads are what the engine gave to the worker:
`num_threads`, else OMP_NUM_THREADS, which Ray and others set; without either, all.

    ray.data.read_numpy(...).map_batches(BatchPredictor, fn_constructor_kwargs={"model": "net.xml", "inputs": {"image": "x"}},
                                         batch_size=64, concurrency=2, num_cpus=4)
    predict_batch_udf(predict_fn("net.xml"), return_type=ArrayType(FloatType()), batch_size=64, input_tensor_shapes=[[3, 8, 8]])
    dask.array.map_blocks(predict_block, images, model="net.xml", dtype="float32", drop_axis=[1, 2, 3], new_axis=1)
"""

import functools
import os
import queue

import numpy as np


@functools.lru_cache(maxsize=None)
def _compiled(model, device, config):
    import carafe

    return carafe.Core().compile_model(model, device, dict(config))


class BatchPredictor:
    """Calls a model on batches: dictionaries of arrays, whose first axis counts the rows."""

    def __init__(self, model, device="CPU", config=None, inputs=None, outputs=None, num_threads=None):
        """`inputs` names the input of each column, `outputs` the column of each output that is wanted; both may be left out."""
        self._options = (os.path.abspath(model), device, dict(config or {}), inputs, outputs, num_threads)
        self._idle = queue.LifoQueue()

    def __reduce__(self):
        return BatchPredictor, self._options

    def _request(self):
        model, device, config, _, _, threads = self._options
        threads = threads or os.environ.get("OMP_NUM_THREADS")
        if threads and device == "CPU":
            config = {"INFERENCE_NUM_THREADS": str(threads), **config}
        return _compiled(model, device, tuple(sorted(config.items()))).create_infer_request()

    def __call__(self, batch):
        """The columns of the batch and those of the outputs."""
        try:
            request = self._idle.get_nowait()
        except queue.Empty:
            request = self._request()
        inputs, outputs = self._options[3], self._options[4]
        columns = batch if inputs is None else {name: batch[column] for column, name in inputs.items()}
        results = request.infer({name: np.ascontiguousarray(values) for name, values in columns.items()}, share_inputs=True)
        ports = results.keys() if outputs is None else outputs
        names = {(p if isinstance(p, str) else p.get_any_name()): p for p in ports}
        found = {(outputs[n] if isinstance(outputs, dict) else n): np.array(results[p]) for n, p in names.items()}
        self._idle.put(request)
        kept = {} if inputs is None else {c: v for c, v in batch.items() if c not in inputs}
        return {**kept, **found}

    async def predict(self, batch):
        """The same for event loops, as in a method under `ray.serve.batch`: the loop goes on while the model runs."""
        import asyncio

        return await asyncio.to_thread(self, batch)


def predict_fn(model, device="CPU", config=None, num_threads=None):
    """What `pyspark.ml.functions.predict_batch_udf` calls once in each worker: gives a function from arrays to the first output."""
    predictor = BatchPredictor(model, device, config, num_threads=num_threads)

    def make():
        def predict(*arrays):
            found = predictor(dict(enumerate(arrays)))
            return next(iter(found.values()))

        return predict

    return make


def predict_block(block, model, device="CPU", config=None, num_threads=None):
    """A block of a Dask array as the only input of a model; gives its first output."""
    return predict_fn(model, device, config, num_threads)()(block)
