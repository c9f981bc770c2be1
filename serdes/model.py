"""What the registry's answers say, as values.

Rules of this file: frozen, comparable, no HTTP. An unknown property of an answer is ignored, a missing one that older
registries do not send is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serdes.errors import wrong_schema

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
    "schema_given",
]

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """The name by which a schema uses another subject's version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What is known of a schema beside its text.

    Attributes:
        tags: path (`*` and `**` stand for names in it) -> tags of the fields there.
        properties: texts by name.
        sensitive: the properties that are not to be shown to everyone.
    """

    tags: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    sensitive: frozenset[str] = frozenset()

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Metadata":
        """Read the property `metadata` of an answer."""
        return cls(
            tags={str(path): frozenset(map(str, tags)) for path, tags in (answer.get("tags") or {}).items()},
            properties={str(name): str(value) for name, value in (answer.get("properties") or {}).items()},
            sensitive=frozenset(map(str, answer.get("sensitive") or ())),
        )

    def to_request(self) -> dict[str, Any]:
        """The same as a request carries it."""
        tags = {path: sorted(tags) for path, tags in self.tags.items()}
        return _present(tags=tags, properties=dict(self.properties), sensitive=sorted(self.sensitive))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to do with, or to ask of, the records of a schema.

    Attributes:
        name: unique in the rule set.
        type: what carries it out: CEL, CEL_FIELD, JSONATA, …
        kind: TRANSFORM or CONDITION.
        mode: when: UPGRADE, DOWNGRADE, UPDOWN (both), WRITE, READ or WRITEREAD (both).
        expr: in the language of the type.
        tags: those of the fields that it is for.
        params: of the type's own.
        doc: what it means.
        on_success: the action after it; with a mode of two directions there may be two, `there,back`.
        on_failure: the action if it fails; likewise.
        disabled: whether it is passed over.
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

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Rule":
        """Read one rule of an answer."""
        return cls(
            name=str(answer.get("name") or ""),
            type=str(answer.get("type") or ""),
            kind=str(answer.get("kind") or "TRANSFORM"),
            mode=str(answer.get("mode") or "WRITEREAD"),
            expr=answer.get("expr"),
            tags=frozenset(map(str, answer.get("tags") or ())),
            params={str(name): str(value) for name, value in (answer.get("params") or {}).items()},
            doc=answer.get("doc"),
            on_success=answer.get("onSuccess"),
            on_failure=answer.get("onFailure"),
            disabled=answer.get("disabled") is True,
        )

    def to_request(self) -> dict[str, Any]:
        """The same as a request carries it."""
        return _present(
            name=self.name,
            doc=self.doc,
            kind=self.kind,
            mode=self.mode,
            type=self.type,
            tags=sorted(self.tags),
            params=dict(self.params),
            expr=self.expr,
            onSuccess=self.on_success,
            onFailure=self.on_failure,
            disabled=self.disabled,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules of a schema, by the phase in which they run; `enable_at` is where they do."""

    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "RuleSet":
        """Read the property `ruleSet` of an answer."""
        migration, domain, encoding = (
            tuple(map(Rule.from_answer, answer.get(phase) or ()))
            for phase in ("migrationRules", "domainRules", "encodingRules")
        )
        return cls(
            migration_rules=migration,
            domain_rules=domain,
            encoding_rules=encoding,
            enable_at=answer.get("enableAt"),
        )

    def concerns(self, mode: str) -> bool:
        """Whether there are rules for writing (WRITE) or reading (READ), migrations aside."""
        return any(rule.mode in (mode, "WRITEREAD") for rule in (*self.domain_rules, *self.encoding_rules))

    def to_request(self) -> dict[str, Any]:
        """The same as a request carries it."""
        return _present(
            migrationRules=[rule.to_request() for rule in self.migration_rules],
            domainRules=[rule.to_request() for rule in self.domain_rules],
            encodingRules=[rule.to_request() for rule in self.encoding_rules],
            enableAt=self.enable_at,
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema text with its format and references, and the data contract that goes with it."""

    text: str
    format: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Schema":
        """Read the schema properties of an answer."""
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
        """The properties that a request carries; Avro and no references are what absence means."""
        request: dict[str, Any] = {"schema": self.text}
        if self.format != AVRO:
            request["schemaType"] = self.format
        if self.references:
            request["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in self.references
            ]
        if self.metadata is not None:
            request["metadata"] = self.metadata.to_request()
        if self.rule_set is not None:
            request["ruleSet"] = self.rule_set.to_request()
        return request

    @property
    def bare(self) -> "Schema":
        """What describes values: without the contract."""
        return (
            self if self.metadata is None and self.rule_set is None else Schema(self.text, self.format, self.references)
        )


def schema_given(given: Any, kind: str | None = None, name: str = "schema") -> Schema:
    """Return what a caller gave as a schema of a format, or of any; an error says what to give instead.

    Raises:
        TypeError: it is neither a text nor a Schema.
        ValueError: it is a Schema of another format.
    """
    if isinstance(given, str):
        return Schema(given, kind or AVRO)
    if not isinstance(given, Schema):
        raise wrong_schema(given, name)
    if kind not in (None, given.format):
        raise ValueError(f"{name}: expected a schema of the format {kind}, got one of {given.format}")
    return given


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema under the subject and version that hold it; registries before 8.0 tell less when registering."""

    subject: str
    version: int | None
    schema_id: int
    guid: str | None
    schema: Schema

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any], subject: str, sent: Schema | None = None) -> "RegisteredSchema":
        """Read an answer; what it leaves out was `sent`."""
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
    """Whether a schema could be registered, and if not, why."""

    is_compatible: bool
    messages: tuple[str, ...] = ()

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "CompatibilityResult":
        """Read an answer; without `verbose` it has no messages."""
        return cls(bool(answer["is_compatible"]), tuple(str(one) for one in answer.get("messages") or ()))

    def __bool__(self) -> bool:
        return self.is_compatible


def _present(**properties: Any) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None and value not in ([], {})}
