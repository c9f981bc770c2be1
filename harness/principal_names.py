"""The names that Kafka itself gives to the subjects of certificates, by its `ssl.principal.mapping.rules`."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.jars import kafka_jars
from harness.spark_jar import compiled

__all__ = ["kafka_names"]

_SOURCE: Final = Path(__file__).with_name("jvm") / "PrincipalNames.java"
_TIMEOUT_S: Final = 120


def kafka_names(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return Kafka's answer for each pair of rules and subject: `=NAME`, `none` or `invalid`."""
    jars = kafka_jars()
    class_path = os.pathsep.join(map(str, (compiled([_SOURCE], *jars), *jars)))
    done = subprocess.run(
        ["java", "-cp", class_path, "PrincipalNames"],
        input="".join(f"{rules}\t{subject}\n" for rules, subject in rows).encode(),
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    return done.stdout.decode().splitlines()
