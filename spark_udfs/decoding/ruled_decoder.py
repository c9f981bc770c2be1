"""The Python worker's part of a decode with rules: a pass over the frames before the batch decoder.

A frame whose schema has rules to run becomes a frame of the reader's version: it is decoded, the rules run over the
value (decryption, migrations, domain rules), and the value is encoded again. The batch decoder then reads it like any
other frame, so types, columns and modes are the same with rules as without. Other frames pass unchanged.

A rule that fails refuses only that record: its dead letter has the frame as it was sent. A registry that does not
answer fails the task.

Rules of this file: no session and no pandas; no plaintext in dead letters and errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from strata.serdes.deserializer import Deserializer
from strata.serdes.errors import (
    DecodeError,
    DecodeReason,
    EncodeError,
    FrameError,
    NoMessage,
    RegistryError,
    RuleError,
    SchemaError,
    SerdeError,
)
from strata.serdes.framing import Frame, MessagePath, SchemaId, SchemaName, kind_of, label, open_frame, split_name
from strata.serdes.functions import Encode
from strata.serdes.model import AVRO, JSON, RegisteredSchema
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.headers import HEADER, VALUE, records
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.refusals import Refusal, errors_of, finish
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable, find_schema, is_unknown
from strata.spark_udfs.rules import DecodeRules, RuleClient, serde_conf

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from strata.serdes.rules.contracts import Reading

__all__ = ["BatchDecoder", "RuledDecoder", "ruled_decoder"]

_MAX_KNOWN = 1000


@lru_cache(maxsize=32)
def ruled_decoder(plan: DecodePlan) -> "RuledDecoder":
    """Return this process's decoder for a plan with rules."""
    if plan.payload is not None:
        from strata.spark_udfs.decoding.payload_decoder import payload_decoder

        return RuledDecoder(plan, payload_decoder(plan))
    from strata.spark_udfs.decoding.avro_decoder import avro_decoder

    return RuledDecoder(plan, avro_decoder(plan))


class BatchDecoder(Protocol):
    """A decoder of batches of frames."""

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """Return one value for each frame."""


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """A schema whose frames the batch decoder reads, or refuses, as they are."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """A schema whose frames are refused until `until`, in seconds of `time.monotonic`."""

    error: SerdeError
    until: float


_Steps: TypeAlias = "Reading | _Unchanged | _Refused"


class RuledDecoder:
    """A decoder of batches of frames whose schemas have rules.

    Args:
        plan: the plan, with rules.
        decoder: the decoder for frames without rules, by the same plan.
    """

    def __init__(self, plan: DecodePlan, decoder: BatchDecoder) -> None:
        if plan.rules is None:
            raise TypeError("the plan has no rules")
        self._plan = plan
        self._decoder = decoder
        self._rules = _Rules(plan, plan.rules)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """Return one value for each frame.

        Args:
            frames: a binary array, or structs of the bytes and the header that names their schema.
            origin: one array for each column of the plan's `origin`, for the error of FAILFAST.

        Raises:
            FrameRefused: If a frame cannot be decoded or a rule fails, in mode FAILFAST.
            RegistryNotUsable: If the registry did not answer.
            TypeError: If the column holds no frames.
        """
        sent, header = records(frames)
        passed, refusals = self._passed(sent, header)
        if refusals and self._plan.mode is Mode.FAILFAST:
            return finish(self._plan, lambda: None, sent, refusals, origin, lambda row: refusals[row].message)
        decoded = self._decoder.decode(passed, origin)
        if self._plan.mode is not Mode.DEADLETTER:
            return decoded
        value, error = decoded.flatten()
        errors = _errors(sent, header, error, refusals)
        return pa.StructArray.from_arrays([value, errors], names=["value", "error"])

    def _passed(self, sent: pa.Array, header: pa.Array | None) -> tuple[pa.Array, dict[int, Refusal]]:
        """Return the frames for the batch decoder, null where a rule failed, and the refusals by row."""
        made: list[bytes | None] = sent.to_pylist()
        headers: list[bytes | None] = [None] * len(made) if header is None else header.to_pylist()
        refusals: dict[int, Refusal] = {}
        for row, data in enumerate(made):
            if data is None:
                continue
            result = self._rules.run(data, headers[row])
            if result is None:
                continue
            headers[row] = None
            if isinstance(result, Refusal):
                refusals[row] = result
            made[row] = None if isinstance(result, Refusal) else result
        frames = pa.array(made, sent.type)
        if header is None:
            return frames, refusals
        return pa.StructArray.from_arrays([frames, pa.array(headers, header.type)], names=[VALUE, HEADER]), refusals


def _errors(sent: pa.Array, header: pa.Array | None, errors: pa.Array, refusals: Mapping[int, Refusal]) -> pa.Array:
    """Return the errors of the batch decoder and of the rules; all have the frame and schema as they were sent."""
    every = dict(refusals)
    for row in errors.is_valid().to_numpy(zero_copy_only=False).nonzero()[0].tolist():
        named = None if header is None else header[row].as_py()
        every[row] = Refusal(errors[row]["reason"].as_py(), _named(sent[row].as_py(), named))
    return errors_of(sent, every)


def _named(data: bytes, header: bytes | None) -> SchemaName | None:
    try:
        return split_name(data, header)[0]
    except FrameError:
        return None


class _Rules:
    """The rules of all schemas that a worker has met."""

    def __init__(self, plan: DecodePlan, rules: DecodeRules) -> None:
        self._client = RuleClient.of(plan.registry, rules.reader)
        self._format = rules.reader.schema.format
        conf = serde_conf(rules.conf, rules.reader.subject) | {"use.latest.version": True}
        self._deserializer = _deserializer(self._format, self._client, conf)
        self._context = Context(None, "key" if rules.is_key else "value")
        self._payload = _writer_of(self._format, self._client, rules.reader)
        self._known: dict[tuple[SchemaName, MessagePath], _Steps] = {}

    def run(self, data: bytes, header: bytes | None) -> bytes | Refusal | None:
        """Return the frame of the reader's version, or why a rule refuses it; None if there is nothing to run.

        Raises:
            RegistryNotUsable: If the registry did not answer.
        """
        self._client.outage = None
        try:
            frame = open_frame(data, header, indexed=self._deserializer.indexed)
        except FrameError:
            return None  # the batch decoder refuses it
        steps = self._steps(frame)
        if isinstance(steps, _Unchanged):
            return None
        if isinstance(steps, _Refused):
            return _refusal(frame, steps.error)
        try:
            value = steps.value(frame.payload, self._context, data)
            self._check(frame.schema)
            return self._payload(value)
        except SerdeError as error:
            self._check(frame.schema)
            return _refusal(frame, error)

    def _check(self, named: SchemaName) -> None:
        if self._client.outage is not None:
            raise RegistryNotUsable(f"the rules of {label(named)} could not run: {self._client.outage}")

    def _steps(self, frame: Frame) -> _Steps:
        key = frame.schema, frame.indexes
        steps = self._known.get(key)
        if steps is None or (isinstance(steps, _Refused) and monotonic() >= steps.until):
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            steps = self._known[key] = self._found(frame)
        return steps

    def _found(self, frame: Frame) -> _Steps:
        """Return the steps for a schema; a refusal expires, since a missing reference or version may come."""
        try:
            if find_schema(self._client, frame.schema).format != self._format:
                return _Unchanged()
            steps = self._deserializer.reading(frame, self._context)
        except NoMessage:
            return _Unchanged()
        except (RegistryError, RuleError, SchemaError) as error:
            self._check(frame.schema)
            return _Refused(error, monotonic() + self._client.settings.missing_ttl)
        return _Unchanged() if steps.plain is not None else steps


def _refusal(frame: Frame, error: SerdeError) -> Refusal:
    """Return why a frame is refused, in few different words."""
    if isinstance(error, RegistryError) and is_unknown(error):
        return Refusal(f"unknown {kind_of(frame.schema)}", frame.schema, str(error))
    if isinstance(error, EncodeError):
        error = DecodeError(DecodeReason.INVALID_VALUE, error.detail, path=error.path)
    if isinstance(error, RuleError):
        return Refusal(f"rule {error.rule}: {error.detail}", frame.schema, f"rule {error.rule}: {error.detail}")
    if isinstance(error, DecodeError):
        invalid = error.reason == DecodeReason.INVALID_VALUE and error.detail
        return Refusal(f"{error.reason}: {error.detail}" if invalid else str(error.reason), frame.schema, str(error))
    return Refusal("unusable writer schema", frame.schema, str(error))


def _deserializer(format: str, client: RuleClient, conf: Any) -> Deserializer:  # noqa: A002 - the field's word
    if format == AVRO:
        from strata.serdes.avro import AvroDeserializer

        return AvroDeserializer(client, conf=conf)
    if format == JSON:
        from strata.serdes.json_schema import JsonDeserializer

        unchecked: Any = {**conf, "validate": False}
        return JsonDeserializer(client, conf=unchecked)
    from strata.serdes.protobuf import ProtobufDeserializer

    made: Deserializer = ProtobufDeserializer(client, conf=conf)
    return made


def _writer_of(format: str, client: RuleClient, reader: RegisteredSchema) -> Encode:  # noqa: A002 - the same
    """Return the function that writes values as frames of the reader's version."""
    schema_id = reader.schema_id
    if format == AVRO:
        from strata.serdes.avro.encoder import compile_encoder
        from strata.serdes.avro.schema import parse
        from strata.serdes.references import resolve

        texts = [reference.text for reference in resolve(client, reader.schema, reader.subject).values()]
        encode, prefix = compile_encoder(parse(reader.schema.text, texts)), SchemaId(schema_id).id_to_bytes()
        return lambda value: prefix + encode(value)
    if format == JSON:
        from strata.serdes.json_schema.json_text import dump

        prefix = SchemaId(schema_id).id_to_bytes()
        return lambda value: prefix + dump(value)
    from strata.serdes.protobuf.files import indexes_of

    @cache
    def front(described: "Descriptor") -> bytes:
        return SchemaId(schema_id, None, indexes_of(described)).id_to_bytes()

    return lambda value: front(type(value).DESCRIPTOR) + type(value).SerializePartialToString(value)
