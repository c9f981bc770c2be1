"""The pen: the right to write to the topic, held by one node at a time.

A producer with a fixed `transactional.id` takes the pen when it starts (`init_transactions`): the broker then fences
the previous holder, aborts its open transaction, and completes a commit that it had begun. Records staged in a
transaction are invisible until `commit`, and stay so if the producer dies first.

The pen consists of two such producers, which take turns (docs/decisions/0019): when a commit has become visible, its
coordinator has yet to close the transaction. If the same producer began another one before that, the coordinator would
reject it, and the client would try again only after 20 ms.

Without fencing (`Fencing.NONE`) there are no transactions: staging a record writes it.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strata.storage.kafka.cursor import APPEND_HEADER, LAST_MARK, offset_of
from strata.storage.kafka.fencing import Fencing
from strata.storage.log import LogError, LogTimeout, Record, RecordTooLarge

__all__ = ["Fenced", "Pen", "Staged", "pen_ids"]

_TRANSACTION_MS = 10_000
# Kafka chooses a coordinator by Java's hash of the id, which is the same for these two endings: on a quiet broker a
# coordinator closes a transaction only when the next request arrives, and this is then the other producer's.
_TURNS = ("-Aa", "-BB")
_BATCH, _BATCH_OVERHEAD = 1_000_000, 1_000
_CLIENT_LIMIT = 1_000_000_000
_ABORT_S, _MEET_S = 2.0, 2.0
_POLL_S = 0.1
# Another producer has taken the pen, or the broker has aborted a transaction that took too long.
_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.UNKNOWN_PRODUCER_ID,
}
_NO_TRANSACTIONS = "; for a service without transactions, set --fencing none and run one writing node only"
_HINTS = {
    KafkaError._UNSUPPORTED_FEATURE: _NO_TRANSACTIONS,
    KafkaError.UNSUPPORTED_VERSION: _NO_TRANSACTIONS,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "; grant the ACLs Describe and Write on the transactional ids that begin with strata-pen-"
    ),
}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


def pen_ids(topic: str) -> list[str]:
    """Return the transactional ids of the two producers, in the order in which a node takes them."""
    return [f"strata-pen-{topic}{turn}" for turn in _TURNS]


class Fenced(Exception):
    """Another node has the pen; staged records are invisible unless `commit` had begun."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The offset and timestamp of a staged record; the timestamp in milliseconds since the epoch."""

    offset: int
    timestamp: int


_Outcome = tuple[KafkaError | None, Message | None]


class Pen:
    """The producers that may write. Not thread-safe; once `usable` is false, make a new one.

    Raises:
        LogError: The broker did not give these producers the pen in time.
    """

    def __init__(
        self, config: Mapping[str, object], topic: str, fencing: Fencing, *, max_bytes: int, timeout_s: float
    ) -> None:
        self._topic, self._max_bytes = topic, max_bytes
        self.transactional = fencing is Fencing.PEN
        self.usable = True
        settings: dict[str, object] = {
            "linger.ms": 0,
            # The topic's limit applies to a batch, and the client would otherwise build larger ones.
            "batch.size": max(1, min(_BATCH, max_bytes - _BATCH_OVERHEAD)),
            **config,
            "message.max.bytes": _CLIENT_LIMIT,
            "acks": "all",
            "enable.idempotence": True,
        }
        if not self.transactional:
            self._producers = deque([Producer(settings)])
            return
        settings["transaction.timeout.ms"] = _TRANSACTION_MS
        self._producers = deque(Producer({**settings, "transactional.id": name}) for name in pen_ids(topic))
        deadline = time.monotonic() + timeout_s
        # Every node takes the first one first and signs with it. So a node that has signed holds both, and the node
        # that signed before it holds neither.
        for producer in self._producers:
            self._take(producer, deadline)

    def stage(
        self,
        records: Sequence[Record],
        token: bytes,
        deadline: float,
        headers: Mapping[str, bytes] | None = None,
        *,
        patience_s: float = math.inf,
    ) -> list[Staged]:
        """Send the records to the topic and return their offsets; they become visible with `commit`.

        Args:
            records: The records, at least one.
            token: The token of the append, for the header `APPEND_HEADER` of each record.
            deadline: A time on the clock of `time.monotonic`, in seconds.
            headers: Further headers of each record.
            patience_s: How long to wait for the answer to a first record, in seconds, if that is before the deadline.

        Raises:
            Fenced: Another node has the pen.
            RecordTooLarge: The broker refuses a record.
            LogTimeout: Without transactions only: the records may or may not be visible.
            LogError: The broker does not answer, or refuses. As in the first two cases, no record is or becomes
                visible.
        """
        # A refusal here costs nothing; a refusal by the broker costs the pen.
        largest = max(len(record.key) + len(record.value or b"") for record in records)
        if largest > self._max_bytes - _BATCH_OVERHEAD:
            raise RecordTooLarge(
                f"topic {self._topic} takes records of up to {self._max_bytes} bytes, got one of {largest} bytes"
            )
        outcomes: list[_Outcome] = [(None, None)] * len(records)
        try:
            with _raising_fatal_errors():
                self._send(records, token, headers or {}, outcomes, deadline, patience_s)
        except KafkaException as error:
            raise self._abandon(error.args[0]) from error
        refusals = [error for error, message in outcomes if error is not None or message is None]
        if refusals:
            raise self._abandon(next((error for error in refusals if error is not None), None))
        return [Staged(offset_of(m), m.timestamp()[1]) for _, m in outcomes if m is not None]

    def commit(self, deadline: float) -> None:
        """Make the staged records visible.

        Raises:
            Fenced: Another node has the pen; whether the commit took place before that is unknown.
            LogTimeout: Whether the commit took place is unknown.
        """
        while self.transactional:
            try:
                with _raising_fatal_errors():
                    self._producer.commit_transaction(_left(deadline))
                self._producers.rotate()
                break
            except KafkaException as error:
                problem: KafkaError = error.args[0]
                if problem.retriable() and time.monotonic() < deadline:
                    continue  # the same commit continues
                self.usable = False
                if problem.code() in _FENCED:
                    raise Fenced from error
                raise LogTimeout(f"topic {self._topic}: no answer to a commit: {problem.str()}") from error

    def abort(self) -> KafkaError | None:
        """Abort the transaction. If the broker does not confirm it, return its error; the pen is then unusable."""
        try:
            with _raising_fatal_errors():
                self._producer.abort_transaction(_ABORT_S)
        except KafkaException as error:
            self.usable = False
            problem: KafkaError = error.args[0]
            return problem
        self._producers.rotate()
        return None

    def close(self) -> None:
        """Close the connection without waiting for requests that are still running."""
        self.usable = False
        for producer in self._producers:
            with suppress(KafkaException), _raising_fatal_errors():
                producer.purge()
                producer.poll(0)

    @property
    def _producer(self) -> Producer:
        """The producer that has its turn; it passes to the other one with the end of a transaction."""
        return self._producers[0]

    def _take(self, producer: Producer, deadline: float) -> None:
        # A client that does not know the brokers yet often waits for half a second before it looks for a coordinator.
        with suppress(KafkaException):
            producer.list_topics(timeout=min(_MEET_S, _left(deadline)))
        while True:
            try:
                with _raising_fatal_errors():
                    producer.init_transactions(_left(deadline))
                break
            except KafkaException as error:
                problem: KafkaError = error.args[0]
                if problem.retriable() and time.monotonic() < deadline:
                    continue
                hint = _HINTS.get(problem.code(), "")
                raise LogError(f"topic {self._topic}: cannot get the right to write: {problem.str()}{hint}") from error

    def _send(
        self,
        records: Sequence[Record],
        token: bytes,
        headers: Mapping[str, bytes],
        outcomes: list[_Outcome],
        deadline: float,
        patience_s: float,
    ) -> None:
        if self.transactional:
            self._producer.begin_transaction()
        for i, record in enumerate(records):
            mark = token + LAST_MARK if self.transactional and i == len(records) - 1 else token
            self._produce(record, {APPEND_HEADER: mark, **headers}, partial(_store_outcome, outcomes, i), deadline)
        self._producer.flush(min(patience_s, _left(deadline)))
        if any(message is not None for _, message in outcomes):
            self._producer.flush(_left(deadline))

    def _produce(
        self, record: Record, headers: Mapping[str, bytes], keep: Callable[..., None], deadline: float
    ) -> None:
        now = time.time_ns() // 1_000_000
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    0,
                    on_delivery=keep,
                    timestamp=record.time(now),
                    headers=dict(headers),
                )
                break
            except BufferError:
                # The client's queue is full; let it send.
                if time.monotonic() > deadline:
                    raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None
                self._producer.poll(_POLL_S)

    def _abandon(self, problem: KafkaError | None) -> Exception:
        """Abort the transaction and return the exception for a problem (None: no answer in time)."""
        code, text = (problem.code(), problem.str()) if problem else (KafkaError._TIMED_OUT, "no answer in time")
        if code in _TOO_LARGE and not self.transactional:
            return RecordTooLarge(f"topic {self._topic} rejected a record: {text}")
        if not self.transactional:
            self.close()
            return LogTimeout(f"topic {self._topic}: records may or may not have been written: {text}")
        aborted = self.abort()
        # An undelivered record leaves a gap in the client's sequence numbers, from which it rarely recovers.
        self.usable = False
        if code in _FENCED or (aborted is not None and aborted.code() in _FENCED):
            return Fenced()
        if code in _TOO_LARGE:
            return RecordTooLarge(f"topic {self._topic} rejected a record: {text}")
        return LogError(f"topic {self._topic}: nothing was written: {text}")


def _store_outcome(outcomes: list[_Outcome], i: int, error: KafkaError | None, message: Message) -> None:
    # Store the error only: calling one of its methods here, during a fatal error, confuses the client.
    outcomes[i] = (error, message)


@contextmanager
def _raising_fatal_errors() -> Iterator[None]:
    """Raise fatal errors as KafkaException: the client raises SystemError when delivery callbacks are due as well."""
    try:
        yield
    except SystemError as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, KafkaException):
            raise cause from None
        raise KafkaException(KafkaError(KafkaError._FATAL, str(error))) from error


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
