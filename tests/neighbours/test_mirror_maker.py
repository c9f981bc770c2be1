"""A mirror of the topic by MirrorMaker 2, with the settings of docs/guides/second-site.md, and a standby behind it."""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.connect import SMALL_MIRROR, MirrorMaker
from harness.kafka import KafkaBroker
from harness.neighbours import Registry
from harness.registry import RegistryNode
from harness.waiting import until
from strata.storage.log import START
from strata.storage.open_log import open_log
from strata.storage.state import State

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "second-site.md"
OPTIONS = ("--follow-seconds=0.1",)
TOPIC, COPY = "_schemas", "_strata"
GHOST = (
    b'{"keytype":"SCHEMA","subject":"ghost","version":1,"magic":1}',
    b'{"subject":"ghost","version":1,"id":77,"schema":"\\"int\\"","deleted":false}',
)


class Sites:
    """Two clusters, and a mirror of the topic between them."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.first, self.second = (stack.enter_context(KafkaBroker()) for _ in range(2))

    def mirror(self, **changes: str) -> MirrorMaker:
        """Start a MirrorMaker with the settings of the guide."""
        return self.stack.enter_context(MirrorMaker(self.settings() | changes))

    def settings(self) -> dict[str, str]:
        """Return the settings of the guide, for these clusters."""
        found = re.search(r"cat > mirror.properties <<'END'\n(.*?)\nEND", GUIDE.read_text(), re.DOTALL)
        assert found
        lines = (line.partition(" = ") for line in found[1].splitlines() if line)
        addresses = {"first-kafka:9092": self.first.bootstrap, "second-kafka:9092": self.second.bootstrap}
        return {key: addresses.get(value, value) for key, _, value in lines} | SMALL_MIRROR

    def node(self, log: str, *options: str) -> RegistryNode:
        """Start a registry."""
        return self.stack.enter_context(RegistryNode(log, *options))

    def log(self, broker: KafkaBroker, topic: str) -> str:
        """Return the URL of a topic."""
        return f"kafka://{broker.bootstrap}/{topic}"


@pytest.fixture
def sites() -> Iterator[Sites]:
    """Yield two clusters, which a test may kill."""
    with ExitStack() as stack:
        yield Sites(stack)


def client(node: RegistryNode) -> Registry:
    """Return a client of a node."""
    return Registry(node.url, "")


def fixed(number: int) -> str:
    """Return a schema that no other number has."""
    return f'{{"type": "fixed", "name": "F", "size": {number + 1}}}'


def abort_a_registration(broker: KafkaBroker) -> None:
    """Leave a record of an aborted transaction in the topic, as a node that dies in a write does."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "a node that died"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(TOPIC, key=GHOST[0], value=GHOST[1])
    producer.flush()
    producer.abort_transaction()


def state_of(url: str) -> State:
    """Return what a log holds."""
    with closing(open_log(url, must_exist=True)) as log:
        return State().apply_all(log.read(START))


def same(one: Registry, other: Registry) -> bool:
    """Return whether two registries list the same subjects, live and deleted."""
    path = "/subjects?subjectPrefix=:*:&deleted=true"
    return bool(one.call("GET", path) == other.call("GET", path))


def test_the_mirror_is_followed_and_verifies_equal(sites, strata):
    """With the settings of the guide the mirror equals the topic, without what was never committed."""
    logs = [sites.log(sites.first, TOPIC), sites.log(sites.second, TOPIC)]
    first = client(sites.node(logs[0]))
    for number in range(5):
        first.register(f"s-{number}", fixed(number))
    first.register(":.staging:s", fixed(9))
    first.call("DELETE", "/subjects/s-1")
    first.call("DELETE", "/subjects/s-2")
    first.call("DELETE", "/subjects/s-2?permanent=true")
    first.call("PUT", "/config", {"compatibility": "FULL"})
    abort_a_registration(sites.first)

    sites.mirror()
    standby = client(sites.node(sites.log(sites.second, COPY), f"--follow={logs[1]}", *OPTIONS))
    until(lambda: same(first, standby))
    late = first.register("late", '"long"')
    until(lambda: same(first, standby))

    assert (0, "") == strata("verify", *logs)[:2]
    assert (0, "") == strata("verify", first.url, standby.url)[:2]
    assert late == standby.call("GET", "/subjects/late/versions/1")["id"]
    assert 42205 == standby.ask("POST", "/subjects/new/versions", {"schema": '"int"'})[1]["error_code"]
    assert "ghost" not in state_of(logs[1]).subjects
    # Why no node may serve the mirror itself: it would pass its writes on to the first site.
    with closing(open_log(logs[1], must_exist=True)) as mirror:
        State().apply_all(mirror.read(START))
        assert first.url == mirror.holder()


def test_without_read_committed_a_schema_appears_that_nobody_registered(sites, strata):
    """The setting is needed: MirrorMaker's default copies the records of aborted transactions as if they were valid."""
    logs = [sites.log(sites.first, TOPIC), sites.log(sites.second, TOPIC)]
    first = client(sites.node(logs[0]))
    first.register("s")
    abort_a_registration(sites.first)
    first.register("t", '"long"')

    sites.mirror(**{"first.consumer.isolation.level": "read_uncommitted"})
    standby = client(sites.node(sites.log(sites.second, COPY), f"--follow={logs[1]}", *OPTIONS))

    until(lambda: standby.subjects() == ["ghost", "s", "t"])
    code, output, _ = strata("verify", *logs)
    assert (1, True) == (code, "subject 'ghost' version 1: only in B" in output)


def test_a_mirror_that_is_not_compacted_is_not_followed(sites):
    """A mirror that was created with another clean-up policy would lose schemas: the standby says what to change."""
    client(sites.node(sites.log(sites.first, TOPIC))).register("s")
    admin = AdminClient({"bootstrap.servers": sites.second.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config={"cleanup.policy": "delete"})])[TOPIC].result(30)

    node = sites.node(sites.log(sites.second, COPY), f"--follow={sites.log(sites.second, TOPIC)}", *OPTIONS)

    until(lambda: "expected compact" in node.output)
    assert not client(node).ready()["ready"]


def test_a_failover_with_writes_under_way(sites, strata):
    """Nothing that was mirrored is lost, what was not is listed, and no id of the first site is given again."""
    logs = [sites.log(sites.first, TOPIC), sites.log(sites.second, TOPIC)]
    copy = sites.log(sites.second, COPY)
    node = sites.node(logs[0])
    first = client(node)
    acknowledged: dict[str, int] = {}
    with writing(first, acknowledged):
        until(lambda: len(acknowledged) > 20)
        mirror = sites.mirror()
        standby = client(sites.node(copy, f"--follow={logs[1]}", *OPTIONS))
        until(lambda: len(standby.subjects()) > 20)
        mirror.kill()
        cut = len(acknowledged)
        until(lambda: len(acknowledged) > cut + 10)
    node.kill()
    mirrored = {subject: entry.value.schema_id for subject, entry in newest(logs[1])}
    until(lambda: set(standby.subjects()) == set(mirrored))
    lost = acknowledged.keys() - mirrored.keys()
    assert lost

    # The cluster of the first site is still there: the command lists what is lost, and promotes nothing.
    code, output, _ = strata("promote", copy, "--source", logs[0])
    assert (1, True) == (code, f"{len(lost)} differences to {logs[0]}" in output), output
    sites.first.kill()
    code, output, errors = strata("promote", copy, "--source", logs[0])
    assert (1, True, True) == (code, "cannot be compared" in output, "--accept-loss" in errors), output
    assert 0 == strata("promote", copy, "--source", logs[0], "--accept-loss")[0]

    assert {subject: acknowledged[subject] for subject in mirrored} == mirrored
    new = until(lambda: standby.ask("POST", "/subjects/new/versions", {"schema": '"double"'})[1].get("id"))
    assert new > max(acknowledged.values())
    sites.first.restart()
    output = strata("verify", logs[0], copy)[1]
    assert lost == set(re.findall(r"subject '(s-\d+)' version 1: only in A", output))


@contextmanager
def writing(registry: Registry, acknowledged: dict[str, int]) -> Iterator[None]:
    """Register one schema after the other meanwhile, and note the id of each that was acknowledged."""
    ended = threading.Event()

    def run() -> None:
        for number in count():
            name = f"s-{number}"
            acknowledged[name] = registry.register(name, fixed(number))
            if ended.wait(0.02):
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def newest(url):
    """Yield the subjects of a log with their newest schemas."""
    for subject, versions in state_of(url).subjects.items():
        yield subject, versions[max(versions)].schema


def test_two_sites_into_two_contexts_of_a_hub(sites):
    """A hub follows the mirrors of two topics into two contexts; MirrorMaker's default policy keeps the names apart."""
    first = client(sites.node(sites.log(sites.first, TOPIC)))
    other = sites.stack.enter_context(KafkaBroker())
    second = client(sites.node(sites.log(other, TOPIC)))
    first.register("s", '"int"')
    second.register("s", '"long"')
    second.register("t", '"string"')
    sources = {"north": sites.first, "south": other}
    settings = {"clusters": "north, south, hub", "hub.bootstrap.servers": sites.second.bootstrap, **SMALL_MIRROR}
    for name, broker in sources.items():
        settings |= {
            f"{name}.bootstrap.servers": broker.bootstrap,
            f"{name}.consumer.isolation.level": "read_committed",
            f"{name}->hub.enabled": "true",
            f"{name}->hub.topics": TOPIC,
        }
    sites.stack.enter_context(MirrorMaker(settings))
    admin = AdminClient({"bootstrap.servers": sites.second.bootstrap})
    for name in sources:  # a MirrorMaker of three clusters takes its time
        until(lambda name=name: f"{name}.{TOPIC}" in admin.list_topics(timeout=30).topics)
    log = sites.log(sites.second, "hub")
    hubs = [
        client(
            sites.node(
                log, f"--follow={sites.log(sites.second, f'{name}.{TOPIC}')}", f"--follow-context={name}", *OPTIONS
            )
        )
        for name in sources
    ]

    until(lambda: hubs[0].subjects() == [":.north:s", ":.south:s", ":.south:t"])
    first.register("later", '"bytes"')  # its node may have to take the pen from the other one
    until(lambda: ":.north:later" in hubs[1].subjects())
    first.call("DELETE", "/subjects/later")
    until(lambda: hubs[1].subjects() == [":.north:s", ":.south:s", ":.south:t"])
    for context, spoke in (("north", first), ("south", second)):
        found = hubs[0].call("GET", f"/subjects/:.{context}:s/versions/1")
        wanted = spoke.call("GET", "/subjects/s/versions/1")
        assert (wanted["id"], wanted["schema"]) == (found["id"], found["schema"])
