"""A leader that is cut off from the other brokers, but not from some nodes, while another leader has taken its place.

This is what neither a lease nor a question to the leader protects from (docs/decisions/0030). The scene shows
how far it goes: reads may be stale, and writes are not affected. It also shows that another replica knows of it.
"""

import asyncio
import http.client
import json
import struct
from contextlib import ExitStack, closing

import pytest

from faults.scene import Member, opened
from faults.services import Services
from harness.kafka import KafkaBroker
from harness.waiting import until
from strata.storage.kafka.leader import _Link
from strata.storage.kafka.messages import LIST_OFFSETS, METADATA, list_offsets, metadata, metadata_answer

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

_ANSWER_S = 40.0
_PATH = "/config/hot"
_NOT_THE_LEADER, _OLD_EPOCH = 6, 74


def _ask(member: Member, value: str | None = None) -> str | None:
    """Set a value at a node, or read it; return the value in the answer, None if the node has none."""
    body = None if value is None else json.dumps({"compatibilityGroup": value})
    with closing(http.client.HTTPConnection("127.0.0.1", member.node.port, timeout=_ANSWER_S)) as connection:
        connection.request(
            "GET" if body is None else "PUT", _PATH, body, {"Content-Type": "application/json"} if body else {}
        )
        answer = connection.getresponse()
        content = json.loads(answer.read())
        return content["compatibilityGroup"] if answer.status == 200 else None


def _answer(cluster: KafkaBroker, broker: int, api: tuple[int, int], request: bytes) -> bytes:
    """Return what one broker answers to a request."""

    async def ask() -> bytes:
        loop, port = asyncio.get_running_loop(), int(cluster.bootstrap.split(",")[broker].rpartition(":")[2])
        _, link = await loop.create_connection(lambda: _Link(loop), "127.0.0.1", port)
        try:
            return await link.ask(api, request, _ANSWER_S)
        finally:
            link.lose()

    return asyncio.run(ask())


def _leadership(cluster: KafkaBroker, topic: str) -> tuple[int, int]:
    """Return the number of the broker that leads the log's partition, and the epoch of its leadership."""
    place = metadata_answer(_answer(cluster, 0, METADATA, metadata(topic)), topic)
    return cluster.bootstrap.split(",").index(f"{place.host}:{place.port}"), place.epoch


def _code(cluster: KafkaBroker, broker: int, topic: str, epoch: int) -> int:
    """Return the error code with which a broker answers the question for the end that is meant for the leader."""
    answer = _answer(cluster, broker, LIST_OFFSETS, list_offsets(topic, epoch))
    return int(struct.unpack_from(">h", answer, 18 + len(topic.encode()))[0])


def test_reads_at_an_isolated_leader() -> None:
    """Nodes that reach only an isolated leader, with a lease or without, miss what another node has committed.

    The brokers never run together: the leader stands still while the others replace it, and they while it answers.
    So it is as isolated as a broker behind a broken switch, and no listener between brokers needs a proxy.
    """
    with Services() as services, opened(services, "kafka", leases=["1s"] * 3) as scene, ExitStack() as healing:
        holder, reader, taker = scene.members
        cluster = services.own_broker
        assert cluster is not None
        assert "before" == _ask(holder, "before")
        topic = scene.log_url.rpartition("/")[2]
        leader, epoch = _leadership(cluster, topic)
        others = [number for number in range(3) if number != leader]
        assert [_NOT_THE_LEADER] * 2 == [_code(cluster, number, topic, epoch) for number in others]
        for member in (holder, reader):
            for number in others:
                member.to_log[number].refuse()
                healing.callback(member.to_log[number].restore)
        holder.proxy.refuse()  # so that the taker does not forward
        assert ["before", "before"] == [_ask(holder), _ask(reader)]
        cluster.pause(leader)
        until(lambda: _ask(taker, "after") == "after")
        assert "after" == _ask(taker)
        known = [_code(cluster, number, topic, epoch) for number in others]
        for number in others:
            cluster.pause(number)
        cluster.resume(leader)
        until(lambda: _ask(holder) is not None and _ask(reader) is not None)
        stale = [_ask(holder), _ask(reader)]
        written = _ask(holder, "lost")
        for number in others:
            cluster.resume(number)
        healing.close()
        until(lambda: [_ask(member) for member in scene.members] == ["after"] * 3)
    assert ["before", "before"] == stale  # what no node can know here
    assert written is None  # one broker alone acknowledges nothing
    assert [_OLD_EPOCH] * 2 == known
