"""Whether tables can hold a schema, and follow the change to it: under the policy LOGICAL, or by the rules of engines.

Under the policy, a new schema must be valid by itself, whatever the level. Then each previous version that the level
compares is compared in its directions, oldest first. The messages are the reference's, to the letter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strata.compat.levels import LEVELS, Direction, Level
from strata.compat.limits import Limits
from strata.compat.logical.comparison import TableFinding, compare
from strata.compat.logical.tables import ENGINES, POLICY, TableRules
from strata.compat.logical.types import Kind, LogicalSchema, TranslationError, check_depth
from strata.compat.logical.validity import validate
from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = ["TableCheck", "check_engines", "check_tables", "translate"]

_ORDER: Final = (Direction.BACKWARD, Direction.FORWARD)


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The findings of one kind of table: on the new schema by itself, or in comparison with a previous version."""

    findings: tuple[TableFinding, ...]
    rules: TableRules | None = None  # None: the schema has no logical type
    direction: Direction | None = None
    version: int | None = None

    @property
    def message(self) -> str:
        """The findings as one message, in the reference's words."""
        text = "\n".join(map(str, self.findings))
        if self.rules is None:
            return f"Schema cannot be represented as a logical type: {self.findings[0].text}"
        if self.direction is None:
            return f"Logical validity ({self.rules.name}): {text}"
        return f"Logical compatibility ({self.rules.name}, {self.direction.lower()}): {text}"


def translate(schema: ParsedSchema, union: str, limits: Limits) -> LogicalSchema:
    """Return the logical type of a schema.

    Args:
        schema: the schema with its references.
        union: the metadata property `confluent:union` of its version.
        limits: bounds on time.

    Raises:
        TranslationError: no table can hold the schema.
        OutOfTime: the time of `limits` ran out.
    """
    try:
        translated = _translator(schema.format)(schema, union, limits)
        check_depth(translated, limits)
    except RecursionError:
        name = "JSON" if schema.format is SchemaFormat.JSON else schema.format.capitalize()
        raise TranslationError(f"{name} schema nests types too deeply to convert") from None
    return translated


def _translator(schema_format: SchemaFormat) -> Callable[[Any, str, Limits], LogicalSchema]:
    """Return the translation of a format; each is imported at its first use."""
    match schema_format:
        case SchemaFormat.AVRO:
            from strata.compat.logical import avro

            return avro.translate
        case SchemaFormat.JSON:
            from strata.compat.logical import json_schema

            return json_schema.translate
        case SchemaFormat.PROTOBUF:
            from strata.compat.logical import protobuf

            return protobuf.translate


def check_tables(
    new: ParsedSchema,
    previous: Sequence[tuple[int, ParsedSchema, str]],
    level: Level,
    limits: Limits,
    union: str = "",
) -> list[TableCheck]:
    """Return what rules out a new schema, in the reference's order; nothing if tables can follow it.

    Args:
        new: the new schema.
        previous: the number, schema and `confluent:union` of each version before it, oldest first.
        level: the compatibility level.
        limits: bounds on time.
        union: the metadata property `confluent:union` of the new version.

    Raises:
        OutOfTime: the time of `limits` ran out.
    """
    try:
        update = translate(new, union, limits)
    except TranslationError as error:
        return [TableCheck((TableFinding("NO_LOGICAL_TYPE", str(error)),))]
    checks = [TableCheck(tuple(validate(update, rules, limits)), rules) for rules in POLICY]
    rule = LEVELS[level]
    compared = previous if rule.transitive else previous[-1:]
    for version, schema, names in compared if rule.directions else ():
        try:
            original = translate(schema, names, limits)
        except TranslationError:
            continue  # as in the reference: nothing is compared with a version that no table holds
        for direction in _ORDER:
            if direction in rule.directions:
                pair = (original, update) if direction is Direction.BACKWARD else (update, original)
                checks += [
                    TableCheck(tuple(compare(*pair, rules, limits)), rules, direction, version) for rules in POLICY
                ]
    return [check for check in checks if check.findings]


def check_engines(
    new: ParsedSchema,
    previous: Sequence[tuple[int, ParsedSchema, str]],
    engines: Sequence[str],
    limits: Limits,
    union: str = "",
) -> list[TableCheck]:
    """Return why tables of engines cannot follow to a new schema; nothing if they can.

    A table has the columns of every version that it followed, so each is compared, whatever the level.

    Args:
        new: the new schema.
        previous: the number, schema and `confluent:union` of each version before it, oldest first.
        engines: the names of the engines, keys of `ENGINES`.
        limits: bounds on time.
        union: the metadata property `confluent:union` of the new version.

    Raises:
        OutOfTime: the time of `limits` ran out.
    """
    try:
        update = _columns(new, union, limits)
    except TranslationError as error:
        return [TableCheck((TableFinding("NO_LOGICAL_TYPE", str(error)),), ENGINES[name]) for name in engines]
    if update is None:
        finding = TableFinding("NO_TABLE", "a table needs a record")
        return [TableCheck((finding,), ENGINES[name]) for name in engines]
    originals: list[tuple[int, LogicalSchema]] = []
    for version, schema, names in reversed(previous):
        try:
            original = _columns(schema, names, limits)
        except TranslationError:
            continue  # no table had it
        if original is not None:
            originals.append((version, original))
    checks = []
    for rules in (ENGINES[name] for name in engines):
        checks.append(TableCheck(tuple(validate(update, rules, limits)), rules))
        seen: set[TableFinding] = set()
        for version, original in originals:
            findings = tuple(finding for finding in compare(original, update, rules, limits) if finding not in seen)
            seen.update(findings)
            checks.append(TableCheck(findings, rules, Direction.BACKWARD, version))
    return [check for check in checks if check.findings]


def _columns(schema: ParsedSchema, union: str, limits: Limits) -> LogicalSchema | None:
    translated = translate(schema, union, limits)
    return translated if translated.resolve(translated.root).kind in (Kind.STRUCT, Kind.UNION) else None
