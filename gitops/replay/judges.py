"""Reading records with a candidate, one judge for each format.

A judge says of each record whether the candidate reads it, whether it reads other values than were written, and, where
the level asks for it, whether the candidate could have written it. Whether values can change at all is a question of
schemas (`strata.compat.difference`); only the records of such writers are compared value by value, which is slower.

Rules of this file: frames in, findings out; no Kafka and no printing.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from strata.compat.difference.compare import outcomes
from strata.compat.difference.outcomes import Verdict
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat, SchemaParseError
from strata.gitops.errors import GitopsError
from strata.gitops.replay import outcome as kinds
from strata.gitops.replay.outcome import Key, Outcome, Place
from strata.gitops.replay.topic import Batch
from strata.gitops.replay.values import differences, lost, message_differences, unknown_fields
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import RegistryClient, Schema, schema_named
from strata.serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError, SerdeError
from strata.serdes.framing import MessagePath, SchemaName, open_frame
from strata.serdes.model import AVRO, JSON, PROTOBUF
from strata.serdes.references import resolve

__all__ = ["Judge", "judge_of"]

_Decode = Callable[[bytes], Any]

_NOT_FOUND: Final = 404
_LONGEST: Final = 200
_HEADER: Final = 5  # bytes of a frame before its payload
_NO_ID: Final = -1
_CHANGE: Final = "another value is read"
_MOST_EXPLAINED: Final = 10_000
"""Refused records whose path is looked for; of further ones only the reason is known."""


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
            return _AvroJudge(candidate, client, _Writers(client, candidate), writes)
        if candidate.format == PROTOBUF:
            return _EachJudge(_ProtobufReader(candidate, client, writes), client, is_indexed=True)
        return _EachJudge(_JsonReader(candidate, client), client, is_indexed=False)
    except (SchemaError, SchemaParseError) as error:
        raise GitopsError(f"the candidate cannot be used: {error}") from None


class _Writers:
    """Which writer schemas a candidate may read other values from."""

    def __init__(self, client: RegistryClient, candidate: Schema) -> None:
        self._client = client
        self._candidate = self._parsed(candidate)
        self._changing: dict[SchemaName, bool] = {}

    def may_change(self, name: SchemaName) -> bool:
        """Return whether some record of a writer schema may be read as other values."""
        known = self._changing.get(name)
        if known is None:
            known = self._changing[name] = self._judged(name)
        return known

    def _judged(self, name: SchemaName) -> bool:
        try:
            writer = self._parsed(schema_named(self._client, name))
        except (SchemaError, SchemaParseError, RegistryError):
            return False  # its records are refused
        if writer.format != self._candidate.format:
            return False
        found = outcomes(self._candidate, writer, DEFAULT_LIMITS, is_new=True)
        return any(one.verdict is not Verdict.SAFE for one in found)

    def _parsed(self, schema: Schema) -> ParsedSchema:
        references = [ResolvedReference(name, one.text) for name, one in resolve(self._client, schema).items()]
        return FORMATS[SchemaFormat(schema.format)].parse(schema.text, strict=False, references=references)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _label(name: SchemaName | None) -> str:
    return "" if name is None else str(name)


def _key_of(error: SerdeError, name: SchemaName | None) -> Key:
    """Return what a record that cannot be read is grouped by."""
    if isinstance(error, DecodeError):
        return Key(kinds.UNREADABLE, error.path, f"{error.reason}: {error.detail}"[:_LONGEST], _label(name))
    reason = error.reason if isinstance(error, FrameError) else str(error)
    return Key(kinds.UNREADABLE, "", reason[:_LONGEST], _label(name))


class _AvroJudge:
    """Decodes batches into Arrow, and single records where a value may change."""

    def __init__(self, candidate: Schema, client: RegistryClient, writers: _Writers, writes: bool) -> None:
        import pyarrow as pa

        from strata.serdes.arrow import BatchDecoder
        from strata.serdes.avro.decoder import compile_decoder
        from strata.serdes.avro.encoder import compile_encoder
        from strata.serdes.avro.projection import write

        self._binary = partial(pa.array, type=pa.binary())
        self._client, self._writers, self._writes = client, writers, writes
        self._reader = self._node(candidate)
        self._text = write(self._reader)
        self._decoder = BatchDecoder(self._text, client)
        self._pairs: dict[SchemaName, tuple[_Decode, _Decode]] = {}
        self._explained = 0
        self._encode, self._again = compile_encoder(self._text), compile_decoder(self._text, self._text)

    def judge(self, batch: Batch, outcome: Outcome) -> None:
        frames = self._binary(batch.frames)
        headers = None if batch.headers is None else self._binary(batch.headers)
        outcome.empty += frames.null_count
        refusals = self._decoder.rows(frames, headers).refusals
        names = _Names(batch, frames)
        for name, count in names.counts():
            outcome.schemas[str(name)] += count
        for row, refusal in refusals.items():
            outcome.add(self._refused(batch, row, refusal.reason, names.of(row)), batch.place(row))
        for name, _ in names.counts():
            if self._writes or self._writers.may_change(name):
                for row in names.rows(name):
                    if row not in refusals:
                        self._compare(batch, row, name, outcome)

    def _refused(self, batch: Batch, row: int, reason: str, name: SchemaName | None) -> Key:
        if reason.startswith("unknown "):
            return Key(kinds.UNKNOWN_SCHEMA, "", reason, _label(name))
        if self._explained < _MOST_EXPLAINED:
            self._explained += 1
            header = None if batch.headers is None else batch.headers[row]
            error = self._decoder.explain(batch.frames[row] or b"", header)
            if error is not None:
                return _key_of(error, name)
        return Key(kinds.UNREADABLE, "", reason[:_LONGEST], _label(name))

    def _compare(self, batch: Batch, row: int, name: SchemaName, outcome: Outcome) -> None:
        pair = self._pairs.get(name)
        if pair is None:
            pair = self._pairs[name] = self._pair(name)
        header = None if batch.headers is None else batch.headers[row]
        payload = open_frame(batch.frames[row] or b"", header).payload
        place = batch.place(row)
        written = pair[0](payload)
        for path, before, after in differences(written, pair[1](payload), self._reader):
            outcome.add(Key(kinds.CHANGED, path, _CHANGE, str(name)), place, (_shown(before), _shown(after)))
        if self._writes:
            for path, reason in self._unwritable(written):
                outcome.add(Key(kinds.NOT_WRITABLE, path, reason, str(name)), place)

    def _pair(self, name: SchemaName) -> "tuple[_Decode, _Decode]":
        """Return the decoders of a writer's payloads: as they were written, and as the candidate reads them."""
        from strata.serdes.avro.decoder import compile_decoder

        writer = self._node(schema_named(self._client, name))
        return compile_decoder(writer, writer), compile_decoder(writer, self._reader)

    def _node(self, schema: Schema) -> Node:
        return parse(schema.text, [one.text for one in resolve(self._client, schema).values()])

    def _unwritable(self, written: Any) -> Iterator[tuple[str, str]]:
        """Yield where and why the candidate cannot write a value as it is."""
        try:
            again = self._again(self._encode(written))
        except SerdeError as error:
            yield getattr(error, "path", "") or "", str(error)[:_LONGEST]
        else:
            for path in lost(written, again):
                yield path, "the candidate has no such field"


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
        for row, (frame, header) in enumerate(zip(batch.frames, batch.headers or repeat(None), strict=False)):
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
            outcome.add(Key(kinds.UNKNOWN_SCHEMA, "", "unknown schema", _label(name)), place)
        except (DecodeError, FrameError, SchemaError) as error:
            outcome.add(_key_of(error, name), place)


class _JsonReader:
    """Validates documents against a candidate."""

    def __init__(self, candidate: Schema, client: RegistryClient) -> None:
        from strata.serdes.json_schema import json_text
        from strata.serdes.json_schema.validator import compiled

        references = resolve(client, candidate)
        resources = {name: json.loads(schema.text) for name, schema in references.items()}
        self._validate, self._parse = compiled(json.loads(candidate.text), resources, ""), json_text.load

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> Iterator[_Seen]:  # noqa: ARG002
        if schema.format != JSON:
            raise SchemaError(f"the frame holds {schema.format}, the candidate is {JSON}")
        self._validate(self._parse(payload))
        yield from ()


class _ProtobufReader:
    """Parses messages by the writer's file and by the candidate's, and compares the fields by number."""

    def __init__(self, candidate: Schema, client: RegistryClient, writes: bool) -> None:
        from strata.serdes.protobuf.files import link

        self._client, self._writes = client, writes
        self._file = link(candidate, resolve(client, candidate))
        self._classes: dict[tuple[SchemaName, MessagePath], tuple[Any, Any]] = {}

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> Iterator[_Seen]:
        if schema.format != PROTOBUF:
            raise SchemaError(f"the frame holds {schema.format}, the candidate is {PROTOBUF}")
        classes = self._classes.get((name, path))
        if classes is None:
            classes = self._classes[name, path] = self._found(schema, path)
        written, read = (self._parsed(kind, payload) for kind in classes)
        for path_text, before, after in message_differences(written, read, ""):
            yield _Seen(kinds.CHANGED, path_text, _CHANGE, (_shown(before), _shown(after)))
        if self._writes:
            for path_text in unknown_fields(written, read, ""):
                yield _Seen(kinds.NOT_WRITABLE, path_text, "the candidate has no such field")

    def _found(self, schema: Schema, path: MessagePath) -> tuple[Any, Any]:
        from google.protobuf.message_factory import GetMessageClass

        from strata.serdes.protobuf.files import find_message, link, message_named

        written = find_message(link(schema, resolve(self._client, schema)), path)
        read = message_named(self._file, written.full_name)
        if read is None:
            raise SchemaError(f"the candidate has no message {written.full_name}")
        return GetMessageClass(written), GetMessageClass(read)

    def _parsed(self, kind: Any, payload: bytes) -> Any:
        from google.protobuf.message import DecodeError as ParseError

        try:
            return kind.FromString(payload)
        except (ParseError, ValueError, RecursionError) as error:
            raise DecodeError(DecodeReason.MALFORMED, f"not a {kind.DESCRIPTOR.full_name}: {error}") from None


class _Names:
    """The names of the schemas in the frames of a batch. Most are ids behind a zero byte, which are read together."""

    def __init__(self, batch: Batch, frames: Any) -> None:
        import numpy as np

        offsets = np.frombuffer(frames.buffers()[1], np.int32, len(frames) + 1, frames.offset * 4).astype(np.int64)
        raw = np.frombuffer(frames.buffers()[2] or b"", np.uint8)
        starts = offsets[:-1]
        is_plain = np.diff(offsets) >= _HEADER
        is_plain[is_plain] = raw[starts[is_plain]] == 0
        if batch.headers is not None:
            is_plain &= np.array([header is None for header in batch.headers])
        self._ids = np.full(len(frames), _NO_ID)
        self._ids[is_plain] = sum(
            raw[starts[is_plain] + 1 + place].astype(np.int64) << (24 - 8 * place) for place in range(4)
        )
        self._others: dict[int, SchemaName] = {}
        for row in np.flatnonzero(~is_plain).tolist():
            frame, header = batch.frames[row], None if batch.headers is None else batch.headers[row]
            if frame is not None:
                with suppress(FrameError):
                    self._others[row] = open_frame(frame, header).schema
        self._unique, self._counts = np.unique(self._ids, return_counts=True)

    def counts(self) -> Iterator[tuple[SchemaName, int]]:
        """Yield each name, and how many frames have it."""
        for number, count in zip(self._unique.tolist(), self._counts.tolist(), strict=True):
            if number != _NO_ID:
                yield number, count
        yield from Counter(self._others.values()).items()

    def rows(self, name: SchemaName) -> list[int]:
        """Return the rows of the frames that have a name."""
        if isinstance(name, int) and name in self._unique:
            rows: list[int] = (self._ids == name).nonzero()[0].tolist()
            return rows
        return [row for row, other in self._others.items() if other == name]

    def of(self, row: int) -> SchemaName | None:
        """Return the name in a frame; None if it cannot be read, or there is no frame."""
        number = int(self._ids[row])
        return self._others.get(row) if number == _NO_ID else number
