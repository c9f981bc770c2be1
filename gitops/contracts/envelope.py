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
from strata.gitops.contracts.protobuf import PROTOBUF
from strata.gitops.contracts.quality import Form, checks_of, conditions_of
from strata.gitops.contracts.shapes import Format, custom_of, customs, described, identifier, is_required
from strata.gitops.contracts.structure import check_structure
from strata.gitops.errors import GitopsError
from strata.gitops.versions import Held

__all__ = ["FORMATS", "Imported", "from_contract", "to_contract"]

API_VERSION = "v3.1.0"
SUBJECT, RULES, TYPE = "strata.subject", "strata.ruleSet", "strata.schemaType"
_OWNER, _STATUS, _CONTRACT = "owner", "status", "contract.id"
_IDS = uuid.UUID("6f1f2c1e-6c39-4a55-9d43-0d1f7e6a3b52")
FORMATS: Mapping[str, Format] = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}
_KINDS = {"message": "PROTOBUF"}


def to_contract(version: Held) -> tuple[dict[str, Any], list[str]]:
    """Return the contract of a version, and what it does not say of the schema.

    Raises:
        GitopsError: If the schema is no record, message or object with properties.
    """
    try:
        shape = FORMATS[version.format].shape(version.text)
    except (GitopsError, KeyError) as error:
        raise GitopsError(f"{version.subject} cannot be a contract: {error}") from None
    properties = dict((version.metadata or {}).get("properties") or {})
    checks, rest = checks_of(version.rule_set)
    schema: dict[str, Any] = {
        "name": shape.name or version.subject,
        "physicalName": version.subject,
        "physicalType": shape.kind,
        "logicalType": "object",
        **described(shape.doc),
        "properties": shape.properties,
    }
    kind = None if version.format == "AVRO" else version.format
    schema |= customs({SUBJECT: version.subject, TYPE: kind, RULES: json.dumps(rest) if rest else None} | shape.custom)
    if checks:
        schema["quality"] = checks
    contract: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": properties.pop(_CONTRACT, None) or str(uuid.uuid5(_IDS, version.subject)),
        "name": version.subject,
        "version": str(version.version),
        "status": properties.pop(_STATUS, None) or "active",
    }
    if owner := properties.pop(_OWNER, None):
        contract["team"] = {"name": owner}
    if shape.doc:
        contract["description"] = {"purpose": shape.doc}
    references = (f"the reference {one.name}" for one in version.references)
    return contract | customs(properties) | {"schema": [schema]}, [*shape.left_out, *references]


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
    """

    subject: str
    text: str
    ending: str
    entry: dict[str, Any]
    checks_left_out: list[str] = field(default_factory=list)
    left_out: tuple[str, ...] = ()


def from_contract(contract: Any, schema_type: str | None = None) -> list[Imported]:
    """Return the subjects of a contract.

    Args:
        contract: the contract as mappings, lists and texts.
        schema_type: the format of the schemas; None for that which the contract says, or AVRO.

    Raises:
        GitopsError: If it is no contract of ODCS 3.
    """
    if not isinstance(contract, dict) or not str(contract.get("apiVersion", "")).startswith("v3."):
        raise GitopsError("expected a data contract with an apiVersion of v3")
    check_structure(contract)
    try:
        found = [_imported(contract, one, schema_type) for one in contract["schema"]]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise GitopsError(f"the contract cannot be read: {error!r}") from None
    names = [one.subject for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise GitopsError(f"two schemas of the contract are the subject {twice}; give one another physicalName")
    return found


def _imported(contract: Mapping[str, Any], schema: Mapping[str, Any], schema_type: str | None) -> Imported:
    custom = custom_of(schema)
    said = custom.get(TYPE) or _KINDS.get(str(schema.get("physicalType")), "AVRO")
    schema_format = FORMATS[schema_type or str(said)]
    subject = custom.get(SUBJECT) or f"{schema.get('physicalName') or schema['name']}-value"
    properties = {**custom_of(contract), _CONTRACT: contract["id"], _STATUS: contract.get("status")}
    team = contract.get("team")
    properties[_OWNER] = team.get("name") if isinstance(team, dict) else contract.get("owner")
    description = contract.get("description")
    purpose = description.get("purpose") if isinstance(description, dict) else description
    made = schema_format.make(schema, custom, schema.get("description") or purpose)
    try:
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
    entry: dict[str, Any] = {
        "name": subject,
        "metadata": {"properties": {k: str(v) for k, v in properties.items() if v}},
    }
    if any(rest.values()):
        entry["rules"] = {name: value for name, value in rest.items() if value}
    return Imported(subject, made.text, schema_format.ending, entry, left_out, made.left_out)


def _unique(rules: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rules with names that differ."""
    seen: dict[str, int] = {}
    for rule in rules:
        count = seen[rule["name"]] = seen.get(rule["name"], 0) + 1
        yield rule if count == 1 else {**rule, "name": f"{rule['name']}-{count}"}


def _all_conditions(
    properties: Any, path: tuple[str, ...], form: Form
) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    for one in properties:
        here, optional = (*path, identifier(one["name"])), not is_required(one)
        if one.get("physicalType") != "enum":  # the type itself has the check
            yield conditions_of(here, one, form, nullable=optional)
        if not optional and not str(one.get("physicalType")).startswith("map"):
            yield from _all_conditions(one.get("properties") or (), here, form)
