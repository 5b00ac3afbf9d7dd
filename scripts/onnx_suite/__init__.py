"""The ONNX backend tests and real ONNX models through Carafe and its peers.

The package is the body of `scripts/onnx-node-suite` and `scripts/onnx-models`:

- `values`    tensors, sequences and optionals of a test, and the files they travel in;
- `cases`     the tests that the `onnx` package carries, written out as folders;
- `peers`     runs a model on onnxruntime and on OpenVINO, in a worker process;
- `judge`     items for the `carafe` binary, and the verdict on what it wrote;
- `reasons`   the checked-in list of known failures;
- `fixtures`  the selection that is committed for `cargo test`;
- `cli`       arguments, the order of the stages, the report;
- `packages`  where real models lie;
- `models`    runs them and reports.

What drives the binary, compares tensors and keeps workers is shared with the package `crosscheck`.
"""
