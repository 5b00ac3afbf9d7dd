"""Cross-check of Carafe against OpenVINO, operation by operation.

The package is the body of `scripts/crosscheck-openvino`:

- `families/`   what is checked: one module per family of operations, each a generator of cases;
- `case`        what a case is, and the small language the families are written in;
- `dtypes`      element types, and how tensors of types numpy does not have travel in .npy files;
- `oracle`      runs a case on OpenVINO (CPU, and constant folding as second opinion) in a worker process;
- `workers`     forked processes that may die;
- `engine`      drives the `carafe` binary through its batch protocol;
- `compare`     tolerances and the comparison of two tensors;
- `store`       the directory form of a case (`case.json`, model, inputs, outputs), shared with `cargo test`;
- `cli`         arguments, the order of the stages, the report.

Only `oracle`, `case` and the families import OpenVINO; nothing here imports Carafe.
"""
