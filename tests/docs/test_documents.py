"""Every command and snippet of the documents runs as written, and prints what the document shows."""

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from harness.processes import free_port
from harness.snippets import parse, run
from harness.spark_conf import spark_conf

ROOT = Path(__file__).resolve().parents[2]
KAFKA, SPARK, POSTGRES, SLOW = pytest.mark.kafka, pytest.mark.spark, pytest.mark.postgres, pytest.mark.slow
# `make test` runs the README without Spark and the short documents; what a long guide shows has its own tests in the
# packages.
DOCUMENTS = [
    ("README.md", [SPARK, SLOW]),
    ("compat/README.md", []),
    ("compat/json_schema/README.md", []),
    ("strata/http/README.md", []),
    ("docs/access.md", []),
    ("docs/compatibility.md", []),
    ("docs/faults.md", []),
    ("docs/guides/access.md", [SLOW]),
    ("docs/guides/arrow.md", [SLOW]),
    ("docs/guides/backup-and-migration.md", [SLOW]),
    ("docs/guides/git.md", [SLOW]),
    ("docs/guides/leaving-glue.md", [SPARK, SLOW]),
    ("docs/guides/porting.md", []),
    ("docs/guides/rules.md", [KAFKA, SLOW]),
    ("docs/guides/second-site.md", [SLOW]),
    ("docs/guides/serdes.md", [KAFKA, SLOW]),
    ("docs/guides/spark-tables.md", [KAFKA, SPARK, SLOW]),
    ("docs/guides/spark.md", [KAFKA, SPARK, SLOW]),
    ("docs/installing.md", []),
    ("docs/metrics.md", []),
    ("docs/operations.md", [KAFKA, POSTGRES, SLOW]),
    ("docs/platforms.md", []),
    ("docs/running.md", []),
    ("docs/traces.md", []),
    ("docs/usage.md", [SLOW]),
]
PORTS = (8081, 8082, 8083)
"""At which the documents serve registries."""
ADDRESS = re.compile(r"\b(?:localhost|127\.0\.0\.1):(\d+)")
# Documents that run in tests/neighbours/test_guides.py.
ELSEWHERE = {"docs/guides/connect.md"}
# Blocks that do not run, by document and reason. `make test` and `make demo` are what CI and the tests of the demo run,
# and a slow test runs the guide with two Kafka clusters.
NOT_RUN = {
    "README.md": {"a target of the Makefile": 2},
    "docs/access.md": {"it needs an id that is too high": 2},
    "docs/faults.md": {"it takes long": 2},
    "docs/guides/backup-and-migration.md": {"it needs an account of AWS": 2, "it needs certificates": 1},
    "docs/guides/git.md": {"it needs a topic with records": 1},
    "docs/guides/leaving-glue.md": {"it needs an account of AWS": 1},
    "docs/guides/rules.md": {"it needs a KMS": 1},
    "docs/guides/second-site.md": {"it needs a second machine": 1, "it needs two Kafka clusters": 11},
    "docs/guides/spark.md": {"it needs a cluster": 1, "it needs certificates": 1},
    "docs/installing.md": {"it installs packages": 1},
    "docs/operations.md": {"it needs certificates": 1},
    "docs/platforms.md": {"it needs a cluster": 1},
    "docs/running.md": {"it needs systemd": 1, "it needs a cluster": 1},
    "docs/traces.md": {"it needs a collector of traces": 1},
    "strata/http/README.md": {"it needs a registry": 1},
}


@pytest.fixture
def live(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Yield the addresses in the documents with those of real services, which this fixture prepares."""
    names = {mark.name for mark in request.node.iter_markers()}
    addresses = {}
    for port in PORTS:
        addresses[f"localhost:{port}"] = addresses[f"127.0.0.1:{port}"] = f"127.0.0.1:{free_port()}"
    if "postgres" in names:
        url = request.getfixturevalue("postgres_url")
        addresses["localhost:5432/registry"] = url.partition("@")[2]
    if "spark" in names:
        settings = spark_conf(tmp_path, tables="slow" in names)
        if "slow" in names:
            monkeypatch.setenv("SPARK_CONF_DIR", str(settings))
        else:  # a folder of settings would be on the class path, which the JVM's archive of classes does not have
            monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {settings}/spark-defaults.conf pyspark-shell")
    if "kafka" not in names:
        yield addresses
        return
    bootstrap = request.getfixturevalue("kafka_broker").bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    before = set(admin.list_topics(timeout=60).topics)
    yield addresses | {"localhost:9092": bootstrap}
    made = [name for name in admin.list_topics(timeout=60).topics if name not in before and not name.startswith("__")]
    for deletion in admin.delete_topics(made).values() if made else ():
        deletion.result(60)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks, id=name) for name, marks in DOCUMENTS])
def test_a_document_runs_as_written(name, live, tmp_path, program):
    """Each block runs in the order of the document, and prints what the document shows.

    The README runs the program itself, the others in forked processes.
    """
    folder = tmp_path / "reader"
    folder.mkdir()
    database = live.get("localhost:5432/registry")
    sql = f"postgresql://postgres@{database}" if database else ""
    reasons = run(ROOT / name, folder, live, sql=sql, program=None if name == "README.md" else program)
    assert NOT_RUN.get(name, {}) == Counter(reasons)


def test_the_readme_without_spark(live, tmp_path, program):
    """Each block of the README but that of Spark prints what it shows; the program runs in forked processes."""
    assert NOT_RUN["README.md"] == Counter(run(ROOT / "README.md", tmp_path, live, program=program, without="pyspark"))


@pytest.mark.parametrize("name", [name for name, _ in DOCUMENTS])
def test_no_port_of_a_document_is_used(name):
    """Each port in a block that runs is one that the tests replace; another program may use the one that is written."""
    run = [block.text for block in parse((ROOT / name).read_text()) if not block.not_run and block.language]
    ports = {int(port) for text in run for port in ADDRESS.findall(text)}
    assert set() == ports - {*PORTS, 9092, 5432}


def _documents() -> list[str]:
    patterns = ["README.md", "*/README.md", "docs/*.md", "docs/guides/*.md"]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def test_no_document_is_forgotten():
    """A document of users with a command or a snippet is in the table."""
    with_snippets = {name for name in _documents() if any(block.language for block in parse((ROOT / name).read_text()))}
    assert set() == with_snippets - {name for name, _ in DOCUMENTS} - ELSEWHERE


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


def test_a_commit_of_a_measurement_is_in_the_history():
    """Each commit that a document names as measured is an ancestor of the present one."""
    pages = ["README.md", "docs/benchmarks.md", "docs/faults.md", "docs/installing.md"]
    named = {
        (page, commit)
        for page in pages
        for run in re.findall(r"(?i)\bcommits? ((?:`?[0-9a-f]{7,40}`?(?:, | and )?)+)", (ROOT / page).read_text())
        for commit in re.findall(r"[0-9a-f]{7,40}", run)
    }
    assert named
    assert set() == {(page, commit) for page, commit in named if not _is_in_the_history(commit)}


def _is_in_the_history(commit: str) -> bool:
    command = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
