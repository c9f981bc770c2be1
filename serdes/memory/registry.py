"""The subjects, schemas and settings of a registry in memory, and the decisions on them.

Rules of this file: values and rules, no paths; errors have the codes of the REST API. The tests in
`tests/serdes/test_memory_registry.py` run on this and on the service.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat, SchemaParseError
from strata.serdes.errors import ErrorCode, RegistryError

__all__ = ["MemoryRegistry", "Version", "context_of"]

LATEST = "latest"
_NOT_FOUND, _CONFLICT, _INVALID = 404, 409, 422
_INCOMPATIBLE, _INVALID_VERSION = 40901, 42202
_MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_HIGHEST = 2**31 - 1
_MOST_REFERENCES = 1000


def _not_found(code: ErrorCode, message: str) -> RegistryError:
    return RegistryError(_NOT_FOUND, code, message)


def _invalid(code: int, message: str) -> RegistryError:
    return RegistryError(_INVALID, code, message)


def context_of(subject: str) -> str:
    """Return the context of a qualified subject; `.` for the default one."""
    if subject.startswith(":.") and ":" in subject[2:]:
        return subject[1 : subject.index(":", 2)]
    return "."


@dataclass(frozen=True, slots=True)
class Content:
    """What a version holds, and what its identity is computed from."""

    format: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()
    contract: str = "{}"
    """Metadata and rules, as JSON text."""

    @property
    def guid(self) -> str:
        """A UUID that depends on the content only; it is not the one of a service."""
        digest = hashlib.md5(repr((self.text, self.references, self.contract)).encode(), usedforsecurity=False)
        return str(UUID(bytes=digest.digest()))

    def to_json(self) -> dict[str, object]:
        """Return the properties that an answer has for a schema."""
        shown: dict[str, object] = {"schema": self.text, "schemaType": self.format, "guid": self.guid}
        if self.references:
            names = ("name", "subject", "version")
            shown["references"] = [dict(zip(names, reference, strict=True)) for reference in self.references]
        return shown | {name: value for name, value in json.loads(self.contract).items() if value is not None}


@dataclass(slots=True)
class Version:
    """A version of a subject."""

    subject: str
    number: int
    schema_id: int
    content: Content
    parsed: ParsedSchema
    deleted: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the version as an answer has it."""
        return {"subject": self.subject, "version": self.number, "id": self.schema_id, **self.content.to_json()}


@dataclass(slots=True)
class _Context:
    by_id: dict[int, Content] = field(default_factory=dict)
    ids: dict[Content, int] = field(default_factory=dict)
    highest: int = 0


class MemoryRegistry:
    """The whole content of a registry; its callers take care that one request runs at a time."""

    def __init__(self) -> None:
        self._contexts: dict[str, _Context] = {}
        self._subjects: dict[str, list[Version]] = {}
        self.configs: dict[str | None, dict[str, object]] = {}
        self.modes: dict[str | None, str] = {}

    # Reading

    def contexts(self) -> list[str]:
        """Return the contexts that hold schemas, and the default one."""
        return sorted({".", *(name for name, context in self._contexts.items() if context.by_id)})

    def subjects(self, *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Return the names of subjects."""
        names = [name for name, versions in self._subjects.items() if versions]
        live = {name for name in names if any(not subject.deleted for subject in self._subjects[name])}
        return sorted(name for name in names if (name not in live if deleted_only else deleted or name in live))

    def versions(self, subject: str, *, deleted: bool = False, deleted_only: bool = False) -> list[Version]:
        """Return the versions of a subject, in order.

        Raises:
            RegistryError: 40401 if there is none.
        """
        versions = self._of(subject)
        versions = [
            version for version in versions if (version.deleted if deleted_only else deleted or not version.deleted)
        ]
        if not versions:
            raise self._no_subject(subject)
        return versions

    def _of(self, subject: str) -> list[Version]:
        return self._subjects.get(subject, [])

    def _live(self, subject: str) -> list[Version]:
        return [version for version in self._of(subject) if not version.deleted]

    @staticmethod
    def _no_subject(subject: str) -> RegistryError:
        return _not_found(ErrorCode.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")

    def version(self, subject: str, number: str, *, deleted: bool = False) -> Version:
        """Return a version by its number, or the latest live one.

        Raises:
            RegistryError: 40401 for an unknown subject, 40402 for an unknown version, 42202 if it is not a number.
        """
        wanted = _number_of(number)
        versions = self.versions(subject, deleted=deleted)
        if wanted is None:
            live = [version_ for version_ in versions if not version_.deleted]
            return (live or versions)[-1]
        for version_ in versions:
            if version_.number == wanted:
                return version_
        raise _not_found(ErrorCode.VERSION_NOT_FOUND, f"Version {wanted} not found.")

    def with_metadata(self, subject: str, pairs: Mapping[str, str], *, deleted: bool) -> Version:
        """Return the newest version whose metadata has all these properties.

        Raises:
            RegistryError: 40401 for an unknown subject, 40403 if no version has them.
        """
        for version in reversed(self.versions(subject, deleted=deleted)):
            properties = ((json.loads(version.content.contract).get("metadata") or {}).get("properties")) or {}
            if pairs.items() <= properties.items():
                return version
        raise _not_found(ErrorCode.SCHEMA_NOT_FOUND, "Schema not found")

    def content(self, schema_id: int, subject: str | None) -> Content:
        """Return the schema with an id.

        Raises:
            RegistryError: 40403 if the id is unknown.
        """
        content = self._contexts.get(context_of(subject or ""), _Context()).by_id.get(schema_id)
        if content is None:
            raise _not_found(ErrorCode.SCHEMA_NOT_FOUND, f"Schema {schema_id} not found")
        return content

    def content_by_guid(self, guid: str) -> Content:
        """Return the schema with a GUID.

        Raises:
            RegistryError: 40403 if the GUID is unknown.
        """
        for context in self._contexts.values():
            for content in context.by_id.values():
                if content.guid == guid:
                    return content
        raise _not_found(ErrorCode.SCHEMA_NOT_FOUND, f"Schema {guid} not found")

    def holders(self, schema_id: int, subject: str | None, *, deleted: bool) -> list[Version]:
        """Return the versions that hold the schema with an id, by subject and version.

        Raises:
            RegistryError: 40403 if the id is unknown.
        """
        content = self.content(schema_id, subject)
        versions = self._all(context_of(subject or ""))
        holders = [version for version in versions if version.content == content and (deleted or not version.deleted)]
        return [
            version for version in holders if subject is None or version.subject == subject or subject.endswith(":")
        ]

    def referrers(self, version: Version, *, deleted: bool = False) -> list[int]:
        """Return the ids of the schemas that refer to a version."""
        ids = {
            referrer.schema_id
            for versions in self._subjects.values()
            for referrer in versions
            if (deleted or not referrer.deleted)
            and any(
                (self._qualified(referrer.subject, subject), number) == (version.subject, version.number)
                for _, subject, number in referrer.content.references
            )
        }
        return sorted(ids)

    @staticmethod
    def _qualified(referrer: str, subject: str) -> str:
        context = context_of(referrer)
        return subject if context == "." or subject.startswith(":.") else f":{context}:{subject}"

    # Writing

    def register(self, subject: str, body: Mapping[str, object], *, normalize: bool) -> Version:
        """Return the version that holds a schema; add it if there is none.

        Raises:
            RegistryError: 40901 if it is incompatible, 42201 if it is invalid, 42205 if the subject is read-only.
        """
        live = self._live(subject)
        if live and not str(body.get("schema") or "").strip():  # a change of metadata or rules alone
            body = {**live[-1].content.to_json(), **{name: value for name, value in body.items() if name != "schema"}}
        version_ = self._find(subject, body, normalize=normalize, deleted=False)
        if version_ is not None:
            return version_
        self._check_writable(subject)
        merged = {**body, **self._inherited(body, live)}
        content, parsed = self._read(subject, merged, normalize=normalize)
        result = check(parsed, _previous(live), self.level(subject))
        if not result.compatible:
            said = ", ".join((*result.messages, self._settings(subject)))
            raise RegistryError(
                _CONFLICT,
                _INCOMPATIBLE,
                f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
                f"details: [{said}]",
            )
        context = self._contexts.setdefault(context_of(subject), _Context())
        schema_id = context.ids.get(content) or context.highest + 1
        context.highest = max(context.highest, schema_id)
        context.ids[content], context.by_id[schema_id] = schema_id, content
        versions = self._subjects.setdefault(subject, [])
        version = Version(
            subject, max((version.number for version in versions), default=0) + 1, schema_id, content, parsed
        )
        versions.append(version)
        return version

    @staticmethod
    def _inherited(body: Mapping[str, object], live: Sequence[Version]) -> dict[str, object]:
        """Return metadata and rules of the latest version, for a schema without its own."""
        if not live:
            return {}
        contract = json.loads(live[-1].content.contract)
        return {name: contract.get(name) for name in ("metadata", "ruleSet") if not body.get(name)}

    def lookup(self, subject: str, body: Mapping[str, object], *, normalize: bool, deleted: bool) -> Version:
        """Return the version that holds a schema.

        Raises:
            RegistryError: 40401 for an unknown subject, 40403 if it does not hold the schema, 42201 if it is invalid.
        """
        self.versions(subject, deleted=deleted)
        version_ = self._find(subject, body, normalize=normalize, deleted=deleted)
        if version_ is None:
            raise _not_found(ErrorCode.SCHEMA_NOT_FOUND, "Schema not found")
        return version_

    def _find(self, subject: str, body: Mapping[str, object], *, normalize: bool, deleted: bool) -> Version | None:
        content, parsed = self._read(subject, body, normalize=normalize)
        versions = [version_ for version_ in self._of(subject) if deleted or not version_.deleted]
        for version in reversed(versions):
            if version.content == content:
                return version
        for version in reversed(versions):
            alike = (version.content.format, version.content.references) == (content.format, content.references)
            bare = content.contract in ("{}", version.content.contract)
            if alike and bare and FORMATS[parsed.format].equivalent(version.parsed, parsed, limits=DEFAULT_LIMITS):
                return version
        return None

    def _read(
        self, subject: str, body: Mapping[str, Any], *, normalize: bool, strict: bool = True
    ) -> tuple[Content, ParsedSchema]:
        text, name = body.get("schema"), body.get("schemaType") or "AVRO"
        if not isinstance(text, str) or not text.strip():
            raise _invalid(ErrorCode.INVALID_SCHEMA, "Empty schema")
        if name not in list(SchemaFormat):
            raise _invalid(ErrorCode.INVALID_SCHEMA, f"Invalid schema type {name}")
        references = tuple(
            (str(reference["name"]), str(reference["subject"]), int(reference["version"]))
            for reference in body.get("references") or ()
        )
        resolved = self._resolved(subject, references)
        row = FORMATS[SchemaFormat(name)]
        try:
            parsed = row.parse(text, strict=strict, references=resolved, limits=DEFAULT_LIMITS)
            stored = row.normalize(parsed, limits=DEFAULT_LIMITS) if normalize else parsed.canonical
        except SchemaParseError as error:
            raise _invalid(ErrorCode.INVALID_SCHEMA, f"Invalid schema of subject {subject}: {error}") from None
        contract = {part: body[part] for part in ("metadata", "ruleSet") if body.get(part)}
        if normalize:
            references = tuple(sorted(references))
        return Content(name, stored, references, json.dumps(contract, sort_keys=True)), parsed

    def _resolved(self, subject: str, references: Sequence[tuple[str, str, int]]) -> list[ResolvedReference]:
        """Return what a schema refers to, directly or not, each after what it needs itself."""
        resolved: dict[str, ResolvedReference] = {}

        def visit(referrer: str, wanted: Sequence[tuple[str, str, int]]) -> None:
            for name, named, number in wanted:
                other = self._qualified(referrer, named)
                if name in resolved:
                    continue
                version = next((version_ for version_ in self._of(other) if version_.number == number), None)
                if version is None or len(resolved) >= _MOST_REFERENCES:
                    message = f'No schema reference found for subject "{named}" and version {number}'
                    raise _invalid(ErrorCode.INVALID_SCHEMA, message)
                visit(other, version.content.references)
                resolved[name] = ResolvedReference(name, version.content.text, f"{other} {number}")

        visit(subject, references)
        return list(resolved.values())

    def compatibility(
        self, subject: str, number: str | None, body: Mapping[str, object], *, normalize: bool, verbose: bool
    ) -> dict[str, object]:
        """Return whether a schema is compatible with one version, or with those that a registration compares.

        Raises:
            RegistryError: 40401 or 40402 for an unknown version, 42201 if the schema is invalid and `verbose` is false.
        """
        live = self._live(subject)
        if number is not None and _number_of(number) is not None:
            live = [version_ for version_ in live if version_.number == _number_of(number)]
            if not live:
                raise _not_found(ErrorCode.VERSION_NOT_FOUND, f"Version {number} not found.")
        elif number is not None:
            live = live[-1:]
        try:
            _, parsed = self._read(subject, body, normalize=normalize)
        except RegistryError as error:
            if not verbose:
                raise
            return {"is_compatible": False, "messages": [error.message]}
        result = check(parsed, _previous(live), self.level(subject))
        answer: dict[str, object] = {"is_compatible": result.compatible}
        if not verbose:
            return answer
        return {**answer, "messages": [*result.messages, *([] if result.compatible else [self._settings(subject)])]}

    def _settings(self, subject: str) -> str:
        """Return the last line of the messages about an incompatible schema."""
        return f"{{validateFields: 'false', compatibility: '{self.level(subject)}'}}"

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject, softly first, and return the deleted versions.

        Raises:
            RegistryError: 40401, 40404 or 40405 by what was deleted before; 42205 if the subject is read-only; 42206 if
                another schema refers to it.
        """
        versions = self._of(subject)
        if not versions:
            raise self._no_subject(subject)
        live = self._live(subject)
        if not permanent and not live:
            message = f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
            raise _not_found(ErrorCode.SUBJECT_SOFT_DELETED, message)
        self._check_writable(subject)
        going = versions if permanent else live
        for version in going:
            self._check_unreferenced(version, permanent=permanent, within=subject)
        if permanent and live:
            message = f"Subject '{subject}' was not deleted first before being permanently deleted"
            raise _not_found(ErrorCode.SUBJECT_NOT_SOFT_DELETED, message)
        numbers = [version.number for version in going]
        for version in going:
            version.deleted = True
        if permanent:
            self._forget(subject, going)
        return numbers

    def delete_version(self, subject: str, number: str, *, permanent: bool) -> int:
        """Delete a version, softly first, and return its number.

        Raises:
            RegistryError: 40401, 40402, 40406 or 40407 by what was deleted before; 42202 for a bad number; 42205 if the
                subject is read-only; 42206 if another schema refers to it.
        """
        wanted = _number_of(number)
        versions = self._of(subject)
        if not versions:
            raise self._no_subject(subject)
        versions_ = (
            self._live(subject)[-1:]
            if wanted is None
            else [version for version in versions if version.number == wanted]
        )
        if not versions_:
            raise _not_found(ErrorCode.VERSION_NOT_FOUND, f"Version {-1 if wanted is None else wanted} not found.")
        version = versions_[0]
        named = f"Subject '{subject}' Version {version.number}"
        if version.deleted and not permanent:
            message = f"{named} was soft deleted.Set permanent=true to delete permanently"
            raise _not_found(ErrorCode.VERSION_SOFT_DELETED, message)
        self._check_writable(subject)
        self._check_unreferenced(version, permanent=permanent)
        if permanent and not version.deleted:
            message = f"{named} was not deleted first before being permanently deleted"
            raise _not_found(ErrorCode.VERSION_NOT_SOFT_DELETED, message)
        version.deleted = True
        if permanent:
            self._forget(subject, [version])
        return version.number

    def _forget(self, subject: str, going: Sequence[Version]) -> None:
        self._subjects[subject] = [
            version for version in self._of(subject) if all(version is not gone for gone in going)
        ]
        context = self._contexts[context_of(subject)]
        for version in going:
            held = any(other.content == version.content for other in self._all(context_of(subject)))
            if not held and context.ids.pop(version.content, None) is not None:
                del context.by_id[version.schema_id]
        if not self._subjects[subject]:
            self._subjects.pop(subject)
            self.configs.pop(subject, None)
            self.modes.pop(subject, None)

    def _all(self, context: str) -> list[Version]:
        return [
            subject
            for name in sorted(self._subjects)
            if context_of(name) == context
            for subject in self._subjects[name]
        ]

    def _check_unreferenced(self, version: Version, *, permanent: bool, within: str | None = None) -> None:
        own = {version.schema_id for version in self._of(within or "")}
        if set(self.referrers(version, deleted=permanent)) - own:
            message = (
                "One or more references exist to the schema "
                f"{{magic=1,keytype=SCHEMA,subject={version.subject},version={version.number}}}."
            )
            raise _invalid(ErrorCode.REFERENCE_EXISTS, message)

    # Settings

    def level(self, subject: str) -> Level:
        """Return the compatibility level in force for a subject."""
        for scope in (subject, None):
            config = self.configs.get(scope, {})
            if "compatibilityLevel" in config:
                return Level(str(config["compatibilityLevel"]))
        return Level.BACKWARD

    def config(self, subject: str | None, *, in_force: bool) -> dict[str, object]:
        """Return the config of a subject, or the global one.

        Raises:
            RegistryError: 40408 if the subject has none, and not the one in force is asked for.
        """
        own = self.configs.get(subject)
        if own is not None and subject is not None:
            return own if not in_force else {"compatibilityLevel": self.level(subject), **own}
        if subject is not None and not in_force:
            message = f"Subject '{subject}' does not have subject-level compatibility configured"
            raise _not_found(ErrorCode.CONFIG_NOT_FOUND, message)
        return {"compatibilityLevel": "BACKWARD", **self.configs.get(None, {})}

    def set_config(self, subject: str | None, body: Mapping[str, object]) -> dict[str, object]:
        """Merge properties into a config, and return the result.

        Raises:
            RegistryError: 42203 if the level is unknown, 42205 if the subject is read-only.
        """
        if self.modes.get(subject, self.modes.get(None)) == "READONLY":
            raise self._read_only(subject or "")
        config = dict(self.configs.get(subject, {}))
        for name, value in body.items():
            wire = "compatibilityLevel" if name in ("compatibility", "compatibilityLevel") else name
            if wire == "compatibilityLevel" and value is not None:
                value = str(value).upper()  # noqa: PLW2901 - as it is kept
                if value not in list(Level):
                    raise _invalid(ErrorCode.INVALID_LEVEL, f"Invalid compatibility level. {_LEVELS}")
            config[wire] = value
        self.configs[subject] = {name: value for name, value in config.items() if value is not None}
        return {_SAID.get(name, name): value for name, value in self.configs[subject].items()}

    def delete_config(self, subject: str | None) -> dict[str, object]:
        """Delete a config and return it.

        Raises:
            RegistryError: 40401 if the subject has none.
        """
        own = self.configs.pop(subject, None)
        if own is None and subject is not None:
            raise self._no_subject(subject)
        return {"compatibilityLevel": "BACKWARD", **(own or {})} if subject is None else own or {}

    def mode(self, subject: str | None, *, in_force: bool) -> str:
        """Return the mode of a subject, or the global one.

        Raises:
            RegistryError: 40409 if the subject has none, and not the one in force is asked for.
        """
        if subject is not None and subject not in self.modes and not in_force:
            message = f"Subject '{subject}' does not have subject-level mode configured"
            raise _not_found(ErrorCode.MODE_NOT_FOUND, message)
        return self.modes.get(subject) or self.modes.get(None, "READWRITE")

    def set_mode(self, subject: str | None, mode: object, *, force: bool) -> str:
        """Set a mode and return it.

        Raises:
            RegistryError: 42204 if it is unknown, 42205 if there are schemas and it is IMPORT.
        """
        name = str(mode).upper()
        if name not in _MODES or (name == "FORWARD" and subject is not None):
            raise _invalid(ErrorCode.INVALID_MODE, f"Invalid mode. Valid values are {', '.join(_MODES)}.")
        scope = [subject] if subject is not None else self.subjects()
        if name == "IMPORT" and not force and any(self._live(subject_) for subject_ in scope):
            raise _invalid(ErrorCode.OPERATION_NOT_PERMITTED, "Cannot import since found existing subjects")
        self.modes[subject] = name
        return name

    def delete_mode(self, subject: str | None) -> str | None:
        """Delete a mode and return it.

        Raises:
            RegistryError: 40401 if the subject has none.
        """
        own = self.modes.pop(subject, None)
        if own is None and subject is not None:
            raise self._no_subject(subject)
        return own

    def _check_writable(self, subject: str) -> None:
        mode = self.mode(subject, in_force=True)
        if mode.startswith("READONLY") or mode == "FORWARD":
            raise self._read_only(subject)
        if mode == "IMPORT":
            raise _invalid(ErrorCode.OPERATION_NOT_PERMITTED, f"Subject {subject} is not in read-write mode")

    @staticmethod
    def _read_only(subject: str) -> RegistryError:
        return _invalid(ErrorCode.OPERATION_NOT_PERMITTED, f"Subject {subject} is in read-only mode")


_SAID = {"compatibilityLevel": "compatibility"}
"""How the answer to a change names a property."""
_LEVELS = f"Valid values are {', '.join(level.value.lower() for level in Level)}"


def _previous(versions: Sequence[Version]) -> list[Previous]:
    return [Previous(version.number, version.parsed) for version in versions]


def _number_of(number: str) -> int | None:
    """Return a version number; None is the latest version.

    Raises:
        RegistryError: 42202 if it is neither.
    """
    if number in (LATEST, "-1"):
        return None
    if number.isascii() and number.isdigit() and 0 < int(number) <= _HIGHEST:
        return int(number)
    raise _invalid(_INVALID_VERSION, f"The specified version '{number}' is not a valid version id.")
