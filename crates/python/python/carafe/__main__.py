"""The `carafe` command."""

import os
import sys

from carafe._native import run_command


def main():
    """Runs the command with the arguments of the process."""
    # Where the command finds what lies in the package, such as a library of the C API.
    os.environ.setdefault("CARAFE_PACKAGE", os.path.dirname(os.path.abspath(__file__)))
    return run_command(["carafe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
