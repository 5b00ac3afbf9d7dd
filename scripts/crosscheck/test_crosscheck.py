"""Tests of the cross-check itself; `python -m unittest crosscheck.test_crosscheck` in scripts/."""

import stat
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import numpy as np

from . import compare, dtypes, fixtures
from .engine import Engine

# Answers every item with its first input doubled; a model called crash*, refuse* or mute* behaves accordingly.
FAKE = """\
#!{python}
import json, os, shutil, sys
from pathlib import Path
import numpy as np
if sys.argv[1] == "--version":
    print("carafe 0"); sys.exit(0)
for item in json.loads(Path(sys.argv[sys.argv.index("--batch") + 1]).read_text()):
    name, out = Path(item["model"]).stem, Path(item["out"])
    if name.startswith("crash"):
        os.abort()
    if "convert" in item and name.startswith("mute"):
        (out / "error.txt").write_text("cannot write"); continue
    if "convert" in item:
        Path(item["convert"]).write_text("<net/>")
    if name.startswith("refuse"):
        (out / "error.txt").write_text("no such op"); continue
    np.save(out / "y.npy", 2 * np.load(item["inputs"]["x"]))
    (out / "outputs.json").write_text(json.dumps({{"outputs": [{{"name": "y", "file": "y.npy", "element_type": "f32"}}]}}))
"""


class Decoding(unittest.TestCase):
    def check(self, kind, text, values):
        found = dtypes.decode(kind, bytes.fromhex(text), (len(values),))
        np.testing.assert_array_equal(found, np.array(values, np.float32))

    def test_packed_types_follow_the_ir_layout(self):
        self.check("u4", "2103", [1, 2, 3])
        self.check("i4", "2f08", [-1, 2, -8])
        self.check("u2", "3901", [1, 2, 3, 0, 1])
        self.check("u1", "8380", [1, 0, 0, 0, 0, 0, 1, 1, 1])
        self.check("u3", "6c6c1e", [1, 2, 3, 4, 5, 6, 7, 0])
        self.check("u6", "121f0b", [1, 2, 33, 63])
        self.check("nf4", "f700", [0, 1, -1])
        self.check("f4e2m1", "710a", [0.5, 6, -1])

    def test_small_floats(self):
        self.check("f8e4m3", "387e", [1, 448])
        self.check("f8e5m2", "3c407c", [1, 2, np.inf])
        self.check("f8e8m0", "7f81", [1, 4])
        self.check("bf16", "803f", [1])

    def test_bf16_rounds_to_even(self):
        np.testing.assert_array_equal(dtypes.bf16_bits(np.array([1.00390625, 1.01171875], np.float32)), [0x3F80, 0x3F82])


class Comparing(unittest.TestCase):
    def verdict(self, want, have, kind="f32", **case):
        return compare.difference({"op": "Add", **case}, [("y", kind, np.array(want))], [("y", kind, np.array(have))])

    def test_floats_within_tolerance_agree(self):
        self.assertIsNone(self.verdict([1.0, np.nan, np.inf], [1.00005, np.nan, np.inf]))
        self.assertIn("1 of 2 values differ", self.verdict([1.0, 2.0], [1.0, 2.01]))

    def test_infinity_never_equals_a_number(self):
        self.assertIsNotNone(self.verdict([np.inf], [3e38]))

    def test_integers_must_be_equal_except_where_slack_is_stated(self):
        self.assertIsNotNone(self.verdict([1], [2], "i32"))
        self.assertIsNone(self.verdict([1], [2], "u8", op="Interpolate"))

    def test_shape_and_type_count(self):
        self.assertIn("shape", self.verdict([[1.0]], [1.0]))
        self.assertIn("element type", compare.difference({"op": "Add"}, [("y", "f32", np.ones(1))], [("y", "f16", np.ones(1))]))

    def test_rows_may_come_in_any_order_when_the_case_says_so(self):
        self.assertIsNone(self.verdict([[1, 2]], [[2, 1]], "i32", judge="rows"))

    def test_fixture_takes_the_reference_unless_the_cpu_is_trusted(self):
        record = {"outputs": ["cpu"], "reference": ["ref"], "cpu_leaves_reference": "1 of 2 values differ"}
        self.assertEqual(fixtures.expected_of(record), ["ref"])
        self.assertEqual(fixtures.expected_of({**record, "trust": "cpu"}), ["cpu"])
        self.assertEqual(fixtures.expected_of({**record, "cpu_leaves_reference": None}), ["cpu"])


class Driving(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        binary = self.folder / "carafe"
        binary.write_text(textwrap.dedent(FAKE).format(python=sys.executable))
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        np.save(self.folder / "x.npy", np.ones(2, np.float32))
        self.engine = Engine(binary, seconds=20)

    def answers(self, *names):
        items = [{"model": f"{n}.xml", "inputs": {"x": str(self.folder / "x.npy")}, "out": str(self.folder / n), "repeat": 1,
                  "convert": str(self.folder / f"{n}.converted.xml")} for n in names]
        found = self.engine.work(items, jobs=1)
        return [found[i["out"]] for i in items]

    def test_outputs_come_back(self):
        (answer,) = self.answers("good")
        self.assertIsNone(answer.error)
        np.testing.assert_array_equal(answer.outputs()[0][2], [2, 2])
        self.assertTrue(answer.converted)

    def test_a_crash_costs_one_item(self):
        first, bad, last = self.answers("good", "crash", "good2")
        self.assertIsNone(first.error)
        self.assertIn("SIGABRT", bad.error)
        self.assertIsNone(last.error)

    def test_a_refusal_is_told(self):
        (answer,) = self.answers("refuse")
        self.assertEqual(answer.error, "no such op")
        self.assertTrue(answer.converted)

    def test_a_model_that_cannot_be_written_still_runs(self):
        (answer,) = self.answers("mute")
        self.assertIsNone(answer.error)
        self.assertIsNone(answer.converted)
        self.assertEqual(answer.convert_error, "cannot write")


if __name__ == "__main__":
    unittest.main()
