"""`strata apply` on a real broker is one transaction, of which a killed service leaves all or nothing."""

import json
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from harness.registry import RegistryNode
from strata.storage.kafka.log import KafkaLog

pytestmark = pytest.mark.kafka
TYPES = [f"t{number}" for number in range(20)]


@pytest.fixture
def topic(kafka_broker):
    """Return the name of an unused topic on the session's broker."""
    return f"schemas-{uuid4().hex[:12]}"


def write(files, padding=""):
    """Write a manifest with a level and some subjects."""
    for name in TYPES:
        files.put(f"{name}.avsc", json.dumps({"type": "fixed", "name": "F", "size": 4, "doc": f"{name}{padding}"}))
    files.put("strata.yaml", "compatibility: FULL\nsubjects: [{name: '{stem}', files: '*.avsc'}]")


def test_an_apply_is_one_transaction(files, serve, kafka_broker, topic):
    """The records of an apply have consecutive offsets: a transaction ends with a marker, which takes one."""
    write(files)
    with closing(KafkaLog(kafka_broker.bootstrap, topic, advertised_url=None)) as log, serve(log) as service:
        service.register("before", '"int"')
        start = log.end()
        files.run("apply", "--url", service.url, code=0)
        service.register("after", '"int"')
        offsets = [entry.offset for entry in log.read(start)]

    applied = offsets[: len(TYPES) + 1]
    assert list(range(applied[0], applied[0] + len(TYPES) + 1)) == applied
    assert offsets[len(TYPES) + 1] > applied[-1] + 1


@pytest.mark.slow
def test_a_killed_service_leaves_all_or_nothing(files, kafka_broker, topic):
    """A service that is killed during an apply has all subjects or none after its restart; the next apply has all."""
    write(files, "x" * 20_000)
    strata = Path(sys.executable).with_name("strata")
    with RegistryNode(f"kafka://{kafka_broker.bootstrap}/{topic}") as node:
        for delay_s in (0.25, 0.35, 0.45):
            apply = subprocess.Popen(
                [strata, "apply", "--url", node.url],
                cwd=files.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            killer = threading.Timer(delay_s, node.kill)
            killer.start()
            killer.join()
            node.restart()
            apply.communicate(timeout=120)

            assert files.run("list", "--url", node.url, code=0).split() in ([], sorted(TYPES))
        files.run("apply", "--url", node.url, code=0)
        assert sorted(TYPES) == files.run("list", "--url", node.url, code=0).split()
