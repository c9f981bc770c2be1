"""The errors of confluent-kafka's names, which are also those of `strata.serdes`.

    SchemaRegistryError          RegistryError: the registry rejects a request
    └── SchemaRegistryUnavailable    RegistryUnavailable: it gives no usable answer after all retries
    OAuthTokenError              TokenError
    ValueRefused                 EncodeError, SerializationError, ValueError, TypeError
    FrameRefused                 FrameError, SerializationError, ValueError
    PayloadRefused               DecodeError, SerializationError, ValueError
    SubjectMissing               NoSubject, SerializationError, ValueError
    SchemaParseException         SchemaError, SerializationError, ValueError
    └── UnknownType
    RuleFailed                   RuleError, SerializationError
    SerdeFailed                  SerdeError, SerializationError: anything else

confluent-kafka lets errors of its libraries pass, such as ValueError and TypeError of fastavro; what a program catches
there it catches here, as far as these bases go.

Rules of this file: names and bases; `translated` is the only way from an error of the engine to one of these.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from strata.serdes import errors
from strata.serdes.confluent.serialization import SerializationError

__all__ = [
    "FrameRefused",
    "OAuthTokenError",
    "PayloadRefused",
    "RuleFailed",
    "SchemaParseException",
    "SchemaRegistryError",
    "SchemaRegistryUnavailable",
    "SerdeFailed",
    "SerializationError",
    "SubjectMissing",
    "UnknownType",
    "ValueRefused",
    "refuse_unknown",
    "translated",
    "translates",
    "translating",
]

P = ParamSpec("P")
T = TypeVar("T")


class SchemaRegistryError(errors.RegistryError):
    """The registry answered with an error.

    Args:
        http_status_code: the HTTP status; -1 if there was no answer.
        error_code: the registry's error code; -1 if unknown.
        error_message: the registry's message.
    """

    UNKNOWN = -1

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(http_status_code, error_code, error_message)
        self.http_status_code = http_status_code
        self.error_message = error_message

    def __str__(self) -> str:
        return f"{self.error_message} (HTTP status code {self.http_status_code}, SR code {self.error_code})"


class SchemaRegistryUnavailable(SchemaRegistryError, errors.RegistryUnavailable):
    """The registry gave no usable answer after all retries; the same call may succeed later."""


class OAuthTokenError(errors.TokenError):
    """No OAuth token could be got.

    Args:
        message: why.
        status_code: the HTTP status of the token endpoint, if known.
        response_text: what it answered, if known.
    """

    def __init__(self, message: str, status_code: int | None = None, response_text: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.response_text = response_text


class ValueRefused(errors.EncodeError, SerializationError, ValueError, TypeError):
    """The value does not fit the schema."""


class FrameRefused(errors.FrameError, SerializationError, ValueError):
    """The bytes are not a registry frame."""


class PayloadRefused(errors.DecodeError, SerializationError, ValueError):
    """The payload is not a value of its schema."""


class SubjectMissing(errors.NoSubject, SerializationError, ValueError):
    """The subject name strategy lacks a topic or a record name."""


class SchemaParseException(errors.SchemaError, SerializationError, ValueError):
    """The schema cannot be used."""


class UnknownType(SchemaParseException):
    """The schema uses a type that it does not define; raised as `SchemaParseException`."""


class RuleFailed(errors.RuleError, SerializationError):
    """A rule of the schema failed."""


class SerdeFailed(errors.SerdeError, SerializationError):
    """Any other failure, such as an answer that is not that of a schema registry."""


_SAME: Mapping[type[errors.SerdeError], type[Exception]] = {
    errors.EncodeError: ValueRefused,
    errors.FrameError: FrameRefused,
    errors.DecodeError: PayloadRefused,
    errors.NoSubject: SubjectMissing,
    errors.SchemaError: SchemaParseException,
    errors.RuleError: RuleFailed,
    errors.SerdeError: SerdeFailed,
}


def translated(error: errors.SerdeError) -> Exception:
    """Return an error of the engine as one that programs for confluent-kafka catch, with the same parts."""
    if isinstance(error, SerializationError | SchemaRegistryError | OAuthTokenError):
        return cast("Exception", error)
    match error:
        case errors.RegistryError():
            return SchemaRegistryError(error.status, error.error_code, error.message)
        case errors.RegistryUnavailable():
            last = error.__cause__
            known = (last.status, last.error_code) if isinstance(last, errors.RegistryError) else (-1, -1)
            return SchemaRegistryUnavailable(*known, str(error))
        case errors.TokenError():
            return OAuthTokenError(str(error))
    for error_type, same in _SAME.items():
        if isinstance(error, error_type):
            new = same.__new__(same)
            new.args = error.args
            new.__dict__.update(error.__dict__)
            return new
    return error


@contextmanager
def translating() -> Iterator[None]:
    """Raise the errors of the engine inside the `with` as `translated` returns them."""
    try:
        yield
    except errors.SerdeError as error:
        raise translated(error) from error


def translates(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose errors of the engine are `translated`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except errors.SerdeError as error:
            raise translated(error) from error

    return call


def refuse_unknown(conf: Mapping[str, object], known: Mapping[str, object] | frozenset[str]) -> None:
    """Raise ValueError for settings that are unknown, with the nearest known name."""
    for name in sorted(conf.keys() - set(known)):
        raise ValueError(f"Unrecognized properties: {name}{errors.did_you_mean(name, known)}")
