"""What the registry's answers say, as values.

Rules of this file: frozen, comparable, no HTTP. An unknown property of an answer is ignored, a missing one that older
registries do not send is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["AVRO", "JSON", "PROTOBUF", "CompatibilityResult", "Reference", "RegisteredSchema", "Schema"]

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """The name by which a schema uses another subject's version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema text with its format and references."""

    text: str
    format: str = AVRO
    references: tuple[Reference, ...] = ()

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Schema":
        """Read the schema properties of an answer."""
        references = tuple(
            Reference(str(item["name"]), str(item["subject"]), int(item["version"]))
            for item in answer.get("references") or ()
        )
        return cls(str(answer["schema"]), str(answer.get("schemaType") or AVRO), references)

    def to_request(self) -> dict[str, Any]:
        """The properties that a request carries; Avro and no references are what absence means."""
        request: dict[str, Any] = {"schema": self.text}
        if self.format != AVRO:
            request["schemaType"] = self.format
        if self.references:
            request["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in self.references
            ]
        return request


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
