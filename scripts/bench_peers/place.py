"""Where things of this tool lie, and the Python environment with the peers in it. Needs the standard library alone."""

import contextlib
import os
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
NEEDED = ["openvino", "onnxruntime", "onnx", "numpy", "ml_dtypes"]
WELCOME = ["tract"]  # has no wheel for every system
TENSORFLOW = ["tensorflow-cpu", "ai-edge-litert"]  # peers of --tf-models alone


def folder(variable, otherwise):
    """A folder that the environment may name."""
    return Path(os.environ.get(variable) or TARGET / otherwise).resolve()


def models():
    return folder("CARAFE_BENCH_MODELS", "bench-models")


def nets():
    return folder("CARAFE_BENCH_NETS", "bench-nets")


def work():
    return folder("CARAFE_BENCH_WORK", "bench-work")


def lock():
    named = os.environ.get("CARAFE_BENCH_LOCK")
    return Path(named) if named else TARGET / "bench.lock"


def cores():
    """Those that this process may use: `taskset` can make them fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def enter_environment(script, more=()):
    """Goes on in the environment with the peers; makes it when it is not there yet. Installs `more` where it is missing."""
    home = folder("CARAFE_BENCH_VENV", "bench-venv")
    python = home / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if Path(sys.prefix).resolve() == home:
        missing = [package for package in more if not installed(package)]
        if missing and subprocess.run([*pip, *missing], check=False).returncode:
            sys.exit(f"bench-peers: pip could not install {', '.join(missing)}")
        return
    if not python.exists():
        print(f"bench-peers: making {home} with {', '.join(NEEDED)}", file=sys.stderr)
        venv.create(home, with_pip=True)
        if subprocess.run([*pip, *NEEDED], check=False).returncode:
            shutil.rmtree(home)
            sys.exit("bench-peers: pip could not install the peers; CARAFE_BENCH_VENV may name an environment that has them")
        for package in WELCOME:
            if subprocess.run([*pip, "--only-binary", ":all:", package], check=False, stderr=subprocess.DEVNULL).returncode:
                print(f"bench-peers: no {package} for this Python, going on without", file=sys.stderr)
    os.execv(python, [str(python), script, *sys.argv[1:]])


def installed(package):
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def build_worker():
    """Builds Carafe's worker and returns where it is."""
    command = ["cargo", "build", "--release", "--quiet", "--locked", "-p", "carafe", "--example", "bench_worker"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit("bench-peers: cargo could not build the worker")
    return Path(os.environ.get("CARGO_TARGET_DIR") or TARGET) / "release" / "examples" / "bench_worker"
