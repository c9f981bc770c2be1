"""JSON through the registry: values as UTF-8 text, validated against a JSON Schema.

    serialize = JsonSerializer(client, schema)
    frame = serialize({"id": 7}, topic="orders")
    value = JsonDeserializer(client)(frame)

Values may be what JSON knows, dataclasses, and models of pydantic, attrs and msgspec, at any depth. Needs the extra
`json`.

Rules of this file: what the validator sees has been parsed by orjson, whose depth is bounded, since the validator's
is not; it fetches nothing, whatever a schema says.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin

import jsonschema_rs
import orjson

from serdes.client import RegistryClient, Schema
from serdes.configuration import JSON_DESERIALIZER, JSON_SERIALIZER
from serdes.core import Deserializer, Encode, FromDict, Serializer, ToDict
from serdes.errors import DecodeError, DecodeReason, EncodeError, SchemaError
from serdes.model import JSON
from serdes.references import MAX_REFERENCES, resolve
from serdes.strategies import RecordContext

if TYPE_CHECKING:
    from serdes.rules.json_schema import JsonShapes, JsonValues

__all__ = ["JsonDeserializer", "JsonSerializer", "load", "validator_of"]

Validate = Callable[[Any], None]

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_DIALECTS = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_BASE = "http://registry.invalid/"
"""Gives relative references something to be relative to; `.invalid` is no name of any host, and nothing is fetched."""
_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(128)).ljust(256)
_LONG_INTEGER = b"0" * 19
"""So many digits may be more than 64 bits hold; looked for this way, since a pattern takes thirty times as long."""
_LONGEST_MESSAGE = 300
_MOST_EXPLAINED = 10_000
"""Ways through the branches of a schema; where there may be more, an error does not say which one went wrong."""


class JsonSerializer(Serializer):
    """Turns values into frames, and sees to it that the registry knows their schema.

    Args:
        client: the registry.
        schema: the JSON Schema of the values; one with references as a `Schema`; None where a setting such as
            `use.latest.version` says which one of the registry it is.
        to_dict: turns an object of yours into what JSON knows; called with the object and the context.
        conf: settings under the names that Confluent's clients use, see `serdes.configuration`.
    """

    format = JSON
    table = JSON_SERIALIZER

    def __init__(
        self,
        client: RegistryClient,
        schema: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(client, to_dict, conf)
        self._given = (client, schema, to_dict, conf)
        self._schema = Schema(schema, JSON) if isinstance(schema, str) else schema
        self._name = None
        if self._schema is None:
            self._need_choice()
        else:
            self._name = _title(_document(self._schema.text))

    def __reduce__(self) -> tuple[type["JsonSerializer"], tuple[Any, ...]]:
        return type(self), self._given

    def _record_name(self) -> str | None:
        return self._name

    def _local(self, context: RecordContext) -> Schema:  # noqa: ARG002 - an interface
        return cast("Schema", self._schema)

    def _described(self) -> Schema | None:
        return self._schema

    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encode, tuple[int, ...]]:  # noqa: ARG002
        if not self._conf["validate"]:
            return _dump, ()
        validate = validator_of(self._client, schema, subject)

        def encode(value: Any) -> bytes:
            payload = _dump(value)
            try:
                validate(load(payload))
            except DecodeError as error:
                raise EncodeError(error.detail, path=error.path) from None
            return payload

        return encode, ()

    def _values(self, schema: Schema, subject: str) -> "JsonValues":
        return _values(self._client, schema, subject)


class JsonDeserializer(Deserializer):
    """Turns frames into values.

    Args:
        client: the registry.
        reader_schema: the JSON Schema that values must satisfy; without it the one that they were written with.
        from_dict: turns a value into an object of yours, such as `lambda value, _: Order.model_validate(value)`.
        conf: settings under the names that Confluent's clients use, see `serdes.configuration`.
    """

    format = JSON
    table = JSON_DESERIALIZER

    def __init__(
        self,
        client: RegistryClient,
        reader_schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(client, from_dict, conf)
        self._given = (client, reader_schema, from_dict, conf)
        wanted = Schema(reader_schema, JSON) if isinstance(reader_schema, str) else reader_schema
        self._validate = None if wanted is None else validator_of(client, wanted)

    def __reduce__(self) -> tuple[type["JsonDeserializer"], tuple[Any, ...]]:
        return type(self), self._given

    def _reader(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> Callable[[bytes], Any]:  # noqa: ARG002
        if not self._conf["validate"]:
            return load
        validate = self._validate or validator_of(self._client, schema, subject)

        def decode(payload: bytes) -> Any:
            value = load(payload)
            validate(value)
            return value

        return decode

    def _name_of(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> str | None:  # noqa: ARG002
        return _title(_document(schema.text))

    def _shapes(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> "JsonShapes":  # noqa: ARG002
        from serdes.rules.json_schema import JsonShapes

        def validator(shape: Schema) -> Validate | None:
            return (self._validate or validator_of(self._client, shape, subject)) if self._conf["validate"] else None

        return JsonShapes(load, lambda one: _values(self._client, one, subject), validator)


def _title(document: Any) -> str | None:
    title = document.get("title") if isinstance(document, dict) else None
    return title if isinstance(title, str) else None


def _values(client: RegistryClient, schema: Schema, subject: str | None) -> "JsonValues":
    """The values of a schema, as rules see them."""
    from serdes.rules.json_schema import JsonValues

    documents = _documents(client, schema, subject)
    own = documents[_BASE].get("id") if isinstance(documents[_BASE], dict) else None  # `id` is draft 4's, and not known
    resources = documents | ({urljoin(_BASE, own): documents[_BASE]} if isinstance(own, str) else {})
    return JsonValues(
        documents,
        lambda uri: _compiled({"$ref": uri}, resources, ""),
        lambda value: load(_dump(value)),
        schema.metadata,
    )


def validator_of(client: RegistryClient, schema: Schema, subject: str | None = None) -> Validate:
    """A function that raises DecodeError for a value that a schema does not allow."""
    (_, document), *others = _documents(client, schema, subject).items()
    return _compiled(document, dict(others), _BASE)


def _documents(client: RegistryClient, schema: Schema, subject: str | None) -> dict[str, Any]:
    """A schema and what it refers to, by the URIs by which `$ref`s find them; the schema comes first."""
    document = _document(schema.text)
    resources: dict[str, Any] = {}
    _place(document, schema, _BASE, resolve(client, schema, subject), resources)
    resources.pop(_BASE, None)
    return {_BASE: document, **resources}


def _compiled(document: Any, resources: Mapping[str, Any], base: str) -> Validate:
    try:
        registry = jsonschema_rs.Registry(list(resources.items()), draft=jsonschema_rs.Draft7) if resources else None
        validator = jsonschema_rs.validator_for(document, registry=registry, base_uri=base or None, offline=True)
    except (ValueError, TypeError) as error:
        raise SchemaError(f"the JSON Schema cannot be used: {_brief(error)}") from None
    branches = _most_branches([document, *resources.values()])

    def validate(value: Any) -> None:
        if validator.is_valid(value):
            return
        if branches > 1 and branches ** _depth(value) > _MOST_EXPLAINED:
            raise DecodeError(DecodeReason.INVALID_VALUE, "the schema does not allow it, in one of many ways")
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            path = ".".join(map(str, error.instance_path))
            raise DecodeError(DecodeReason.INVALID_VALUE, _reason(error), path=path) from None
        except ValueError:  # the validator's error would hold a value nested too deeply for that
            raise DecodeError(DecodeReason.INVALID_VALUE, "the schema does not allow it, deep inside") from None

    return validate


def _most_branches(documents: list[Any]) -> int:
    """The most branches that a schema offers in one place, if it has a `$ref` by which they may come again below."""
    most, refers, rest = 1, False, documents
    while rest:
        below: list[Any] = []
        for one in rest:
            if isinstance(one, dict):
                most = max([most, *(len(one[key]) for key in ("oneOf", "anyOf") if isinstance(one.get(key), list))])
                refers = refers or not one.keys().isdisjoint(("$ref", "$dynamicRef", "$recursiveRef"))
                below += one.values()
            elif isinstance(one, list):
                below += one
        rest = below
    return most if refers else 1


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        depth, level = depth + 1, [one for values in inner for one in values if isinstance(one, dict | list)]
    return depth


def _place(document: Any, schema: Schema, uri: str, named: Mapping[str, Schema], resources: dict[str, Any]) -> None:
    """Put what a schema refers to under the URIs by which its `$ref`s find it."""
    own = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    bases = {uri, urljoin(uri, own) if isinstance(own, str) else uri}  # validators differ on which one counts
    for reference in schema.references:
        target = named[reference.name]
        for place in {urljoin(base, reference.name) for base in bases} - resources.keys():
            if len(resources) >= 2 * MAX_REFERENCES:
                raise SchemaError(f"the schema has more than {MAX_REFERENCES} references")
            resources[place] = _document(target.text)
            _place(resources[place], target, place, named, resources)


def _document(text: str) -> Any:
    """A schema text as JSON; a dialect that is not said, or not known, is draft 7, as in the registry."""
    try:
        orjson.loads(text)  # bounds the depth
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not JSON: {error}") from None
    if isinstance(document, dict) and not _DIALECTS.fullmatch(str(document.get("$schema"))):
        return {**document, "$schema": _DRAFT_7}
    return document


def load(payload: bytes) -> Any:
    """A payload as a value; DecodeError where it is none."""
    try:
        value = orjson.loads(payload)
        # orjson makes floats of integers beyond 64 bits; the depth is known to be harmless by now
        return json.loads(payload) if _LONG_INTEGER in payload.translate(_DIGITS) else value
    except (ValueError, RecursionError) as error:
        reason = DecodeReason.LIMIT if isinstance(error, RecursionError) else DecodeReason.MALFORMED
        offset = error.pos if isinstance(error, json.JSONDecodeError) else None
        raise DecodeError(reason, "the payload is no JSON that is read", offset=offset) from None


def _dump(value: Any) -> bytes:
    try:
        payload = orjson.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"the value cannot be written as JSON: {error}") from error.__cause__
    if b"null" in payload:  # which is what orjson makes of NaN
        _check_finite(value, ())
    return payload


def _check_finite(value: Any, path: tuple[str, ...]) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise EncodeError("the value cannot be written as JSON: it holds NaN or an infinity", path=".".join(path))
    for name, inner in _inside(value):
        _check_finite(inner, (*path, str(name)))


def _inside(value: Any) -> Iterable[tuple[Any, Any]]:
    if value is None or isinstance(value, str | int | float):
        return ()
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    if dataclasses.is_dataclass(value):
        return [(one.name, getattr(value, one.name, None)) for one in dataclasses.fields(value)]
    try:
        return _inside(_plain(value))
    except TypeError:  # times and the like
        return ()


def _plain(value: Any) -> Any:
    """What orjson knows for what it does not: models of pydantic, msgspec and attrs, told by their marks."""
    kind = type(value)
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if hasattr(kind, "__struct_fields__"):
        pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        fields = {name: getattr(value, attribute) for name, attribute in pairs}
        tag = kind.__struct_config__.tag
        fields = {name: one for name, one in fields.items() if type(one).__name__ != "UnsetType"}
        return fields if tag is None else {kind.__struct_config__.tag_field: tag, **fields}
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
    raise TypeError(f"{kind.__name__} is nothing that JSON knows")


def _reason(error: jsonschema_rs.ValidationError) -> str:
    """Which rule is broken, without the value: a payload has no place in a message."""
    return f"the schema does not allow it: {'/'.join(map(str, error.schema_path)) or 'false'}"


def _brief(error: Exception) -> str:
    return str(error).partition("\n")[0][:_LONGEST_MESSAGE]
