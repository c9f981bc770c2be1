"""The tests that failed in the last run: run again alone, and tolerated only if the list here names them.

    python -m harness.failed_tests write FILE   write their names into a file of arguments for pytest
    python -m harness.failed_tests judge FILE   end with 1 unless the list names every test in the file

`make test` runs the tests that failed again, alone, and shows both results. A test that passes then still fails the
run: it hides a defect of itself or of Strata, unless `KNOWN` names it with a reason.

Pytest's own `--last-failed` finds none of them, and then runs everything: with `--dist loadgroup`, pytest keeps
their names with their groups.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

__all__ = ["KNOWN", "KnownTest", "arguments", "main", "unknown"]


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test that may fail beside others as long as it passes alone.

    Attributes:
        name: its name as pytest prints it; without parameters it stands for all of them.
        reason: why it fails, and what is being done about it.
        since: the day on which it was listed.
    """

    name: str
    reason: str
    since: date


KNOWN: Final[tuple[KnownTest, ...]] = ()
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


def unknown(names: Sequence[str], known: Sequence[KnownTest] = KNOWN) -> list[str]:
    """Return the names that no known test stands for."""
    listed = {test.name for test in known}
    return [name for name in names if name not in listed and name.partition("[")[0] not in listed]


def main(arguments_: Sequence[str], say: Callable[[str], object] = print) -> int:
    """Write or judge the names of failed tests; return 1 if one of them is not known."""
    command, file = arguments_
    if command == "write":
        Path(file).write_text("".join(f"{name}\n" for name in arguments(_KEPT.read_text())))
        return 0
    failed = unknown(Path(file).read_text().splitlines())
    for name in failed:
        say(f"{name} failed beside other tests and passed alone: mend it, or list it in harness/failed_tests.py")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
