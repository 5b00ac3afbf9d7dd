"""Tests of the parts that need neither a binary nor a peer: `python -m unittest bench_peers.test_bench_peers` in scripts/."""

import os
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx

from . import chart, cli, folder, layers, models, nets, quantized, report, run


def result(**engines):
    row = {"name": "m", "what": "a model", "from": "here", "file_mb": 1.0, "engines": engines}
    return {"machine": {"cpu": "some", "cores": 2, "versions": {"carafe": "0.1.0"}}, "engines": list(engines), "threads": [1, 2],
            "rounds": 1, "seconds": 0.1, "loads": 1, "tolerance": 1e-3, "models": [row]}


def engine(ms, rate=10.0, load=0.1, memory=20.0, **more):
    return {"latency": {"1": {"ms": ms, "others": 0}, "2": {"ms": ms / 2, "others": 0}}, "per_second": rate, "load_s": load, "net_mb": memory, **more}


class Ratios(unittest.TestCase):
    ALL = result(carafe=engine(1.0, 40.0, 0.1, 10.0), openvino=engine(2.0), onnxruntime=engine(4.0, 80.0))

    def test_above_one_means_that_carafe_does_better(self):
        row = self.ALL["models"][0]
        self.assertEqual([report.ratio(row, "openvino", key) for key in ("latency 1", "throughput", "load", "memory")], [2, 4, 1, 2])

    def test_the_better_peer_gives_the_smaller_ratio(self):
        row = self.ALL["models"][0]
        self.assertEqual([report.best(row, key) for key in ("latency 1", "throughput")], [2, 0.5])

    def test_means_are_geometric(self):
        self.assertAlmostEqual(report.mean([0.5, 8, None]), 2)

    def test_a_model_on_which_carafe_differs_does_not_count(self):
        one = result(carafe=engine(1.0, error=0.1), openvino=engine(2.0))
        self.assertEqual(report.counted(one), [])
        self.assertIn("outputs differ by 1.0e-01", report.page(one))

    def test_an_engine_that_fails_leaves_a_gap(self):
        page = report.page(result(carafe=engine(1.0), openvino=engine(2.0), onnxruntime={"problem": "no such operation"}))
        self.assertIn("| m | 1.00 | 2.00 | - | **2.00** | 2.00 | - |", page)
        self.assertIn("- m, ONNX Runtime: no such operation", page)


class Differences(unittest.TestCase):
    def test_are_measured_against_the_largest_value(self):
        self.assertAlmostEqual(run.difference([np.array([0.0, 100.0])], [np.array([1.0, 100.0])]), 0.01)

    def test_the_same_nan_is_no_difference(self):
        self.assertEqual(run.difference([np.array([np.nan, 1.0])], [np.array([np.nan, 1.0])]), 0)

    def test_a_quantized_value_may_be_a_step_apart(self):
        self.assertEqual(run.difference([np.array([3, 100], np.int8)], [np.array([4, 100], np.int8)]), 0)
        self.assertAlmostEqual(run.difference([np.array([3, 100], np.int8)], [np.array([5, 100], np.int8)]), 0.01)

    def test_outputs_of_a_quantized_model_are_compared_as_a_whole(self):
        self.assertAlmostEqual(run.difference([np.array([3.0, 4.0])], [np.array([3.0, 4.5])], True), 0.1)

    def test_another_shape_is_told(self):
        self.assertIn("expected [(2,)]", run.difference([np.zeros(2)], [np.zeros(3)]))


class Precisions(unittest.TestCase):
    def test_carafe_and_the_peers_get_it_and_another_engine_does_not(self):
        plan = run.Plan({"carafe": None, "openvino": None, "mine": ["./mine"]}, [1], 1, 0.1, 1, 1, "CPU", "worker", "bf16")
        self.assertEqual([plan.settings(e) for e in plan.engines], [["CPU", "bf16"], ["bf16"], []])

    def test_f32_is_compared_closely_and_the_rest_is_not(self):
        self.assertEqual([cli.parse(["--precision", p]).tolerance for p in ("f32", "bf16", "default")], [cli.EXACT, cli.COARSE, cli.COARSE])
        self.assertEqual(cli.parse([]).precision, "f32")

    def test_a_quantized_model_has_a_tolerance_of_its_own(self):
        one = result(carafe=engine(1.0, error=0.01), openvino=engine(2.0))
        one["models"][0]["tolerance"] = report.apart(one["models"][0]["engines"])
        self.assertEqual(len(report.counted(one)), 1)

    def test_quantized_outputs_may_differ_as_those_of_peers_do(self):
        found = {"carafe": engine(1.0, error=0.5), "openvino": engine(1.0, error=0.4), "onnxruntime": engine(1.0)}
        self.assertAlmostEqual(report.apart(found), 0.6)
        self.assertEqual(report.apart({"carafe": engine(1.0, error=0.5)}), report.COARSE)

    def test_the_page_tells_it(self):
        one = result(carafe=engine(1.0), openvino=engine(2.0))
        self.assertIn("- Every engine computes in f32 and runs", report.page(one))
        self.assertIn("compute in bf16", report.page({**one, "precision": "bf16"}))


class Charts(unittest.TestCase):
    def test_are_well_formed_with_a_bar_for_every_figure(self):
        made = ElementTree.fromstring(chart.bars("a & b", "below", [("x<y", 2.0), ("worse", 0.3), ("none", None)]))
        kinds = [bar.get("class") for bar in made.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertEqual(kinds, ["better", "worse"])

    def test_one_is_always_on_the_scale(self):
        self.assertEqual(chart.scale([5.0, 7.0]), (-1, 3.0))
        self.assertEqual(chart.scale([]), (-1, 1))


class Layers(unittest.TestCase):
    def test_nodes_that_stand_for_the_same_of_the_model_are_put_together(self):
        theirs = [{"name": "conv1/WithoutBiases", "of": ["conv1", "relu1"]}, {"name": "pool"}]
        ours = [{"name": "conv1/Convolution_0"}, {"name": "relu1"}, {"name": "extra", "of": ["pool"]}, {"name": "other"}]
        groups, rest = layers.matched(ours, theirs)
        self.assertEqual([[n["name"] for n in group] for group in groups], [["conv1/Convolution_0", "relu1"], ["extra"]])
        self.assertEqual(rest, [ours[3]])


class Folders(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        root = Path(self.home.name)
        (root / "net/saved_model").mkdir(parents=True)
        (root / "net/saved_model/saved_model.pb").touch()
        (root / "net/float.tflite").touch()
        for name in ("saved_model", "float.tflite", "model.onnx"):
            np.savez(root / f"net/{name}.npz", **{"in:x": np.zeros(2), "out:y": np.zeros(2)})
        os.environ["CARAFE_BENCH_WORK"] = str(root / ".work")
        self.addCleanup(os.environ.pop, "CARAFE_BENCH_WORK")

    def test_every_format_is_an_entry_and_the_twin_is_none(self):
        self.assertEqual([e.name for e in folder.chosen(self.home.name, None)], ["net/float.tflite", "net/saved_model"])
        self.assertEqual([e.what for e in folder.chosen(self.home.name, ["*/saved_model"])], ["SavedModel"])

    def test_an_engine_takes_part_where_it_reads_the_format(self):
        lite, saved = folder.chosen(self.home.name, None)
        engines = ["carafe", "carafe-onnx", "openvino", "tensorflow", "tflite"]
        self.assertEqual(list(lite.files(engines)), ["carafe", "openvino", "tflite"])
        self.assertEqual(list(saved.files(engines)), ["carafe", "carafe-onnx", "openvino", "tensorflow"])
        self.assertEqual(saved.files(engines)["carafe-onnx"][0].name, "model.onnx")

    def test_a_pattern_without_a_model_is_told(self):
        with self.assertRaisesRegex(ValueError, "matches other"):
            folder.chosen(self.home.name, ["other"])


class Models(unittest.TestCase):
    def test_every_model_is_fetched_or_written(self):
        for entry in models.LIST:
            self.assertTrue((entry.quantized or entry.name) in models.NETS or entry.package in models.packages.PACKAGES, entry.name)

    def test_every_written_network_is_listed(self):
        self.assertEqual({e.name for e in models.LIST if not e.package and not e.quantized}, set(models.NETS))

    def test_int8_names_all_quantized_models_and_nothing_else_does(self):
        self.assertEqual([e.quantized for e in models.chosen(["int8"], False)], list(quantized.NETS))
        self.assertEqual([e.name for e in models.chosen(["vgg16", "resnet50_int8"], False)], ["vgg16", "resnet50_int8"])
        self.assertFalse(any(e.quantized for e in models.chosen(None, False)))

    def test_calibration_inputs_have_the_form_of_the_given(self):
        given = {"x": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4), "ids": np.arange(6)[None], "mask": np.ones((1, 6), np.int64)}
        reader = quantized.Inputs(given, 3)
        every = [reader.get_next() for _ in range(4)]
        self.assertEqual([e is None for e in every], [False, False, False, True])
        self.assertTrue(all(e[n].shape == v.shape and e[n].dtype == v.dtype for e in every[:3] for n, v in given.items()))
        self.assertFalse(np.array_equal(every[1]["x"], given["x"]))

    def test_small_networks_are_valid_onnx(self):
        for name in ("squeezenet1_1", "mobilenet_v2", "gru_2_100", "yolov8n_640"):
            net, values = models.NETS[name]()
            weights = [onnx.numpy_helper.from_array(a, n) for n, a in net.weights.items()]
            graph = onnx.helper.make_graph(net.nodes, name, net.inputs, net.outputs, weights)
            made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", nets.OPSET)], ir_version=9)
            onnx.checker.check_model(onnx.shape_inference.infer_shapes(made, strict_mode=True))
            self.assertTrue(values)

    def test_the_same_network_comes_out_each_time(self):
        (one, _), (two, _) = models.NETS["gru_2_100"](), models.NETS["gru_2_100"]()
        self.assertTrue(all(np.array_equal(one.weights[n], two.weights[n]) for n in one.weights))

    def test_pictures_have_the_asked_form(self):
        for shape in ([1, 3, 48, 320], [1, 32, 64, 3], [1, 1, 64, 160]):
            made = models.value_of(models.Given(shape, low=0, high=255))
            self.assertEqual((list(made.shape), made.dtype), (shape, np.float32))


if __name__ == "__main__":
    unittest.main()
