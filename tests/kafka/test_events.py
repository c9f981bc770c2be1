"""Events of nodes on a topic: each is caused on a real broker and found in the node's log."""

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harness.log_lines import JSON_LINES, call, events_of, until_logged
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from harness.waiting import until
from strata.storage.kafka import cursor as cursor_module
from strata.storage.kafka.cursor import Cursor
from strata.storage.kafka.topic import _config
from strata.storage.log import START, LogError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka


def _registered(node: RegistryNode, subject: str) -> bool:
    return call(node, "POST", f"/subjects/{subject}/versions", {"schema": '"int"'})[0] == 200


def test_a_topic_that_is_not_safe(topic: "Topic", tmp_path: "Path") -> None:
    """One replica, a short retention, no fencing and no secret are named at the start."""
    users = tmp_path / "auth.yaml"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    topic.create(delete_retention_ms="5000")
    options = JSON_LINES, "--fencing=none", f"--auth-file={users}"
    with RegistryNode(f"kafka://{topic.bootstrap}/{topic.name}", *options) as node:
        until_logged(node, "too_few_replicas", level="WARNING", topic=topic.name, replicas=1, brokers=1)
        until_logged(node, "topic_retention_short", level="WARNING", topic=topic.name)
        until_logged(node, "fencing_off", level="WARNING", topic=topic.name)
        until_logged(node, "node_secret_missing", level="WARNING")


def test_other_writers(topic: "Topic") -> None:
    """Another product that writes, a node with the same URL, and a holder of the pen that is silent are named."""
    log, url = f"kafka://{topic.bootstrap}/{topic.name}", "http://127.0.0.1:9"
    with RegistryNode(log, JSON_LINES, f"--advertised-url={url}") as first:
        assert _registered(first, "a")
        until_logged(first, "pen_taken", level="INFO", topic=topic.name)
        topic.write_plainly(b'{"keytype":"CONFIG","subject":"x","magic":0}', b'{"compatibilityLevel":"NONE"}')
        assert call(first, "GET", "/subjects")[0] == 200
        until_logged(first, "foreign_writer", level="ERROR", topic=topic.name, records=1)
        with RegistryNode(log, JSON_LINES, f"--advertised-url={url}") as twin:
            until(lambda: _registered(twin, "b"))
            assert call(first, "GET", "/subjects")[0] == 200
            until_logged(first, "node_url_shared", level="ERROR", url=url)
        with RegistryNode(log, JSON_LINES) as other:
            until(lambda: _registered(other, "c"))
            until_logged(other, "pen_holder_silent", level="WARNING", holder=url)


def test_settings_that_cannot_be_read(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """A topic whose settings the broker does not tell is named.

    A broker refuses them to a node without DescribeConfigs, and that needs a broker with rules. So this asks a broker
    for the settings of a name that no topic can have.
    """
    assert {} == _config(topic.admin, "no topic", time.monotonic() + 60)
    [line] = [record.args for record in caplog.records if isinstance(record.args, dict)]

    assert ("topic_unchecked", "no topic") == (line["event"], line["topic"])


def test_a_topic_that_delivers_nothing(
    topic: "Topic", caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that receives nothing below an end that the leader named is replaced, and this is logged."""
    monkeypatch.setattr(cursor_module, "_PATIENCE_S", 0.2)
    topic.create()
    with (
        closing(Cursor({"bootstrap.servers": topic.bootstrap}, topic.name)) as cursor,
        pytest.raises(LogError, match="timed out reading from offset 0"),
    ):
        cursor.take(START, 1, 1.5)

    assert {"reader_stuck"} == {*events_of(caplog)}
