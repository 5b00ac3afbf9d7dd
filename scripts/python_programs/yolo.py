"""Ultralytics predicts with a YOLOv8n that it exported to OpenVINO: weights are random, the heads loud enough that objects are found.

Another process of Python exports the network, always with openvino and torch.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_VERBOSE", "false")
import numpy as np

SIZE = 320


def export(folder):
    import torch
    from ultralytics import YOLO

    os.chdir(folder)
    torch.manual_seed(3)
    network = YOLO("yolov8n.yaml")
    with torch.no_grad():
        network.model.train()
        for _ in range(30):  # Statistics of the normalizations.
            network.model(torch.rand(4, 3, 128, 128))
        for head in network.model.model[-1].cv3:
            head[-1].weight.mul_(20.0)
            head[-1].bias.fill_(-1.0)
    network.export(format="openvino", imgsz=SIZE)


def predict(folder, rounds):
    from ultralytics import YOLO

    network = YOLO(folder / "yolov8n_openvino_model", task="detect")
    pictures = [np.random.default_rng(n).integers(0, 256, (SIZE, SIZE, 3), np.uint8) for n in range(3)]
    options = {"imgsz": SIZE, "conf": 0.25, "iou": 0.5, "device": "cpu", "verbose": False}
    found = [network.predict(picture, **options)[0].boxes for picture in pictures]
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        network.predict(pictures[0], **options)
        times.append(time.perf_counter() - start)
    texts = [str([int(c) for c in boxes.cls]) for boxes in found]
    values = [np.ravel(boxes.xyxyn.numpy()).tolist() + boxes.conf.numpy().tolist() for boxes in found]
    if not all(len(boxes) for boxes in found):
        sys.exit("no objects were found; there is nothing to compare")
    print("RESULT" + json.dumps({"texts": texts, "values": values, "ms": 1000 * min(times)}))


if sys.argv[1] == "--export":
    export(sys.argv[2])
else:
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, __file__, "--export", folder], capture_output=True, text=True, check=False)
        if made.returncode:
            sys.exit(made.stdout + made.stderr)
        predict(pathlib.Path(folder), int(sys.argv[1]))
