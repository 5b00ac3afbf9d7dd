"""The list of known failures: `test_name: reason`, one a line, `#` starts a comment. `test_name on DEVICE: reason` is for one
device alone."""

from pathlib import Path


def read(path, device=None):
    known = {}
    if Path(path).exists():
        for number, line in enumerate(Path(path).read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, colon, reason = line.partition(":")
            if not colon or not reason.strip() or name in known:
                raise ValueError(f"{path}, line {number}: expected one `test_name: reason`, found `{line}`")
            name, _, only = name.strip().partition(" on ")
            if not only or device in (None, only):
                known[name] = reason.strip()
    return known
