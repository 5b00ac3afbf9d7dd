"""Runs the blocks of docs/python-extensions.md, one after the other."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python-extensions.md"


def test_the_blocks_of_the_page_run_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    names = {"__name__": "page"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert len(blocks) >= 9
    for block in blocks:
        # Lines of errors are those of the page.
        before = "\n" * (text[: block.start()].count("\n") + 1)
        exec(compile(before + block.group(1), str(PAGE), "exec"), names)
