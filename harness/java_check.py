"""Checks Java: its format, what the compiler and Error Prone find, and the arrows between the packages of the jar.

    python -m harness.java_check            ends with 1 and says what is wrong
    python -m harness.java_check format     rewrites the sources

`make check` runs it. It takes a minute, so it does nothing while the sources and this file are those of the last check
that passed. The formatter and Error Prone are downloaded once, like other jars; both need the `javac` of a JDK.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.jars import cache_folder, error_prone_jars, java_formatter_jars, protobuf_jars
from harness.spark_jar import STRICT, spark_class_path

__all__ = ["LAYERS", "main", "wrong_arrows"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_MAIN: Final = _ROOT / "spark_udfs" / "jvm"
_PROBES: Final = _ROOT / "tests" / "spark" / "java"
_PREFIX: Final = "strata.spark"

# From top to bottom: a package uses only those of lower layers. Packages of one layer do not use each other.
LAYERS: Final = (
    ("",),  # the catalog, the functions of SQL, what a session gets of them; names that settings have
    ("plan",),
    ("avro", "proto", "json"),
    ("valid",),
    ("schema",),
    ("client",),
    ("frame", "row", "write"),
    ("bytes",),
)

_COMPILER_PACKAGES: Final = ("api", "code", "comp", "file", "main", "model", "parser", "processing", "tree", "util")
# Error Prone's warnings are errors, but for these.
_OFF: Final = (
    "ArrayRecordComponent",  # records that no code compares hold arrays, which rows are read from fastest
    "EnumOrdinal",  # the types of Protobuf stand in the order of their numbers
    "ClosingStandardOutputStreams",  # a probe's last act
    "ImmutableEnumChecker",  # neither Spark's types nor what List.of makes say that they are immutable
    "IdentityHashMapUsage",  # fields are of type Map
    "JavaLangClash",  # `Number` inside a class is its own number
    "OperatorPrecedence",  # && binds tighter than ||
    "ReferenceEquality",  # constants such as ValidCheck.ALWAYS, and schemas by identity
    "StringSplitter",  # empty parts at the end are not wanted
    "TypeParameterUnusedInFormals",  # calls by reflection
)
_ARROW: Final = re.compile(r"^\s+(strata\.spark[\w.]*)\s+-> (strata\.spark[\w.]*)\s", re.MULTILINE)
_TIMEOUT_S: Final = 600


def main(arguments: Sequence[str]) -> int:
    """Check or format; return 1 if something is wrong."""
    if shutil.which("javac") is None:
        sys.stdout.write("Java was not checked: there is no javac on the PATH\n")
        return 1 if os.environ.get("CI") else 0
    sources = _sources()
    if "format" in arguments:
        return _run(_formatter("--replace", *map(str, sources)))
    seal = _seal(sources)
    passed = cache_folder() / "java-check.sha256"
    if passed.is_file() and passed.read_text() == seal:
        return 0
    if failed := _check(sources):
        return failed
    passed.write_text(seal)
    return 0


def _sources() -> list[Path]:
    return sorted([*_MAIN.rglob("*.java"), *_PROBES.rglob("*.java")])


def _seal(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for source in sources:
        digest.update(str(source.relative_to(_ROOT)).encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _check(sources: Sequence[Path]) -> int:
    if failed := _run(_formatter("--dry-run", "--set-exit-if-changed", *map(str, sources))):
        sys.stdout.write("these files are not formatted: make format\n")
        return failed
    with tempfile.TemporaryDirectory() as folder:
        if failed := _run(_compiler(Path(folder), sources)):
            return failed
        listed = subprocess.run(
            ["jdeps", "-verbose:package", "-e", rf"{_PREFIX}.*", folder],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    wrong = list(wrong_arrows(listed.stdout))
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


def wrong_arrows(listed: str) -> Iterator[str]:
    """Yield a line for each arrow in the output of `jdeps -verbose:package` that does not lead to a lower layer."""
    layers = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}
    for user, used in _ARROW.findall(listed):
        ends = [name.removeprefix(_PREFIX).removeprefix(".") for name in (user, used)]
        if unknown := [name for name in ends if name not in layers]:
            yield f"{_PREFIX}.{unknown[0]} is not a package of harness/java_check.py"
        elif user != used and layers[ends[0]] >= layers[ends[1]]:
            yield f"{user} must not use {used}"


def _formatter(*arguments: str) -> list[str]:
    jars = os.pathsep.join(map(str, java_formatter_jars()))
    java = ["java", *_opened("--add-exports"), "-cp", jars, "com.palantir.javaformat.java.Main"]
    return [*java, "--palantir", *arguments]


def _compiler(folder: Path, sources: Iterable[Path]) -> list[str]:
    opened = [f"-J{option}" for kind in ("--add-exports", "--add-opens") for option in _opened(kind)]
    plugin = " ".join(["-Xplugin:ErrorProne", *(f"-Xep:{name}:OFF" for name in _OFF)])
    class_path = os.pathsep.join([spark_class_path(), *map(str, protobuf_jars())])
    processors = os.pathsep.join(map(str, error_prone_jars()))
    return [
        *("javac", *opened, "--release", "17", *STRICT, "-XDcompilePolicy=simple", "--should-stop=ifError=FLOW"),
        *("-processorpath", processors, plugin, "-cp", class_path, "-d", str(folder), *map(str, sources)),
    ]


def _opened(option: str) -> list[str]:
    return [f"{option}=jdk.compiler/com.sun.tools.javac.{name}=ALL-UNNAMED" for name in _COMPILER_PACKAGES]


def _run(command: Sequence[str]) -> int:
    """Run a command, and show what it says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
