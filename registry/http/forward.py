"""Forwards a write, once, to the node that holds the pen.

On a Kafka log one node at a time may write: the one that holds the pen (storage/README.md). Taking the pen costs more
than an HTTP request, and two nodes that keep taking it from each other would be slow. So a node without the pen
forwards writes. If it cannot forward, it takes the pen itself: the holder cannot be reached, rejects the signature of
this node, or does not write although no other node has signed since. The holder's URL is only a hint: safety comes from
fencing, since the log rejects a writer that lost the pen.

This node does not retry a write that may have reached the holder: done twice, the write could undo another client's
acknowledged write in between. The client gets 50003 (outcome unknown), and the next write is done by this node itself.
With access control, the request carries who asks, signed with the secret of the nodes, and never the client's own
credentials. A node that has no such secret forwards nothing and takes the pen.

A node that is about to shut down asks other nodes to close their connections, and refuses what they forward in its last
moments, so that one of them takes the pen; its own writes wait for that and are forwarded. A connection that rested is
not used again: it may be closing.

While the holder keeps a write waiting, this node probes it, so that it soon gives up a stopped or unreachable holder.

Every write passes through this module, which therefore also bounds writes in number, bytes and time. The holder gets
the remaining time in a header and does nothing after it. A write is dropped if its client disconnects before the log
has it.

In a node of several workers, one writes. The others pass every write on to it (`link.py`), wherever the write came
from, and it alone follows the pen.
"""

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson

from strata.imports import deferred
from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.writer import HOLDER_FAILS, Writer
from strata.registry.http.asgi import FORWARDED, Answer, Receive
from strata.registry.http.bodies import read_whole, replayed
from strata.registry.http.exchange import Exchange
from strata.registry.http.link import Link
from strata.registry.http.node_signature import HEADER as ASKED_BY_HEADER
from strata.registry.http.node_signature import body_digest
from strata.registry.http.service import Control
from strata.registry.node.logs.context import TRACE_HEADERS

if TYPE_CHECKING:
    import urllib3

    from strata.registry.http import node_calls
else:
    urllib3, node_calls = deferred("urllib3"), deferred("strata.registry.http.node_calls")

__all__ = ["Forward"]

_TIME_LEFT = b"x-strata-time-left"
_SHARE = 0.9  # of the remaining time, for the holder: its answer then comes before this node's own deadline
# Never the credentials of a client: anyone who may write to the topic can name any URL as the holder's.
_COPIED = (b"content-type", b"accept", b"x-request-id", b"confluent-accept-unknown-properties", *TRACE_HEADERS)
_COPIED_FROM_ANSWER = ("content-type", "retry-after")
_STRANGER = "it rejects the signature of this node; compare --node-secret and the clocks"
_BUSY = "the node is busy forwarding other writes"
_MAX_CALLS = 32
_PROBE_AFTER_S = 1.0
_SILENT_S, _REFUSED_S = 10.0, 1.0  # how long a holder is passed over that does not respond, or that refuses
_MAX_MOVES = 20
_SUCCESSION_S, _LOOK_AGAIN_S = 5.0, 0.02  # how long a node that ends leaves the pen to the first one that it refuses
_UNPROBED_S = 0.8  # how long a write that another node forwards waits: that node would probe this one, which ends
_log = logging.getLogger("strata.forward")


_CallHere = Callable[[Exchange], Awaitable[Answer]]
_AnswerHere = Callable[[], Awaitable[Answer]]


class Forward:
    """Forwards writes to the pen's holder.

    Args:
        writer: the writer of this node.
        max_waiting: the most writes that may wait.
        max_waiting_bytes: the most bytes that the bodies of waiting writes may have together.
        link: the connection to the worker that writes, if this is not the one.
        tls: returns the TLS context for calls to other nodes.
        control: access control; None if it is off.
        is_leaving: returns whether this node is about to shut down, so that other nodes should take the pen.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        max_waiting: int,
        max_waiting_bytes: int,
        link: Link | None = None,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        control: Control | None = None,
        is_leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self._writer = writer
        self._link, self._is_leaving = link, is_leaving
        self._secret = control.secret if control else None
        writer.may_forward = control is None or self._secret is not None
        self._max_waiting, self._max_bytes = max_waiting, max_waiting_bytes
        self._waiting = self._waiting_bytes = 0
        self._threads = ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="strata-forward")
        self._tls = tls
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="strata-probe")
        self._probe: asyncio.Task[bool] | None = None
        self._first_refused = math.inf
        writer.ask_holder, writer.yields = self._accepts_writes, self._yields

    @cached_property
    def _pool(self) -> "urllib3.PoolManager":
        """The connections to other nodes."""
        return node_calls.pool_manager(_MAX_CALLS, self._tls)

    @property
    def has_link(self) -> bool:
        """Whether another worker of this node writes."""
        return self._link is not None

    async def answer(self, exchange: Exchange, call: _CallHere) -> Answer | None:
        """Return the answer of the node that holds the pen, which may be this one; None if the client has left.

        Args:
            exchange: the request.
            call: returns the answer of this node.

        Raises:
            RegistryError: 5xx if the request was not carried out, or it is unknown whether it was.
        """
        receive = exchange.receive
        body = exchange.body = await read_whole(receive)
        digest = exchange.access.body_digest
        if digest is not None and digest != body_digest(body):
            raise errors.http_error(400, "Bad Request: the body is not the one that another node has signed")
        exchange.body_bytes = len(body)

        async def answer_here() -> Answer:
            exchange.receive = replayed(body, receive)
            return await call(exchange)

        with self._admitted(len(body)):
            exchange.deadline = self._deadline(exchange)
            return await _unless_disconnected(asyncio.create_task(self._answer(exchange, answer_here)), receive)

    @contextmanager
    def _admitted(self, size: int) -> Iterator[None]:
        """Count a write while it waits; accept a body of any size if no other write waits."""
        if self._waiting >= self._max_waiting or (self._waiting and self._waiting_bytes + size > self._max_bytes):
            raise errors.too_many_writes()
        self._waiting, self._waiting_bytes = self._waiting + 1, self._waiting_bytes + size
        try:
            yield
        finally:
            self._waiting, self._waiting_bytes = self._waiting - 1, self._waiting_bytes - size

    def _deadline(self, exchange: Exchange) -> float:
        """Return when this node, or the node that forwarded the write, gives up."""
        left = self._writer.write_timeout_s
        for name, value in exchange.scope["headers"]:
            if name == _TIME_LEFT:
                with suppress(ValueError):
                    if math.isfinite(seconds := float(value)):
                        left = min(left, max(0.0, seconds))
        return time.monotonic() + left

    async def _answer(self, exchange: Exchange, answer_here: _AnswerHere) -> Answer:
        if self._link is not None:
            return await self._pass_on(self._link, exchange)
        if not any(name == FORWARDED for name, _ in exchange.scope["headers"]):
            return await self._follow_pen(exchange, answer_here)
        if self._is_leaving():
            # The node that gets the first refusal takes the pen; if all got one, they would take it from each other.
            await self._await_successor(min(exchange.deadline, time.monotonic() + _UNPROBED_S))
            self._first_refused = min(self._first_refused, time.monotonic())
        if self._writer.holder() is not None or self._is_leaving():
            raise errors.not_the_writer()
        return await answer_here()

    def _yields(self) -> bool:
        """Return whether another node is taking the pen from this one, which is about to shut down."""
        return self._is_leaving() and 0 <= time.monotonic() - self._first_refused < _SUCCESSION_S

    async def _await_successor(self, deadline: float) -> None:
        """Wait until the log names the node that takes the pen from this one, if there is one."""
        while self._yields() and self._writer.holder() is None and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_AGAIN_S)
            with suppress(RegistryError):
                await self._writer.catch_up()

    async def _pass_on(self, link: Link, exchange: Exchange) -> Answer:
        """Let the worker that writes answer, and read on until this one has read as far."""
        scope, deadline = exchange.scope, exchange.deadline
        try:
            end = await link.open(deadline)
            headers = [header for header in scope["headers"] if header[0] != _TIME_LEFT]
            headers.append((_TIME_LEFT, b"%.3f" % ((deadline - time.monotonic()) * _SHARE)))
            answer, read_to = await end.ask(scope, headers, exchange.body, exchange.access.asked_by, deadline)
        except RegistryError:
            if exchange.facts.writes:
                raise
            raise errors.log_unreadable("the process that writes does not respond") from None
        if read_to is None or self._writer.state.offset < read_to:
            await self._catch_up(deadline, answered=True)
        return answer

    async def _follow_pen(self, exchange: Exchange, answer_here: _AnswerHere) -> Answer:
        """Follow the pen from node to node; if its holder is unknown, write here, which takes the pen."""
        deadline = exchange.deadline
        for _ in range(_MAX_MOVES):
            if time.monotonic() > deadline:
                raise errors.not_written("no node that may write was found in time")
            await self._await_successor(deadline)  # it could not take the pen between this node's own writes
            holder = self._writer.holder()
            if holder is None:
                answer = await answer_here()
                if not _is_refused(answer[0], answer[2]):
                    return answer
            else:
                outcome = await self._ask_and_note(holder, exchange)
                await self._catch_up(deadline, answered=outcome is not None)
                if outcome is not None:
                    return outcome
                if self._writer.holder() == holder:  # it refuses, and no other node has signed since: it cannot write
                    self._writer.pass_over(holder, _REFUSED_S)
        raise errors.not_the_writer()

    async def _ask_and_note(self, holder: str, exchange: Exchange) -> Answer | None:
        """Return the holder's response as `_ask_holder`, and note whether the holder accepts writes."""
        try:
            outcome = await self._ask_holder(holder, exchange)
        except RegistryError:
            self._writer.note_failure(HOLDER_FAILS)
            raise
        if outcome is not None and not HTTPStatus.BAD_REQUEST <= outcome[0] < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._writer.note_failure(None if outcome[0] < HTTPStatus.BAD_REQUEST else HOLDER_FAILS)
        return outcome

    async def _accepts_writes(self, holder: str) -> bool:
        """Return whether the holder accepts writes; if it does not respond, this node takes its place."""
        accepts = await asyncio.get_running_loop().run_in_executor(
            self._probe_thread, node_calls.accepts_writes, self._pool, holder
        )
        if accepts is None:
            self._writer.pass_over(holder, _SILENT_S)
        return accepts is not False

    async def _catch_up(self, deadline: float, *, answered: bool) -> None:
        """Read the holder's write, or the record that names the new holder.

        If this fails, the holder's answer is still valid; the node then answers nothing from memory until a catch-up
        succeeds.
        """
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._writer.catch_up()
        except (RegistryError, TimeoutError):
            if not answered:
                raise errors.not_written("the log cannot be read") from None
            self._writer.lag()

    async def _ask_holder(self, holder: str, exchange: Exchange) -> Answer | None:
        """Return the holder's response; None if the holder did nothing or was not asked.

        Raises:
            RegistryError: 50003 if it is unknown whether the holder has written; 50302 if it was not asked in time.
        """
        call, deadline = node_calls.Call(), exchange.deadline
        turn = self._threads.submit(self._call, call, holder, exchange)
        asked = asyncio.wrap_future(turn)
        try:
            while not (await asyncio.wait([asked], timeout=min(_PROBE_AFTER_S, deadline - time.monotonic())))[0]:
                if time.monotonic() >= deadline:
                    not_asked = turn.cancel()
                    raise errors.not_written(_BUSY) if not_asked else errors.write_forwarding_failed()
                if not await self._is_alive(holder) and not asked.done():
                    failure = self._give_up(holder, "it does not respond")
                    if turn.cancel():
                        return None
                    raise failure
            return asked.result()
        finally:
            # The response is no longer needed: the client has it or has disconnected.
            asked.cancel()
            call.abort()

    async def _is_alive(self, holder: str) -> bool:
        """Return whether the holder responds at all; concurrent callers share one probe."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._probe_holder(holder))
        return await asyncio.shield(self._probe)

    async def _probe_holder(self, holder: str) -> bool:
        return await asyncio.get_running_loop().run_in_executor(
            self._probe_thread, node_calls.responds, self._pool, holder
        )

    def _give_up(self, holder: str, reason: str) -> errors.RegistryError:
        """Bypass an unresponsive holder for a while; return the error for a write that may have reached it."""
        self._writer.pass_over(holder, _SILENT_S)
        _log.warning(
            "the node that holds the pen (%(holder)s) does not respond, taking over: %(reason)s",
            {"event": "pen_holder_silent", "holder": holder, "reason": reason},
        )
        return errors.write_forwarding_failed()

    def _call(self, call: "node_calls.Call", holder: str, exchange: Exchange) -> Answer | None:
        """Return the holder's response; None if it did nothing and the pen's holder must be looked up again.

        Raises:
            RegistryError: 50003 if it is unknown whether the holder has written; 50302 if it was not asked in time.
        """
        scope, body, access = exchange.scope, exchange.body, exchange.access
        left = exchange.deadline - time.monotonic()
        if left <= 0:
            raise errors.not_written(_BUSY)
        url = holder + scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            url += "?" + scope["query_string"].decode("latin-1")
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _COPIED}
        headers |= {FORWARDED.decode(): "true", _TIME_LEFT.decode(): f"{left * _SHARE:.3f}"}
        if self._secret is not None:
            target = urllib3.util.parse_url(url).request_uri.encode()  # as urllib3 will spell it
            signature = self._secret.sign(scope["method"], target, body, access.asked_by, time.time())
            headers[ASKED_BY_HEADER.decode()] = signature.decode()
        timeout = urllib3.Timeout(connect=min(node_calls.CONNECT_S, left), read=left)
        try:
            answer = call.request(
                self._pool, scope["method"], url, body=body, headers=headers, timeout=timeout, redirect=False
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            self._give_up(holder, str(error))
            return None
        except urllib3.exceptions.ReadTimeoutError:
            raise errors.write_forwarding_failed() from None
        except urllib3.exceptions.HTTPError as error:
            if call.aborted:
                raise errors.write_forwarding_failed() from None
            raise self._give_up(holder, str(error)) from None
        if answer.status == HTTPStatus.UNAUTHORIZED and access.principal.user is not None:
            self._give_up(holder, _STRANGER)
            return None
        if answer.status >= 500 and _error_code(answer.data) is None:
            raise self._give_up(holder, f"a proxy answered {answer.status}")
        if _is_refused(answer.status, answer.data):
            _log.info("%(holder)s no longer holds the pen", {"event": "pen_moved", "holder": holder})
            return None
        back = {"content-type": "application/json"} | {
            name: answer.headers[name] for name in _COPIED_FROM_ANSWER if name in answer.headers
        }
        headers_back = [(name.encode(), value.encode("latin-1")) for name, value in back.items()]
        return answer.status, [*headers_back, (b"content-length", b"%d" % len(answer.data))], answer.data


def _is_refused(status: int, body: bytes) -> bool:
    return status >= 500 and _error_code(body) == errors.not_the_writer().code


def _error_code(body: bytes) -> int | None:
    """Return the code of an error object; None if the response is not from a Strata node."""
    try:
        content = orjson.loads(body)
    except ValueError:
        return None
    code = content.get("error_code") if isinstance(content, dict) else None
    return code if isinstance(code, int) else None


async def _unless_disconnected(work: "asyncio.Task[Answer]", receive: Receive) -> Answer | None:
    """Return the result of a request's work; cancel it and return None if the client disconnects first."""
    disconnected = asyncio.create_task(_disconnected(receive))
    disconnected.add_done_callback(lambda _: work.cancel())  # does nothing once the work is done
    try:
        return await work
    except asyncio.CancelledError:
        if disconnected.done():
            return None
        raise
    finally:
        disconnected.cancel()
        work.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
