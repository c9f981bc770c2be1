"""A proof in sentences for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from strata.compat.levels import Direction
from strata.compat.proofs import as_json
from strata.compat.result import Finding

__all__ = ["lines", "lines_of"]

_LONGEST: Final = 500
_REASONS: Final = {
    "time": "No record was found in time.",
    "size": "The smallest record that shows it is too large.",
    "undecided": "Whether a record shows it was not decided.",
}


def lines_of(finding: Finding) -> Iterator[str]:
    """Yield the proof of a finding, if it has one; see `lines`."""
    if finding.proof is not None:
        yield from lines(as_json(finding.proof), finding.direction, finding.version)


def lines(shown: Mapping[str, object], direction: str | None, version: int | None) -> Iterator[str]:
    """Yield what happens to which record, in one or two lines without control characters.

    Args:
        shown: the members `witness` and `noWitness` of the JSON of a finding.
        direction: the finding's direction.
        version: the previous version; None if it has no number.
    """
    yield from map(_printable, _lines(shown, direction, version))


def _lines(shown: Mapping[str, object], direction: str | None, version: int | None) -> Iterator[str]:
    witness, reason = shown.get("witness"), shown.get("noWitness")
    if reason is not None:
        yield _REASONS.get(str(reason), str(reason))
    if not isinstance(witness, Mapping):
        return
    if witness.get("ruleOnly"):
        yield f"No record breaks. {witness.get('because', '')}"
        return
    writer, reader = "the previous version" if version is None else f"version {version}", "the new schema"
    if direction == Direction.FORWARD:
        writer, reader = reader, writer
    record = _text(witness.get("record"))
    if "error" in witness:
        yield f"This record, written with {writer}, cannot be read with {reader}: {record}"
        yield str(witness["error"])
    else:
        yield f"This record, written with {writer}, is read with {reader} as another one: {record}"
        yield f"Written as {_text(witness.get('writtenAs'))}, read as {_text(witness.get('readAs'))}."


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
