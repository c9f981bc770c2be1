"""What serializers, deserializers and the client report about their work, to an observer of the caller.

    client = RegistryClient(url, observer=PrometheusObserver())

Without an observer nothing is called and nothing is measured: the functions that report are put in place of the plain
ones only when there is one. An observer belongs to a client and to everything that is made with it. It is not pickled
with them: `Observer.elsewhere` says what takes its place in another process, such as a Spark worker.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from strata.serdes.errors import (
    DecodeError,
    EncodeError,
    FrameError,
    NoSubject,
    RegistryError,
    RegistryUnavailable,
    RuleError,
    SchemaError,
    TokenError,
)

__all__ = ["OK", "Observer", "observe", "outcome_of"]

OK = "ok"
"""The outcome of a record without an error."""

_NOT_FOUND = 404
_OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (EncodeError, "encode_error"),
    (FrameError, "no_frame"),
    (SchemaError, "schema_error"),
    (RuleError, "rule_error"),
    (NoSubject, "no_subject"),
    (RegistryError, "registry_error"),
    (RegistryUnavailable, "registry_unavailable"),
    (TokenError, "token_error"),
)


class Observer:
    """An observer that ignores everything; override what is of interest.

    Any thread may call it. It must not raise.
    """

    def record(self, operation: str, schema_format: str, outcome: str) -> None:
        """Note one record that was encoded or decoded; tombstones are not noted.

        Args:
            operation: `encode` or `decode`.
            schema_format: AVRO, JSON or PROTOBUF.
            outcome: `ok` or why it failed; see `outcome_of`.
        """

    def cached(self, operation: str, *, hit: bool) -> None:
        """Note whether the schema of a record was known without asking the registry."""

    def request(self, method: str, status: int | None, seconds: float) -> None:
        """Note one attempt of a request to the registry.

        Args:
            method: the HTTP method.
            status: the HTTP status; None if there was no answer.
            seconds: how long it took.
        """

    def retry(self, method: str, path: str, error: Exception, seconds: float) -> None:
        """Note that a request failed and is about to be sent again, perhaps after a pause.

        Args:
            method: the HTTP method.
            path: the path of the request.
            error: why it failed.
            seconds: how long ago the first attempt began.
        """

    def rule(self, rule_type: str, rule_mode: str, subject: str, rule_name: str, action: str, *, failed: bool) -> None:
        """Note one run of a rule.

        Args:
            rule_type: its type, such as CEL.
            rule_mode: the mode in which it ran, such as WRITE.
            subject: the subject whose schema has it.
            rule_name: its name.
            action: the action that follows, such as NONE, ERROR or DLQ.
            failed: whether it failed.
        """

    def skipped(self, rule_type: str, rule_mode: str, subject: str, rule_name: str) -> None:
        """Note a record that passed without a rule of its schema.

        The rule is disabled or repeats another, or the record is a dead letter of this rule, sent again.

        Args:
            rule_type: its type, such as CEL.
            rule_mode: the mode in which it would have run.
            subject: the subject whose schema has it.
            rule_name: its name.
        """

    def elsewhere(self) -> "Callable[[], Observer] | None":
        """Return what makes or finds the observer of pickled copies, in the process that has them.

        Returns:
            A function of a module; None, the default, if copies are to have no observer.
        """
        return None


def outcome_of(error: Exception) -> str:
    """Return an error as a short label, of which there are few: the reason of a `DecodeError`, or the kind of error.

    Args:
        error: what a serializer or deserializer has raised.
    """
    if isinstance(error, DecodeError):
        return str(error.reason).replace(" ", "_")
    if isinstance(error, RegistryError) and error.status == _NOT_FOUND:
        return "unknown_schema"
    return next((label for error_type, label in _OUTCOMES if isinstance(error, error_type)), "other_error")


class Observed(Protocol):
    """A serializer or deserializer, as far as it is observed."""

    format: str

    @property
    def known(self) -> Callable[..., object]:
        """The method that returns what is cached for a record; None on a cache miss."""


def observe(serde: Observed, observer: Observer, operation: str, prepare: Sequence[str], finish: str) -> None:
    """Put functions that report in place of some methods of one serializer or deserializer.

    Args:
        serde: the serializer or deserializer, which has `known`.
        observer: the observer.
        operation: `encode` or `decode`.
        prepare: the methods that a record passes first; a failure ends it.
        finish: the method that it passes last.
    """
    known, record = serde.known, partial(observer.record, operation, serde.format)

    def reported(*args: object) -> object:
        answer = known(*args)
        observer.cached(operation, hit=answer is not None)
        return answer

    methods = {name: _reporting(getattr(serde, name), record) for name in prepare}
    vars(serde).update(methods, known=reported, **{finish: _reporting(getattr(serde, finish), record, is_last=True)})


def _reporting(
    call: Callable[..., object], record: Callable[[str], None], *, is_last: bool = False
) -> Callable[..., object]:
    def reported(*args: object) -> object:
        try:
            result = call(*args)
        except Exception as error:
            record(outcome_of(error))
            raise
        if is_last:
            record(OK)
        return result

    return reported
