"""What a reader makes of a writer's data, as values: the verdict, where, and why.

A rule of compatibility says whether a registry accepts a change. An outcome says what happens to records. The two
differ: a change that every level accepts may alter values, and a change that is refused may harm no record.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from strata.compat.difference.edits import EditKind, cut

__all__ = ["SEVERITY", "Cause", "Outcome", "Verdict", "worst"]


class Verdict(StrEnum):
    """What happens to the records of a writer at a reader."""

    BREAKS = "breaks"  # a reader refuses some record
    SILENT = "silent"  # every record is read, but some value is another one than was written, or is lost
    UNKNOWN = "unknown"  # not judged
    SAFE = "safe"  # every record is read as it was written


SEVERITY: Final = (Verdict.BREAKS, Verdict.SILENT, Verdict.UNKNOWN, Verdict.SAFE)


class Cause(StrEnum):
    """Why a reader refuses a record or reads another value; the value is the name for programs."""

    ALIAS_HIDDEN = "ALIAS_HIDDEN"
    BYTES_NOT_TEXT = "BYTES_NOT_TEXT"
    DEFAULT_DIFFERS = "DEFAULT_DIFFERS"
    DOCUMENT_REFUSED = "DOCUMENT_REFUSED"
    ENUM_DEFAULT = "ENUM_DEFAULT"
    ENUM_MOVED = "ENUM_MOVED"
    ENUM_UNKNOWN = "ENUM_UNKNOWN"
    FORMAT_UNCHECKED = "FORMAT_UNCHECKED"
    HARMLESS = "HARMLESS"
    MISPARSED = "MISPARSED"
    MOVED = "MOVED"
    NOT_A_UUID = "NOT_A_UUID"
    NUMBER_CUT = "NUMBER_CUT"
    NUMBER_ROUNDED = "NUMBER_ROUNDED"
    NUMBERS_UNDECIDED = "NUMBERS_UNDECIDED"
    ONE_OF_MANY = "ONE_OF_MANY"
    ONEOF_CLEARED = "ONEOF_CLEARED"
    PRESENCE_LOST = "PRESENCE_LOST"
    REMOVED_DEFAULT = "REMOVED_DEFAULT"
    REINTERPRETED = "REINTERPRETED"
    RENAMED_DEFAULT = "RENAMED_DEFAULT"
    REQUIRED_MISSING = "REQUIRED_MISSING"
    UNDECIDED = "UNDECIDED"
    WIRE_TYPE = "WIRE_TYPE"


_BREAKING: Final = frozenset(
    {
        *(Cause.ALIAS_HIDDEN, Cause.BYTES_NOT_TEXT, Cause.DOCUMENT_REFUSED, Cause.MISPARSED, Cause.NOT_A_UUID),
        Cause.REQUIRED_MISSING,
    }
)
_VERDICTS: Final = {
    Cause.FORMAT_UNCHECKED: Verdict.UNKNOWN,
    Cause.HARMLESS: Verdict.SAFE,
    Cause.NUMBERS_UNDECIDED: Verdict.UNKNOWN,
    Cause.UNDECIDED: Verdict.UNKNOWN,
}
_WORDS: Final = {
    Cause.ALIAS_HIDDEN: (
        "{Readers} that use Avro's Java library do not find {before}, and refuse the record: it renames fields by "
        "aliases, also those whose own name the reader has, and only in records of the same full name."
    ),
    Cause.BYTES_NOT_TEXT: "Values that are not UTF-8 cannot be read as text; some readers replace their bytes.",
    Cause.DEFAULT_DIFFERS: "Where the field is not set, {readers} read the default {after} instead of {before}.",
    Cause.DOCUMENT_REFUSED: "{Readers} refuse {before}: {name}.",
    Cause.ENUM_DEFAULT: "{Readers} lack {before} and read the default {after} instead.",
    Cause.ENUM_MOVED: "{Readers} read {before} as {after}.",
    Cause.ENUM_UNKNOWN: "{Readers} lack {before} and get a bare number, or the default.",
    Cause.REINTERPRETED: "{Readers} read {before} as {after}: the same bytes become other values, without an error.",
    Cause.FORMAT_UNCHECKED: "Some validators refuse text that is not of the format {after}; others do not check it.",
    Cause.HARMLESS: "No document is refused because of this.",
    Cause.MISPARSED: "{Readers} read bytes of {before} as {after}; some cannot be read.",
    Cause.MOVED: "{Readers} read what was written as {before} as {after}.",
    Cause.NOT_A_UUID: "Text that is not a UUID cannot be read.",
    Cause.NUMBER_CUT: "{Readers} read {before} as {after}: some numbers become other numbers, without an error.",
    Cause.NUMBER_ROUNDED: "{Readers} read {before} as {after}: integers beyond {name} are rounded.",
    Cause.NUMBERS_UNDECIDED: "Not judged: whether {readers} round more integers than those named, if any.",
    Cause.ONE_OF_MANY: "{Readers} keep one value where {before} holds several.",
    Cause.ONEOF_CLEARED: "If several of {before} were set, {readers} keep only the last.",
    Cause.PRESENCE_LOST: "{Readers} read {before} for a field that was not set.",
    Cause.REMOVED_DEFAULT: "{Readers} read the default {after}, which looks like a written value.",
    Cause.RENAMED_DEFAULT: "{Readers} do not see what is written as {before}, and read the default {after} instead.",
    Cause.REQUIRED_MISSING: "{Readers} refuse a record without this field.",
    Cause.UNDECIDED: "Not judged: no document was found that {readers} refuse, and no proof that there is none.",
    Cause.WIRE_TYPE: "{Readers} expect {after} and skip the bytes of {before}: the value is lost.",
}


class Outcome(NamedTuple):
    """What a reader makes of one part of a writer's data that it does not read as it was written.

    Attributes:
        cause: why.
        at: the addresses of the part in the reader's schema, best first, as findings have them.
        before: what was written, or the writer's type.
        after: what is read, or the reader's type.
        name: a part of the words that belongs to the cause.
        kinds: the edits that the outcome is about, if there are several at the place; empty: any.
    """

    cause: Cause
    at: tuple[str, ...]
    before: str = ""
    after: str = ""
    name: str = ""
    kinds: frozenset[EditKind] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """Whether the part breaks, changes silently, is not judged, or is safe after all."""
        if self.cause in _VERDICTS:
            return _VERDICTS[self.cause]
        return Verdict.BREAKS if self.cause in _BREAKING else Verdict.SILENT

    def words(self, *, is_new: bool, version: int | None = None) -> str:
        """Return a sentence for people.

        Args:
            is_new: whether the reader's schema is the new one.
            version: the number of the previous schema; without it the sentence says "the old schema".
        """
        old = "the old schema" if version is None else f"version {version}"
        readers = f"consumers with {'the new schema' if is_new else old}"
        shown = {name: cut(value) for name, value in (("before", self.before), ("after", self.after))}
        return _WORDS[self.cause].format(readers=readers, Readers=readers.capitalize(), name=self.name, **shown)


def worst(verdicts: "list[Verdict]") -> Verdict:
    """Return the most severe verdict; safe if there is none."""
    return min(verdicts, key=SEVERITY.index, default=Verdict.SAFE)
