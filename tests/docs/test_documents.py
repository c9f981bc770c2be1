"""Every command and snippet of the documents runs as written, and prints what the document shows."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from harness import spark_jar
from harness.jars import offline_ivy_settings
from harness.processes import free_port
from harness.snippets import parse, run

ROOT = Path(__file__).resolve().parents[2]
KAFKA, SPARK, POSTGRES = pytest.mark.kafka, pytest.mark.spark, pytest.mark.postgres
DOCUMENTS = [
    ("README.md", [SPARK]),
    ("compat/README.md", []),
    ("docs/compatibility.md", []),
    ("docs/guides/access.md", []),
    ("docs/guides/arrow.md", []),
    ("docs/guides/backup-and-migration.md", []),
    ("docs/guides/rules.md", [KAFKA]),
    ("docs/guides/serdes.md", [KAFKA]),
    ("docs/guides/spark.md", [KAFKA, SPARK]),
    ("docs/operations.md", [KAFKA, POSTGRES]),
    ("serdes/README.md", [KAFKA]),
    ("spark_udfs/README.md", [SPARK]),
]
# Why a block may be left out.
REASONS = {"a target of the Makefile", "it needs certificates"}
# Settings that keep a session small and on loopback.
SPARK_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture
def live(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Yield the addresses in the documents with those of real services, which this fixture prepares."""
    names = {mark.name for mark in request.node.iter_markers()}
    addresses = {}
    for port in (8081, 8082):
        addresses[f"localhost:{port}"] = addresses[f"127.0.0.1:{port}"] = f"127.0.0.1:{free_port()}"
    if "postgres" in names:
        url = request.getfixturevalue("postgres_url")
        addresses["localhost:5432/registry"] = url.partition("@")[2]
    if "spark" in names:
        monkeypatch.setenv("SPARK_CONF_DIR", str(_spark_settings(tmp_path)))
    if "kafka" not in names:
        yield addresses
        return
    bootstrap = request.getfixturevalue("kafka_broker").bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    before = set(admin.list_topics(timeout=30).topics)
    yield addresses | {"localhost:9092": bootstrap}
    made = [name for name in admin.list_topics(timeout=30).topics if name not in before and not name.startswith("__")]
    for deletion in admin.delete_topics(made).values() if made else ():
        deletion.result(30)


def _spark_settings(folder: Path) -> Path:
    spark_jar.build()
    settings = folder / "spark-conf"
    settings.mkdir()
    ivy = {"spark.jars.ivy": str(folder / "ivy"), "spark.jars.ivySettings": str(offline_ivy_settings(settings))}
    lines = (f"{name} {value}\n" for name, value in (SPARK_DEFAULTS | ivy).items())
    (settings / "spark-defaults.conf").write_text("".join(lines))
    return settings


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks, id=name) for name, marks in DOCUMENTS])
def test_a_document_runs_as_written(name, live, tmp_path):
    """Each block runs in the order of the document, and prints what the document shows."""
    folder = tmp_path / "reader"
    folder.mkdir()
    database = live.get("localhost:5432/registry")
    reasons = run(ROOT / name, folder, live, sql=f"postgresql://postgres@{database}" if database else "")
    assert set() == set(reasons) - REASONS


def _documents() -> list[str]:
    patterns = ["README.md", "*/README.md", "docs/*.md", "docs/guides/*.md"]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def test_no_document_is_forgotten():
    """A document of users with a command or a snippet is in the table."""
    with_snippets = {name for name in _documents() if any(block.language for block in parse((ROOT / name).read_text()))}
    assert set() == with_snippets - {name for name, _ in DOCUMENTS}


def test_make_targets_exist():
    """Each `make TARGET` in the documents is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for name in _documents()
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE)
    }
    assert named
    assert set() == named - targets


def test_extras_exist():
    """Each `strata-registry[EXTRA]` in the documents is an extra of the package."""
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    lists = [
        found
        for name in _documents()
        for found in re.findall(r"strata-registry\[([a-z,]+)\]", (ROOT / name).read_text())
    ]
    assert lists
    assert set() == {extra for found in lists for extra in found.split(",")} - extras
