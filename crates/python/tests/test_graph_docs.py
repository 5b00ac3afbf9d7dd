"""The page about graphs does what it says."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "python-graphs.md"


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, found)
    return found


def test_the_blocks_of_the_page_run_one_after_the_other(names, tmp_path):
    assert (tmp_path / "small.xml").exists()
    assert [n.get_type_name() for n in names["model"].get_ordered_ops()].count("Exp") == 1


def test_the_operation_of_the_page_goes_through_a_file(names):
    ov, ops = names["ov"], names["ops"]
    data = ops.parameter([2], np.float32, name="data")
    ov.save_model(ov.Model([names["Twice"]([data])], [data]), "twice.xml")
    compiled = names["core"].compile_model(names["core"].read_model("twice.xml"), "CPU")
    assert compiled(np.array([1, 2], np.float32))[0].tolist() == [2, 4]
