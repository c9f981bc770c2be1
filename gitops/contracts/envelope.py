"""Contracts as files: owner, status, descriptions, quality and rules around the object that a schema is.

What the two sides share is converted. Rules of other kinds travel as a custom property; what a contract or a schema
cannot say is named.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from strata.compat.formats import FORMATS as PARSERS
from strata.compat.schema import SchemaFormat, SchemaParseError
from strata.gitops.contracts.avro import AVRO
from strata.gitops.contracts.json_schema import JSON
from strata.gitops.contracts.kept import KEPT, keys_of, properties_of
from strata.gitops.contracts.protobuf import PROTOBUF
from strata.gitops.contracts.quality import Form, checks_of, conditions_of
from strata.gitops.contracts.shapes import (
    Format,
    Made,
    Shape,
    custom_of,
    customs,
    described,
    enum_check,
    enum_values,
    identifier,
    is_required,
    type_name,
)
from strata.gitops.contracts.structure import check_structure
from strata.gitops.desired import Reference
from strata.gitops.errors import GitopsError
from strata.gitops.versions import Held

__all__ = ["FORMATS", "Imported", "from_contract", "to_contract"]

API_VERSION = "v3.1.0"
SUBJECT, RULES, TYPE = "strata.subject", "strata.ruleSet", "strata.schemaType"
METADATA, REFERENCES, TEXT = "strata.metadata", "strata.references", "strata.schema"
_OWNER, _STATUS, _CONTRACT = "owner", "status", "contract.id"
_IDS = uuid.UUID("6f1f2c1e-6c39-4a55-9d43-0d1f7e6a3b52")
FORMATS: Mapping[str, Format] = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}
_KINDS = {"message": "PROTOBUF"}
_SOMETHING = "a part of the schema"
_OF_SUBJECT = (SUBJECT, TYPE, RULES, METADATA, REFERENCES, TEXT)
_KEYS = ("apiVersion", "kind", "id", "status", "team", "owner", "description", "customProperties", "schema")
_ELEMENT = ("name", "physicalType", "logicalType", "description", "properties", "quality", "customProperties")
_SCHEMA = (*_ELEMENT, "physicalName")
_PROPERTY = (*_ELEMENT, "required", "classification", "tags", "items", "map", "enum", "logicalTypeOptions")
_CHECK = ("name", "type", "engine", "implementation", "metric", "arguments", "mustBe", "description")
_BOUNDS = ("mustBeLessThan", "mustBeLessOrEqualTo", "unit")
_OF_RULES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern")
_OURS = ("namespace", "protoPackageName", "syntax", "enumValues", "additionalProperties", "$schema", "$id")


def to_contract(version: Held) -> tuple[dict[str, object], list[str]]:
    """Return the contract of a version, and what only its carried text says of the schema.

    The text travels with the contract, so that an import of a contract whose properties are as they were loses nothing.

    Raises:
        GitopsError: If the schema is not a record, a message or an object with properties.
    """
    try:
        shape = FORMATS[version.format].shape(version.text)
    except (GitopsError, KeyError) as error:
        raise GitopsError(f"{version.subject} cannot be a contract: {error}") from None
    metadata = dict(version.metadata or {})
    properties = dict(metadata.pop("properties", None) or {})
    checks, rest = checks_of(version.rule_set)
    references = [_reference(reference) for reference in version.references]
    schema = {"name": shape.name or version.subject, "physicalName": _topic(version.subject), **_described(shape)}
    schema |= customs(
        {
            SUBJECT: version.subject,
            TYPE: None if version.format == "AVRO" else version.format,
            RULES: json.dumps(rest) if rest else None,
            METADATA: json.dumps(metadata, ensure_ascii=False) if metadata else None,
            REFERENCES: json.dumps(references, ensure_ascii=False) if references else None,
            **shape.custom,
            TEXT: version.text,
        }
    )
    if checks:
        schema["quality"] = checks
    contract: dict[str, object] = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": properties.pop(_CONTRACT, None) or str(uuid.uuid5(_IDS, version.subject)),
        "name": version.subject,
        "version": str(version.version),
        "status": properties.pop(_STATUS, None) or "active",
        **keys_of(properties),
    }
    if owner := properties.pop(_OWNER, None):
        contract["team"] = {"name": owner}
    if shape.doc:
        contract["description"] = {"purpose": shape.doc}
    return contract | customs(properties) | {"schema": [schema]}, _unsaid(version, schema, shape)


def _topic(subject: str) -> str:
    """Return the topic of a subject's records, which other tools read; the subject if its name does not say."""
    _, _, name = subject.rpartition(":") if subject.startswith(":.") else ("", "", subject)
    return name.removesuffix("-value") or subject


def _described(shape: Shape) -> dict[str, object]:
    words = {"physicalType": shape.kind, "logicalType": "object", **described(shape.doc)}
    return words | {"properties": shape.properties}


def _reference(reference: Reference) -> dict[str, object]:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


@dataclass(slots=True)
class Imported:
    """A subject of a contract.

    Attributes:
        subject: its name.
        text: its schema.
        ending: the ending of the schema's file.
        entry: its entry in a manifest, without the file.
        checks_left_out: the names of quality checks that no rule can express.
        left_out: what else the schema does not say.
        unread: the paths of what the import does not take from the contract.
    """

    subject: str
    text: str
    ending: str
    entry: dict[str, object]
    checks_left_out: list[str] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def from_contract(contract: object, schema_type: str | None = None) -> list[Imported]:
    """Return the subjects of a contract.

    Args:
        contract: the contract as mappings, lists and texts.
        schema_type: the format of the schemas; None for that which the contract says, or AVRO.

    Raises:
        GitopsError: If it is not a contract of ODCS 3.
    """
    if not isinstance(contract, dict) or not str(contract.get("apiVersion", "")).startswith("v3."):
        raise GitopsError("expected a data contract with an apiVersion of v3")
    check_structure(contract)
    contract = {**contract, "schema": [_with_enums(schema) for schema in contract["schema"]]}
    try:
        imported = [_imported(contract, schema, schema_type) for schema in contract["schema"]]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise GitopsError(f"the contract cannot be read: {error!r}") from None
    names = [schema.subject for schema in imported]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise GitopsError(f"two schemas of the contract are the subject {twice}; give one another physicalName")
    return imported


def _with_enums(element: Mapping[str, Any]) -> dict[str, object]:
    """Return an element whose values by the word `enum` of ODCS 3.2 are a check, as in earlier versions."""
    copy = dict(element)
    if element.get("enum"):
        check = enum_check(inner["value"] for inner in element["enum"])
        copy["quality"] = [*(element.get("quality") or ()), *check["quality"]]
    for name in ("items", "map", "key", "value"):
        if isinstance(copy.get(name), dict):
            copy[name] = _with_enums(copy[name])
    if copy.get("properties"):
        copy["properties"] = [_with_enums(inner) for inner in copy["properties"]]
    return copy


def _imported(contract: Mapping[str, Any], schema: Mapping[str, Any], schema_type: str | None) -> Imported:
    custom = custom_of(schema)
    said = custom.get(TYPE) or _KINDS.get(str(schema.get("physicalType")), "AVRO")
    schema_format = FORMATS[schema_type or str(said)]
    subject = custom.get(SUBJECT) or f"{schema.get('physicalName') or schema['name']}-value"
    kept = properties_of(contract, is_own=TEXT in custom)
    properties = {**custom_of(contract), **kept, _CONTRACT: contract["id"], _STATUS: contract.get("status")}
    team = contract.get("team")
    properties[_OWNER] = team.get("name") if isinstance(team, dict) else contract.get("owner")
    description = contract.get("description")
    purpose = description.get("purpose") if isinstance(description, dict) else description
    made = _made(schema, schema_format, custom, schema.get("description") or purpose)
    references = json.loads(custom.get(REFERENCES) or "[]")
    try:
        if made.text != custom.get(TEXT) and not references:  # a check of the files finds what it refers to
            PARSERS[SchemaFormat[schema_type or str(said)]].parse(made.text, strict=True)
    except SchemaParseError as error:
        raise GitopsError(f"{subject}: the contract makes no valid schema: {error}") from None
    form = Form(schema_format.absent, has_options=schema_format.has_options)
    rules, left_out = conditions_of((), schema, form, nullable=False)
    for more, unknown in _all_conditions(schema.get("properties") or (), (), form):
        rules += more
        left_out += unknown
    rest = json.loads(custom[RULES]) if custom.get(RULES) else {}
    rest["domainRules"] = [*rest.get("domainRules", ()), *_unique(rules)]
    metadata = json.loads(custom.get(METADATA) or "{}")
    metadata["properties"] = {k: str(v) for k, v in properties.items() if v}
    entry: dict[str, object] = {"name": subject, "metadata": metadata}
    if references:
        entry["references"] = references
    if any(rest.values()):
        entry["rules"] = {name: value for name, value in rest.items() if value}
    others = unread({**contract, "schema": [schema]}, has_options=schema_format.has_options)
    index = contract["schema"].index(schema)
    paths = tuple(path.replace("schema[0]", f"schema[{index}]", 1) for path in others)
    return Imported(subject, made.text, schema_format.ending, entry, left_out, made.left_out, paths)


def _made(schema: Mapping[str, object], schema_format: Format, custom: Mapping[str, object], doc: str | None) -> Made:
    """Return the text that a contract carries, if its words say what they said of that text, or else one of its words.

    What only the carried text said is then named.
    """
    text = custom.get(TEXT)
    try:
        shape = None if text is None else schema_format.shape(str(text))
    except GitopsError:  # of another format
        shape = None
    left_out: list[str] = []
    if shape is not None:
        words = {"name": shape.name or schema["name"], **_described(shape)}
        words |= customs({SUBJECT: custom.get(SUBJECT), **shape.custom})
        if _words(words, schema_format) == _words(schema, schema_format):
            return Made(str(text))
        carried = Held("", 0, str(custom.get(TYPE) or "AVRO"), str(text), _references(custom))
        left_out = _unsaid(carried, words, shape)
    made = schema_format.make(schema, custom, doc)
    return Made(made.text, (*made.left_out, *left_out))


def _references(custom: Mapping[str, Any]) -> tuple[Reference, ...]:
    return tuple(
        Reference(reference["name"], reference["subject"], reference["version"])
        for reference in json.loads(custom.get(REFERENCES) or "[]")
    )


def _unsaid(version: Held, schema: Mapping[str, object], shape: Shape) -> list[str]:
    """Return what a contract's words do not say of a schema; that there is something, if it is not known what."""
    if shape.left_out:
        return shape.left_out
    form = PARSERS[SchemaFormat(version.format)]
    try:
        made = FORMATS[version.format].make(schema, custom_of(schema), shape.doc)
        texts = [form.normalize(form.parse(text, strict=False, references=())) for text in (version.text, made.text)]
    except (SchemaParseError, GitopsError, LookupError, TypeError, ValueError):
        return [] if version.references else [_SOMETHING]
    return [] if texts[0] == texts[1] else [_SOMETHING]


def _words(element: Mapping[str, Any], schema_format: Format) -> object:
    """Return what makes the schema of an element: its checks are rules, but for those of enums."""
    names = ("name", "logicalType", "required", "physicalType", "description", "classification", "tags", "businessName")
    words: dict[str, object] = {
        name: _plain(element[name]) for name in names if element.get(name) not in (None, "", [])
    }
    if schema_format.has_options:
        words["logicalTypeOptions"] = _plain(element.get("logicalTypeOptions") or {})
    words["values"] = _plain(enum_values(element))
    words["custom"] = _plain({k: v for k, v in custom_of(element).items() if k not in _OF_SUBJECT})
    words["properties"] = [_words(property_, schema_format) for property_ in element.get("properties") or ()]
    return words | {"items": _words(element["items"], schema_format) if element.get("items") else None}


def _plain(value: object) -> object:
    """Return a value as the reader of contracts gives it: texts."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unique(rules: list[dict[str, Any]]) -> Iterator[dict[str, object]]:
    """Yield rules with names that differ."""
    seen: dict[str, int] = {}
    for rule in rules:
        count = seen[rule["name"]] = seen.get(rule["name"], 0) + 1
        yield rule if count == 1 else {**rule, "name": f"{rule['name']}-{count}"}


def _all_conditions(
    properties: Any, path: tuple[str, ...], form: Form
) -> Iterator[tuple[list[dict[str, object]], list[str]]]:
    for property_ in properties:
        here, optional = (*path, identifier(property_["name"])), not is_required(property_)
        if property_.get("physicalType") != "enum":  # the type itself has the check
            yield conditions_of(here, property_, form, nullable=optional)
        if not optional and not str(property_.get("physicalType")).startswith("map"):
            yield from _all_conditions(property_.get("properties") or (), here, form)


def unread(contract: Mapping[str, Any], *, has_options: bool) -> Iterator[str]:
    """Yield the paths of what an import does not take: no key of a contract is dropped silently.

    Args:
        contract: the contract, whose structure is checked.
        has_options: whether the schemas have the options of types and the titles of properties.
    """
    yield from _others(contract, "", (*_KEYS, *KEPT))
    for name, known in (("team", ("name",)), ("description", ("purpose",))):
        value = contract.get(name)
        if isinstance(value, dict):
            yield from _others(value, name, known)
        elif value and not (name == "description" and isinstance(value, str)):
            yield name
    for index, schema in enumerate(contract["schema"]):
        yield from _element(schema, f"schema[{index}]", _SCHEMA, has_options=has_options)


def _others(section: Mapping[str, object], where: str, known: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{where}.{name}".lstrip(".") for name in section if name not in known)


def _element(element: Mapping[str, Any], where: str, known: tuple[str, ...], *, has_options: bool) -> Iterator[str]:
    known = (*known, "businessName") if has_options and known is not _SCHEMA else known
    # The name of a type, in contracts of earlier exports.
    known = (*known, "physicalName") if type_name(element) and known is not _SCHEMA else known
    yield from _others(element, where, known)
    for name in custom_of(element):
        if not name.startswith("strata.") and name not in _OURS:
            yield f"{where}.customProperties.{name}"
    if not has_options:
        yield from _others(element.get("logicalTypeOptions") or {}, f"{where}.logicalTypeOptions", _OF_RULES)
    for index, check in enumerate(element.get("quality") or ()):
        yield from _others(check, f"{where}.quality[{index}]", (*_CHECK, *_BOUNDS))
    for index, value in enumerate(element.get("enum") or ()):
        yield from _others(value, f"{where}.enum[{index}]", ("value",))
    for index, part in enumerate(element.get("properties") or ()):
        yield from _element(part, f"{where}.properties[{index}]", _PROPERTY, has_options=has_options)
    inner = {
        "items": element.get("items"),
        **{f"map.{name}": part for name, part in (element.get("map") or {}).items()},
    }
    for name, part in inner.items():
        if isinstance(part, dict) and part:
            yield from _element(part, f"{where}.{name}", _PROPERTY, has_options=has_options)
