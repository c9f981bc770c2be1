"""The page of a version: its text, its fields, what it refers to and what refers to it, and code that uses it."""

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from strata.compat.limits import OutOfTime
from strata.compat.schema import SchemaParseError
from strata.imports import deferred
from strata.registry.api.views.addresses import subject_address
from strata.registry.api.views.subject import asked_version
from strata.registry.api.views.view import Page
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import LATEST, uses_of
from strata.registry.core.parsing import parse_version
from strata.registry.core.rights.visibility import is_readable
from strata.registry.features.pages.reference_graph import drawn, reference_graph
from strata.registry.features.pages.texts import shown_text
from strata.registry.features.pages.views.subject import contract_of
from strata.storage.records import Subject, context_of, guid_of, qualified
from strata.storage.state import IdEntry, SchemaVersion

if TYPE_CHECKING:
    from strata.compat import field_rows
    from strata.compat.field_rows import FieldRow
    from strata.compat.logical import ddl, policy, types
else:
    field_rows, ddl = deferred("strata.compat.field_rows"), deferred("strata.compat.logical.ddl")
    policy, types = deferred("strata.compat.logical.policy"), deferred("strata.compat.logical.types")

__all__ = ["download_version", "show_version", "shown_version"]

_MOST_FIELDS = 500
_MOST_LISTED = 200
_EXTENSIONS = {"AVRO": "avsc", "JSON": "json", "PROTOBUF": "proto"}
_SUFFIXES = ("-value", "-key")
_LONGEST_STATEMENT = 100_000
_ENGINES = {"clickhouse": "ClickHouse", "duckdb": "DuckDB"}


class _Referred(NamedTuple):
    """A version that this one refers to; the version is None if it does not exist any more, or may not be read."""

    name: str
    subject: Subject
    number: int
    version: SchemaVersion | None


def show_version(page: Page) -> dict[str, object]:
    """Return what the page of a version shows.

    Raises:
        RegistryError: 40301, 40401 or 40402 if there is nothing that the person may read.
    """
    return shown_version(page, asked_version(page))


def shown_version(page: Page, entry: SchemaVersion) -> dict[str, object]:
    """Return what the page of a version shows, however it was found."""
    rows, fault = _fields(page, entry)
    live = page.state.versions(entry.subject, include_deleted=False)
    numbers = [live_entry.version for live_entry in live]
    graph = reference_graph(page, entry)
    used_by = page.state.schema(context_of(entry.subject), entry.schema.schema_id)
    return {
        "entry": entry,
        "guid": guid_of(entry.schema.fingerprint),
        "text": shown_text(entry.schema.text, entry.schema.schema_type),
        "size": len(entry.schema.text.encode(errors="replace")),
        "download": subject_address(entry.subject, "versions", entry.version, "text"),
        "rows": rows[:_MOST_FIELDS],
        "more_rows": len(rows) > _MOST_FIELDS,
        "fault": fault,
        "references": _references(page, entry),
        "referrers": _referrers(page, entry),
        "graph": drawn(graph) if graph else None,
        "uses": _uses(page, entry, used_by) if used_by else [],
        "contract": contract_of(page, entry),
        "is_latest": bool(numbers) and entry.version == numbers[-1],
        "earlier": max((number for number in numbers if number < entry.version), default=None),
        "later": min((number for number in numbers if number > entry.version), default=None),
        "topic": _topic(entry.subject),
        "is_key": entry.subject.endswith("-key"),
        "table": _table(page, entry),
    }


def download_version(page: Page) -> Response:
    """Return the text of a version as a file.

    Raises:
        RegistryError: 40301, 40401 or 40402 if there is nothing that the person may read.
    """
    entry = asked_version(page)
    extension = _EXTENSIONS.get(entry.schema.schema_type, "txt")
    name = quote(f"{entry.subject or 'schema'}-v{entry.version}.{extension}", safe="", errors="replace")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(entry.schema.text.encode(errors="replace"), media_type="text/plain; charset=utf-8", headers=headers)


def _fields(page: Page, entry: SchemaVersion) -> tuple[list["FieldRow"], str | None]:
    """Return the field table, and why there is none."""
    try:
        schema = parse_version(page.state, entry, page.exchange.limits.started())
        return field_rows.field_rows(schema, _MOST_FIELDS + 1), None
    except RegistryError as error:
        return [], error.message
    except SchemaParseError as error:
        return [], str(error)


def _table(page: Page, entry: SchemaVersion) -> dict[str, object]:
    """Return the statement that makes the table of a version for the engine that was chosen, or why there is none."""
    engine = page.text("engine")
    engine = engine if engine in ddl.DIALECTS else next(iter(ddl.DIALECTS))
    limits = page.exchange.limits.started()
    properties = (entry.schema.value.metadata or {}).get("properties") or {}
    statement, fault = "", ""
    try:
        schema = parse_version(page.state, entry, limits)
        logical = policy.translate(schema, properties.get("confluent:union", ""), limits)
        statement = ddl.table_statement(logical, ddl.table_name(_topic(entry.subject)), engine)
    except RegistryError as error:
        fault = error.message
    except (OutOfTime, SchemaParseError, types.TranslationError) as error:
        fault = str(error)
    if len(statement) > _LONGEST_STATEMENT:
        statement, fault = "", "the statement is too long for a page; `strata table-ddl` prints it"
    engines = [(name, _ENGINES.get(name, name.capitalize())) for name in ddl.DIALECTS]
    return {"engine": engine, "engines": engines, "statement": statement, "fault": fault}


def _references(page: Page, entry: SchemaVersion) -> list[_Referred]:
    referred = []
    for reference in entry.schema.value.references[:_MOST_LISTED]:
        subject = Subject(qualified(reference.subject, context_of(entry.subject)))
        target = (
            page.state.latest(subject)
            if reference.version == LATEST
            else page.state.version(subject, reference.version)
        )
        seen = target is not None and is_readable(page.access, page.state, subject, target.version)
        referred.append(_Referred(reference.name, subject, reference.version, target if seen else None))
    return referred


def _referrers(page: Page, entry: SchemaVersion) -> list[SchemaVersion]:
    every = page.state.referred_by(entry.subject, entry.version)
    return [referrer for referrer in every if page.exchange.readable(referrer.subject)][:_MOST_LISTED]


def _uses(page: Page, entry: SchemaVersion, used_by: IdEntry) -> list[SchemaVersion]:
    others = (use for use in uses_of(page.state, used_by, include_deleted=True) if use[:2] != entry[:2])
    return [use for use in others if page.exchange.describable(use.subject)][:_MOST_LISTED]


def _topic(subject: str) -> str:
    plain = subject.removeprefix(f":{context_of(subject)}:")
    suffix = next((ending for ending in _SUFFIXES if plain.endswith(ending)), "")
    return plain.removesuffix(suffix)
