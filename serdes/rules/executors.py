"""What carries rules out: the interface of executors and actions, and the table of those that are there.

An executor is made once for a serializer or deserializer, by a factory `(client, settings) -> executor`, and is called
from any of its threads. `settings` are those under `rule.executors.…` in the conf that concern it.

    class Upper:                                        # a field executor
        def field_transform(self, context):
            return lambda field, value: value.upper() if field.type_name == "STRING" else value

    AvroSerializer(client, schema, conf={"rule.executors": {"UPPER": lambda client, settings: Upper()}})

Rules of this file: names and shapes; nothing runs here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from serdes.client import RegistryClient
from serdes.model import Rule, Schema

__all__ = [
    "EXECUTORS",
    "Action",
    "Executor",
    "ExecutorFactory",
    "FieldContext",
    "FieldExecutor",
    "FieldTransform",
    "MessageExecutor",
    "RuleContext",
]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One rule, and the record over which it runs.

    Attributes:
        rule: the rule.
        phase: `migrationRules`, `domainRules` or `encodingRules`.
        mode: what is being done: WRITE, READ, UPGRADE or DOWNGRADE.
        subject: the subject of the record.
        topic: where the record goes to or came from.
        is_key: whether it is the record's key.
        source: in a migration the schema that the value has; else None.
        target: the schema that the value has or gets: in a migration the one after it.
        headers: of the record, as the caller's context has them.
        original_key: the key as it was handed over, if that is known.
        original_value: the value as it was handed over: to be written as it is, to be read as bytes.
        redact: gives a value to be written without what the rules of the schema encrypt, as JSON.
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
    redact: Callable[[Any], Any] = _same

    def parameter(self, name: str) -> str | None:
        """A parameter of the rule, or else a property of the target's metadata."""
        found = self.rule.params.get(name)
        if found is None and self.target.metadata is not None:
            found = self.target.metadata.properties.get(name)
        return found


@dataclass(frozen=True, slots=True)
class FieldContext:
    """The field that a value stands in.

    Attributes:
        full_name: `<record>.<field>`, the record by its full name; in JSON the path, as `$.lines.price`.
        name: the last part of it.
        type_name: RECORD, ENUM, ARRAY, MAP, COMBINED, FIXED, STRING, BYTES, INT, LONG, FLOAT, DOUBLE, BOOLEAN or NULL.
        tags: those of the schema, and those that the metadata gives it.
        message: the record, object or message that the field belongs to.
    """

    full_name: str
    name: str
    type_name: str
    tags: frozenset[str]
    message: Any


FieldTransform = Callable[[FieldContext, Any], Any]
"""The new value of a field; for a CONDITION whether it holds."""


class MessageExecutor(Protocol):
    """Runs rules over whole values; in the encoding phase over payloads: bytes in, bytes out.

    One with an attribute `takes_json` that is true gets values as JSON, whatever their format.
    """

    def transform(self, context: RuleContext, message: Any) -> Any:
        """The new value; for a CONDITION whether it holds."""


class FieldExecutor(Protocol):
    """Runs rules over the fields that they select by tags: all primitive fields if a rule has none."""

    def field_transform(self, context: RuleContext) -> FieldTransform:
        """What to call with each field of one record."""


Executor = MessageExecutor | FieldExecutor
ExecutorFactory = Callable[[RegistryClient, Mapping[str, Any]], Executor]

Action = Callable[[RuleContext, Any, Exception | None], None]
"""What happens after a rule: called with the value so far, and the error if the rule failed. It may raise."""


def _at(module: str, name: str) -> ExecutorFactory:
    """A factory that is imported when it is needed, since what it stands on is an extra."""

    def make(client: RegistryClient, settings: Mapping[str, Any]) -> Executor:
        factory: ExecutorFactory = getattr(import_module(module), name)
        return factory(client, settings)

    return make


EXECUTORS: Mapping[str, ExecutorFactory] = {
    "CEL": _at("serdes.rules.cel", "CelExecutor"),
    "CEL_FIELD": _at("serdes.rules.cel", "CelFieldExecutor"),
    "JSONATA": _at("serdes.rules.jsonata", "JsonataExecutor"),
    "ENCRYPT": _at("serdes.encryption.executors", "FieldEncryption"),
    "ENCRYPT_PAYLOAD": _at("serdes.encryption.executors", "PayloadEncryption"),
}
"""The types of rules that are known without being given."""
