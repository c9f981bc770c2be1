"""Avro serializers and deserializers for registry frames.

    serialize = AvroSerializer(client, schema)
    frame = serialize({"id": 7}, topic="orders")
    value = AvroDeserializer(client)(frame)

Both fit confluent-kafka's `SerializingProducer` and `DeserializingConsumer` as `value.serializer`, `key.serializer` and
so on, and threads may share them. None is a tombstone, both ways.

Rules of this file: it joins `base.py` with `compile_encoder` and `compile_decoder`, and handles no bytes of Avro.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from strata.serdes.avro.decoder import DEFAULT_LIMITS, Decoder, DecoderOptions, Limits, compile_decoder
from strata.serdes.avro.encoder import Encoder, compile_encoder
from strata.serdes.avro.schema import Enum, Fixed, Node, Record, parse
from strata.serdes.base import T
from strata.serdes.client import Schema
from strata.serdes.conf_types import AvroDeserializerConf, AvroSerializerConf
from strata.serdes.deserializer import Deserializer, FromDict
from strata.serdes.framing import MessagePath
from strata.serdes.model import AVRO, is_class, schema_given
from strata.serdes.references import resolve
from strata.serdes.registry_protocol import Registry, settings_of
from strata.serdes.serializer import TextSerializer
from strata.serdes.subject_name_strategies import RecordContext
from strata.shared_cache import SharedCache

if TYPE_CHECKING:
    from strata.serdes.avro.rule_values import AvroShapes, AvroValues

__all__ = ["AvroDeserializer", "AvroSerializer"]


class AvroSerializer(TextSerializer[T]):
    """A serializer of Avro values, which registers or looks up their schema.

    Call it as `Serializer.__call__` says.

    Args:
        client: the registry.
        schema: the schema of the values, a `Schema` if it has references, or their class
            (`strata.serdes.classes`); None if a setting such as `use.latest.version` chooses one of the registry.
        to_dict: a function from your object and the context to a value of the schema; its errors pass through.
        conf: settings under the names of Confluent's clients, see `strata.serdes.serde_settings`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown or not allowed, or neither `schema` nor a setting chooses a schema.
        SchemaError: If the schema cannot be used.
        RegistryError: If the registry does not know a reference of the schema.
    """

    format = AVRO

    def __init__(
        self,
        client: Registry,
        schema: str | Schema | type[T] | None = None,
        to_dict: Callable[[T, RecordContext], object] | None = None,
        conf: AvroSerializerConf | None = None,
    ) -> None:
        super().__init__(client, schema, to_dict, conf)

    @cached_property
    def _encoders(self) -> SharedCache[Schema, Encoder]:
        return SharedCache(settings_of(self._client).cache_size)

    def _checked(self, schema: Schema) -> str | None:
        node = _node(self._client, schema)
        self._encoders.get(schema.bare, lambda: self._compiled(node))
        return _name(node)

    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encoder, tuple[int, ...]]:  # noqa: ARG002
        return self._encoders.get(schema.bare, lambda: self._compiled(_node(self._client, schema, subject))), ()

    def _compiled(self, node: Node) -> Encoder:
        settings = self._settings
        return compile_encoder(
            node,
            drop_unknown=settings.drop_unknown,
            round_times=settings.round_times,
            missing=settings.missing,
            bends=self._bent if settings.bends else None,
            drops_bent=settings.drops_bent,
        )

    def _values(self, schema: Schema, subject: str) -> "AvroValues":
        from strata.serdes.avro.rule_values import AvroValues

        return AvroValues(_node(self._client, schema, subject), schema.metadata)


class AvroDeserializer(Deserializer[T]):
    """A deserializer of Avro frames, whatever registered schema they were written with (schema evolution).

    Call it as `Deserializer.__call__` says. `Deserializer` also describes the other arguments, and the errors.

    Args:
        reader_schema: the schema of the values wanted, or their class (`strata.serdes.classes`); without it each value
            has the shape of its writer schema.
        limits: bounds for hostile payloads.
        numeric_times: leave dates, times and timestamps numbers, see `compile_decoder`.
        tagged_unions: return union values as `Branch`, see `compile_decoder`.
        named_records: return the records of unions as pairs of full name and value.
    """

    format = AVRO

    def __init__(
        self,
        client: Registry,
        reader_schema: str | Schema | type[T] | None = None,
        from_dict: FromDict[T] | None = None,
        conf: AvroDeserializerConf | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        numeric_times: bool = False,
        tagged_unions: bool = False,
        named_records: bool = False,
    ) -> None:
        arguments = (client, reader_schema, from_dict, conf)
        options: DecoderOptions = {
            "limits": limits,
            "numeric_times": numeric_times,
            "tagged_unions": tagged_unions,
            "named_records": named_records,
        }
        self._decoding = options.copy()
        if is_class(reader_schema):
            from strata.serdes.classes import bound

            binding = bound(reader_schema, AVRO)
            reader_schema, from_dict = binding.schema, from_dict or binding.from_dict
            self._decoding["named_records"] |= binding.names_records
        super().__init__(client, from_dict, conf)
        self._given, self._options = arguments, options
        self._wanted = None if reader_schema is None else schema_given(reader_schema, AVRO, "reader_schema")
        self._node = None if self._wanted is None else _node(client, self._wanted)

    def _reader(self, schema: Schema, indexes: MessagePath, subject: str | None) -> Decoder:  # noqa: ARG002
        wanted = None if self._wanted is not None and schema.bare == self._wanted.bare else self._node
        return compile_decoder(_node(self._client, schema, subject), wanted, **self._decoding)

    def _name_of(self, schema: Schema, indexes: MessagePath, subject: str | None) -> str | None:  # noqa: ARG002
        return _name(_node(self._client, schema, subject))

    def _shapes(self, schema: Schema, indexes: MessagePath, subject: str | None) -> "AvroShapes":  # noqa: ARG002
        from strata.serdes.avro.rule_values import AvroShapes

        node = cache(lambda schema_: _node(self._client, schema_, subject))
        return AvroShapes(node, schema, self._node, self._decoding)


def _name(node: Node) -> str | None:
    return node.name if isinstance(node, Record | Enum | Fixed) else None


def _node(client: Registry, schema: Schema, subject: str | None = None) -> Node:
    return parse(schema.text, [reference.text for reference in resolve(client, schema, subject).values()])
