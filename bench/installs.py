"""What each extra of the wheel installs into a fresh environment, its size, and how long the first import takes."""

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.report import table
from harness.environments import build_wheel, fresh_environment, site_packages, with_extras

__all__ = ["run"]

_ROUNDS = 10
_LISTED = 7  # of more packages only the number is shown
_OURS = "strata_registry"
# What is installed -> the import whose time is measured.
_INSTALLS = {
    "": "from strata.serdes import AvroSerializer, RegistryClient",
    "json": "from strata.serdes import JsonSerializer, RegistryClient",
    "protobuf": "from strata.serdes import ProtobufSerializer, RegistryClient",
    "rules": "import strata.serdes.rules.cel, strata.serdes.rules.jsonata",
    "encryption": "import strata.serdes.encryption.csfle",
    "prometheus": "import strata.serdes.prometheus_observer",
    "otel": "import strata.serdes.otel_observer",
    "arrow": "from strata.serdes.arrow import decode_batch",
    "spark": "import pyarrow",  # the platform brings pyspark
    "pyspark": "from strata.spark_udfs import decode",
    "gitops": "import strata.gitops.cli",
    "server": "from strata.registry.server import run",
    "server,kafka": "import strata.registry.server, strata.storage.kafka.log",
    "server,postgres": "import strata.registry.server, strata.storage.sql.log, psycopg",
}


def run() -> str:
    """Return the table: a row for each set of extras, each in an environment of its own."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        wheel = build_wheel(Path(name))
        size = wheel.stat().st_size
        for extras, statement in _INSTALLS.items():
            folder = Path(name) / "environment"
            python = fresh_environment(folder, with_extras(wheel, extras), compiled=True)
            rows.append(_row(python, extras, statement))
            shutil.rmtree(folder)
    head = ["install", "size", "packages besides Strata", "import", "CPU time"]
    return (
        f"The wheel has {size / 1e6:.1f} MB. Sizes are those of all files in `site-packages`, compiled "
        f"modules included. A time is the CPU time of the import in a new process, the shortest of {_ROUNDS}, without "
        f"the start of Python.\n\n{table(head, rows)}"
    )


def _row(python: Path, extras: str, statement: str) -> list[str]:
    packages = site_packages(python)
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    names = sorted(one.name.split("-")[0].lower() for one in packages.glob("*.dist-info"))
    others = [one.replace("_", "-") for one in names if one != _OURS]
    took = _shortest([str(python), "-c", statement]) - _shortest([str(python), "-c", "pass"])
    return [
        f"`strata-registry[{extras}]`" if extras else "`strata-registry`",
        f"{size / 1e6:.0f} MB",
        f"{len(others)}: {', '.join(others)}" if len(others) <= _LISTED else f"{len(others)}",
        f"`{statement}`",
        f"{took * 1e3:.0f} ms",
    ]


def _shortest(command: Sequence[str]) -> float:
    """Return the CPU seconds of the shortest run."""
    times = []
    for _ in range(_ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, env={}, cwd="/")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)
