"""OpenCV's dnn module (4.x; 5 reads no Caffe)."""

import cv2

from .peers import serve


def run(task, inputs):
    net = cv2.dnn.readNetFromCaffe(task["prototxt"], task["caffemodel"])
    for name, value in inputs.items():
        net.setInput(value, name)
    # A convolution is called like its blob, other layers by their own name.
    names = [blob if kind == "Convolution" else layer if index == 0 else f"{layer}.{index}" for blob, layer, index, kind in task["outputs"]]
    return dict(zip((o[0] for o in task["outputs"]), net.forward(names)))


if __name__ == "__main__":
    serve(run)
