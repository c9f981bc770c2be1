"""What can go wrong between a value and its frame, as a tree of exceptions.

    SerdeError
    ├── FrameError            the bytes are not a registry frame
    ├── DecodeError           the payload is not a value of its schema
    ├── EncodeError           the value does not fit the schema
    ├── NoSubject             the subject name strategy lacks a topic or a record name
    ├── SchemaError           the schema text cannot be used
    │   └── NoMessage         the path in the frame leads to no message of the schema
    ├── RuleError             a rule of the schema failed
    ├── RegistryError         the registry answered: no
    ├── TokenError            the endpoint that gives out access tokens gave none
    └── RegistryUnavailable   the registry did not answer; trying later may help

Rules of this file: an error carries its parts as attributes, prints them as one sentence and survives pickling, since
a worker process may have to hand it to its parent. No payload and no credentials in any message.
"""

from enum import StrEnum

__all__ = [
    "DecodeError",
    "DecodeReason",
    "EncodeError",
    "FrameError",
    "NoMessage",
    "NoSubject",
    "RegistryError",
    "RegistryUnavailable",
    "RuleError",
    "SchemaError",
    "SerdeError",
    "TokenError",
]


class SerdeError(Exception):
    """Any failure of this package."""


class FrameError(SerdeError):
    """The bytes are not a registry frame; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoSubject(SerdeError):
    """The subject name strategy lacks a topic or a record name."""


class SchemaError(SerdeError):
    """The schema text, or what it refers to, cannot be used."""


class NoMessage(SchemaError):
    """The path in a Protobuf frame leads to no message of the schema, which may be good for other frames."""


class DecodeReason(StrEnum):
    """The short kinds of damage, fit for counting."""

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
        reason: the short kind of damage, for counting.
        detail: what exactly, or empty.
        path: the field of the writer schema at which reading stopped, such as `lines[].price`; empty at the top.
        offset: the byte of the payload near which reading stopped, when known.
        schema_id: the id in the frame, when known.
        guid: the GUID in the frame or its headers, where that named the schema.
        topic: where the frame came from, when known.
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

    def __str__(self) -> str:
        places = (
            ("at field ", self.path or None),
            ("near byte ", self.offset),
            ("schema id ", self.schema_id),
            ("schema guid ", self.guid),
            ("topic ", self.topic),
        )
        where = ", ".join(f"{label}{place}" for label, place in places if place is not None)
        what = f"{self.reason}: {self.detail}" if self.detail else str(self.reason)
        return f"{what} ({where})" if where else what


class EncodeError(SerdeError):
    """The value does not fit the schema.

    Attributes:
        detail: why.
        path: the field at fault, empty for the value as a whole.
        row: in a batch the row at fault; None where none is, such as when a column is missing.
    """

    def __init__(self, detail: str, *, path: str = "", row: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.path = path
        self.row = row

    def __str__(self) -> str:
        what = self.detail if self.row is None else f"row {self.row}: {self.detail}"
        return f"{what} (at field {self.path})" if self.path else what


class RuleError(SerdeError):
    """A rule of the schema failed, or cannot be run.

    Attributes:
        detail: why.
        rule: the name of the rule.
        subject: the subject whose schema has it.
        topic: where the record goes to or came from, when known.
    """

    def __init__(self, detail: str, *, rule: str = "", subject: str = "", topic: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.rule = rule
        self.subject = subject
        self.topic = topic

    def __str__(self) -> str:
        places = (("rule ", self.rule), ("subject ", self.subject), ("topic ", self.topic))
        where = ", ".join(f"{label}{place}" for label, place in places if place)
        return f"{self.detail} ({where})" if where else self.detail


class RegistryError(SerdeError):
    """The registry answered with an error.

    Attributes:
        status: the HTTP status.
        error_code: the registry's own number, such as 40403; the status where it gave none.
        message: the registry's sentence.
    """

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(status, error_code, message)
        self.status = status
        self.error_code = error_code
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (HTTP {self.status}, error code {self.error_code})"


class TokenError(SerdeError):
    """The token endpoint refused, or what it answered is no token."""


class RegistryUnavailable(SerdeError):
    """No usable answer after all retries; the same call may succeed later."""
