"""Decide changes of exporters: those that users ask for, and the progress that the copying notes.

The copying writes only if the exporter and its progress are still as it knows them. So a change, a pause or a reset by
a user, and another node that takes over, end a copy that is under way: the log refuses the loser of each race.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.subject_names import context_name
from strata.storage.record_json import encode
from strata.storage.records import DEFAULT_CONTEXT, ExporterKey, ExporterValue, ExportKey, ExportValue, context_of
from strata.storage.state import State

__all__ = [
    "AUTO",
    "CUSTOM",
    "DEFAULT",
    "EVERYWHERE",
    "EVERY_SUBJECT",
    "KEK",
    "MOST_EXPORTERS",
    "RUNNING",
    "STARTING",
    "SUBJECT",
    "TYPES",
    "Superseded",
    "at_rest",
    "auto_context",
    "change_exporter",
    "create_exporter",
    "delete_exporter",
    "exporter_counts",
    "exporter_of",
    "is_copy_below",
    "is_credential",
    "never_sent",
    "note_progress",
    "progress_of",
    "reset_exporter",
    "set_paused",
    "state_shown",
]

AUTO, CUSTOM, NONE, DEFAULT = "AUTO", "CUSTOM", "NONE", "DEFAULT"
TYPES = (AUTO, CUSTOM, NONE, DEFAULT)
"""Which context of the destination takes the copy: one named after this log, a chosen one, each its own, or `.`."""

SUBJECT, KEK = "${subject}", "${kek}"
"""What stands for the present name in a new one."""

EVERY_SUBJECT = "*"
"""The pattern of all subjects of the default context."""

EVERYWHERE = (":*:", ":*:*")
"""The patterns of all subjects."""

_CREDENTIALS = ("user.info", "password", "secret", "token", "jaas.config", "keystore.key", "passphrase")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
STARTING, RUNNING, PAUSED = "STARTING", "RUNNING", "PAUSED"
MOST_EXPORTERS = 100
_NEW = ExportValue(STARTING)


class Superseded(Exception):
    """An exporter or its progress has changed under a copy."""


def is_credential(name: str) -> bool:
    """Return whether a setting of an exporter holds a credential."""
    return name.lower().endswith(_CREDENTIALS)


def at_rest(exporter: ExporterValue) -> ExporterValue:
    """Return an exporter as an export holds it: paused and without credentials."""
    config = {name: value for name, value in exporter.config.items() if not is_credential(name)}
    return replace(exporter, config=config, paused=True)


def auto_context(cluster_id: str) -> str:
    """Return the context of the type AUTO, which is named after the log of this registry."""
    return f".{_NO_NAME.sub('-', cluster_id).strip('-')}"


def is_copy_below(into: str, subject: str) -> bool:
    """Return whether a subject, or a pattern of subjects, is below the context of a destination already.

    Such a subject came from there, and is not sent: otherwise registries that export to each other, or to themselves,
    would never end.
    """
    return into != DEFAULT_CONTEXT and f"{into}." in f"{context_of(subject)}."


def never_sent(exporter: ExporterValue) -> list[str]:
    """Return the patterns of an exporter into a chosen context that make every subject there count as a copy."""
    if exporter.context_type != CUSTOM:
        return []
    into = context_name(exporter.context)
    return [subject for subject in exporter.subjects if subject not in EVERYWHERE and is_copy_below(into, subject)]


def exporter_of(state: State, name: str) -> ExporterValue:
    """Return an exporter.

    Raises:
        RegistryError: 40450 if there is none of this name.
    """
    exporter = state.exporters.get(name)
    if exporter is None:
        raise errors.exporter_not_found(name)
    return exporter


def progress_of(state: State, name: str) -> ExportValue:
    """Return how far an exporter has come."""
    return state.exports.get(name, _NEW)


def state_shown(exporter: ExporterValue, progress: ExportValue) -> str:
    """Return the state of an exporter: STARTING, RUNNING or PAUSED."""
    return PAUSED if exporter.paused else progress.state


def exporter_counts(state: State) -> dict[str, int]:
    """Return how many exporters are paused, failing and running."""
    counts = {"running": 0, "failing": 0, "paused": 0}
    for name, exporter in state.exporters.items():
        failing = "failing" if progress_of(state, name).trace else "running"
        counts["paused" if exporter.paused else failing] += 1
    return counts


def create_exporter(state: State, name: str, exporter: ExporterValue) -> Decision[None]:
    """Return the records of a new exporter, which starts at once.

    Raises:
        RegistryError: 40960 if there is one of this name; 40964 if there are too many.
    """
    if name in state.exporters:
        raise errors.exporter_exists(name)
    if len(state.exporters) >= MOST_EXPORTERS:
        raise errors.too_many_exporters(MOST_EXPORTERS)
    return Decision(None, [encode(ExporterKey(name), exporter), encode(ExportKey(name), _NEW)])


def change_exporter(state: State, name: str, change: Callable[[ExporterValue], ExporterValue]) -> Decision[None]:
    """Return the record of a changed exporter, which must be paused.

    Args:
        state: the State to decide on.
        name: the name of the exporter.
        change: returns the exporter as it must be.

    Raises:
        RegistryError: 40450 if there is none of this name; 40963 if it is not paused; any error of `change`.
    """
    exporter = exporter_of(state, name)
    if not exporter.paused:
        raise errors.exporter_not_paused(name)
    changed = change(exporter)
    return Decision(None, [] if changed == exporter else [encode(ExporterKey(name), changed)])


def set_paused(state: State, name: str, *, paused: bool) -> Decision[None]:
    """Return the record of an exporter that rests, or continues where it left off; none if it does so already.

    Raises:
        RegistryError: 40450 if there is none of this name.
    """
    exporter = exporter_of(state, name)
    if exporter.paused == paused:
        return Decision(None)
    return Decision(None, [encode(ExporterKey(name), replace(exporter, paused=paused))])


def reset_exporter(state: State, name: str) -> Decision[None]:
    """Return the record of an exporter that starts over.

    Raises:
        RegistryError: 40450 if there is none of this name.
    """
    exporter_of(state, name)
    progress = progress_of(state, name)
    return Decision(None, [encode(ExportKey(name), replace(_NEW, owner=progress.owner, beat=progress.beat + 1))])


def delete_exporter(state: State, name: str) -> Decision[None]:
    """Return the tombstones of an exporter. What it has copied stays.

    Raises:
        RegistryError: 40450 if there is none of this name.
    """
    exporter_of(state, name)
    return Decision(None, [encode(ExporterKey(name)), encode(ExportKey(name))])


def note_progress(
    state: State, name: str, exporter: ExporterValue, before: ExportValue, after: ExportValue
) -> Decision[None]:
    """Return the record of the progress of a copy.

    Args:
        state: the State to decide on.
        name: the name of the exporter.
        exporter: the exporter as the copy knows it.
        before: its progress as the copy knows it.
        after: its progress now.

    Raises:
        Superseded: if the exporter or its progress is another by now.
    """
    if state.exporters.get(name) != exporter or progress_of(state, name) != before:
        raise Superseded
    return Decision(None, [] if before == after else [encode(ExportKey(name), after)])
