"""The records of exporters, which copy subjects to other registries; part of the types of `records.py`.

What a user sets and what the copying notes are two records, so that noting progress never writes credentials again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["ExportKey", "ExportValue", "ExporterKey", "ExporterValue"]


@dataclass(frozen=True, slots=True)
class ExporterKey:
    """An exporter, which copies subjects to another registry.

    On the wire it is a NOOP of the kind EXPORTER, which other registries ignore (docs/decisions/0027).
    """

    name: str


@dataclass(frozen=True, slots=True)
class ExportKey:
    """How far an exporter has come; on the wire a NOOP of the kind EXPORT."""

    name: str


@dataclass(frozen=True, slots=True)
class ExporterValue:
    """What an exporter copies, and where to.

    Attributes:
        subjects: patterns of the names of subjects; `*` at the end matches any rest.
        context_type: AUTO, CUSTOM, NONE or DEFAULT: which context of the destination takes the copy.
        context: the context, if the type is CUSTOM.
        subject_format: the name of a subject at the destination, with `${subject}` for its name here.
        kek_format: the same for key encryption keys, with `${kek}`.
        config: how to reach the destination; credentials are encrypted.
        paused: whether it rests.
    """

    subjects: tuple[str, ...]
    context_type: str
    context: str = ""
    subject_format: str = ""
    kek_format: str = ""
    config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ExportValue:
    """How far an exporter has come.

    Attributes:
        state: STARTING before its first attempt has ended, then RUNNING.
        offset: the offset in the log up to which the destination has everything; -1 for nothing.
        ts: when that was noted, in milliseconds since the epoch; 0 if it was not.
        trace: why the last attempt failed; empty if it did not.
        owner: the node that copies, or did last.
        beat: counts the records of a long copy, by which other nodes see that the owner is alive.
    """

    state: str
    offset: int = -1
    ts: int = 0
    trace: str = ""
    owner: str = ""
    beat: int = 0
