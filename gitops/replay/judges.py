"""Reading records with a candidate, one judge for each format.

A judge says of each record whether the candidate reads it, whether it reads other values than were written, and, where
the level asks for it, whether the candidate could have written it.

Rules of this file: frames in, findings out; no Kafka and no printing.
"""

import json
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from strata.compat.schema import SchemaParseError
from strata.gitops.errors import GitopsError
from strata.gitops.replay import outcome as kinds
from strata.gitops.replay.keys import NO_FIELD, OTHER_VALUE, key_of, label, shown
from strata.gitops.replay.outcome import Key, Outcome, Place
from strata.gitops.replay.topic import Batch
from strata.serdes.client import RegistryClient, Schema, schema_named
from strata.serdes.errors import DecodeError, FrameError, RegistryError, SchemaError
from strata.serdes.framing import MessagePath, SchemaName, open_frame
from strata.serdes.model import AVRO, JSON, PROTOBUF
from strata.serdes.references import resolve, resolved

if TYPE_CHECKING:
    from strata.compat.json_schema.containment.decision import Containment
    from strata.compat.json_schema.model import JsonSchema

__all__ = ["Judge", "judge_of"]

_NOT_FOUND: Final = 404


class Judge(Protocol):
    """Reads the records of a topic with a candidate."""

    def judge(self, batch: Batch, outcome: Outcome) -> None:
        """Add what a batch shows to the outcome.

        Raises:
            SerdeError: If the registry does not answer.
        """
        ...


def judge_of(candidate: Schema, client: RegistryClient, *, writes: bool) -> Judge:
    """Return the judge for a candidate.

    Args:
        candidate: the schema, whose references are versions of the registry.
        client: the registry.
        writes: whether to ask too if the candidate could have written each record.

    Raises:
        GitopsError: If the candidate cannot be used.
        SerdeError: If the registry does not know a reference, or does not answer.
    """
    try:
        if candidate.format == AVRO:
            from strata.gitops.replay.avro_judge import AvroJudge

            return AvroJudge(candidate, client, writes=writes)
        if candidate.format == PROTOBUF:
            return _EachJudge(_ProtobufReader(candidate, client, writes), client, is_indexed=True)
        return _EachJudge(_JsonReader(candidate, client), client, is_indexed=False)
    except (SchemaError, SchemaParseError) as error:
        raise GitopsError(f"the candidate cannot be used: {error}") from None


class _Reader(Protocol):
    """What a format without batches provides."""

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> "Iterator[_Seen]":
        """Yield what is found in a payload.

        Raises:
            DecodeError: If the candidate cannot read it.
            SchemaError: If the writer schema cannot be used, or has another message.
        """
        ...


class _Seen(NamedTuple):
    """A value that changes, or that the candidate cannot write."""

    kind: kinds.Kind
    path: str
    reason: str
    example: tuple[str, str] | None = None


class _EachJudge:
    """Reads one record after the other."""

    def __init__(self, reader: _Reader, client: RegistryClient, is_indexed: bool) -> None:
        self._reader, self._client, self._is_indexed = reader, client, is_indexed

    def judge(self, batch: Batch, outcome: Outcome) -> None:
        for row, (frame, header) in enumerate(zip(batch.frames(), batch.headers or repeat(None), strict=False)):
            if frame is None:
                outcome.empty += 1
            else:
                self._judge(frame, header, batch.place(row), outcome)

    def _judge(self, frame: bytes, header: bytes | None, place: Place, outcome: Outcome) -> None:
        name: SchemaName | None = None
        try:
            opened = open_frame(frame, header, indexed=self._is_indexed)
            name = opened.schema
            outcome.schemas[str(name)] += 1
            schema = schema_named(self._client, name)
            for seen in self._reader.read(schema, name, opened.indexes, opened.payload):
                outcome.add(Key(seen.kind, seen.path, seen.reason, str(name)), place, seen.example)
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            outcome.add(Key(kinds.UNKNOWN_SCHEMA, "", "unknown schema", label(name)), place)
        except (DecodeError, FrameError, SchemaError) as error:
            outcome.add(key_of(error, name), place)


class _JsonReader:
    """Validates documents against a candidate, and finds the integers that it makes doubles of."""

    def __init__(self, candidate: Schema, client: RegistryClient) -> None:
        from strata.serdes.json_schema import json_text
        from strata.serdes.json_schema.validator import compiled

        self._client = client
        resources = {name: json.loads(schema.text) for name, schema in resolve(client, candidate).items()}
        self._validate, self._parse = compiled(json.loads(candidate.text), resources, ""), json_text.load
        self._candidate = self._parsed(candidate)
        self._readings: dict[SchemaName, Containment] = {}

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> Iterator[_Seen]:  # noqa: ARG002
        if schema.format != JSON:
            raise SchemaError(f"the frame holds {schema.format}, the candidate is {JSON}")
        document = self._parse(payload)
        self._validate(document)
        reading = self._readings.get(name)
        if reading is None:
            reading = self._readings[name] = self._reading(schema)
        for at, number in reading.rounded_numbers(document):
            yield _Seen(kinds.CHANGED, at, OTHER_VALUE, (shown(number), shown(float(number))))

    def _reading(self, schema: Schema) -> "Containment":
        from strata.compat.json_schema.containment.decision import Containment

        return Containment(self._parsed(schema), self._candidate)

    def _parsed(self, schema: Schema) -> "JsonSchema":
        from strata.compat.json_schema.parser import parse

        return parse(schema.text, strict=False, references=resolved(self._client, schema))


class _ProtobufReader:
    """Parses messages by the writer's file and by the candidate's, and compares the two."""

    def __init__(self, candidate: Schema, client: RegistryClient, writes: bool) -> None:
        from strata.serdes.protobuf.differences import unknown_fields
        from strata.serdes.protobuf.readings import Readings

        self._readings, self._writes, self._unknown = Readings(candidate, client), writes, unknown_fields

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> Iterator[_Seen]:
        written, read, changes = self._readings.read(schema, name, path, payload)
        for difference in changes:
            example = shown(difference.written), shown(difference.read)
            yield _Seen(kinds.CHANGED, difference.path, OTHER_VALUE, example)
        if self._writes:
            for path_text in self._unknown(written, read):
                yield _Seen(kinds.NOT_WRITABLE, path_text, NO_FIELD)
