"""The command `strata`: the command line of the registry, or one line that names the extra that it needs."""

import sys

from strata.imports import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    Raises:
        SystemExit: always, with the exit code.
    """
    try:
        from strata.registry.cli import main as command_line
    except MissingExtra as error:
        sys.stderr.write(f"strata: {error}\n")
        sys.exit(2)
    command_line()
