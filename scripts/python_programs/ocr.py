"""RapidOCR with its OpenVINO engine on a picture of words: its models are inside of its wheel."""

import json
import sys
import time

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr import EngineType, RapidOCR

picture = Image.new("RGB", (640, 240), "white")
draw = ImageDraw.Draw(picture)
for row, text in enumerate(["Carafe pours any", "trained model 2026", "into any device"]):
    draw.text((30, 20 + 70 * row), text, fill="black", font=ImageFont.load_default(44))
picture = np.array(picture)[:, :, ::-1]

openvino = {f"{part}.engine_type": EngineType.OPENVINO for part in ("Det", "Cls", "Rec")}
engine = RapidOCR(params=openvino)
found = engine(picture)
times = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    engine(picture)
    times.append(time.perf_counter() - start)
values = [list(map(float, np.ravel(found.boxes))), list(map(float, found.scores))]
print("RESULT" + json.dumps({"texts": list(found.txts), "values": values, "ms": 1000 * min(times)}))
