"""A producer that writes transactions of one partition and speaks the protocol itself.

The Kafka client takes 2 ms for what the broker does in a half: it waits on timers, and hands each step from one thread
to another (docs/decisions/0019). Here the thread that appends sends four requests, one after the other: the partition
joins the transaction, the records, the commit. There is never more than one request on its way.

Rules of this file:
- *Nothing is sent twice unless a second time does nothing, whenever it arrives.* A repeated join does nothing, or opens
  an empty transaction that the broker ends. Repeated records have the same sequence numbers, by which the leader knows
  them. The end of a transaction could arrive late and end the producer's next one, so it is sent once.
- *Only what the broker has answered is aborted.* Records whose answer is missing may still arrive, and those that
  arrive behind the end of their transaction would begin another one that never ends. So they are left to the next
  holder of the pen, or to the broker's timeout: both raise the epoch, after which the leader refuses them.
- Whether a commit took place is unknown unless the coordinator says so.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from strata.storage.kafka.batch import batches
from strata.storage.kafka.connection import Connection
from strata.storage.kafka.credentials import Credentials, CredentialsRefused
from strata.storage.kafka.messages import (
    END_TRANSACTION,
    FIND_COORDINATOR,
    JOIN_PARTITION,
    METADATA,
    PRODUCE,
    START_PRODUCER,
    Api,
    coordinator_answer,
    end_transaction,
    end_transaction_answer,
    find_coordinator,
    join_partition,
    join_partition_answer,
    metadata,
    metadata_answer,
    produce,
    produce_answer,
    start_producer,
    start_producer_answer,
)
from strata.storage.kafka.producer import Staged
from strata.storage.log import Record

__all__ = ["Brokers", "TransactionalProducer", "Unsupported"]

_T = TypeVar("_T")
_TRY_S = 5.0  # for one request, where another one may follow
_CONNECT_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05
_MOST_CLOSED = 3
_FAILURES = (OSError, EOFError, ValueError)
_REFUSED = (*_FAILURES, CredentialsRefused)
_MOVED = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE}
_COORDINATOR_SOON = {*_MOVED, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.CONCURRENT_TRANSACTIONS}
_LEADER_SOON = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_ENOUGH_REPLICAS,
}


class Unsupported(Exception):
    """The brokers do not take these requests, or this login."""


class Brokers:
    """The connections that the producers of a pen share. Not thread-safe.

    Args:
        addresses: the first brokers to contact.
        topic: the topic's name.
        credentials: how to secure the connections.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], topic: str, credentials: Credentials) -> None:
        self._addresses, self._topic, self._credentials = list(addresses), topic, credentials
        self._connections: dict[Api, Connection] = {}

    def coordinator(self, name: str, deadline: float) -> Connection:
        """Return the connection to the coordinator of a transactional id; all names here have the same one."""
        return self._kept(FIND_COORDINATOR, find_coordinator(name), _place_of, deadline)

    def leader(self, deadline: float) -> Connection:
        """Return the connection to the leader of the topic's only partition."""
        return self._kept(
            METADATA, metadata(self._topic), lambda body: metadata_answer(body, self._topic)[:2], deadline
        )

    def lose_coordinator(self) -> None:
        """Connect again for the next request to the coordinator."""
        self._lose(FIND_COORDINATOR)

    def lose_leader(self) -> None:
        """Connect again for the next request to the leader."""
        self._lose(METADATA)

    def close(self) -> None:
        """Close the connections."""
        self.lose_coordinator()
        self.lose_leader()

    def _kept(self, api: Api, body: bytes, place: Callable[[bytes], tuple[str, int]], deadline: float) -> Connection:
        """Return the connection to the broker that a request finds; connect again if the one so far is stale."""
        connection = self._connections.get(api)
        if connection is None or connection.is_stale:
            self._lose(api)
            connection = self._connections[api] = self._connected(api, body, place, deadline)
        return connection

    def _lose(self, api: Api) -> None:
        connection = self._connections.pop(api, None)
        if connection is not None:
            connection.close()

    def _connected(
        self, api: Api, body: bytes, place: Callable[[bytes], tuple[str, int]], deadline: float
    ) -> Connection:
        """Connect to the broker that the first broker to answer names.

        Raises:
            OSError, EOFError, ValueError: No broker answers, or none names it.
        """
        failure: Exception = OSError("no broker")
        for address in list(self._addresses):
            try:
                ends = min(deadline, time.monotonic() + _CONNECT_S)
                connection = Connection(address, self._credentials, ends)
                try:
                    named = place(connection.ask(api, body, ends))
                    if named == address:
                        return connection
                except BaseException:
                    connection.close()
                    raise
                connection.close()
                return Connection(named, self._credentials, ends)
            except _FAILURES as error:
                failure = error
                # The next attempt begins with another one.
                self._addresses.remove(address)
                self._addresses.append(address)
        raise failure


class TransactionalProducer:
    """A producer with a transactional id; see `Producer` in `producer.py`.

    Args:
        brokers: the connections.
        name: the transactional id.
        topic: the topic's name.
        timeout_ms: after how long the broker aborts a transaction.
        most_bytes: the most bytes of a batch of records.
    """

    def __init__(self, brokers: Brokers, name: str, topic: str, *, timeout_ms: int, most_bytes: int) -> None:
        self._brokers, self._name, self._topic = brokers, name, topic
        self._timeout_ms, self._most_bytes = timeout_ms, most_bytes
        self._producer = (-1, -1)
        self._sequence = 0
        self._in_doubt = False  # whether records may still be on their way

    def take(self, deadline: float) -> None:
        """Fence the producer that has the id: the broker aborts or completes what that one left.

        Raises:
            Unsupported: The brokers refuse the login, or close the connection at this request.
        """
        request = start_producer(self._name, self._timeout_ms)
        _, number, epoch = self._coordinate(START_PRODUCER, request, start_producer_answer, deadline)
        self._producer, self._sequence = (number, epoch), 0

    def stage(
        self, records: Sequence[Record], headers: Sequence[Mapping[str, bytes]], deadline: float, patience_s: float
    ) -> list[Staged]:
        """Write the records in a transaction, each with its headers, and return where they are."""
        ends = min(deadline, time.monotonic() + patience_s)
        join = join_partition(self._name, self._producer, self._topic)
        self._coordinate(JOIN_PARTITION, join, lambda body: (join_partition_answer(body),), ends)
        staged: list[Staged] = []
        for batch, times in batches(
            records,
            headers,
            now=time.time_ns() // 1_000_000,
            producer=self._producer,
            sequence=self._sequence,
            most_bytes=self._most_bytes,
        ):
            offset, appended = self._append(batch, deadline if staged else ends)
            self._sequence += len(times)
            staged += [Staged(offset + i, made if appended < 0 else appended) for i, made in enumerate(times)]
        return staged

    def commit(self, deadline: float) -> None:
        """Commit the transaction."""
        self._end(deadline, commits=True)

    def abort(self, deadline: float) -> None:
        """Abort the transaction, unless the next holder of the pen must do so."""
        if self._in_doubt:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "records may still be on their way"))
        self._end(deadline, commits=False)

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()

    def _end(self, deadline: float, *, commits: bool) -> None:
        request = end_transaction(self._name, self._producer, commits=commits)
        self._coordinate(END_TRANSACTION, request, lambda body: (end_transaction_answer(body),), deadline)

    def _append(self, batch: bytes, deadline: float) -> tuple[int, int]:
        """Return the offset of a batch's first record, and the time that the broker gave it, or -1."""
        pause_s, problem = _FIRST_PAUSE_S, KafkaError(KafkaError._TIMED_OUT, "no answer in time")
        while (left := deadline - time.monotonic()) > 0:
            try:
                leader = self._brokers.leader(deadline)
            except _REFUSED as error:
                problem = KafkaError(KafkaError._TRANSPORT, str(error))
            else:
                try:
                    request = produce(self._name, self._topic, batch, max(1, int(left * 1000)))
                    code, offset, appended = produce_answer(leader.ask(PRODUCE, request, deadline))
                except _FAILURES as error:
                    self._in_doubt = True
                    problem = KafkaError(KafkaError._TRANSPORT, str(error))
                else:
                    if code == KafkaError.NO_ERROR and offset >= 0:
                        self._in_doubt = False
                        return offset, appended
                    problem = KafkaError(code)
                    if code not in _LEADER_SOON:
                        break
            self._brokers.lose_leader()
            pause_s = _pause(pause_s, deadline)
        raise KafkaException(problem)

    def _coordinate(
        self,
        api: Api,
        request: bytes,
        parse: Callable[[bytes], tuple[int, *tuple[int, ...]]],
        deadline: float,
    ) -> tuple[int, ...]:
        """Ask the coordinator until it answers with a result or a refusal, and return the parsed answer.

        Args:
            api: the request's key and version.
            request: its body.
            parse: returns the answer, its error code first.
            deadline: when to give up.
        """
        pause_s, closed = _FIRST_PAUSE_S, 0
        problem = KafkaError(KafkaError._TIMED_OUT, "no answer in time")
        while (now := time.monotonic()) < deadline:
            ends, coordinator = min(deadline, now + _TRY_S), None
            try:
                coordinator = self._brokers.coordinator(self._name, ends)
                answer = parse(coordinator.ask(api, request, deadline if api == END_TRANSACTION else ends))
            except _REFUSED as error:
                self._brokers.lose_coordinator()
                problem = KafkaError(KafkaError._TRANSPORT, str(error))
                if coordinator is not None and api == END_TRANSACTION:
                    break
                closed = closed + 1 if isinstance(error, EOFError | CredentialsRefused) else 0
                if api == START_PRODUCER and closed == _MOST_CLOSED:
                    raise Unsupported from error
            else:
                if answer[0] == KafkaError.NO_ERROR:
                    return answer
                problem, closed = KafkaError(answer[0]), 0
                if answer[0] not in _COORDINATOR_SOON:
                    break
                if answer[0] in _MOVED:
                    self._brokers.lose_coordinator()
            pause_s = _pause(pause_s, deadline)
        raise KafkaException(problem)


def _place_of(body: bytes) -> tuple[str, int]:
    code, host, port = coordinator_answer(body)
    if code in _COORDINATOR_SOON:
        raise OSError(KafkaError(code).str())
    if code != KafkaError.NO_ERROR:
        raise KafkaException(KafkaError(code))
    return host, port


def _pause(seconds: float, deadline: float) -> float:
    """Wait, and return how long to wait the next time."""
    time.sleep(max(0.0, min(seconds, deadline - time.monotonic())))
    return min(2 * seconds, _LONGEST_PAUSE_S)
