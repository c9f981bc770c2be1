"""What people can do on pages: one row per action, which is one request of the API.

A page makes that request inside the service, for the person who sent the form (`http/pipeline.py`), so the rights,
the limits, the audit and the forwarding of writes are those of the API. The command lines that a page shows are made
from the same request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from strata.compat.entities import EntityType
from strata.compat.levels import Level
from strata.imports import deferred
from strata.registry.api.views.addresses import api_path, page_address, subject_address, subject_segment
from strata.registry.api.views.view import Page
from strata.registry.core import errors
from strata.registry.core.decide.delete import delete_subject, delete_version
from strata.registry.core.effective_settings import Mode
from strata.registry.core.lookup import parse_version, version_of
from strata.registry.core.parsing import parse_version as parsed_version
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rights.visibility import check_version
from strata.registry.core.subject_names import scope, subject_name
from strata.registry.features.pages.forms import Form
from strata.registry.features.pages.texts import indented
from strata.storage.state import SchemaVersion

if TYPE_CHECKING:
    from strata.compat import field_rows
    from strata.compat.field_rows import FieldRow
else:
    field_rows = deferred("strata.compat.field_rows")

__all__ = ["ACTIONS", "Action", "Call", "Field", "Place", "reference_lines"]

_MOST_FIELDS = 10_000
_MOST_SHOWN = 20
_FORMATS = ("AVRO", "JSON", "PROTOBUF")
_INHERIT = "inherit"
_Notes = tuple[str, ...]


class Place(NamedTuple):
    """What an action is about: a subject or a context, empty for the registry, and a version, empty for none."""

    subject: str
    version: str = ""

    @property
    def segment(self) -> str:
        """The subject as a segment of a path, which is never empty."""
        return subject_segment(self.subject)


class Call(NamedTuple):
    """A request of the API, and the arguments of the `strata` command that makes the same one.

    Attributes:
        method: the HTTP method.
        target: the path and query string.
        body: the body as JSON values; None without one.
        command: the arguments of the command; empty if there is none.
    """

    method: str
    target: str
    body: Mapping[str, object] | None = None
    command: tuple[str, ...] = ()


class Field(NamedTuple):
    """A field of a form: `text`, `area`, `choice`, `flag` or `file`."""

    name: str
    label: str
    kind: str = "text"
    options: Sequence[str] = ()
    hint: str = ""


class Action(NamedTuple):
    """An action.

    Attributes:
        label: the text of the button that leads to it.
        explanation: what it does.
        operation: the right that a person needs to be offered it.
        call: returns the request, given the page, the place and the form.
        fields: the fields of its form.
        start: returns the values that the form begins with.
        typed: returns what the person must type to confirm it; None: nothing.
        checks: whether the form can be checked against the subject's versions.
        notes: returns what the person should know before confirming it.
        refusal: returns why the API would refuse it now; empty if it would not.
        after: returns the address to go to when it is done.
    """

    label: str
    explanation: str
    operation: Operation
    call: Callable[[Page, Place, Form], Call]
    fields: tuple[Field, ...] = ()
    start: Callable[[Page, Place], Mapping[str, str]] = lambda _page, _place: {}
    typed: Callable[[Place], str | None] = lambda _place: None
    checks: bool = False
    notes: Callable[[Page, Place], _Notes] = lambda _page, _place: ()
    refusal: Callable[[Page, Place], str] = lambda _page, _place: ""
    after: Callable[[Place], str] = lambda place: subject_address(place.subject)


# --- registration


def _register(_page: Page, place: Place, form: Form) -> Call:
    if not place.subject:
        raise errors.unreadable_body("Name the subject to register the schema under")
    references = [_reference(line) for line in reference_lines(form)]
    schema_type, normalize = form.text("format") or "AVRO", bool(form.text("normalize"))
    body: dict[str, object] = {"schema": form.file("file") or form.text("schema"), "schemaType": schema_type}
    if references:
        body["references"] = references
    options = [f"{reference['name']}={reference['subject']}:{reference['version']}" for reference in references]
    command = ("register", "--type", schema_type, *(part for option in options for part in ("--reference", option)))
    command = (*command, *(["--normalize"] if normalize else []), "--", place.subject, "FILE")
    target = api_path("subjects", place.segment, "versions", normalize="true" if normalize else "")
    return Call("POST", target, body, command)


def reference_lines(form: Form) -> list[str]:
    """Return the references of a form, one per line, with the one that was picked from the list."""
    name, target = form.text("reference_name").strip(), form.text("reference_to").strip()
    return _lines(form.text("references")) + ([f"{name}={target}"] if name or target else [])


def _reference(line: str) -> dict[str, object]:
    name, equals, target = line.partition("=")
    subject, _, version = target.rpartition(":")
    if not equals or not subject or not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise errors.unreadable_body(f"Expected references as NAME=SUBJECT:VERSION, got {line!r}")
    return {"name": name.strip(), "subject": subject.strip(), "version": int(version)}


def _start_of_registration(page: Page, place: Place) -> dict[str, str]:
    """Begin with the latest version of the subject, if the person may read it."""
    name = subject_name(place.subject)
    latest = page.state.latest(name) if page.exchange.readable(name) else None
    if latest is None:
        return {"subject": place.subject}
    references = "\n".join(
        f"{reference.name}={reference.subject}:{reference.version}" for reference in latest.schema.value.references
    )
    return {
        "subject": place.subject,
        "format": latest.schema.schema_type,
        "schema": indented(latest.schema.text) if latest.schema.schema_type != "PROTOBUF" else latest.schema.text,
        "references": references,
    }


def _bring_back(page: Page, place: Place, _form: Form) -> Call:
    """Register the schema of a deleted version again, with its contract: the log keeps no other way back."""
    value = _version(page, place).schema.value
    body: dict[str, object] = {"schema": value.text, "schemaType": value.schema_type}
    if value.references:
        body["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in value.references
        ]
    # Empty ones too: without them, the new version would get those of the latest one.
    body |= {"metadata": value.metadata or {}, "ruleSet": value.rule_set or {}}
    path = api_path("subjects", place.segment, "versions")
    return Call("POST", path, body, ("undelete", "--", place.subject, place.version))


# --- settings


def _start_of_level(page: Page, place: Place) -> dict[str, str]:
    """Begin with the scope's own level; of an alias, which has none that counts, with nothing chosen."""
    config = page.state.configs.get(scope(place.subject)) if _sees_settings(page, place) else None
    level = config.get("compatibilityLevel") if config else None
    return {"level": str(level) if level else ("" if config and config.get("alias") else _INHERIT)}


def _notes_on_level(page: Page, place: Place) -> _Notes:
    config = page.state.configs.get(scope(place.subject)) if _sees_settings(page, place) else None
    alias = config.get("alias") if config else None
    return (f"This name is an alias of {alias}, whose level counts. The alias stays.",) if alias else ()


def _start_of_mode(page: Page, place: Place) -> dict[str, str]:
    mode = page.state.modes.get(scope(place.subject)) if _sees_settings(page, place) else None
    return {"mode": mode or _INHERIT}


def _sees_settings(page: Page, place: Place) -> bool:
    return page.access.may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, place.subject)


def _set_level(_page: Page, place: Place, form: Form) -> Call:
    level, path = form.text("level"), _scope("config", place)
    if not level:
        raise errors.unreadable_body("Choose a level")
    # Deleting the configuration would delete the scope's other settings too, such as its alias.
    value = None if level == _INHERIT else level
    command = ("config", "--set", f"compatibility={value or 'null'}", *(["--", place.subject] if place.subject else []))
    return Call("PUT", path, {"compatibility": value}, command)


def _set_mode(_page: Page, place: Place, form: Form) -> Call:
    mode, path = form.text("mode"), _scope("mode", place)
    if mode == _INHERIT:
        return Call("DELETE", path, None, ("mode", "--delete", "--", place.subject))
    command = ("mode", "--set", mode, *(["--", place.subject] if place.subject else []))
    return Call("PUT", path, {"mode": mode}, command)


def _scope(route: str, place: Place) -> str:
    return api_path(route, place.segment) if place.subject else api_path(route)


def _after_setting(place: Place) -> str:
    return page_address("settings", place.segment) if place.subject else page_address("settings")


# --- deletion


def _delete(_page: Page, place: Place, _form: Form) -> Call:
    return _deletion(place, permanent=False)


def _delete_for_good(_page: Page, place: Place, _form: Form) -> Call:
    return _deletion(place, permanent=True)


def _deletion(place: Place, *, permanent: bool) -> Call:
    path = ("subjects", place.segment, *(("versions", place.version) if place.version else ()))
    flags = ("--permanent",) if permanent else ()
    command = ("delete", *flags, "--", place.subject, *((place.version,) if place.version else ()))
    return Call("DELETE", api_path(*path, permanent="true" if permanent else ""), None, command)


def _named(place: Place) -> str:
    return f"{place.subject} {place.version}" if place.version else place.subject


def _concerned(page: Page, place: Place, *, permanent: bool) -> list[SchemaVersion]:
    """Return the versions that a deletion is about."""
    every = page.state.versions(subject_name(place.subject), include_deleted=True)
    if place.version:
        return [entry for entry in every if str(entry.version) == place.version]
    return every if permanent else [entry for entry in every if not entry.deleted]


def _notes_on_deletion(page: Page, place: Place, *, permanent: bool) -> _Notes:
    """Say which versions go, and who refers to them."""
    concerned = _concerned(page, place, permanent=permanent)
    numbers = ", ".join(str(entry.version) for entry in concerned[:_MOST_SHOWN]) + ", …" * (
        len(concerned) > _MOST_SHOWN
    )
    notes = [f"This concerns version {numbers} alone." if place.version else f"This concerns all versions: {numbers}."]
    referrers = {
        (other.subject, other.version): None
        for entry in concerned
        for other in page.state.referred_by(entry.subject, entry.version)
        if (permanent or not other.deleted) and (place.version or other.subject != entry.subject)
    }
    seen = [f"{subject} version {version}" for subject, version in referrers if page.exchange.readable(subject)]
    if seen:
        notes.append(f"Referred to by {', '.join(seen[:_MOST_SHOWN])}{', …' * (len(seen) > _MOST_SHOWN)}.")
    return tuple(notes)


def _refusal_of_deletion(page: Page, place: Place, *, permanent: bool) -> str:
    """Return the error that the same decision as the API's gives at the State of the page."""
    name = subject_name(place.subject)
    try:
        if place.version:
            delete_version(page.state, name, parse_version(place.version), permanent=permanent)
        else:
            delete_subject(page.state, name, permanent=permanent)
    except errors.RegistryError as error:
        return error.message
    return ""


def _notes_on_return(page: Page, place: Place) -> _Notes:
    every = page.state.versions(subject_name(place.subject), include_deleted=True)
    others = [str(entry.version) for entry in every if entry.deleted and str(entry.version) != place.version]
    alone = f"This concerns version {place.version} alone."
    if not others:
        return (alone,)
    shown = ", ".join(others[:_MOST_SHOWN]) + ", …" * (len(others) > _MOST_SHOWN)
    return (alone, f"Bring back others from their own pages: version {shown}.")


# --- metadata and tags


def _edit(page: Page, place: Place, form: Form) -> Call:
    entry = _version(page, place)
    records = {row.path for row in _rows(page, entry) if row.is_record}
    metadata = dict(entry.schema.value.metadata or {})
    if _properties(_start_of_edit(page, place)["properties"]) != (metadata.get("properties") or {}):
        raise errors.unreadable_body("A property of this version does not fit in one line: change it with the API")
    metadata["properties"] = _properties(form.text("properties"))
    metadata["sensitive"] = _lines(form.text("sensitive"))
    body: dict[str, object] = {"metadata": metadata}
    command = ["edit", "--metadata", json.dumps(metadata, ensure_ascii=False)]
    for field, name in (("add", "tagsToAdd"), ("remove", "tagsToRemove")):
        if tags := [_tagged(line, records) for line in _lines(form.text(field))]:
            body[name] = tags
            command += (part for tag in tags for part in (f"--{field}-tags", _option(tag)))
    path = api_path("subjects", place.segment, "versions", place.version, "tags")
    return Call("POST", path, body, (*command, "--", place.subject, place.version))


def _start_of_edit(page: Page, place: Place) -> dict[str, str]:
    metadata = _version(page, place).schema.value.metadata or {}
    properties = "\n".join(f"{name}={value}" for name, value in (metadata.get("properties") or {}).items())
    return {"properties": properties, "sensitive": "\n".join(metadata.get("sensitive") or ())}


def _properties(text: str) -> dict[str, str]:
    return dict(_pair(line) for line in _lines(text))


class _Entity(TypedDict):
    entityPath: str
    entityType: str


class _Tagged(TypedDict):
    """The tags of a field or a record, as the API takes them."""

    schemaEntity: _Entity
    tags: list[str]


def _tagged(line: str, records: set[str]) -> _Tagged:
    path, colon, tags = line.rpartition(":")
    path = path.strip()
    if not colon:
        raise errors.unreadable_body(f"Expected tags as RECORD.FIELD: TAG, TAG, got {line!r}")
    entity_type = EntityType.RECORD if path in records else EntityType.FIELD
    entity: _Entity = {"entityPath": path, "entityType": entity_type.value}
    return {"schemaEntity": entity, "tags": [tag.strip() for tag in tags.split(",") if tag.strip()]}


def _option(tagged: _Tagged) -> str:
    """Return tags of a field or a record as an option of `strata edit`."""
    entity = tagged["schemaEntity"]
    prefix = "record:" if entity["entityType"] == EntityType.RECORD else ""
    return f"{prefix}{entity['entityPath']}={','.join(tagged['tags'])}"


def _rows(page: Page, entry: SchemaVersion) -> list["FieldRow"]:
    return field_rows.field_rows(parsed_version(page.state, entry, page.exchange.limits.started()), _MOST_FIELDS)


def _pair(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise errors.unreadable_body(f"Expected properties as NAME=VALUE, got {line!r}")
    return name.strip(), value.strip()


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _version(page: Page, place: Place) -> SchemaVersion:
    """Return the version that an action is about.

    Raises:
        RegistryError: 40301 if the person may not read it; 40401, 40402 or 42202 if there is no such version.
    """
    name, number = subject_name(place.subject), parse_version(place.version)
    check_version(page.access, page.state, name, number)
    return version_of(page.state, name, number, include_deleted=True)


_SUBJECT = Field("subject", "Subject")
_REFERENCES = Field("references", "References", "references", hint="one per line: NAME=SUBJECT:VERSION")
_TAG_HINT = "one field per line: RECORD.FIELD: TAG, TAG"
_FOR_GOOD = "Deletes permanently what is soft-deleted. Records that were written with its schema can no longer be read."

ACTIONS: Mapping[str, Action] = {
    "register": Action(
        "Register a schema",
        "Registers a schema as a new version of a subject. The check below shows the verdict; it stores nothing.",
        Operation.WRITE,
        _register,
        (
            _SUBJECT,
            Field("format", "Format", "choice", _FORMATS),
            Field("schema", "Schema", "area"),
            Field("file", "or a file", "file"),
            _REFERENCES,
            Field("normalize", "Normalize it first", "flag"),
        ),
        _start_of_registration,
        checks=True,
    ),
    "level": Action(
        "Set the level",
        "Sets which changes a new version may make. It applies to registrations from now on.",
        Operation.ALTER_CONFIGS,
        _set_level,
        (
            Field(
                "level", "Compatibility level", "choice", (*Level, _INHERIT), f"{_INHERIT}: remove this scope's level"
            ),
        ),
        _start_of_level,
        notes=_notes_on_level,
        after=_after_setting,
    ),
    "mode": Action(
        "Set the mode",
        "Sets which operations are allowed.",
        Operation.ALTER_CONFIGS,
        _set_mode,
        (Field("mode", "Mode", "choice", (*Mode, _INHERIT), f"{_INHERIT}: remove this scope's mode"),),
        _start_of_mode,
        after=_after_setting,
    ),
    "delete": Action(
        "Delete",
        "Deletes softly: the schema keeps its id, records can still be read, and it can be brought back.",
        Operation.DELETE,
        _delete,
        notes=partial(_notes_on_deletion, permanent=False),
        refusal=partial(_refusal_of_deletion, permanent=False),
    ),
    "delete-for-good": Action(
        "Delete for good",
        _FOR_GOOD,
        Operation.DELETE,
        _delete_for_good,
        typed=_named,
        notes=partial(_notes_on_deletion, permanent=True),
        refusal=partial(_refusal_of_deletion, permanent=True),
        after=lambda _place: page_address("subjects"),
    ),
    "bring-back": Action(
        "Bring back",
        "Registers the schema of a deleted version again, with its metadata and rules, as a new version.",
        Operation.WRITE,
        _bring_back,
        notes=_notes_on_return,
    ),
    "edit": Action(
        "Edit metadata and tags",
        "Makes a new version with the same fields, and with other metadata or tags.",
        Operation.WRITE,
        _edit,
        (
            Field("properties", "Properties", "area", hint="one per line: NAME=VALUE"),
            Field("sensitive", "Names of sensitive properties", "area", hint="one per line"),
            Field("add", "Tags to add", "area", hint=_TAG_HINT),
            Field("remove", "Tags to remove", "area", hint=_TAG_HINT),
        ),
        _start_of_edit,
    ),
}
"""All actions, by the name in their address."""
