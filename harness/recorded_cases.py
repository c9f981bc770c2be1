"""Recorded answers of the reference that a replay compares: each rule once in `make test`, all in `make test-all`.

A case names its rule, as `field:rename@nested/proto3`; the same rule may be recorded with other names and types.
Random cases have no rule: more of them prove more the first time only.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

from harness.examples import examples

__all__ = ["recorded_cases"]

_FOLDER: Final = Path(__file__).resolve().parent.parent / "tests/conformance"
_RANDOM: Final = ("random", "history", "options")
_MANY: Final = 1000


def recorded_cases(name: str) -> list[dict[str, Any]]:
    """Return cases of a file: in `make test` one of each rule, level and verdict, and one of four random ones."""
    with gzip.open(_FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    every = _MANY // examples(_MANY)
    return cases if every == 1 else _fewer(cases, every)


def _fewer(cases: list[dict[str, Any]], every: int) -> list[dict[str, Any]]:
    seen, random, kept = set(), 0, []
    for case in cases:
        if case["rule"].startswith(_RANDOM):
            random += 1
            is_kept = random % every == 1
        else:
            # Of texts alone, the name is that of a group.
            key = tuple(case.get(part) for part in ("type", "rule", "level", "policy", "compatible"))
            is_kept = key not in seen or case["kind"] != "compat"
            seen.add(key)
        if is_kept:
            kept.append(case)
    return kept
