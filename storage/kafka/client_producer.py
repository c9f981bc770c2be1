"""A producer of the Kafka client, with a transactional id or without transactions."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strata.storage.kafka.cursor import offset_of
from strata.storage.kafka.producer import Staged
from strata.storage.log import Record

__all__ = ["ClientProducer"]

_MEET_S, _POLL_S = 2.0, 0.1
_Outcome = tuple[KafkaError | None, Message | None]


class ClientProducer:
    """A producer of the Kafka client; see `Producer` in `producer.py`.

    Args:
        config: the settings of the client.
        topic: the topic's name.
        transactional: whether the settings name a transactional id.
    """

    def __init__(self, config: Mapping[str, object], topic: str, *, transactional: bool) -> None:
        self._topic, self._transactional = topic, transactional
        self._client = Producer(dict(config))

    def take(self, deadline: float) -> None:
        """Start the producer."""
        # A client that does not know the brokers yet often waits for half a second before it looks for a coordinator.
        with suppress(KafkaException):
            self._client.list_topics(timeout=min(_MEET_S, _left(deadline)))
        self._retry(self._client.init_transactions, deadline)

    def stage(
        self, records: Sequence[Record], headers: Sequence[Mapping[str, bytes]], deadline: float, patience_s: float
    ) -> list[Staged]:
        """Send the records; without transactions they are visible at once."""
        outcomes: list[_Outcome] = [(None, None)] * len(records)
        with _raising_fatal_errors():
            if self._transactional:
                self._client.begin_transaction()
            for i, record in enumerate(records):
                self._produce(record, headers[i], partial(_store_outcome, outcomes, i), deadline)
            self._client.flush(min(patience_s, _left(deadline)))
            if any(message is not None for _, message in outcomes):
                self._client.flush(_left(deadline))
        refusals = [error for error, message in outcomes if error is not None or message is None]
        if refusals:
            error = next((error for error in refusals if error is not None), None)
            raise KafkaException(error or KafkaError(KafkaError._TIMED_OUT, "no answer in time"))
        return [Staged(offset_of(m), m.timestamp()[1]) for _, m in outcomes if m is not None]

    def commit(self, deadline: float) -> None:
        """Commit the transaction."""
        self._retry(self._client.commit_transaction, deadline)

    def abort(self, deadline: float) -> None:
        """Abort the transaction."""
        with _raising_fatal_errors():
            self._client.abort_transaction(_left(deadline))

    def close(self) -> None:
        """Close the connections without waiting for requests that are still running."""
        with suppress(KafkaException), _raising_fatal_errors():
            self._client.purge()
            self._client.poll(0)

    def _retry(self, call: Callable[[float], None], deadline: float) -> None:
        """Let a call go on while it may: a repeated call continues the one before."""
        while True:
            try:
                with _raising_fatal_errors():
                    call(_left(deadline))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() >= deadline:
                    raise
            else:
                return

    def _produce(
        self, record: Record, headers: Mapping[str, bytes], keep: Callable[..., None], deadline: float
    ) -> None:
        now = time.time_ns() // 1_000_000
        while True:
            try:
                self._client.produce(
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
                self._client.poll(_POLL_S)


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
