"""JSON Schema serializers and deserializers: values as UTF-8 JSON text, validated against a JSON Schema.

    serialize = JsonSerializer(client, schema)
    frame = serialize({"id": 7}, topic="orders")
    value = JsonDeserializer(client)(frame)

Values may be plain JSON values, dataclasses, and models of pydantic, attrs and msgspec, at any depth. Needs the extra
`json`.

Rules of this file: it joins `base.py` with `json_text.py` and `validator.py`, and loads references.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import orjson

from strata.serdes.base import T
from strata.serdes.client import Schema
from strata.serdes.conf_types import JsonDeserializerConf, JsonSerializerConf
from strata.serdes.deserializer import Deserializer, FromDict
from strata.serdes.errors import DecodeError, EncodeError, SchemaError
from strata.serdes.framing import MessagePath
from strata.serdes.functions import Decode
from strata.serdes.json_schema.json_text import dump, load
from strata.serdes.json_schema.places import base_uri
from strata.serdes.json_schema.validator import Validator, compiled
from strata.serdes.model import JSON, is_class, schema_given
from strata.serdes.references import MAX_REFERENCES, resolve
from strata.serdes.registry_protocol import Registry
from strata.serdes.serializer import Encode, TextSerializer
from strata.serdes.subject_name_strategies import RecordContext

if TYPE_CHECKING:
    from strata.serdes.json_schema.rule_values import JsonShapes, JsonValues

__all__ = ["JsonDeserializer", "JsonSerializer", "documents_of", "load", "validating", "validator_of"]

Validate = Callable[[object], None]

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_DIALECTS = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_BASE = "http://registry.invalid/"
"""The base of relative references; no host is named `.invalid`, and nothing is fetched."""


class JsonSerializer(TextSerializer[T]):
    """A serializer of JSON values, which registers or looks up their JSON Schema.

    Call it as `Serializer.__call__` says.

    Args:
        client: the registry.
        schema: the JSON Schema of the values, a `Schema` if it has references, or their class
            (`strata.serdes.classes`); None if a setting such as `use.latest.version` chooses one of the registry.
        to_dict: a function from your object and the context to a JSON value; its errors pass through.
        conf: settings under the names of Confluent's clients, see `strata.serdes.serde_settings`.
        encode: writes a value as JSON, instead of ours.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown or not allowed, or neither `schema` nor a setting chooses a schema.
        SchemaError: If the schema is not JSON.
    """

    format = JSON

    def __init__(
        self,
        client: Registry,
        schema: str | Schema | type[T] | None = None,
        to_dict: Callable[[T, RecordContext], object] | None = None,
        conf: JsonSerializerConf | None = None,
        *,
        encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        super().__init__(client, schema, to_dict, conf)
        self._options = {"encode": encode}
        bends = self._bent if self._settings.bends else None
        self._dump: Encode = functools.partial(dump, bends=bends) if encode is None else _as_bytes(encode)

    def _checked(self, schema: Schema) -> str | None:
        return _title(_document(schema.text))

    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encode, tuple[int, ...]]:  # noqa: ARG002
        write = self._dump
        if not self._settings.validate:
            return write, ()
        validate = validator_of(self._client, schema, subject)
        drops, is_valid = self._settings.drop_unknown, validate.is_valid

        def encode(value: object) -> bytes:
            payload = write(value)
            written = load(payload)
            if is_valid(written):
                return payload
            if drops and validate.drop_unknown(written):
                payload = write(written)
            try:
                validate(written)
            except DecodeError as error:
                raise EncodeError(error.detail, path=error.path) from None
            return payload

        return encode, ()

    def _values(self, schema: Schema, subject: str) -> "JsonValues":
        return _values(self._client, schema, subject)


class JsonDeserializer(Deserializer[T]):
    """A deserializer of JSON frames, which validates the values.

    Call it as `Deserializer.__call__` says. `Deserializer` also describes the other arguments, and the errors.

    Args:
        reader_schema: the JSON Schema that values must satisfy; without it the schema that they were written with. A
            class (`strata.serdes.classes`) takes what it has fields for out of values that satisfy the latter.
        from_dict: as in `Deserializer`, such as `lambda value, _: Order.model_validate(value)`.
        decode: parses a payload, instead of ours.
    """

    format = JSON

    def __init__(
        self,
        client: Registry,
        reader_schema: str | Schema | type[T] | None = None,
        from_dict: FromDict[T] | None = None,
        conf: JsonDeserializerConf | None = None,
        *,
        decode: Callable[[bytes], object] | None = None,
    ) -> None:
        arguments = (client, reader_schema, from_dict, conf)
        if is_class(reader_schema):
            from strata.serdes.classes import bound

            reader_schema, from_dict = None, from_dict or bound(reader_schema, JSON).from_dict
        super().__init__(client, from_dict, conf)
        self._given = arguments
        self._options = {"decode": decode}
        self._load = load if decode is None else decode
        wanted = None if reader_schema is None else schema_given(reader_schema, JSON, "reader_schema")
        self._validate = None if wanted is None else validator_of(client, wanted)

    def _reader(self, schema: Schema, indexes: MessagePath, subject: str | None) -> Callable[[bytes], object]:  # noqa: ARG002
        if not self._settings.validate:
            return self._load
        return validating(self._validate or validator_of(self._client, schema, subject), self._load)

    def _name_of(self, schema: Schema, indexes: MessagePath, subject: str | None) -> str | None:  # noqa: ARG002
        return _title(_document(schema.text))

    def _shapes(self, schema: Schema, indexes: MessagePath, subject: str | None) -> "JsonShapes":  # noqa: ARG002
        from strata.serdes.json_schema.rule_values import JsonShapes

        def validator(shape: Schema) -> Validate | None:
            return (self._validate or validator_of(self._client, shape, subject)) if self._settings.validate else None

        return JsonShapes(lambda schema_: _values(self._client, schema_, subject), validator)


def _title(document: object) -> str | None:
    title = document.get("title") if isinstance(document, dict) else None
    return title if isinstance(title, str) else None


def _values(client: Registry, schema: Schema, subject: str | None) -> "JsonValues":
    """Return the values of a schema as rules see them."""
    from strata.serdes.json_schema.rule_values import JsonValues

    documents = _documents(client, schema, subject)
    document = documents[_BASE]
    own = document.get("id") if isinstance(document, dict) else None  # not known: draft 4's `id`
    resources = documents | ({urljoin(_BASE, own): document} if isinstance(own, str) else {})
    return JsonValues(documents, lambda uri: compiled({"$ref": uri}, resources, ""), schema.metadata)


def _as_bytes(encode: Callable[[object], str | bytes]) -> Encode:
    def write(value: object) -> bytes:
        text = encode(value)
        return text.encode() if isinstance(text, str) else text

    return write


def validating(validate: Validate, parse: Callable[[bytes], object] = load) -> Decode:
    """Return a parser of payloads that validates each value with a validator from `validator_of`."""

    def decode(payload: bytes) -> object:
        value = parse(payload)
        validate(value)
        return value

    return decode


def validator_of(client: Registry, schema: Schema, subject: str | None = None) -> Validator:
    """Return a validator, which raises DecodeError for a value that a schema does not allow.

    Args:
        client: the registry, for the schema's references.
        schema: the JSON Schema.
        subject: the subject of the schema; references without a context belong to its context.

    Raises:
        SchemaError: If the schema or a reference cannot be used.
        RegistryError: If the registry does not know a reference.
        RegistryUnavailable: If the registry gives no usable answer after all retries.
    """
    (_, document), *others = _documents(client, schema, subject).items()
    return compiled(document, dict(others), _BASE)


def _documents(client: Registry, schema: Schema, subject: str | None) -> dict[str, object]:
    return documents_of(schema, resolve(client, schema, subject))


def documents_of(schema: Schema, named: Mapping[str, Schema]) -> dict[str, object]:
    """Return a schema and what it refers to, by the URIs that its `$ref`s resolve to; the schema comes first.

    Args:
        schema: the JSON Schema.
        named: the schemas that it refers to, directly or not, by the names of the references.

    Raises:
        SchemaError: If a schema is not JSON, or has too many references.
    """
    document = _document(schema.text)
    resources: dict[str, object] = {}
    _place(document, schema, _BASE, named, resources)
    resources.pop(_BASE, None)
    return {_BASE: document, **resources}


def _place(
    document: object, schema: Schema, uri: str, named: Mapping[str, Schema], resources: dict[str, object]
) -> None:
    """Add what a schema refers to under the URIs that its `$ref`s resolve to."""
    bases = {uri, base_uri(document, uri)}  # validators differ on the base URI
    for reference in schema.references:
        target = named[reference.name]
        for place in {urljoin(base, reference.name) for base in bases} - resources.keys():
            if len(resources) >= 2 * MAX_REFERENCES:
                raise SchemaError(f"the schema has more than {MAX_REFERENCES} references")
            resources[place] = _document(target.text)
            _place(resources[place], target, place, named, resources)


def _document(text: str) -> object:
    """Parse a schema text; a missing or unknown dialect is draft 7, as in the registry."""
    try:
        orjson.loads(text)  # bounds the depth
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not JSON: {error}") from None
    if isinstance(document, dict) and not _DIALECTS.fullmatch(str(document.get("$schema"))):
        return {**document, "$schema": _DRAFT_7}
    return document
