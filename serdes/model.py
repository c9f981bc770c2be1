"""The registry's requests and answers as values.

Rules of this file: frozen, comparable, no HTTP. An unknown property of an answer is ignored; a property that older
registries do not send is None.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self, get_origin

from strata.serdes.errors import wrong_schema
from strata.serdes.functions import Convert

__all__ = [
    "AVRO",
    "JSON",
    "PROTOBUF",
    "CompatibilityResult",
    "Metadata",
    "Reference",
    "RegisteredSchema",
    "Rule",
    "RuleSet",
    "Schema",
    "is_class",
    "schema_given",
]

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference of a schema to another one.

    Attributes:
        name: the name that the schema uses: a full name in Avro, a URI in JSON Schema, an import path in Protobuf.
        subject: the subject of the other schema.
        version: its version there.
    """

    name: str
    subject: str
    version: int


class _Part:
    """A part of a schema. As JSON it has the names of its fields in camel case, and leaves out empty ones."""

    __slots__ = ()

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Self:
        """Parse the part of an answer; a field that is missing or empty has its default."""
        fields_ = {}
        for field_ in fields(cls):  # type: ignore[arg-type]  # each part is a dataclass
            value = answer.get(_camel(field_.name))
            if value or (value is not None and field_.default is None):
                fields_[field_.name] = _READERS[field_.type](value)
            elif field_.type is str and field_.default is MISSING:
                fields_[field_.name] = ""
        return cls(**fields_)

    def to_request(self) -> dict[str, Any]:
        """Return the part as a request carries it."""
        return _request(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata(_Part):
    """The metadata of a schema.

    Attributes:
        tags: tags of fields, by the field's path, in which `*` and `**` are wildcards.
        properties: texts by name.
        sensitive: the names of properties that are not shown to everyone.
    """

    tags: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(_Part):
    """A rule of a data contract: a transform of records, or a condition on them.

    Attributes:
        name: unique in the rule set.
        type: the executor: CEL, CEL_FIELD, JSONATA, ENCRYPT, …
        kind: TRANSFORM or CONDITION.
        mode: when it runs: UPGRADE, DOWNGRADE, UPDOWN (both), WRITE, READ or WRITEREAD (both).
        expr: the expression, in the language of the executor.
        tags: the tags that select fields.
        params: the executor's parameters.
        doc: a description.
        on_success: the action after success; for a mode of two directions `write,read` may give one for each.
        on_failure: the action after failure; in the same form.
        disabled: whether the rule is skipped.
    """

    name: str
    type: str
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    expr: str | None = None
    tags: frozenset[str] = frozenset()
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    doc: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet(_Part):
    """The rules of a schema.

    Attributes:
        migration_rules: rules between versions, for UPGRADE and DOWNGRADE.
        domain_rules: rules over values, for WRITE and READ.
        encoding_rules: rules over payloads, for WRITE and READ.
        enable_at: which side runs them; clients run those for None, ALL and CLIENT.
    """

    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @property
    def for_clients(self) -> bool:
        """Whether clients run the rules."""
        return self.enable_at in (None, "ALL", "CLIENT")

    def concerns(self, mode: str) -> bool:
        """Return whether domain or encoding rules run for `WRITE` or `READ`; migration rules do not count."""
        return any(rule.mode in (mode, "WRITEREAD") for rule in (*self.domain_rules, *self.encoding_rules))


_READERS: Mapping[object, Convert] = {
    str: str,
    str | None: lambda value: value,
    bool: lambda value: value is True,
    frozenset[str]: lambda value: frozenset(map(str, value)),
    Mapping[str, str]: lambda value: {str(name): str(text) for name, text in value.items()},
    Mapping[str, frozenset[str]]: lambda value: {str(name): frozenset(map(str, tags)) for name, tags in value.items()},
    tuple[Rule, ...]: lambda value: tuple(map(Rule.from_answer, value)),
}
"""What parses a field of a part, by the type of the field."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema text with its format, references, metadata and rules.

    Attributes:
        text: the schema as text; for Protobuf, `.proto` source or a base64 descriptor.
        format: AVRO, JSON or PROTOBUF.
        references: the schemas that the text uses.
        metadata: tags and properties, if any.
        rule_set: the rules of its data contract, if any.
    """

    text: str
    format: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Schema":
        """Parse the schema properties of an answer.

        Raises:
            LookupError: If a property is missing; `RegistryClient.ask` turns built-in errors into SerdeError.
        """
        references = tuple(
            Reference(str(item["name"]), str(item["subject"]), int(item["version"]))
            for item in answer.get("references") or ()
        )
        metadata, rule_set = answer.get("metadata"), answer.get("ruleSet")
        return cls(
            str(answer["schema"]),
            str(answer.get("schemaType") or AVRO),
            references,
            Metadata.from_answer(metadata) if metadata else None,
            RuleSet.from_answer(rule_set) if rule_set else None,
        )

    def to_request(self) -> dict[str, Any]:
        """Return the properties that a request carries; a missing format is Avro."""
        request: dict[str, Any] = {"schema": self.text}
        if self.format != AVRO:
            request["schemaType"] = self.format
        if self.references:
            request["references"] = [_request(reference) for reference in self.references]
        if self.metadata is not None:
            request["metadata"] = self.metadata.to_request()
        if self.rule_set is not None:
            request["ruleSet"] = self.rule_set.to_request()
        return request

    @property
    def bare(self) -> "Schema":
        """The schema without metadata and rules: what describes values."""
        return (
            self if self.metadata is None and self.rule_set is None else Schema(self.text, self.format, self.references)
        )

    @property
    def client_rules(self) -> list[Rule]:
        """The enabled rules that clients run, such as encryption (CSFLE)."""
        rules = self.rule_set
        if rules is None or not rules.for_clients:
            return []
        return [
            rule for rule in (*rules.migration_rules, *rules.domain_rules, *rules.encoding_rules) if not rule.disabled
        ]


def is_class(hint: object) -> bool:
    """Return whether an argument is a class, or a generic class with its parameters, instead of a schema."""
    return isinstance(hint, type) or isinstance(get_origin(hint), type)


def schema_given(schema: object, kind: str | None = None, name: str = "schema") -> Schema:
    """Return the schema that a caller passed as text or `Schema`.

    Args:
        schema: a text or a `Schema`.
        kind: the format that it must have; None is any, and a text is then Avro.
        name: the parameter, for the error.

    Raises:
        TypeError: If it is neither a text nor a Schema; the message says what to pass.
        ValueError: If it is a Schema of another format.
    """
    if isinstance(schema, str):
        return Schema(schema, kind or AVRO)
    if not isinstance(schema, Schema):
        raise wrong_schema(schema, name)
    if kind not in (None, schema.format):
        raise ValueError(f"{name}: expected a schema in the format {kind}, got {schema.format}")
    return schema


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with its id and the subject and version that hold it.

    Attributes:
        subject: the subject.
        version: the version; None if a registry before 8.0 answered a registration.
        schema_id: the id in the context of the subject.
        guid: the GUID; None from registries before 8.0.
        schema: the schema.
    """

    subject: str
    version: int | None
    schema_id: int
    guid: str | None
    schema: Schema

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any], subject: str, sent: Schema | None = None) -> "RegisteredSchema":
        """Parse an answer.

        Args:
            answer: the parsed JSON.
            subject: the subject of the request, for answers that leave it out.
            sent: the schema of the request, for answers that leave it out.

        Raises:
            LookupError: If a property is missing; `RegistryClient.ask` turns built-in errors into SerdeError.
        """
        schema = Schema.from_answer(answer) if sent is None or "schema" in answer else sent
        version, guid = answer.get("version"), answer.get("guid")
        return cls(
            subject=str(answer.get("subject") or subject),
            version=None if version is None else int(version),
            schema_id=int(answer["id"]),
            guid=None if guid is None else str(guid),
            schema=schema,
        )


@dataclass(frozen=True, slots=True)
class CompatibilityResult:
    """The result of a compatibility check; it is true if the schema is compatible.

    Attributes:
        is_compatible: whether the schema is compatible.
        messages: why it is not, if the check was verbose.
        findings: the reasons as JSON objects, if the registry is a Strata and the check was verbose; each has the
            `witness` that shows it if the check asked for that.
    """

    is_compatible: bool
    messages: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "CompatibilityResult":
        """Parse an answer; without `verbose` it has no messages.

        Raises:
            LookupError: If a property is missing; `RegistryClient.ask` turns built-in errors into SerdeError.
        """
        messages = tuple(str(message) for message in answer.get("messages") or ())
        return cls(bool(answer["is_compatible"]), messages, tuple(answer.get("findings") or ()))

    def __bool__(self) -> bool:
        return self.is_compatible


def _request(part: Any) -> dict[str, Any]:
    """Return a part of a schema as JSON: its fields in camel case, except empty ones."""
    properties = ((field_.name, _json(getattr(part, field_.name))) for field_ in fields(part))
    return {_camel(name): value for name, value in properties if value is not None and value not in ([], {})}


def _json(value: object) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case tuple():
            return [_request(item) for item in value]
        case Mapping():
            return {name: _json(part) for name, part in value.items()}
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
