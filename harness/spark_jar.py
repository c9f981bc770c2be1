"""Builds the jar with the JVM part of `spark_udfs`, against the installed Spark.

`python -m harness.spark_jar` does nothing if the jar is up to date with the sources. With a JDK on the PATH it uses
`javac`; with only a runtime it uses the Eclipse compiler, downloaded like any other jar.
"""

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from harness.jars import JAR_SETS, cache_folder, pyspark_folder, resolve
from strata.compat.protobuf.builtin import builtin_files, builtin_names
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.to_descriptor import file_to_descriptor

__all__ = ["JAR", "STRICT", "build", "compile_java", "compiled", "small_java", "spark_class_path"]

_PACKAGE = Path(__file__).resolve().parent.parent / "spark_udfs"
JAR = _PACKAGE / "strata-spark.jar"
_SOURCES = _PACKAGE / "jvm"
_PROTOBUF = _PACKAGE.parent / "compat" / "protobuf"
_METASCHEMAS = _PACKAGE.parent / "compat" / "json_schema" / "metaschemas.json"
_RELEASE = "17"
# Of `all`: Spark's jars name others that are not there, and bring processors of annotations.
STRICT = ("-Xlint:all,-path,-processing", "-Werror")
_ECLIPSE_MAIN = "org.eclipse.jdt.internal.compiler.batch.Main"
_SEAL = "META-INF/strata-sources"
_KNOWN_FILES = "strata/spark/known_files.txt"
_TIMEOUT_S = 300
_EPOCH = (2026, 1, 1, 0, 0, 0)


def build() -> Path:
    """Return the jar of the current sources, building it if needed.

    Raises:
        RuntimeError: the sources do not compile; the message is the compiler's.
    """
    sources = sorted(_SOURCES.rglob("*.java"))
    known = [_PROTOBUF / "builtin.py", _PROTOBUF / "confluent_files.py", _METASCHEMAS]
    seal = hashlib.sha256(b"\0".join(source.read_bytes() for source in [*sources, *known])).hexdigest()
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "spark-jar.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _seal_of(JAR) != seal:
            with tempfile.TemporaryDirectory() as folder:
                compile_java(sources, Path(folder), options=STRICT)
                _pack(Path(folder), seal)
    return JAR


def _seal_of(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_SEAL).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def compile_java(sources: Sequence[Path], folder: Path, *more: Path, options: Sequence[str] = ("-nowarn",)) -> None:
    """Compile sources into a folder, against Spark's jars and `more`.

    `options` are those of `javac`; the Eclipse compiler, which has others, warns of nothing.

    Raises:
        RuntimeError: the sources do not compile; the message is the compiler's.
    """
    class_path = os.pathsep.join([spark_class_path(), *map(str, more)])
    chosen = options if shutil.which("javac") else ("-nowarn",)
    command = [*_compiler(), *chosen, "-g", "-cp", class_path, "-d", str(folder), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"the JVM side of spark_udfs does not compile:\n{done.stdout}{done.stderr}")


def compiled(sources: Sequence[Path], *more: Path) -> Path:
    """Return a folder with the classes of sources, compiled against Spark's jars and `more` by the first who asks.

    Raises:
        RuntimeError: the sources do not compile; the message is the compiler's.
    """
    jars = [f"{jar}:{jar.stat().st_mtime_ns}" for jar in more]
    texts = [source.read_bytes() for source in sources]
    seal = hashlib.sha256(b"\0".join([spark_class_path().encode(), *map(str.encode, jars), *texts])).hexdigest()[:16]
    folder = cache_folder() / f"classes-{sources[0].stem}-{seal}"
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
                compile_java(sources, Path(made) / "classes", *more)
                (Path(made) / "classes").rename(folder)
    return folder


def spark_class_path(*names: str) -> str:
    """Return the class path of the installed Spark.

    Args:
        names: the libraries, without their versions, that a small program needs; all if none is named. A JVM takes half
            a second of CPU time to start with all of them.

    Raises:
        RuntimeError: pyspark is not installed.
    """
    folder = pyspark_folder() / "jars"
    patterns = [f"{name}-[0-9]*.jar" for name in names] or ["*.jar"]
    return os.pathsep.join(str(jar) for pattern in patterns for jar in sorted(folder.glob(pattern)))


def small_java(*more: Path) -> list[str]:
    """Return the start of a command that runs a class with Avro and Jackson, of Spark's jars.

    Args:
        more: folders and jars that come first on the class path.
    """
    libraries = spark_class_path("avro", "slf4j-api", "jackson-core", "jackson-databind", "jackson-annotations")
    class_path = os.pathsep.join([*map(str, more), libraries])
    return [shutil.which("java") or "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path]


def _compiler() -> list[str]:
    javac = shutil.which("javac")
    if javac:
        return [javac, "--release", _RELEASE]
    java = shutil.which("java")
    if java is None:
        raise RuntimeError("there is no java on the PATH; Java 17 is needed")
    jars = resolve(JAR_SETS["ecj"])
    return [java, "-cp", os.pathsep.join(map(str, jars)), _ECLIPSE_MAIN, f"-{_RELEASE}"]


def _pack(folder: Path, seal: str) -> None:
    """Write the jar atomically; the same classes give the same bytes."""
    made = JAR.with_suffix(".new")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n")
        _add(archive, _SEAL, seal.encode())
        _add(archive, _KNOWN_FILES, _known_files())
        _add(archive, f"strata/spark/{_METASCHEMAS.name}", _METASCHEMAS.read_bytes())
        for compiled in sorted(folder.rglob("*.class")):
            _add(archive, compiled.relative_to(folder).as_posix(), compiled.read_bytes())
    made.replace(JAR)


def _known_files() -> bytes:
    """Return the descriptors of the Protobuf files that need no reference, in base64, a line each."""
    names = Names(builtin_names())
    files = [file_to_descriptor(file, names) for _, file in sorted(builtin_files().items())]
    return b"\n".join(base64.b64encode(one.SerializeToString(deterministic=True)) for one in files)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    build()
    sys.stdout.write(f"{JAR.name}: {JAR.stat().st_size:,} bytes\n")
