"""Fuzzes the decoders, and what reads credentials: `python -m harness.fuzz`, optionally with the names of targets.

Each target runs in its own process, so that a crash in native code is detected. libFuzzer, through atheris, selects
inputs by the Python code that they reach, generated decoders included. It stops at the first defect, at an input that
takes too long, and when the process uses too much memory.

Rules of this file: processes and their output; `harness.fuzz_targets` defines what is called.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Outcome", "fuzz"]

_SECONDS_PER_INPUT = 20
_MOST_BYTES = 4096
_MOST_MIB = 2048
_MAKING_S = 120  # longest time to create a target
_STATISTICS = re.compile(r"stat::(\w+):\s+(\d+)")
_TOLD = (re.compile(r"=== Uncaught Python exception: ===\n(.*)"), re.compile(r"==\d+== ?ERROR: (.*)"))


class Outcome(NamedTuple):
    """The result of one target: inputs tried, peak memory in MiB, and the defect with its input, if any."""

    target: str
    inputs: int
    peak_mib: int
    defect: str
    input: bytes


def fuzz(target: str, *, runs: int, seconds: int, seed: int = 1) -> Outcome:
    """Fuzz a target.

    Args:
        target: the name of the target.
        runs: the number of inputs, at most.
        seconds: the time limit.
        seed: the seed of libFuzzer.
    """
    with tempfile.TemporaryDirectory(prefix="strata-fuzz-") as folder:
        options = [f"--runs={runs}", f"--seconds={seconds}", f"--seed={seed}", f"--folder={folder}"]
        command = [sys.executable, "-m", "harness.fuzz", *options, target]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + _MAKING_S, check=False
        )
        said = done.stdout.decode(errors="replace")
        found = {name: int(number) for name, number in _STATISTICS.findall(said)}
        defect = "" if done.returncode == 0 else _defect(said, done.returncode)
        inputs = [one.read_bytes() for one in sorted(Path(folder).glob("*-*")) if one.is_file()]
    return Outcome(
        target,
        found.get("number_of_executed_units", 0),
        found.get("peak_rss_mb", 0),
        defect,
        inputs[0] if inputs else b"",
    )


def _defect(said: str, code: int) -> str:
    told = next((match[1] for pattern in _TOLD if (match := pattern.search(said))), said[-500:])
    return f"exit {code}: {told}"


def _run(target: str, runs: int, seconds: int, seed: int, folder: Path) -> None:
    """Run one target in this process, until it exits."""
    import atheris

    # Numba compiles the byte code of strata.serdes.arrow, which must not be instrumented.
    with atheris.instrument_imports(
        include=["strata.serdes", "strata.registry.features.access", "jwt", "google.protobuf.json_format"],
        exclude=["strata.serdes.arrow"],
    ):
        from harness.fuzz_targets import TARGETS
        from strata.serdes.avro import decoder
        from strata.serdes.json_schema import serializer as json_serializer  # noqa: F401 - instrumented first
        from strata.serdes.protobuf import serializer as protobuf_serializer  # noqa: F401
    decoder.compile_listing = _instrumented(decoder.compile_listing, atheris.instrument_func)  # type: ignore[attr-defined]
    corpus = folder / "corpus"
    corpus.mkdir()
    for index, data in enumerate(TARGETS[target].seeds()):
        (corpus / str(index)).write_bytes(data)
    options = {
        "runs": runs,
        "max_total_time": seconds,
        "seed": seed,
        "max_len": _MOST_BYTES,
        "timeout": _SECONDS_PER_INPUT,
        "rss_limit_mb": _MOST_MIB,
        "artifact_prefix": f"{folder}/",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    flags = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([target, *flags, str(corpus)], TARGETS[target].make())
    atheris.Fuzz()


def _instrumented(compile_listing: Callable[..., dict[str, Any]], instrument: Callable[[Any], Any]) -> Any:
    """Return a `compile_listing` that shows the fuzzer which lines of the generated source are reached."""

    def compiled(listing: Any, name: str, names: Any) -> dict[str, Any]:
        namespace = compile_listing(listing, name, names)
        own = {key: one for key, one in namespace.items() if getattr(one, "__globals__", None) is namespace}
        namespace.update({key: instrument(one) for key, one in own.items()})
        return namespace

    return compiled


def main(arguments: list[str] | None = None, say: Callable[[str], object] = print) -> int:
    """Fuzz targets one after the other and print a table; return 1 if there was a defect."""
    parser = argparse.ArgumentParser(prog="python -m harness.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="targets of harness.fuzz_targets; all of them by default")
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs of each target")
    parser.add_argument("--seconds", type=int, default=3600, help="time of each target at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.folder is not None:
        _run(asked.targets[0], asked.runs, asked.seconds, asked.seed, asked.folder)
    from harness.fuzz_targets import TARGETS

    say("| target | inputs | MiB at most | defects |\n| --- | ---: | ---: | --- |")
    outcomes = []
    for target in asked.targets or TARGETS:
        one = fuzz(target, runs=asked.runs, seconds=asked.seconds, seed=asked.seed)
        defect = f"{one.defect}, input {one.input.hex()}" if one.defect else "none"
        say(f"| {one.target} | {one.inputs:,} | {one.peak_mib} | {defect} |")
        outcomes.append(one)
    return int(any(one.defect for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
