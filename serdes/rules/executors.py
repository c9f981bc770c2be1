"""The interface of rule executors and actions, and the table of built-in executors.

A factory `(client, settings) -> executor` makes an executor once for a serializer or deserializer; any thread may call
it. `settings` are the executor's settings under `rule.executors.…` in the conf.

    class Upper:                                        # a field executor
        def field_transform(self, context):
            return lambda field, value: value.upper() if field.type_name == "STRING" else value

    AvroSerializer(client, schema, conf={"rule.executors": {"UPPER": lambda client, settings: Upper()}})

Rules of this file: names and interfaces; nothing runs here.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

from strata.imports import require
from strata.serdes.client import RegistryClient
from strata.serdes.functions import Convert
from strata.serdes.model import Rule, Schema

__all__ = [
    "EXECUTORS",
    "Action",
    "Convert",
    "Executor",
    "ExecutorFactory",
    "FieldContext",
    "FieldExecutor",
    "FieldTransform",
    "MessageExecutor",
    "RuleContext",
    "same",
]

_T = TypeVar("_T")


def same(value: _T) -> _T:
    """Return the value unchanged."""
    return value


class RuleContext(NamedTuple):
    """A rule and the record that it runs over.

    Attributes:
        rule: the rule.
        phase: `migrationRules`, `domainRules` or `encodingRules`.
        mode: the current operation: WRITE, READ, UPGRADE or DOWNGRADE.
        subject: the subject of the record.
        topic: the topic of the record.
        is_key: whether the value is the record's key.
        source: in a migration, the schema that the value has; else None.
        target: the schema that the value has or gets; in a migration, the schema after it.
        headers: the record headers, as the caller's context has them.
        original_key: the key as the caller passed it, if known.
        original_value: the value as the caller passed it: an object when writing, bytes when reading.
        redact: turns a value that is to be written into JSON without what the schema's rules encrypt.
    """

    rule: Rule
    phase: str
    mode: str
    subject: str
    topic: str | None
    is_key: bool
    source: Schema | None
    target: Schema
    headers: Any = None
    original_key: Any = None
    original_value: Any = None
    redact: Convert = same

    def of_record(
        self, topic: str | None, headers: object, key: object, value: object, *, is_key: bool
    ) -> "RuleContext":
        """Return the context for one record: the topic, the headers, and key and value as the caller passed them."""
        own = (
            self.rule, self.phase, self.mode, self.subject, topic, is_key, self.source, self.target, headers, key,
            value, self.redact,
        )  # fmt: skip
        return tuple.__new__(RuleContext, own)  # half the time of the class's own `__new__`, and each record takes one

    def parameter(self, name: str) -> str | None:
        """Return a parameter of the rule, else the property of that name in the target's metadata, else None."""
        parameter = self.rule.params.get(name)
        if parameter is None and self.target.metadata is not None:
            parameter = self.target.metadata.properties.get(name)
        return parameter


class FieldContext(NamedTuple):
    """The field of a value.

    Attributes:
        full_name: `<record>.<field>` with the record's full name; in JSON the path, such as `$.lines.price`.
        name: the last part of the full name.
        type_name: RECORD, ENUM, ARRAY, MAP, COMBINED, FIXED, STRING, BYTES, INT, LONG, FLOAT, DOUBLE, BOOLEAN or NULL.
        tags: the field's tags, from the schema and from its metadata.
        message: the record, object or message that the field belongs to.
    """

    full_name: str
    name: str
    type_name: str
    tags: frozenset[str]
    message: Any


FieldTransform = Callable[[FieldContext, Any], Any]
"""Returns the new value of a field or, for a CONDITION, whether it holds."""


class MessageExecutor(Protocol):
    """An executor for whole values and, in the encoding phase, for payloads: bytes in, bytes out.

    With an attribute `takes_json` that is true it gets values as JSON, whatever their format. With a method
    `prepare(context)`, as field executors may have too, it gets what it needs before the first record is written.
    """

    def transform(self, context: RuleContext, message: object) -> object:
        """Return the new value or, for a CONDITION, whether it holds.

        Args:
            context: the rule and the record.
            message: the value; in the encoding phase the payload.

        Raises:
            Exception: If the rule fails; any exception counts as failure.
        """


class FieldExecutor(Protocol):
    """An executor for the fields that a rule selects by tags; a rule without tags selects all primitive fields.

    With a method `converter(context, type_name)`, which returns a `Convert` for STRING or BYTES after a first record,
    it says that it needs only the value of such a field, so that a format may convert these fields without a walk.
    """

    def field_transform(self, context: RuleContext) -> FieldTransform:
        """Return the function to call with each field of one record.

        Args:
            context: the rule and the record.

        Raises:
            Exception: If the rule fails; any exception counts as failure, also from the function.
        """


Executor = MessageExecutor | FieldExecutor
ExecutorFactory = Callable[[RegistryClient, Mapping[str, Any]], Executor]

Action = Callable[[RuleContext, Any, Exception | None], None]
"""Runs after a rule, with the value so far and, if the rule failed, the error; it may raise."""


def _of_extra(extra: str, module: str, name: str, *libraries: str) -> ExecutorFactory:
    """Return a factory that is imported on first use, since it needs the libraries of an extra."""

    def make(client: RegistryClient, settings: Mapping[str, object]) -> Executor:
        require(extra, module, *libraries)
        factory: ExecutorFactory = getattr(import_module(module), name)
        return factory(client, settings)

    return make


_CEL = ("cel_expr_python", "google.protobuf", "google.type")

EXECUTORS: Mapping[str, ExecutorFactory] = {
    "CEL": _of_extra("rules", "strata.serdes.rules.cel", "CelExecutor", *_CEL),
    "CEL_FIELD": _of_extra("rules", "strata.serdes.rules.cel", "CelFieldExecutor", *_CEL),
    "JSONATA": _of_extra("rules", "strata.serdes.rules.jsonata", "JsonataExecutor", "jsonata", "re2"),
    "ENCRYPT": _of_extra("encryption", "strata.serdes.encryption.csfle", "FieldEncryption", "cryptography"),
    "ENCRYPT_PAYLOAD": _of_extra("encryption", "strata.serdes.encryption.csfle", "PayloadEncryption", "cryptography"),
}
"""The built-in executors by rule type; ENCRYPT and ENCRYPT_PAYLOAD are client-side encryption (CSFLE)."""
