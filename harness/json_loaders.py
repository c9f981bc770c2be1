"""Runs the two public JSON Schema loaders that the reference uses: what they accept, and the model they produce.

`python -m harness.json_loaders` writes a selection of answers to `tests/compat/json_schema/loaders.jsonl.gz`.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from harness.jars import JarSet, resolve
from harness.json_cases import patterns, schemas
from harness.spark_jar import compiled

__all__ = ["RECORDED", "ask"]

_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_SOURCE: Final = Path(__file__).with_name("jvm") / "JsonLoaders.java"
_TIMEOUT_S: Final = 600
RECORDED: Final = _CHECKOUT / "tests" / "compat" / "json_schema" / "loaders.jsonl.gz"
_JARS: Final = tuple(
    JarSet(name, artifacts, transitive=True)
    for name, artifacts in (
        (
            "everit-json-schema",
            (
                "com.github.erosb:everit-json-schema:1.14.6",
                "com.fasterxml.jackson.datatype:jackson-datatype-json-org:2.18.2",
                "com.fasterxml.jackson.core:jackson-databind:2.18.2",
            ),
        ),
        ("json-skema", ("com.github.erosb:json-sKema:0.28.0",)),
    )
)


def ask(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run the loaders on schemas and patterns.

    Args:
        questions: each is `{"schema": TEXT, "references": {NAME: TEXT}}` or `{"pattern": TEXT}`.

    Returns:
        `{"accepted": BOOL}` for each question; an accepted schema of an older dialect also has its `model`, a text.
    """
    jars = [jar for jar_set in _JARS for jar in resolve(jar_set)]
    class_path = os.pathsep.join(map(str, (compiled([_SOURCE], *jars), *jars)))
    done = subprocess.run(
        ["java", "-Xss16m", "-cp", class_path, "JsonLoaders"],
        input="".join(f"{json.dumps(question)}\n" for question in questions).encode(),
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def main() -> int:
    """Write the selection: every seventeenth schema, and patterns."""
    questions: list[dict[str, Any]] = [{"schema": schema} for schema in list(schemas())[::17]]
    questions += ({"pattern": pattern} for pattern in patterns(3_000))
    lines = (json.dumps(question | answer) for question, answer in zip(questions, ask(questions), strict=True))
    RECORDED.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
