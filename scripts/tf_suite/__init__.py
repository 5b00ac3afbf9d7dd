"""TensorFlow and TFLite models for tests: made, run, compared.

The package is the body of `scripts/tf-models`:

- `nets`        Keras networks with seeded weights;
- `make`        writes each as SavedModel, frozen graph, TFLite (float, int8) and ONNX, with reference outputs;
- `lite_forms`  writes networks in the other forms of TFLite;
- `reference`   what TensorFlow and the TFLite interpreter compute; writes the .npz beside a model;
- `hybrid`      widens int8 weights of operators on floats;
- `packages`    trained models out of public packages;
- `compare`     how far outputs are from each other;
- `models`      runs model files through Carafe and OpenVINO and reports.
"""
