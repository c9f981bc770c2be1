"""Runs TLC, the model checker of TLA+, on a specification with a configuration made from constants."""

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.jars import tla_jars

__all__ = ["Checked", "Model", "check"]

_LARGE = ("-XX:+UseParallelGC", "-Xmx3g")
_SMALL = ("-XX:+UseSerialGC", "-Xmx512m", "-XX:TieredStopAtLevel=1")
_VIOLATED = re.compile(r"Invariant (\w+) is violated|(Temporal properties) were violated")
_COUNTS = re.compile(r"(\d+) states generated, (\d+) distinct states found, (\d+) states left on queue")
_DEPTH = re.compile(r"The depth of the complete state graph search is (\d+)")


@dataclass(frozen=True, slots=True)
class Model:
    """A specification and what to check of it.

    Attributes:
        file: the module.
        formula: the name of the specification's formula.
        constants: the value of each constant, as TLA+ writes it.
        invariants: the names of the invariants.
        properties: the names of the temporal properties.
        symmetry: the name of a symmetry set; unsound with temporal properties.
    """

    file: Path
    formula: str
    constants: Mapping[str, str]
    invariants: Sequence[str] = ()
    properties: Sequence[str] = ()
    symmetry: str | None = None
    configuration: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.symmetry and self.properties:
            raise ValueError("symmetry is unsound with temporal properties")
        lines = [f"SPECIFICATION {self.formula}", "CONSTANTS"]
        lines += [f"    {name} = {value}" for name, value in self.constants.items()]
        lines += [f"INVARIANT {name}" for name in self.invariants]
        lines += [f"PROPERTY {name}" for name in self.properties]
        lines += [f"SYMMETRY {self.symmetry}"] if self.symmetry else []
        object.__setattr__(self, "configuration", "\n".join([*lines, "CHECK_DEADLOCK FALSE", ""]))


@dataclass(frozen=True, slots=True)
class Checked:
    """What TLC found.

    Attributes:
        violated: the violated invariant, `Temporal properties`, or None if all hold.
        states: how many distinct states there are, or were found before the violation.
        depth: the length of the longest of the shortest ways to a state; None after a violation.
        trace: TLC's output.
    """

    violated: str | None
    states: int
    depth: int | None
    trace: str


def check(model: Model, *, timeout_s: float, workers: int = 2, is_small: bool = False) -> Checked:
    """Check a model; a small one, of some thousand states, with a JVM that starts sooner and compiles less.

    Raises:
        RuntimeError: TLC cannot read the model, or ended before it had checked all states; the message has its output.
        subprocess.TimeoutExpired: TLC took longer than `timeout_s`.
    """
    with tempfile.TemporaryDirectory(prefix="tlc-") as folder:
        scratch = Path(folder)
        (scratch / model.file.name).write_text(model.file.read_text())
        (scratch / "model.cfg").write_text(model.configuration)
        paths = ":".join(str(jar) for jar in tla_jars())
        jvm = _SMALL if is_small else _LARGE
        java = ["java", *jvm, f"-Djava.io.tmpdir={folder}", "-cp", paths, "tlc2.TLC"]
        options = ["-workers", str(workers), "-metadir", f"{folder}/states", "-config", "model.cfg", model.file.name]
        done = subprocess.run(
            [*java, *options],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    violated, counts, depth = (
        _VIOLATED.search(done.stdout),
        _COUNTS.findall(done.stdout),
        _DEPTH.search(done.stdout),
    )
    # 12 and 13 are violations of invariants and of temporal properties.
    is_complete = done.returncode == 0 and counts and counts[-1][2] == "0"
    if not (is_complete or (violated and done.returncode in (12, 13))):
        raise RuntimeError(f"TLC ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-1000:]}")
    return Checked(
        violated=(violated[1] or violated[2]) if violated else None,
        states=int(counts[-1][1]) if counts else 0,
        depth=int(depth[1]) if depth and not violated else None,
        trace=done.stdout,
    )
