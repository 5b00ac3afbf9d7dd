"""Tests of the parts that need neither a binary nor a peer: `python -m unittest onnx_suite.test_onnx_suite` in scripts/."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

from . import cpp_tests, judge, models, reasons, values


class Values(unittest.TestCase):
    def test_packing_and_unpacking_keep_every_type(self):
        for name in values.SPECIAL:
            array = np.array([[0, 1, 1], [0, 1, 0]]).astype(getattr(ml_dtypes, name)) if name != "float8_e8m0fnu" else \
                np.array([[0.5, 1, 4]]).astype(ml_dtypes.float8_e8m0fnu)
            first = values.tensor(array)
            again = values.unpacked(first.element_type, values.packed(first), array.shape)
            self.assertEqual(first.element_type, again.element_type)
            np.testing.assert_array_equal(first.array, again.array, name)

    def test_the_first_of_two_nibbles_is_the_low_one(self):
        self.assertEqual(values.packed(values.Tensor("i4", np.array([1, -1, 3], np.int8))).tolist(), [0xF1, 0x03])

    def test_scalars_of_rare_types_pack(self):
        self.assertEqual(values.packed(values.Tensor("bf16", np.array(1.0, np.float32))).tolist(), [0x80, 0x3F])

    def test_strings_become_unicode(self):
        self.assertEqual(values.tensor(np.array(["ž", b"ok"], object)).array.tolist(), ["ž", "ok"])

    def test_sequences_are_flattened_with_numbered_names(self):
        one = values.tensor(np.float32(1))
        self.assertEqual([n for n, _, _ in values.flat("y", [one, [one, None]])], ["y/0", "y/1/0"])


class CppTests(unittest.TestCase):
    @staticmethod
    def runs(body, before=""):
        head = "OPENVINO_TEST(${BACKEND_NAME}, t) {\n auto model = convert_model(\"m.onnx\");\n auto c = ov::test::TestCase(model, s_device);\n"
        return cpp_tests.tests(f"{before}\n{head}{body}\n}}\n")["t"]

    def test_inputs_outputs_and_tolerance_of_a_run_are_read(self):
        run, = self.runs("c.add_input<float>(Shape{2}, {1, -2.5f}); c.add_expected_output<int64_t>({7}); c.run_with_tolerance_as_fp(1e-3f);")
        self.assertEqual(run.model, "m.onnx")
        self.assertEqual(run.inputs, [cpp_tests.Given("f32", [2], [1.0, -2.5])])
        self.assertEqual(run.outputs, [cpp_tests.Given("i64", None, [7])])
        self.assertEqual(run.tolerance, 1e-3)

    def test_vectors_are_computed(self):
        run, = self.runs("std::vector<float> x(3); std::iota(x.begin(), x.end(), 1.f); for (size_t i = 0; i < 2; ++i) x.push_back(i * 10);"
                         "c.add_input(x); c.add_expected_output<float>({1}); c.run();")
        self.assertEqual(run.inputs[0], cpp_tests.Given("f32", None, [1.0, 2.0, 3.0, 0, 10]))

    def test_functions_of_the_file_are_called(self):
        run, = self.runs("c.add_input<float>(twice(2.f)); c.add_expected_output<float>({1}); c.run();",
                         "std::vector<float> twice(float v) {\n    return {v, v};\n}\n")
        self.assertEqual(run.inputs[0].values, [2.0, 2.0])

    def test_what_cannot_be_read_is_told_and_not_guessed(self):
        self.assertIsInstance(self.runs("auto x = mystery(3); c.add_input<float>(x); c.run();"), str)
        self.assertIsInstance(self.runs("c.add_input<float>(mystery(3)); c.run();"), str)
        self.assertIsInstance(self.runs("std::vector<float> x; mystery(x); c.add_input<float>(x); c.run();"), str)

    def test_a_model_that_must_be_refused_has_no_outputs(self):
        text = 'TEST(a, t) {\n try {\n convert_model("bad.onnx");\n FAIL() << "no";\n } catch (const ov::Exception& e) {\n }\n}\n'
        self.assertEqual([(r.model, r.outputs) for r in cpp_tests.tests(text)["t"]], [("bad.onnx", None)])

    def test_a_case_that_is_filled_and_never_run_is_run(self):
        self.assertEqual(len(self.runs("c.add_input<float>({1}); c.add_expected_output<float>({1});")), 1)


class Judging(unittest.TestCase):
    CASE = {"rtol": 1e-3, "atol": 1e-7}

    def test_bf16_may_be_two_units_off(self):
        want, have = np.float32([1.0]), np.float32([1.0078125])
        self.assertIsNone(judge.mismatch(self.CASE, [("y", "bf16", want)], [("y", "bf16", have)]))
        self.assertIsNotNone(judge.mismatch(self.CASE, [("y", "f32", want)], [("y", "f32", have)]))

    def test_another_type_or_shape_is_a_mismatch(self):
        y = np.zeros((2, 1), np.float32)
        self.assertIn("element type", judge.mismatch(self.CASE, [("y", "f32", y)], [("y", "f16", y)]))
        self.assertIn("shape", judge.mismatch(self.CASE, [("y", "f32", y)], [("y", "f32", y.ravel())]))

    def test_sequences_are_put_as_archives_and_empty_optionals_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            sequence = [values.tensor(np.float32([1, 2])), values.tensor(np.float32([3]))]
            inputs = {"x": values.save(folder, "x", sequence), "y": None, "z": values.save(folder, "z", sequence[0])}
            asked = judge.items({"sets": [{"inputs": inputs, "outputs": []}]}, folder, folder / "work")[0]["inputs"]
            self.assertEqual(sorted(asked), ["x", "z"])
            self.assertEqual([a.tolist() for a in np.load(asked["x"]).values()], [[1, 2], [3]])

    def test_types_that_only_onnx_knows_cannot_be_put(self):
        entry = {"file": "a.npy", "element_type": "c64"}
        self.assertIn("c64", judge.inexpressible({"sets": [{"inputs": {"x": [entry]}, "outputs": []}]}))


class Reasons(unittest.TestCase):
    def test_a_line_without_reason_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "list"
            file.write_text("# head\n\ntest_a: random numbers: not ours\n")
            self.assertEqual(reasons.read(file), {"test_a": "random numbers: not ours"})
            file.write_text("test_a\n")
            self.assertRaises(ValueError, reasons.read, file)

    def test_a_reason_may_be_for_one_device(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "list"
            file.write_text("test_a on CPU: rounds\ntest_b: random\n")
            self.assertEqual(sorted(reasons.read(file, "CPU")), ["test_a", "test_b"])
            self.assertEqual(sorted(reasons.read(file, "TEMPLATE")), ["test_b"])


class Models(unittest.TestCase):
    @staticmethod
    def told(want, have):
        return models.errors([("y", "f32", np.float32(want))], [("y", "f32", np.float32(have))])["y"]

    def test_relative_error_is_against_the_element_or_a_thousandth_of_the_largest(self):
        def error(want, have):
            return self.told(want, have)["elements"]
        self.assertAlmostEqual(error([1, 10, np.nan], [1.1, 10, np.nan]), 0.1, 6)
        self.assertAlmostEqual(error([0, 1000], [0.1, 1000]), 0.1, 6)
        self.assertEqual(error([np.nan, 1], [1, 1]), np.inf)
        self.assertEqual(error([np.inf, 1], [np.inf, 1]), 0)
        self.assertEqual(error([np.inf, 1], [1, 1]), np.inf)

    def test_the_scale_is_the_largest_element(self):
        self.assertAlmostEqual(self.told([0, 1000], [20, 1000])["scale"], 0.02, 6)
        self.assertEqual(self.told([np.nan, 1], [1, 1])["scale"], np.inf)

    def test_a_bound_comes_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "list"
            file.write_text("a/*: 3e-4: sums cancel: all engines\nb: scale 0.02: 8 bits\n")
            self.assertEqual(models.bounds(file), {"a/*": ("elements", 3e-4, "sums cancel: all engines"),
                                                   "b": ("scale", 0.02, "8 bits")})
            file.write_text("a/*: 3e-4\n")
            self.assertRaises(ValueError, models.bounds, file)

    def test_a_bound_that_cannot_fail_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "list"
            for bound in ("20", "2", "0.2", "scale 0.5", "0", "-1", "nan"):
                file.write_text(f"a: {bound}: 8 bits\n")
                self.assertRaises(ValueError, models.bounds, file)

    def test_the_widest_bounds_refuse_zeros_and_noise(self):
        rng = np.random.default_rng(1)
        want = rng.normal(size=1000)
        for have in (np.zeros(1000), rng.normal(size=1000), want[::-1], want * 1.2):
            for kind, widest in models.WIDEST.items():
                self.assertTrue(models.wrong_of({"y": self.told(want, have)}, kind, widest), kind)

    def test_entries_that_are_needed_no_longer_are_stale(self):
        known = {"a/x": ("elements", 1e-3, "r"), "a/*": ("elements", 1e-3, "r"), "magika/*": ("scale", 0.01, "r"),
                 "my_own": ("scale", 0.01, "r")}
        ran = {"a/x": {"reference": ""}, "a/y": {"reference": ""}, "magika/m": {"reference": "cannot run"}}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertTrue(models.print_stale(known, {"a/x"}, ran, False))
            self.assertIn("`a/*`: every model of it agrees without", printed.getvalue())
            self.assertIn("`magika/*`: no model that ran matches", printed.getvalue())
            self.assertNotIn("my_own", printed.getvalue())
            self.assertFalse(models.print_stale(known, {"a/x", "a/*"}, ran, True))

    def test_pictures_may_be_of_any_size(self):
        for height, width in ((24, 24), (48, 320), (33, 7)):
            self.assertEqual(models.picture(height, width).shape, (height, width, 3))


if __name__ == "__main__":
    unittest.main()
