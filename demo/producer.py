"""Publishes the table: three versions of the schema one after the other, with damaged records in between.

The producer runs in its own thread next to the stream that reads. Before each evolution it waits until the stream has
read records of the previous version, so that the new version arrives at a running query.

Rules of this file: send, and keep what was sent; other files define rows and damage.
"""

import re
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from demo.damage import DAMAGES, Damage, Encode
from demo.flights import INCOMPATIBLE_SCHEMA, ROWS, VERSIONS, Row, read_table
from demo.summary import DeadLetter
from strata.compat.witness.text import lines
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryError
from strata.serdes.subject_name_strategies import Context

__all__ = ["Cancelled", "Publication", "Refusal", "describe", "publish", "try_incompatible"]

_CHUNK: Final = 500
_FLUSH_S: Final = 60.0
_FULL_QUEUE_S: Final = 30.0
_INCOMPATIBLE: Final = (409, 40901)
_TRIES_IN_VERSION: Final = 2
_MUST_SAY: Final = (
    "READER_FIELD_MISSING_DEFAULT_VALUE",
    "compatibility: 'BACKWARD'",
    "Add a default to field 'gate'",
    "TYPE_MISMATCH",
    "Field 'distance' is int in the new schema",
)
"""The rejection must say which field breaks which rule, and what would be accepted."""
_CONFIG: Final[Mapping[str, Any]] = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 200_000,
    "delivery.timeout.ms": 60_000,
}


class Cancelled(Exception):
    """The run ends before the whole table is published."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The registry's rejection of the incompatible change, and sentences about the records that would break."""

    status: int
    error_code: int
    message: str
    proofs: tuple[str, ...] = ()


@dataclass(slots=True)
class Publication:
    """The records published so far; the producer's thread writes, other threads read."""

    ids: dict[int, int] = field(default_factory=dict)
    """Schema ids by the number of the version."""
    sent: int = 0
    damaged: list[DeadLetter] = field(default_factory=list)
    refusal: Refusal | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


def publish(
    publication: Publication,
    *,
    bootstrap: str,
    topic: str,
    client: RegistryClient,
    say: Callable[[str], None],
    wait_for_reader: Callable[[int], None],
) -> None:
    """Publish the whole table.

    Args:
        publication: collects what was sent.
        bootstrap: the brokers.
        topic: the topic to publish to.
        client: the registry.
        say: shows a message to the user.
        wait_for_reader: returns when the stream has read that many records.

    Raises:
        Cancelled: the run ends early.
        RuntimeError: a record was not delivered, or the registry accepted the incompatible change.
    """
    sender = _Sender(publication, bootstrap, topic)
    subject = f"{topic}-value"
    lines, begun_at = read_table(), 0
    for version in VERSIONS:
        if version.first_row:
            sender.flush()
            wait_for_reader(begun_at + 1)
        begun_at = publication.sent
        registered = client.register(subject, version.schema)
        publication.ids[version.number] = registered.schema_id
        begins = f"version {version.number} from row {version.first_row:,} on"
        say(f"Producer: {begins}, schema id {registered.schema_id}: {version.news}")
        encode = _encoder(AvroSerializer(client, version.schema, conf={"unknown.fields": "drop"}), topic)
        rows = enumerate(version.parse(islice(lines, version.rows)), version.first_row)
        if version.number == _TRIES_IN_VERSION:
            sender.send(islice(rows, version.rows // 2), encode, registered.schema_id)
            publication.refusal = try_incompatible(client, subject)
            say(describe(publication.refusal, subject))
        sender.send(rows, encode, registered.schema_id)
    sender.flush()
    if publication.sent != ROWS + len(DAMAGES):
        raise RuntimeError(f"expected to send {ROWS + len(DAMAGES)} records, sent {publication.sent}")


def _encoder(serializer: AvroSerializer, topic: str) -> Encode:
    context = Context(topic)

    def encode(row: Row) -> bytes:
        frame = serializer(row, context)
        if frame is None:
            raise RuntimeError("the serializer returned no frame for a row")
        return frame

    return encode


def try_incompatible(client: RegistryClient, subject: str) -> Refusal:
    """Try the change that must be rejected, and check that it left nothing behind.

    Raises:
        RuntimeError: the registry accepted the change, or rejected it in another way than expected.
    """
    before = client.get_versions(subject)
    try:
        taken = client.register(subject, INCOMPATIBLE_SCHEMA)
    except RegistryError as error:
        refusal = Refusal(error.status, error.error_code, error.message)
    else:
        raise RuntimeError(f"the registry accepted the incompatible change as schema id {taken.schema_id}")
    if (refusal.status, refusal.error_code) != _INCOMPATIBLE:
        raise RuntimeError(f"the registry rejected the incompatible change for another reason: {refusal}")
    after = client.get_versions(subject)
    if after != before:
        raise RuntimeError(f"the incompatible change was rejected, but the versions changed from {before} to {after}")
    unsaid = [words for words in _MUST_SAY if words not in refusal.message]
    if unsaid:
        raise RuntimeError(f"the rejection does not mention {', '.join(unsaid)}; it says: {refusal.message}")
    found = client.test_compatibility(subject, INCOMPATIBLE_SCHEMA, None, witness=True).findings
    proofs = tuple(line for one in found for line in lines(one, one["direction"], one["version"]))
    if not any("cannot be read" in line for line in proofs):
        raise RuntimeError(f"the registry shows no record that would break; it says: {proofs}")
    return replace(refusal, proofs=proofs)


def describe(refusal: Refusal, subject: str) -> str:
    """Return the rejection for the screen, with the long quotation of the previous schema removed."""
    message = re.sub(r"\{oldSchema: '\{.*?\}'\}", "{oldSchema: '...'}", refusal.message)
    wrapped = textwrap.wrap(message, 110, break_long_words=False, break_on_hyphens=False)
    head = f"Registry: rejects an incompatible change of {subject}, HTTP {refusal.status}, {refusal.error_code}:"
    proofs = [part for proof in refusal.proofs for part in textwrap.wrap(proof, 110)]
    return "\n".join([head, *(f"    {line}" for line in [*wrapped, *proofs]), "    Nothing was registered."])


class _Sender:
    """A Kafka producer that records what was delivered."""

    def __init__(self, publication: Publication, bootstrap: str, topic: str) -> None:
        self._publication = publication
        self._topic = topic
        self._errors: list[KafkaError] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, **_CONFIG})
        self._damages = list(reversed(DAMAGES))

    def send(self, rows: Iterable[tuple[int, Row]], encode: Encode, schema_id: int) -> None:
        """Send rows, and the damaged records that are due between them."""
        rows = iter(rows)
        while chunk := list(islice(rows, _CHUNK)):
            for number, row in chunk:
                if self._damages and self._damages[-1].row == number:
                    self._send_damaged(self._damages.pop(), row, encode, schema_id)
                self._produce(encode(row), self._delivered)
            self._publication.sent += len(chunk)
            self._producer.poll(0)
            self._check()

    def flush(self) -> None:
        """Wait until everything that was sent is in Kafka."""
        left = self._producer.flush(_FLUSH_S)
        self._check()
        if left:
            raise RuntimeError(f"Kafka did not accept {left} records within {_FLUSH_S:.0f} s")

    def _send_damaged(self, damage: Damage, row: Row, encode: Encode, schema_id: int) -> None:
        frame = damage.frame(row, encode)
        self._produce(frame, partial(self._damage_delivered, damage, frame, damage.schema_id(schema_id)))
        self._publication.sent += 1

    def _produce(self, frame: bytes, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        deadline = 0.0
        while True:
            try:
                self._producer.produce(self._topic, frame, on_delivery=on_delivery)
            except BufferError:
                deadline = deadline or time.monotonic() + _FULL_QUEUE_S
                if time.monotonic() > deadline:
                    raise RuntimeError(f"Kafka accepted no records for {_FULL_QUEUE_S:.0f} s") from None
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._errors.append(error)

    def _damage_delivered(
        self, damage: Damage, frame: bytes, schema_id: int | None, error: KafkaError | None, message: Message
    ) -> None:
        self._delivered(error, message)
        if error is None:
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:
                raise RuntimeError("Kafka accepted a record, but did not return its offset")
            self._publication.damaged.append(DeadLetter(self._topic, partition, offset, schema_id, damage.kind, frame))

    def _check(self) -> None:
        if self._errors:
            raise RuntimeError(f"{len(self._errors)} records were not delivered: {self._errors[0]}")
        if self._publication.cancelled.is_set():
            raise Cancelled
