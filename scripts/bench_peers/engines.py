"""The peers as worker processes: the same line protocol as Carafe's worker (crates/carafe/examples/bench_worker.rs).

    python -m bench_peers.engines ENGINE MODEL INPUTS.npz THREADS STREAMS [PRECISION]

Each peer gets its best way of being called: inputs bound once, outputs written to memory that is there already.
"""

import json
import os
import sys
import threading
import time

import numpy as np

from . import place


class OpenVino:
    """In f32 unless told otherwise, which is what the others compute in. STREAMS 0 lets it choose."""

    def __init__(self, threads, streams, precision="f32"):
        import openvino
        self.ov = openvino
        self.config = {"PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT"}
        if precision != "default":
            self.config["INFERENCE_PRECISION_HINT"] = precision
        self.config["INFERENCE_NUM_THREADS"] = threads * streams if streams else place.cores()
        if streams > 1:
            self.config["NUM_STREAMS"] = streams
        self.most = max(streams, 1)

    def load(self, model, feed):
        core = self.ov.Core()
        read = core.read_model(model)
        if any(port.get_partial_shape().is_dynamic for port in read.inputs):
            read.reshape({port: list(feed[name].shape) for port in read.inputs for name in port.get_names() & feed.keys()})
        self.compiled = core.compile_model(read, "CPU", self.config)
        jobs = 1
        if self.config["PERFORMANCE_HINT"] == "THROUGHPUT":
            jobs = max(self.most, self.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        self.queue = self.ov.AsyncInferQueue(self.compiled, jobs)
        self.feed = {port: self.ov.Tensor(value) for name, value in feed.items() for port in self.compiled.inputs if name in port.get_names()}
        for request in self.queue:
            for port, tensor in self.feed.items():
                request.set_tensor(port, tensor)
        self.request = next(iter(self.queue))

    def infer(self):
        self.request.infer(share_inputs=True, share_outputs=True)

    def outputs(self):
        self.infer()
        return [np.array(self.request.get_output_tensor(i).data) for i in range(len(self.compiled.outputs))]

    def rate(self, seconds):
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            self.queue.start_async(share_inputs=True)
            count += 1
        self.queue.wait_all()
        return count, time.perf_counter() - start

    def profile(self, model, feed, seconds):
        self.config["PERF_COUNT"] = True
        self.load(model, feed)
        self.infer()
        least, walls, start = {}, [], time.perf_counter()
        while len(walls) < 3 or time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            self.infer()
            walls.append(time.perf_counter() - begin)
            for node in self.request.get_profiling_info():
                if node.status == node.Status.EXECUTED:
                    spent = node.real_time.total_seconds() * 1e6
                    old = least.setdefault(node.node_name, {"name": node.node_name, "type": node.node_type, "kernel": node.exec_type, "us": spent})
                    old["us"] = min(old["us"], spent)
        for node in self.compiled.get_runtime_model().get_ops():
            name, told = node.get_friendly_name(), node.get_rt_info()
            if name in least:
                originals = told["originalLayersNames"].astype(str) if "originalLayersNames" in told else ""
                least[name].update(of=originals.split(","), shape=list(node.output(0).get_partial_shape().get_max_shape()))
        return {"wall_us": min(walls) * 1e6, "runs": len(walls), "nodes": list(least.values())}


class OnnxRuntime:
    def __init__(self, threads, streams):
        import onnxruntime
        self.ort = onnxruntime
        onnxruntime.set_default_logger_severity(4)
        self.threads, self.streams = threads, streams

    def load(self, model, feed):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        self.session = self.ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        known = {i.name for i in self.session.get_inputs()}
        self.feed = {name: value for name, value in feed.items() if name in known}
        self.names = [o.name for o in self.session.get_outputs()]
        self.bound = []

    def bind(self):
        made = self.session.run(self.names, self.feed)
        for _ in range(self.streams):
            binding = self.session.io_binding()
            for name, value in self.feed.items():
                binding.bind_cpu_input(name, value)
            for name, value in zip(self.names, made):
                binding.bind_ortvalue_output(name, self.ort.OrtValue.ortvalue_from_numpy(value))
            self.bound.append(binding)

    def infer(self):
        if not self.bound:
            self.bind()
        self.session.run_with_iobinding(self.bound[0])

    def outputs(self):
        return self.session.run(self.names, self.feed)

    def rate(self, seconds):
        start = time.perf_counter()
        return in_threads(self.bound, self.session.run_with_iobinding, start, seconds)


class TensorFlow:
    """A SavedModel by its signature."""

    def __init__(self, threads, streams):
        import tensorflow
        tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(max(streams, 1))
        self.tf, self.streams = tensorflow, streams

    def load(self, model, feed):
        self.loaded = self.tf.saved_model.load(model)
        self.call = self.loaded.signatures["serving_default"]
        self.feed = {name: self.tf.constant(value) for name, value in feed.items()}

    def infer(self):
        return self.call(**self.feed)

    def outputs(self):
        return [value.numpy() for _, value in sorted(self.infer().items())]

    def rate(self, seconds):
        return in_threads(range(self.streams), lambda _: self.infer(), time.perf_counter(), seconds)


class TfLite:
    """The interpreter with its XNNPACK delegate; an interpreter for each stream."""

    def __init__(self, threads, streams):
        from ai_edge_litert.interpreter import Interpreter
        self.interpreter, self.threads, self.streams = Interpreter, threads, streams

    def load(self, model, feed):
        self.each = [self.ready(model, feed) for _ in range(self.streams)]

    def ready(self, model, feed):
        run = self.interpreter(model_path=model, num_threads=self.threads)
        details = {d["name"]: d for d in run.get_input_details()}
        for name, d in details.items():
            if list(d["shape"]) != list(feed[name].shape):
                run.resize_tensor_input(d["index"], feed[name].shape)
        run.allocate_tensors()
        for name, d in details.items():
            run.set_tensor(d["index"], feed[name])
        return run

    def infer(self):
        self.each[0].invoke()

    def outputs(self):
        self.infer()
        return [self.each[0].get_tensor(d["index"]) for d in self.each[0].get_output_details()]

    def rate(self, seconds):
        return in_threads(self.each, lambda run: run.invoke(), time.perf_counter(), seconds)


class Tract:
    """The wheel has no setting for threads: it runs in one."""

    def __init__(self, threads, streams):
        import tract
        self.tract, self.streams = tract, streams

    def load(self, model, feed):
        short = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8"}
        read = self.tract.onnx().load(model)
        names = [read.input_name(i) for i in range(read.input_count())]
        for i, name in enumerate(names):
            value = feed[name]
            read.set_input_fact(i, ",".join([*map(str, value.shape), short[value.dtype.name]]))
        read.analyse()
        self.model = read.into_model().into_runnable()
        self.feed = [feed[name] for name in names]

    def infer(self):
        return self.model.run(self.feed)

    def outputs(self):
        return [value.to_numpy() for value in self.infer()]

    def rate(self, seconds):
        return in_threads(range(self.streams), lambda _: self.infer(), time.perf_counter(), seconds)


ENGINES = {"openvino": OpenVino, "onnxruntime": OnnxRuntime, "tensorflow": TensorFlow, "tflite": TfLite, "tract": Tract}
PACKAGES = {"tensorflow": "tensorflow-cpu", "tflite": "ai-edge-litert"}  # where they have another name than the engine


def in_threads(each, run, start, seconds):
    counts = []

    def work(item):
        count = 0
        while time.perf_counter() - start < seconds:
            run(item)
            count += 1
        counts.append(count)
    threads = [threading.Thread(target=work, args=(item,)) for item in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), time.perf_counter() - start


def timed(engine, seconds, runs):
    each, start = [], time.perf_counter()
    while len(each) < runs or time.perf_counter() - start < seconds:
        begin = time.perf_counter_ns()
        engine.infer()
        each.append(time.perf_counter_ns() - begin)
    each.sort()
    return {"median_ns": each[len(each) // 2], "min_ns": each[0], "count": len(each)}


def memory(line):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(l.split()[1]) for l in status if l.startswith(line))


def serve(engine, model, feed, commands, say):
    base = memory("VmRSS:")
    start = time.perf_counter()
    engine.load(model, feed)
    load = time.perf_counter() - start
    start = time.perf_counter()
    engine.infer()
    say({"load_s": load, "first_s": time.perf_counter() - start, "base_kb": base})
    for line in commands:
        word, *rest = line.split(None, 1)
        if word == "time":
            seconds, runs = rest[0].split()
            say(timed(engine, float(seconds), int(runs)))
        elif word == "rate":
            count, seconds = engine.rate(float(rest[0]))
            say({"count": count, "seconds": seconds})
        elif word == "dump":
            outputs = engine.outputs()
            for i, output in enumerate(outputs):
                np.save(os.path.join(rest[0].strip(), f"out_{i}.npy"), np.asarray(output))
            say({"outputs": len(outputs)})
        elif word == "rss":
            say({"peak_kb": memory("VmHWM:"), "rss_kb": memory("VmRSS:")})
        elif word == "profile":
            say(engine.profile(model, feed, float(rest[0])))
        else:
            return


def main():
    name, model, inputs, threads, streams, *precision = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer

    def say(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()
    try:
        with np.load(inputs) as given:
            feed = {key: np.ascontiguousarray(given[key]) for key in given.files}
        settings = precision if name == "openvino" else []  # the others have no such setting
        serve(ENGINES[name](int(threads), int(streams), *settings), model, feed, sys.stdin, say)
    except Exception as problem:  # whatever a peer throws is its answer
        say({"error": f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"})


if __name__ == "__main__":
    main()
