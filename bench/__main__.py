"""`python -m bench [NAME …]`: run the benchmarks, print their tables, keep them in their document."""

import argparse
import datetime
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib import import_module

from bench.report import DOCUMENTS, keep

__all__ = ["main"]

# Section of a document -> module with a `run` that returns the section's text.
SECTIONS = {
    "service": "bench.service",
    "latency": "bench.service_latency",
    "new_versions": "bench.new_versions",
    "counting": "bench.counting",
    "witnesses": "bench.witnesses",
    "policies": "bench.policies",
    "scale": "bench.scale",
    "pages": "bench.pages",
    "serdes": "bench.serdes_decode",
    "formats": "bench.serdes_formats",
    "classes": "bench.class_objects",
    "encrypted_fields": "bench.encrypted_fields",
    "replay": "bench.topic_replay",
    "spark": "bench.spark_decode",
    "spark_pruned": "bench.spark_pruned",
    "payloads": "bench.payload_columns",
    "spark_protobuf": "bench.spark_protobuf",
    "spark_json": "bench.spark_json",
    "spark_encode": "bench.spark_encode",
    "spark_rules": "bench.spark_rules",
    "spark_replay": "bench.spark_replay",
    "spark_kafka": "bench.spark_kafka",
    "spark_tables": "bench.spark_tables",
    "installs": "bench.installs",
}


def main() -> None:
    """Run the given benchmarks, by default all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"measurements to run: {', '.join(SECTIONS)}  [all]")
    documents = " and ".join(path.name for path in DOCUMENTS)
    parser.add_argument("--keep", action="store_true", help=f"write the tables into {documents}")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(SECTIONS):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}; expected {', '.join(SECTIONS)}")
    for name in arguments.names or SECTIONS:
        print(f"\n## {name}\n", flush=True)
        run: Callable[[], str] = import_module(SECTIONS[name]).run
        started = time.monotonic()
        text = f"{_conditions()}. {run()}"
        print(text, f"\n\n({time.monotonic() - started:.0f} s)", flush=True)
        if arguments.keep:
            keep(name, text)


def _conditions() -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    load = f"load average {os.getloadavg()[0]:.1f} before"
    machine = f"{os.cpu_count()} cores shared with others, {load}, {platform.system()}"
    return f"{today}, {machine}, Python {platform.python_version()}, commit {_commit()}"


def _commit() -> str:
    """Return the commit that is measured, with a mark if files differ from it."""
    try:
        changed = _git("status", "--porcelain", "-uno", "--", ":!*.md")
        return _git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    folder = DOCUMENTS[0].parent
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
