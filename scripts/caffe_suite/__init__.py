"""Caffe nets for tests, written and read without Caffe.

The package is the body of `scripts/caffe-models` and of `scripts/fixtures/caffe.py`:

- `files`       .prototxt read, .caffemodel written and read;
- `definition`  what Caffe defines, layer by layer in NumPy; `detection` has the layers of boxes;
- `peers`       mo with OpenVINO, and OpenCV, each in a process of its own (`peer_openvino`, `peer_opencv`);
- `compare`     how far outputs are from each other;
- `topologies`  classic networks with seeded weights;
- `packages`    where trained nets lie;
- `models`      runs whole networks and reports.
"""
