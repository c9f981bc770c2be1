"""Writes the tests that failed last into a file of arguments: `python -m harness.failed_tests FILE`.

Pytest's own `--last-failed` finds none of them, and then runs everything: with `--dist loadgroup`, pytest keeps
their names with their groups.
"""

import json
import re
import sys
from pathlib import Path

__all__ = ["arguments"]

_KEPT = Path(".pytest_cache/v/cache/lastfailed")
_GROUP = re.compile(r"@[\w./-]+$")


def arguments(kept: str) -> list[str]:
    """Return the names of tests without their groups.

    Args:
        kept: what pytest keeps of the tests that failed, as JSON.

    Raises:
        ValueError: If no test is in it.
    """
    names = [_GROUP.sub("", name) for name in json.loads(kept)]
    if not names:
        raise ValueError("no test failed")
    return names


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(f"{name}\n" for name in arguments(_KEPT.read_text())))
