"""The difference of two sets of subjects by meaning: what only one has, and how their latest versions differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strata.compat.difference.compare import Difference, difference
from strata.compat.difference.text import as_json, as_lines
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError
from strata.gitops.errors import GitopsError
from strata.gitops.steps import CONFLUENT_VERSION, OWNER
from strata.gitops.versions import Held, Parser, TreeVersions, Versions

__all__ = ["SubjectDifference", "as_text", "differences"]


@dataclass(frozen=True, slots=True)
class SubjectDifference:
    """How a subject differs between two sources.

    Attributes:
        subject: the subject.
        only_in: the label of the source that alone has it; empty if both do.
        schema: the difference of the schemas; None if they do not differ, or one cannot be parsed.
        contract: the names of what else differs: metadata, rules.
        unknown: why the schemas cannot be compared.
    """

    subject: str
    only_in: str = ""
    schema: Difference | None = None
    contract: tuple[str, ...] = ()
    unknown: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the difference as JSON values."""
        content: dict[str, object] = {"subject": self.subject}
        content |= {"onlyIn": self.only_in} if self.only_in else {}
        content |= {"schema": as_json(self.schema)} if self.schema else {}
        content |= {"contract": list(self.contract)} if self.contract else {}
        return content | ({"unknown": self.unknown} if self.unknown else {})


def differences(a: Versions, b: Versions) -> Iterator[SubjectDifference]:
    """Yield the subjects that differ, in the order of their names."""
    mine, theirs = set(a.subjects()), set(b.subjects())
    parsers = _parser(a, b), _parser(b, a)
    for subject in sorted(mine | theirs):
        if subject not in mine or subject not in theirs:
            yield SubjectDifference(subject, only_in=a.label if subject in mine else b.label)
            continue
        before, after = a.version(subject, None), b.version(subject, None)
        if before is not None and after is not None and (difference := _difference(before, after, *parsers)):
            yield difference


def _parser(source: Versions, other: Versions) -> Parser:
    """Return the parser of a source; files may refer to a version that only the other source has."""
    return Parser([source, other] if isinstance(source, TreeVersions) else [source])


def _difference(before: Held, after: Held, old: Parser, new: Parser) -> SubjectDifference | None:
    contract = tuple(
        name
        for name, earlier, other in (
            ("metadata", before.metadata, after.metadata), ("rules", before.rule_set, after.rule_set),
        )
        if _shown(earlier) != _shown(other) and not _is_open(earlier, before) and not _is_open(other, after)
    )  # fmt: skip
    try:
        if before.normalize or after.normalize:
            schemas = old.normalized(before), new.normalized(after)
        else:
            schemas = old.parse(before, strict=False), new.parse(after, strict=False)
        changes = difference(*schemas, limits=Limits().started())
    except (SchemaParseError, GitopsError) as error:
        same = (before.text, before.references) == (after.text, after.references)
        return (
            None if same and not contract else SubjectDifference(after.subject, contract=contract, unknown=str(error))
        )
    schema = changes if changes.changes else None
    return SubjectDifference(after.subject, schema=schema, contract=contract) if schema or contract else None


def _is_open(part: object, version: Held) -> bool:
    """Return whether a manifest leaves metadata or rules as they are."""
    return part is None and bool(version.file)


def _shown(part: Any) -> object:
    """Return metadata or rules without what plans and registries write into them."""
    properties = (part or {}).get("properties")
    if properties:
        kept = {name: value for name, value in properties.items() if name not in (OWNER, CONFLUENT_VERSION)}
        part = {**part, "properties": kept}
    return {name: value for name, value in (part or {}).items() if value} or None


def as_text(difference: SubjectDifference) -> Iterator[str]:
    """Yield lines for people."""
    if difference.only_in:
        yield f"{difference.subject}: only in {difference.only_in}"
        return
    parts = [*(["schema"] if difference.schema else []), *difference.contract]
    yield f"{difference.subject}: {', '.join(parts) or 'unknown'}"
    if difference.schema:
        yield from (f"    {line}" for line in as_lines(difference.schema))
    if difference.unknown:
        yield f"    the difference cannot be shown: {difference.unknown}"
