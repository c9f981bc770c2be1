"""The exceptions of this package, as a tree.

    SerdeError
    ├── FrameError            the bytes are not a registry frame
    ├── DecodeError           the payload is not a value of its schema
    ├── EncodeError           the value does not fit the schema
    ├── NoSubject             the subject name strategy lacks a topic or a record name
    ├── SchemaError           the schema text cannot be used
    │   └── NoMessage         the message path in the frame leads to no message of the schema
    ├── RuleError             a rule of the schema failed
    ├── RegistryError         the registry answered with an error
    ├── TokenError            the OAuth token endpoint gave no token
    └── RegistryUnavailable   the registry did not answer; a later call may succeed

The functions below the classes word the errors about values and arguments, so that all formats say the same:
`expected …, got …`, with a path such as `lines[3].price` or `by['key'].price`.

Rules of this file: an error carries its parts as attributes, prints them as one sentence and survives pickling, since a
worker process may hand it to its parent. No message has a payload or credentials: of a value it shows the type; it
quotes names of fields, keys of maps and symbols of enums up to a length.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import Enum, IntEnum, StrEnum
from pathlib import Path

__all__ = [
    "DecodeError",
    "DecodeReason",
    "EncodeError",
    "ErrorCode",
    "FrameError",
    "NoMessage",
    "NoSubject",
    "RegistryError",
    "RegistryUnavailable",
    "RuleError",
    "SchemaError",
    "SerdeError",
    "TokenError",
    "any_of",
    "did_you_mean",
    "expected",
    "got",
    "index_part",
    "join_path",
    "key_part",
    "missing_field",
    "one_of",
    "unknown_field",
    "unknown_symbol",
    "without_zone",
    "wrong_argument",
    "wrong_schema",
    "zoned_time",
]

_LONGEST_NAME = 40
_MOST_NAMES = 5
_ENOUGH_ALIKE = 0.6


class ErrorCode(IntEnum):
    """The registry's error codes that its clients name, `RegistryError.error_code`."""

    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    CONFIG_NOT_FOUND = 40408
    MODE_NOT_FOUND = 40409
    KEY_NOT_FOUND = 40470
    INVALID_SCHEMA = 42201
    INVALID_LEVEL = 42203
    INVALID_MODE = 42204
    OPERATION_NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206


class SerdeError(Exception):
    """The base class of all errors of this package."""


class FrameError(SerdeError):
    """The bytes are not a registry frame.

    Attributes:
        reason: why.
        topic: the topic of the record, if known.
        partition: the partition of the record, if known.
        offset: the offset of the record in its partition, if known.
    """

    def __init__(
        self, reason: str, *, topic: str | None = None, partition: int | None = None, offset: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __str__(self) -> str:
        places = (("topic ", self.topic), ("partition ", self.partition), ("offset ", self.offset))
        return _placed(self.reason, *places)


class NoSubject(SerdeError):
    """The subject name strategy lacks a topic or a record name."""


class SchemaError(SerdeError):
    """The schema text, or a schema that it refers to, cannot be used."""


class NoMessage(SchemaError):
    """The path in a Protobuf frame leads to no message of the schema, which may suit other frames."""


class DecodeReason(StrEnum):
    """The kinds of damage, as short labels for counting."""

    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing bytes"
    INVALID_UTF8 = "invalid utf-8"
    NEGATIVE_LENGTH = "negative length"
    INVALID_INDEX = "invalid index"
    INVALID_BOOLEAN = "invalid boolean"
    INVALID_UUID = "invalid uuid"
    OUT_OF_RANGE = "out of range"
    LIMIT = "limit"
    RESOLUTION = "resolution"
    MALFORMED = "malformed"
    INVALID_VALUE = "invalid value"


class DecodeError(SerdeError):
    """The payload does not decode.

    Attributes:
        reason: the kind of damage, for counting; see `DecodeReason`.
        detail: what exactly is wrong, or empty.
        path: the field of the writer schema at which decoding stopped, such as `lines[].price`; empty at the top.
        offset: the byte of the payload near which decoding stopped, if known.
        schema_id: the id in the frame, if known.
        guid: the GUID in the frame or its headers, if that named the schema.
        glue_version: the schema version in AWS Glue, if that named the schema.
        topic: the topic of the record, if known.
    """

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        path: str = "",
        offset: int | None = None,
        schema_id: int | None = None,
        topic: str | None = None,
    ) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.path = path
        self.offset = offset
        self.schema_id = schema_id
        self.topic = topic
        self.guid: str | None = None
        self.glue_version: str | None = None

    def __str__(self) -> str:
        places = (
            ("at field ", self.path),
            ("near byte ", self.offset),
            ("schema id ", self.schema_id),
            ("schema guid ", self.guid),
            ("Glue schema version ", self.glue_version),
            ("topic ", self.topic),
        )
        return _placed(f"{self.reason}: {self.detail}" if self.detail else str(self.reason), *places)


class EncodeError(SerdeError):
    """The value does not fit the schema.

    Attributes:
        detail: why.
        path: the field at fault, empty for the value as a whole.
        row: the row at fault in a batch; None outside batches and for errors such as a missing column.
    """

    def __init__(self, detail: str, *, path: str = "", row: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.path = path
        self.row = row

    def __str__(self) -> str:
        what = self.detail if self.row is None else f"row {self.row}: {self.detail}"
        return _placed(what, ("at field ", self.path))


class RuleError(SerdeError):
    """A rule of the schema failed, or cannot be run.

    Attributes:
        detail: why.
        rule: the name of the rule.
        subject: the subject whose schema has it.
        topic: the topic of the record, if known.
    """

    def __init__(self, detail: str, *, rule: str = "", subject: str = "", topic: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.rule = rule
        self.subject = subject
        self.topic = topic

    def __str__(self) -> str:
        return _placed(self.detail, ("rule ", self.rule), ("subject ", self.subject), ("topic ", self.topic))


class RegistryError(SerdeError):
    """The registry answered with an error.

    Attributes:
        status: the HTTP status.
        error_code: the registry's error code, see `ErrorCode`; the HTTP status if the answer has none.
        message: the registry's message.
    """

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(status, error_code, message)
        self.status = status
        self.error_code = error_code
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (HTTP {self.status}, error code {self.error_code})"


class TokenError(SerdeError):
    """The OAuth token endpoint rejected the request, or its answer has no usable token."""


class RegistryUnavailable(SerdeError):
    """No usable answer after all retries; the same call may succeed later."""


def _placed(what: str, *places: tuple[str, object]) -> str:
    """Return a message with the known places behind it."""
    where = ", ".join(f"{label}{place}" for label, place in places if place not in (None, ""))
    return f"{what} ({where})" if where else what


def expected(what: str, value: object, advice: str = "", *, path: str = "") -> EncodeError:
    """Return the error for a value of another type: `expected <what>, got <type><advice>`."""
    return EncodeError(f"expected {what}, got {got(value)}{advice}", path=path)


def got(value: object) -> str:
    """Describe a value by its type, never its content, and advise how to convert objects such as models."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__} instead of a value"
    name = type(value).__name__
    if isinstance(value, Enum):
        return f"the Python enum member {name}.{value.name}"
    for is_one, advice in _CONVERSIONS:
        if is_one(value):
            return f"{name}; convert it first, such as by {advice}"
    return name


_CONVERSIONS = (
    (lambda value: hasattr(type(value), "model_dump"), "value.model_dump()"),
    (dataclasses.is_dataclass, "dataclasses.asdict(value)"),
    (lambda value: isinstance(value, tuple) and hasattr(value, "_asdict"), "value._asdict()"),
    (lambda value: hasattr(type(value), "__attrs_attrs__"), "attrs.asdict(value)"),
    (lambda value: hasattr(type(value), "__struct_fields__"), "msgspec.to_builtins(value)"),
)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` with the most similar known name, or an empty string."""
    spelled = {name_.lower(): name_ for name_ in known}
    near = get_close_matches(str(name)[:_LONGEST_NAME].lower(), spelled, 1, _ENOUGH_ALIKE)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""


def unknown_field(name: object, known: Iterable[str], path: str = "") -> EncodeError:
    """Return the error for a field that the schema lacks; `path` is the path of the record around it."""
    place = f".{_cut(name)}" if isinstance(name, str) else key_part(name)
    return EncodeError(f"the schema has no such field{did_you_mean(name, known)}", path=join_path(path, place))


def missing_field(name: str, path: str = "") -> EncodeError:
    """Return the error for a field without a value; `path` is the path of the record around it."""
    return EncodeError(
        "expected a value, got none: the field is required and has no default", path=join_path(path, f".{name}")
    )


def unknown_symbol(value: object, symbols: Iterable[str]) -> EncodeError:
    """Return the error for a value that is not a symbol of an enum."""
    symbols = list(symbols)
    if isinstance(value, Enum):
        fits = [f"its {part} is one" for part in ("name", "value") if getattr(value, part) in symbols]
        return expected("a symbol of the enum", value, f"; {fits[0]}" if fits else "")
    if not isinstance(value, str):
        return expected("a symbol of the enum", value)
    return EncodeError(f"expected {one_of(symbols)}, got {_cut(value)!r}{did_you_mean(value, symbols)}")


def without_zone() -> EncodeError:
    """Return the error for a datetime without a time zone where an instant is expected."""
    return EncodeError(
        "expected a datetime with a time zone, got one without; add it, such as by value.replace(tzinfo=UTC)"
    )


def zoned_time() -> EncodeError:
    """Return the error for a time of day with a time zone, which the wire cannot carry."""
    return EncodeError("expected a time of day without a time zone, got one with a time zone")


def one_of(choices: Iterable[str]) -> str:
    """Join choices as text, the first few of many: `'A', 'B' or 'C'`."""
    names = [repr(_cut(choice)) for choice in choices]
    if len(names) > _MOST_NAMES:
        return f"one of {', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return any_of(names)


def any_of(names: Sequence[str]) -> str:
    """Join names as text: `A, B or C`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def wrong_argument(name: str, what: str, value: object, advice: str = "") -> TypeError:
    """Return the TypeError for an argument of another type.

    Args:
        name: the parameter.
        what: the type that it must have, with its article.
        value: the argument; only its type is shown.
        advice: how to get the right type.
    """
    cls = value if isinstance(value, type) else type(value)
    described = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    described = f"the class {described}" if isinstance(value, type) else described
    return TypeError(f"{name}: expected {what}, got {described}{advice and f'; {advice}'}")


def wrong_schema(value: object, name: str = "schema") -> TypeError:
    """Return the TypeError for an argument that is not a schema, with advice for common types."""
    return wrong_argument(name, "a schema text or a strata.serdes.client.Schema", value, _schema_advice(value))


def _schema_advice(value: object) -> str:
    match value:
        case dict() | list():
            return "give its text, json.dumps(schema)"
        case bytes():
            return "give its text, schema.decode()"
        case Path():
            return "give its text, path.read_text()"
    if hasattr(value, "model_json_schema"):
        model = value.__name__ if isinstance(value, type) else type(value).__name__
        return f"its JSON Schema is json.dumps({model}.model_json_schema())"
    return "give its schema_str" if hasattr(value, "schema_str") else ""


def index_part(index: object) -> str:
    """Return the path part for an item of an array."""
    return f"[{index}]"


def key_part(key: object) -> str:
    """Return the path part for a value of a map."""
    return f"[{_cut(key)!r}]"


def join_path(outer: str, inner: str) -> str:
    """Return the path of an inner value: `outer.inner` or `outer[3]`."""
    return f"{outer}{inner}" if inner[:1] in ("", "[", ".") and outer else f"{outer}.{inner}".lstrip(".")


def _cut(name: object) -> str:
    return str(name)[:_LONGEST_NAME]
