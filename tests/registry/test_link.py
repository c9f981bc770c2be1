"""The link between workers: what is known about a write when the worker that writes is absent, ends, or is slow."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from strata.registry.core.errors import RegistryError
from strata.registry.http.link import AnsweringEnd, Followers, Link
from strata.storage.log import Entry

pytestmark = pytest.mark.anyio

_SCOPE = {
    "method": "POST",
    "path": "/x",
    "raw_path": b"/x",
    "query_string": b"",
    "root_path": "",
    "scheme": "http",
    "http_version": "1.1",
    "server": ("127.0.0.1", 8081),
    "client": ("127.0.0.1", 40000),
}
_HEADERS = [(b"accept", b"*/*")]
_ASKED_BY = ("alice", ("team",), "basic", "127.0.0.1")
READ_TO = 7


@asynccontextmanager
async def answering(path, answer):
    """Answer the requests that arrive at a socket, as the worker that writes does; yield the open connections."""
    ends, followers = [], Followers()

    async def with_offset(scope, receive, _asked_by):
        return await answer(scope, receive), READ_TO

    def begin():
        ends.append(AnsweringEnd(with_offset, followers))
        return ends[-1]

    server = await asyncio.get_running_loop().create_unix_server(begin, path)
    yield ends
    server.close()
    for end in ends:
        end._transport.abort()


async def ask(link, body=b"", *, within_s=60.0):
    """Ask over a link, and wait for the answer for a time that begins when the link is open."""
    end = await link.open(time.monotonic() + 60)
    answer, read_to = await end.ask(_SCOPE, _HEADERS, body, _ASKED_BY, time.monotonic() + within_s)
    assert READ_TO == read_to
    return answer


async def test_requests_share_a_connection_and_each_gets_its_answer(tmp_path):
    """Answers arrive in any order; each belongs to its request, and bodies of a megabyte pass unchanged."""

    async def echo(scope, receive):
        body = (await receive())["body"]
        await asyncio.sleep(0.01 if len(body) % 2 else 0)
        return 200, scope["headers"], scope["raw_path"] + body

    bodies = [bytes([number]) * size for number, size in enumerate((1, 2, 1 << 20, 0, 7, (1 << 20) + 1))]
    async with answering(tmp_path / "s", echo) as ends:
        link = Link(tmp_path / "s")
        answers = await asyncio.gather(*(ask(link, body) for body in bodies))

    assert [(200, _HEADERS, b"/x" + body) for body in bodies] == answers
    assert 1 == len(ends)


async def test_request_waits_for_an_absent_worker_and_is_not_written(tmp_path):
    """While no worker accepts, nothing is sent: the error says that nothing was written."""
    link = Link(tmp_path / "s")

    with pytest.raises(RegistryError) as refused:
        await link.open(time.monotonic() + 0.2)

    assert 50302 == refused.value.code


async def test_request_that_waited_is_done_by_the_next_worker(tmp_path):
    """A request that began while no worker wrote succeeds once there is one."""

    async def accept(_scope, _receive):
        return 200, [], b"done"

    waiting = asyncio.create_task(ask(Link(tmp_path / "s")))
    await asyncio.sleep(0.1)
    async with answering(tmp_path / "s", accept):
        assert (200, [], b"done") == await waiting


async def test_broken_connection_leaves_the_outcome_unknown_and_the_next_request_opens_another(tmp_path):
    """A request that was sent when the worker ended has an unknown outcome; the link recovers."""
    arrived = asyncio.Event()

    async def answer(_scope, _receive):
        if not arrived.is_set():
            arrived.set()
            await asyncio.Event().wait()
        return 200, [], b"done"

    async with answering(tmp_path / "s", answer) as ends:
        link = Link(tmp_path / "s")
        asking = asyncio.create_task(ask(link))
        await arrived.wait()
        ends[0]._transport.abort()
        with pytest.raises(RegistryError) as unknown:
            await asking

        assert 50003 == unknown.value.code
        assert (200, [], b"done") == await ask(link)


async def test_missing_answer_leaves_the_outcome_unknown(tmp_path):
    """A worker that accepted a request and does not answer in time may still carry it out."""

    async def hang(_scope, _receive):
        await asyncio.Event().wait()

    async with answering(tmp_path / "s", hang):
        with pytest.raises(RegistryError) as unknown:
            await ask(Link(tmp_path / "s"), within_s=0.2)

    assert 50003 == unknown.value.code


async def test_cancelled_request_is_withdrawn(tmp_path):
    """The worker that writes learns that the client has left, for that request only."""
    left, arrived = asyncio.Queue(), asyncio.Event()

    async def watch(_scope, receive):
        body = (await receive())["body"]
        if body == b"stays":
            return 200, [], b"done"
        arrived.set()
        left.put_nowait((await receive())["type"])
        return 200, [], b""

    async with answering(tmp_path / "s", watch):
        link = Link(tmp_path / "s")
        leaving = asyncio.create_task(ask(link, b"leaves"))
        await arrived.wait()
        leaving.cancel()

        assert (200, [], b"done") == await ask(link, b"stays")
        assert "http.disconnect" == await left.get()


async def test_the_other_workers_are_told_what_was_appended(tmp_path):
    """What is appended arrives before the answer to the write; a large append is left to a read of the log."""
    told, followers = [], Followers()

    async def write(_scope, _receive, _asked_by):
        for entries in ([Entry(4, 1, b"k", None)], [Entry(5, 1, b"k", b"v")] * 1000, [Entry(9, 2, b"k", b"v")]):
            followers.tell(3, entries)
        return (200, [], b""), 9

    server = await asyncio.get_running_loop().create_unix_server(lambda: AnsweringEnd(write, followers), tmp_path / "s")
    link = Link(tmp_path / "s")
    link.on_append = lambda after, entries: told.append((after, entries))
    deadline = time.monotonic() + 60.0
    end = await link.open(deadline)
    assert ((200, [], b""), 9) == await end.ask(_SCOPE, _HEADERS, b"", _ASKED_BY, deadline)

    assert [(3, [Entry(4, 1, b"k", None)]), (3, [Entry(9, 2, b"k", b"v")])] == told
    server.close()
    for end in followers.ends:
        end._transport.abort()
