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
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException

from strata.storage.addresses import broker_addresses
from strata.storage.kafka.client_producer import ClientProducer
from strata.storage.kafka.credentials import Credentials
from strata.storage.kafka.cursor import APPEND_HEADER, LAST_MARK
from strata.storage.kafka.fencing import Fencing
from strata.storage.kafka.producer import Producer, Staged
from strata.storage.kafka.transactions import Brokers, TransactionalProducer, Unsupported
from strata.storage.log import LogError, LogTimeout, Record, RecordTooLarge

__all__ = ["Fenced", "Pen", "PerhapsFenced", "Staged", "pen_ids"]

_TRANSACTION_MS = 10_000
# Kafka chooses a coordinator by Java's hash of the id, which is the same for these two endings: on a quiet broker a
# coordinator closes a transaction only when the next request arrives, and this is then the other producer's.
_TURNS = ("-Aa", "-BB")
_BATCH, _BATCH_OVERHEAD = 1_000_000, 1_000
_CLIENT_LIMIT = 1_000_000_000
_ABORT_S = 2.0
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


class PerhapsFenced(LogTimeout):
    """The outcome of a commit is unknown, because another node may be taking the pen right now."""


class Pen:
    """The producers that may write. Not thread-safe; once `usable` is false, make a new one.

    Raises:
        LogError: The broker did not give these producers the pen in time.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        topic: str,
        fencing: Fencing,
        *,
        max_bytes: int,
        timeout_s: float,
        credentials: Credentials | None = None,
    ) -> None:
        self._topic, self._max_bytes = topic, max_bytes
        self.transactional = fencing is Fencing.PEN
        self.usable = True
        # The topic's limit applies to a batch, and the client would otherwise build larger ones.
        most_bytes = max(1, min(_BATCH, max_bytes - _BATCH_OVERHEAD))
        settings: dict[str, object] = {
            "linger.ms": 0,
            "batch.size": most_bytes,
            **config,
            "message.max.bytes": _CLIENT_LIMIT,
            "acks": "all",
            "enable.idempotence": True,
        }
        self._producers: deque[Producer] = deque()
        if not self.transactional:
            self._producers.append(ClientProducer(settings, topic, transactional=False))
            return
        # The client alone compresses.
        if credentials is not None and not any(name.startswith("compression.") for name in config):
            brokers = Brokers(broker_addresses(str(config["bootstrap.servers"])), topic, credentials)
            self._producers.extend(
                TransactionalProducer(brokers, name, topic, timeout_ms=_TRANSACTION_MS, most_bytes=most_bytes)
                for name in pen_ids(topic)
            )
        deadline = time.monotonic() + timeout_s
        try:
            self._take(deadline)
        except Unsupported:
            self._producers.clear()
        if self._producers:
            return
        settings["transaction.timeout.ms"] = _TRANSACTION_MS
        self._producers.extend(
            ClientProducer({**settings, "transactional.id": name}, topic, transactional=True) for name in pen_ids(topic)
        )
        self._take(deadline)

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
        try:
            return self._send(records, token, headers or {}, deadline, patience_s)
        except KafkaException as error:
            raise self._abandon(error.args[0]) from error

    def commit(self, deadline: float) -> None:
        """Make the staged records visible.

        Raises:
            Fenced: Another node has the pen; whether the commit took place before that is unknown.
            PerhapsFenced: Whether the commit took place is unknown, and whether another node has the pen.
            LogTimeout: Whether the commit took place is unknown.
        """
        if not self.transactional:
            return
        try:
            self._producer.commit(deadline)
        except KafkaException as error:
            self.usable = False
            problem: KafkaError = error.args[0]
            if problem.code() in _FENCED:
                raise Fenced from error
            # A coordinator answers so if it has to fence this producer while it writes down the commit.
            kind = PerhapsFenced if problem.code() == KafkaError.UNKNOWN else LogTimeout
            raise kind(f"topic {self._topic}: no answer to a commit: {problem.str()}") from error
        self._producers.rotate()

    def abort(self) -> KafkaError | None:
        """Abort the transaction. If the broker does not confirm it, return its error; the pen is then unusable."""
        try:
            self._producer.abort(time.monotonic() + _ABORT_S)
        except KafkaException as error:
            self.usable = False
            problem: KafkaError = error.args[0]
            return problem
        self._producers.rotate()
        return None

    def close(self) -> None:
        """Close the connections without waiting for requests that are still running."""
        self.usable = False
        for producer in self._producers:
            producer.close()

    @property
    def _producer(self) -> Producer:
        """The producer that has its turn; it passes to the other one with the end of a transaction."""
        return self._producers[0]

    def _take(self, deadline: float) -> None:
        """Take both producers.

        Every node takes the first one first and signs with it. So a node that has signed holds both, and the node that
        signed before it holds neither.
        """
        for producer in self._producers:
            try:
                producer.take(deadline)
            except KafkaException as error:
                self.close()
                problem: KafkaError = error.args[0]
                hint = _HINTS.get(problem.code(), "")
                raise LogError(f"topic {self._topic}: cannot get the right to write: {problem.str()}{hint}") from error

    def _send(
        self,
        records: Sequence[Record],
        token: bytes,
        headers: Mapping[str, bytes],
        deadline: float,
        patience_s: float,
    ) -> list[Staged]:
        marks = [token] * len(records)
        if self.transactional:
            marks[-1] += LAST_MARK
        each = [{APPEND_HEADER: mark, **headers} for mark in marks]
        return self._producer.stage(records, each, deadline, patience_s)

    def _abandon(self, problem: KafkaError) -> Exception:
        """Abort the transaction and return the exception for a problem."""
        code, text = problem.code(), problem.str()
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
