"""The jars of Kafka Connect, MirrorMaker 2, Debezium's PostgreSQL connector and Confluent's converters.

Not part of `make setup`: only `make test-all` uses them. Confluent publishes its converters in a repository of its own.
Debezium's connectors for Cassandra contain those for Avro and Protobuf, and Debezium Server contains the connectors; of
its 550 MB archive only these jars are kept.
"""

import shutil
import subprocess
import tarfile
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from harness.jars import JarSet, cache_folder, locked, resolve

__all__ = ["connect_jars", "converter_jars", "debezium_jars"]

_CONNECT = JarSet(
    "connect",
    (
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.kafka:connect-file:4.3.1",
        "org.apache.kafka:connect-mirror:4.3.1",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    transitive=True,
)
_DEBEZIUM = JarSet("debezium", ("io.debezium:debezium-connector-postgres:3.3.1.Final",), transitive=True)
_ARCHIVE = "io.debezium:debezium-server-dist:3.0.8.Final:tar.gz"
_ARCHIVE_FOLDER = "debezium-server/connectors/debezium-connector-cassandra-4"
_CONVERTERS = "converters-7.0.1"
# The archive has an older one than the Protobuf converter needs.
_PROTOS = JarSet("google-protos", ("com.google.api.grpc:proto-google-common-protos:2.22.1",), transitive=False)
# The converters with what they need and Connect does not have.
_WANTED = (
    "kafka-connect-avro-*", "kafka-connect-protobuf-*", "kafka-avro-*", "kafka-protobuf-*", "kafka-schema-*",
    "common-utils-*", "avro-1*", "commons-compress-*", "guava-*", "protobuf-java-*", "wire-*", "okio-*",
    "kotlin-stdlib-*", "annotations-13*", "gson-*", "jackson-dataformat-yaml-*", "swagger-annot*",
)  # fmt: skip
_TIMEOUT_S = 900


def connect_jars() -> list[Path]:
    """Return the class path of a Connect worker and of MirrorMaker 2."""
    return resolve(_CONNECT)


def debezium_jars() -> list[Path]:
    """Return the jars of the plugin with Debezium's PostgreSQL connector."""
    return resolve(_DEBEZIUM)


def converter_jars() -> list[Path]:
    """Return the jars of the plugin with Confluent's Avro and Protobuf converters.

    Raises:
        RuntimeError: the archive cannot be downloaded; this needs `mvn` on the PATH.
    """
    folder = cache_folder() / _CONVERTERS
    if not folder.is_dir():
        with locked(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _extract(folder)
    return [*sorted(folder.glob("*.jar")), *resolve(_PROTOS)]


def _extract(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="converters-") as scratch:
        kept = Path(scratch) / "kept"
        kept.mkdir()
        with tarfile.open(_download(Path(scratch))) as archive:
            for member in archive:
                place, _, name = member.name.rpartition("/")
                source = archive.extractfile(member) if place == _ARCHIVE_FOLDER and member.isfile() else None
                if source is not None and name.endswith(".jar") and any(fnmatch(name, each) for each in _WANTED):
                    with source, (kept / name).open("wb") as target:
                        shutil.copyfileobj(source, target)
        kept.rename(folder)


def _download(scratch: Path) -> Path:
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    # A repository of its own: the archive would otherwise stay in that of the user.
    options = [f"-Dartifact={_ARCHIVE}", f"-DoutputDirectory={scratch}", f"-Dmaven.repo.local={scratch}/repository"]
    try:
        done = subprocess.run(
            ["mvn", "--batch-mode", "--quiet", goal, *options],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise RuntimeError("Fetching Confluent's converters needs `mvn` on the PATH") from error
    found = list(scratch.glob("*.tar.gz"))
    if done.returncode or not found:
        raise RuntimeError(f"Fetching Confluent's converters failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return found[0]
