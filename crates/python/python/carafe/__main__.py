"""The `carafe` command."""

import sys

from carafe._native import run_command


def main():
    """Runs the command with the arguments of the process."""
    return run_command(["carafe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
