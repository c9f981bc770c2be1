"""Reading records with a candidate of Avro: batches into Arrow, and single records where a value may change.

Rules of this file: batches in, findings out; no Kafka and no printing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pyarrow as pa

from strata.compat.difference.compare import outcomes
from strata.compat.difference.outcomes import Verdict
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.schema import ParsedSchema, SchemaFormat, SchemaParseError
from strata.gitops.replay import outcome as kinds
from strata.gitops.replay.keys import NO_FIELD, OTHER_VALUE, key_of, label, shortened, shown
from strata.gitops.replay.outcome import Key, Outcome
from strata.gitops.replay.topic import Batch
from strata.gitops.replay.values import differences, lost
from strata.serdes.arrow import BatchDecoder
from strata.serdes.avro.decoder import compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.avro.projection import write
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import RegistryClient, Schema, schema_named
from strata.serdes.errors import DecodeError, EncodeError, FrameError, RegistryError, SchemaError, SerdeError
from strata.serdes.framing import SchemaName, open_frame
from strata.serdes.references import resolve, resolved

__all__ = ["AvroJudge"]

_Decode = Callable[[bytes], Any]

_HEADER: Final = 5  # bytes of a frame before its payload
_NO_ID: Final = -1
_MOST_EXPLAINED: Final = 10_000
"""Refused records whose path is looked for; of further ones only the reason is known."""


class AvroJudge:
    """A judge of records with a candidate.

    Args:
        candidate: the schema, whose references are versions of the registry.
        client: the registry.
        writes: whether to ask too if the candidate could have written each record.

    Raises:
        SchemaError: If the candidate cannot be used; SchemaParseError likewise.
        SerdeError: If the registry does not know a reference, or does not answer.
    """

    def __init__(self, candidate: Schema, client: RegistryClient, *, writes: bool) -> None:
        self._client, self._writers, self._writes = client, _Writers(client, candidate), writes
        self._reader = self._node(candidate)
        self._text = write(self._reader)
        self._decoder = BatchDecoder(self._text, client)
        self._pairs: dict[SchemaName, tuple[_Decode, _Decode]] = {}
        self._explained = 0
        self._encode, self._again = compile_encoder(self._text), compile_decoder(self._text, self._text)

    def judge(self, batch: Batch, outcome: Outcome) -> None:
        """Add what a batch shows to the outcome; see `Judge`."""
        records = _Records(batch)
        outcome.empty += records.frames.null_count
        refusals = self._decoder.rows(records.frames, records.headers).refusals
        for name, count in records.counts():
            outcome.schemas[str(name)] += count
        for row, refusal in refusals.items():
            outcome.add(self._refused(records, row, refusal.reason), batch.place(row))
        for name, _ in records.counts():
            if self._writes or self._writers.may_change(name):
                for row in records.rows(name):
                    if row not in refusals:
                        self._compare(records, row, name, outcome)

    def _refused(self, records: "_Records", row: int, reason: str) -> Key:
        name = records.name(row)
        if reason.startswith("unknown "):
            return Key(kinds.UNKNOWN_SCHEMA, "", reason, label(name))
        if self._explained < _MOST_EXPLAINED:
            self._explained += 1
            error = self._decoder.explain(records.frame(row), records.header(row))
            if error is not None:
                return key_of(error, name)
        return Key(kinds.UNREADABLE, "", shortened(reason), label(name))

    def _compare(self, records: "_Records", row: int, name: SchemaName, outcome: Outcome) -> None:
        pair = self._pairs.get(name)
        if pair is None:
            pair = self._pairs[name] = self._pair(name)
        payload = open_frame(records.frame(row), records.header(row)).payload
        place = records.batch.place(row)
        written = pair[0](payload)
        for path, before, after in differences(written, pair[1](payload), self._reader):
            key = Key(kinds.CHANGED, path, OTHER_VALUE, str(name))
            outcome.add(key, place, (shown(before), shown(after)))
        if self._writes:
            for path, reason in self._unwritable(written):
                outcome.add(Key(kinds.NOT_WRITABLE, path, reason, str(name)), place)

    def _pair(self, name: SchemaName) -> tuple[_Decode, _Decode]:
        """Return the decoders of a writer's payloads: as they were written, and as the candidate reads them."""
        writer = self._node(schema_named(self._client, name))
        return compile_decoder(writer, writer), compile_decoder(writer, self._reader)

    def _node(self, schema: Schema) -> Node:
        return parse(schema.text, [reference.text for reference in resolve(self._client, schema).values()])

    def _unwritable(self, written: object) -> Iterator[tuple[str, str]]:
        """Yield where and why the candidate cannot write a value as it is."""
        try:
            again = self._again(self._encode(written))
        except (EncodeError, DecodeError) as error:
            yield error.path, shortened(str(error.detail))
        except SerdeError as error:
            yield "", shortened(str(error))
        else:
            for path in lost(written, again):
                yield path, NO_FIELD


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
        effects = outcomes(self._candidate, writer, DEFAULT_LIMITS, is_new=True)
        return any(effect.verdict is not Verdict.SAFE for effect in effects)

    def _parsed(self, schema: Schema) -> ParsedSchema:
        references = resolved(self._client, schema)
        return FORMATS[SchemaFormat(schema.format)].parse(schema.text, strict=False, references=references)


class _Records:
    """The records of a batch in Arrow, with the names of their schemas; most are ids, which are read together."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        sizes = batch.sizes
        ends = np.cumsum(np.maximum(sizes, 0))
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        present = sizes >= 0
        is_valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
        self.frames = pa.Array.from_buffers(
            pa.large_binary(), len(batch), [is_valid, pa.py_buffer(starts), pa.py_buffer(batch.data)]
        )
        self.headers = None if batch.headers is None else pa.array(batch.headers, pa.binary())
        is_plain, self._ids = sizes >= _HEADER, np.full(len(batch), _NO_ID)
        if is_plain.any():
            last = len(batch.data) - _HEADER
            begins = np.minimum(starts[:-1], last)  # shorter frames may begin after it
            is_plain &= batch.data[begins] == 0
            if batch.headers is not None:
                is_plain &= np.array([header is None for header in batch.headers])
            id_at = np.ndarray(last + 1, ">u4", batch.data, offset=1, strides=(1,))
            self._ids = np.where(is_plain, id_at[begins].astype(np.int64), _NO_ID)
        self._others: dict[int, SchemaName] = {}
        for row in np.flatnonzero(~is_plain & present).tolist():
            with suppress(FrameError):
                self._others[row] = open_frame(self.frame(row), self.header(row)).schema
        self._counts: dict[int, int] = {
            pair["values"]: pair["counts"] for pair in pa.array(self._ids).value_counts().to_pylist()
        }

    def frame(self, row: int) -> bytes:
        """Return the bytes of a record that has a value."""
        return self.frames[row].as_py() or b""

    def header(self, row: int) -> bytes | None:
        """Return the record header that names the schema of a record, if there is one."""
        return None if self.batch.headers is None else self.batch.headers[row]

    def counts(self) -> Iterator[tuple[SchemaName, int]]:
        """Yield each name, and how many frames have it."""
        for number, count in self._counts.items():
            if number != _NO_ID:
                yield number, count
        yield from Counter(self._others.values()).items()

    def rows(self, name: SchemaName) -> list[int]:
        """Return the rows of the frames that have a name."""
        plain: list[int] = (self._ids == name).nonzero()[0].tolist() if name in self._counts else []
        return sorted([*plain, *(row for row, other in self._others.items() if other == name)])

    def name(self, row: int) -> SchemaName | None:
        """Return the name in a frame; None if it cannot be read, or there is no frame."""
        number = int(self._ids[row])
        return self._others.get(row) if number == _NO_ID else number
