"""Ultralytics predicts with a YOLOv8n that it exported to OpenVINO: weights are random, and the heads such that
something is found.

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


def picture(number):
    """Boxes of colours on noise."""
    numbers = np.random.default_rng(number)
    made = numbers.integers(100, 150, (SIZE, SIZE, 3), np.uint8)
    for _ in range(12):
        top, left = numbers.integers(0, SIZE - 40, 2)
        height, width = numbers.integers(20, 160, 2)
        made[top : top + height, left : left + width] = numbers.integers(0, 256, 3)
    return made


def export(folder):
    import torch
    from ultralytics import YOLO

    os.chdir(folder)
    torch.manual_seed(3)
    network = YOLO("yolov8n.yaml")
    pictures = np.stack([picture(number)[:, :, ::-1] for number in range(4)]).transpose(0, 3, 1, 2)
    pictures = torch.from_numpy(np.ascontiguousarray(pictures)).float() / 255
    with torch.no_grad():
        network.model.train()
        for module in network.model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 0.5
        for _ in range(30):  # Statistics of the normalizations, without which every picture gives the same.
            network.model(pictures)
        network.model.eval()
        scores = []
        heads = [head[-1] for head in network.model.model[-1].cv3]
        listening = [head.register_forward_hook(lambda _head, _inputs, output: scores.append(output)) for head in heads]
        network.model(pictures)
        for head, score, hook in zip(heads, scores, listening):
            hook.remove()
            # Classes spread widely, and at least three places of each picture and head are beyond the threshold.
            gain = 2.0 / score.std()
            best = ((score - head.bias.view(1, -1, 1, 1)) * gain).amax(1).flatten(1)
            head.weight.mul_(gain)
            head.bias.fill_(-1.0 - float(best.topk(3).values[:, -1].min()))
    network.export(format="openvino", imgsz=SIZE)


def predict(folder, rounds):
    import torch
    from ultralytics import YOLO

    network = YOLO(folder / "yolov8n_openvino_model", task="detect")
    pictures = [picture(number) for number in range(3)]
    options = {"imgsz": SIZE, "conf": 0.25, "iou": 0.5, "device": "cpu", "verbose": False}
    found = [network.predict(picture, **options)[0].boxes for picture in pictures]
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        network.predict(pictures[0], **options)
        times.append(time.perf_counter() - start)
    # By class and corner: scores that saturate are as good as equal, and their order is chance.
    ordered = []
    for boxes in found:
        rows = np.concatenate([boxes.cls.numpy()[:, None], boxes.xyxyn.numpy(), boxes.conf.numpy()[:, None]], axis=1)
        ordered.append(np.array(sorted(rows.tolist(), key=lambda row: [round(value, 2) for value in row[:5]])))
    texts = [str(rows[:, 0].astype(int).tolist()) for rows in ordered]
    # All that the network gives, of which most is below the threshold: sizes of pictures as parts of them.
    raw = []
    for picture_ in pictures:
        given = torch.from_numpy(np.ascontiguousarray(picture_[:, :, ::-1].transpose(2, 0, 1)[None])).float() / 255
        all_ = np.array(network.predictor.model(given)[0])
        all_.reshape(-1, 84, all_.shape[-1])[:, :4] /= SIZE
        raw.append(np.ravel(all_).tolist())
    values = raw + [np.ravel(rows[:, 1:]).tolist() for rows in ordered]
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
