"""Reads a registry of AWS Glue: live by botocore, or from a file of answers that the AWS command line printed.

Glue has neither ids nor contexts nor references. Every version gets an id of its own, in the order of creation, and
keeps its UUID, which is in the frames of records, as a property of its metadata. Source: the Glue API (GetSchema,
GetSchemaVersion) of the AWS documentation.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat, SchemaParseError
from strata.registry.transfer.copies import Copy, TransferError, copy_of_records
from strata.registry.transfer.progress import track
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import (
    DEFAULT_CONTEXT,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ModeKey,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
    qualified,
)
from strata.storage.stored import GLUE_VERSION

__all__ = ["GLUE", "copy_of_answers", "is_glue", "read_glue"]

GLUE = ".glue"
"""The context into which a registry is migrated by default."""
_LIVE, _FILE = "glue:", "glue-export:"
_LEVELS = {
    "NONE": "NONE",
    "BACKWARD": "BACKWARD",
    "BACKWARD_ALL": "BACKWARD_TRANSITIVE",
    "FORWARD": "FORWARD",
    "FORWARD_ALL": "FORWARD_TRANSITIVE",
    "FULL": "FULL",
    "FULL_ALL": "FULL_TRANSITIVE",
}
_DISABLED = "DISABLED"  # no further versions
_ATTEMPTS, _TIMEOUT_S = 5, 30
Answer = Mapping[str, Any]


def is_glue(where: str) -> bool:
    """Return whether a text names a registry of AWS Glue, or an export of one."""
    return where.startswith((_LIVE, _FILE))


def read_glue(where: str, context: str) -> Copy:
    """Read a registry of Glue into a context.

    Args:
        where: `glue:REGION/REGISTRY`, or `glue-export:FILE` for a file of JSON answers.
        context: the context of the copy.

    Raises:
        TransferError: if it cannot be read.
    """
    answers = _from_file(where.removeprefix(_FILE)) if where.startswith(_FILE) else _live(where.removeprefix(_LIVE))
    return copy_of_answers(where, answers, context)


def copy_of_answers(source: str, answers: Iterable[Answer], context: str) -> Copy:
    """Return a copy of what some answers of GetSchema and GetSchemaVersion show.

    Args:
        source: the name of the source.
        answers: the answers, in any order.
        context: the context of the copy.

    Raises:
        TransferError: if an answer is of another kind, or of an unknown format or level.
    """
    schemas: dict[str, Answer] = {}
    versions: list[Answer] = []
    notes: list[str] = []
    for answer in answers:
        if "SchemaDefinition" in answer:
            versions.append(answer)
        elif "Compatibility" in answer:
            schemas[answer["SchemaArn"]] = answer
        else:
            raise TransferError(f"{source}: expected answers of get-schema and get-schema-version, got {list(answer)}")
    usable = [candidate for candidate in versions if candidate.get("Status", "AVAILABLE") == "AVAILABLE"]
    if len(usable) < len(versions):
        notes.append(f"left out {len(versions) - len(usable)} versions that Glue does not serve (status not AVAILABLE)")
    records = [] if context == DEFAULT_CONTEXT or not usable else [encode(ContextKey(context), context)]
    for schema_id, version in enumerate(sorted(usable, key=_age), start=1):
        records.append(_version(source, version, schema_id, context))
    for arn, schema in sorted(schemas.items()):
        records += _settings(source, schema, _subject(arn, context))
    return replace(copy_of_records(source, records), notes=tuple(notes))


def _age(version: Answer) -> tuple[str, str, int]:
    return str(version.get("CreatedTime", "")), version["SchemaArn"], version["VersionNumber"]


def _subject(arn: str, context: str) -> Subject:
    """Return the subject of a schema, whose ARN ends in `schema/REGISTRY/NAME`."""
    return Subject(qualified(arn.split("/", 2)[-1], context))


def _version(source: str, version: Answer, schema_id: int, context: str) -> Record:
    if version.get("DataFormat") not in FORMATS:
        raise TransferError(f"{source}: unknown format {version.get('DataFormat')!r} of {version['SchemaArn']}")
    subject, number = _subject(version["SchemaArn"], context), Version(version["VersionNumber"])
    properties = {
        "glue.schema.arn": version["SchemaArn"],
        GLUE_VERSION: version["SchemaVersionId"].lower(),
    }
    value = SchemaValue(
        subject,
        number,
        SchemaId(schema_id),
        _stored(version["SchemaDefinition"], version["DataFormat"]),
        version["DataFormat"],
        metadata={"properties": properties},
    )
    return encode(SchemaKey(subject, number), value)


def _stored(text: str, schema_type: str) -> str:
    """Return a text as a registration would store it; one that cannot be read stays as it is."""
    try:
        return FORMATS[SchemaFormat(schema_type)].parse(text, strict=False).canonical
    except SchemaParseError:
        return text


def _settings(source: str, schema: Answer, subject: Subject) -> Iterator[Record]:
    level = schema["Compatibility"]
    if level == _DISABLED:
        yield encode(ModeKey(subject), "READONLY")
    elif level in _LEVELS:
        yield encode(ConfigKey(subject), ConfigValue({"compatibilityLevel": _LEVELS[level]}))
    else:
        raise TransferError(f"{source}: unknown compatibility {level!r} of {schema['SchemaArn']}")


def _from_file(name: str) -> Iterator[Answer]:
    """Yield the JSON objects in a file, one after the other."""
    try:
        text = Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise TransferError(f"{name} cannot be read: {error}") from None
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            answer, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise TransferError(f"{name}: expected JSON objects, one after the other: {error}") from None
        if not isinstance(answer, dict):
            raise TransferError(f"{name}: expected JSON objects, got {type(answer).__name__}")
        yield answer


def _live(place: str) -> Iterator[Answer]:
    """Yield the answers of a running service."""
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import get_session
    except ModuleNotFoundError:
        raise TransferError("missing package botocore; install strata-registry[glue] (docs/installing.md)") from None
    region, _, registry = place.partition("/")
    if not region or not registry:
        raise TransferError(f"glue:{place} does not name a registry; expected glue:REGION/REGISTRY")
    config = Config(connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S, retries={"total_max_attempts": _ATTEMPTS})
    try:
        client = get_session().create_client("glue", region_name=region, config=config)
        pages = client.get_paginator("list_schemas").paginate(RegistryId={"RegistryName": registry})
        arns = [schema["SchemaArn"] for page in pages for schema in page["Schemas"]]
        for arn in track(f"reading glue:{place}", arns):
            yield client.get_schema(SchemaId={"SchemaArn": arn})
            for page in client.get_paginator("list_schema_versions").paginate(SchemaId={"SchemaArn": arn}):
                for listed in page["Schemas"]:
                    yield client.get_schema_version(SchemaVersionId=listed["SchemaVersionId"])
    except (BotoCoreError, ClientError) as error:
        raise TransferError(f"glue:{place} cannot be read: {error}") from None
