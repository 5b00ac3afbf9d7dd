"""The list of known failures: `test_name: reason`, one a line, `#` starts a comment."""

from pathlib import Path


def read(path):
    known = {}
    if Path(path).exists():
        for number, line in enumerate(Path(path).read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, colon, reason = line.partition(":")
            if not colon or not reason.strip() or name in known:
                raise ValueError(f"{path}, line {number}: expected one `test_name: reason`, found `{line}`")
            known[name.strip()] = reason.strip()
    return known
