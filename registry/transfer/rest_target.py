"""Writes a copy into a running registry over REST, keeping ids and versions.

The target is put into mode IMPORT context by context. A version is registered after those that it refers to, and
soft-deleted before anything that would prevent its deletion; configurations and modes come last. Whatever the target
already holds is skipped, so an interrupted run can simply be repeated.
"""

from strata.http.paths import segment, setting_path
from strata.registry.core.subject_names import GLOBAL_SCOPE
from strata.registry.transfer.copies import Copy, TransferError
from strata.registry.transfer.facts import REGISTRY, facts_of
from strata.registry.transfer.progress import print_line, track
from strata.registry.transfer.rest import Connection
from strata.registry.transfer.rest_associations import write_associations
from strata.registry.transfer.rest_keys import missing_keys, write_keys
from strata.registry.transfer.rest_source import read_service
from strata.registry.transfer.rest_versions import Step, in_order, take
from strata.registry.transfer.selection import only_context
from strata.storage.records import DEFAULT_CONTEXT, Subject, context_of, qualified
from strata.storage.state import State

__all__ = ["write_service"]

_IMPORT = "IMPORT"
# The subject that takes the highest id and is deleted again; it never outlives a run.
_HIGHEST = "strata-highest-id"
_REPLACED = ("context", "mode of", "record")


def write_service(copy: Copy, target: Connection, mode: str | None, context: str | None = None) -> None:
    """Write the content of a copy into a registry.

    Args:
        copy: the copy.
        target: the connection to the registry.
        mode: the registry-wide mode at the end; None means that of the copy.
        context: the context of the target that holds the copy, beside others that stay as they are; None for all.

    Raises:
        TransferError: if the target holds something else or rejects a request; it keeps what it has taken, in mode
            IMPORT.
    """
    held = _without_leftovers(target, copy.state)
    if context is not None:
        held = only_context(held, context)
    _check_part_of(copy, held, target.name)
    keys = missing_keys(copy.state, held.state, target.name)
    steps = [step for step in in_order(copy.state) if not _is_done(step, held.state)]
    if steps and held.state.subjects and _IMPORT not in held.state.modes.values():
        raise TransferError(
            f"{target.name} is not empty: it holds {len(held.state.subjects)} subjects and is not in mode {_IMPORT}, "
            "in which an interrupted run leaves it. Nothing was written; migrate into an empty registry"
        )
    contexts = sorted({context_of(subject) for _, subject, _, _ in steps} | set(_lower_ids(copy.state, held.state)))
    for name in contexts:
        _enter_import(target, name, held)
    write_keys(keys, target)
    for step in track(f"registering in {target.name}", steps):
        take(target, copy.state, step)
    now = read_service(target)
    if context is not None:
        now = only_context(now, context)
    for name, highest in _lower_ids(copy.state, now.state).items():
        _raise_highest_id(target, name, highest)
    write_associations(copy.state, now.state, target)
    _settle(copy.state, target, mode, now.state)


def _without_leftovers(target: Connection, wanted: State) -> Copy:
    """Read the target, after deleting the subjects that an interrupted run used to raise the highest id."""
    held = read_service(target)
    borrowed = [name for name in held.state.subjects if name.endswith(_HIGHEST) and name not in wanted.subjects]
    for subject in borrowed:
        _delete_for_good(target, subject)
    return read_service(target) if borrowed else held


def _check_part_of(copy: Copy, held: Copy, name: str) -> None:
    """Reject a target with content of its own; settings of the registry and of contexts are replaced instead."""
    wanted = facts_of(copy.state, copy.records, {})
    for thing, properties in facts_of(held.state, held.records, {}).items():
        noun, of, number = thing
        if noun in _REPLACED or (noun == "config of" and (of == REGISTRY or of.strip("':").startswith("."))):
            continue
        other = wanted.get(thing)
        if other is None or other.get("id") != properties.get("id"):
            shown = f"{noun} {of}" + (f" version {number}" if number else "")
            raise TransferError(
                f"{name} is not empty: its {shown} differs from the source or is not in it. Nothing was written; "
                "migrate into an empty registry"
            )


def _is_done(step: Step, held: State) -> bool:
    _, subject, version, deletes = step
    entry = held.version(subject, version)
    return entry is not None and (entry.deleted or not deletes)


def _enter_import(target: Connection, context: str, held: Copy) -> None:
    scope = _scope_of(context)
    if held.state.modes.get(scope) == _IMPORT:
        return
    answer = target.ask("PUT", setting_path("mode", scope), {"mode": _IMPORT})
    if answer.good:
        return
    raise TransferError(
        f"{target.name} rejected mode IMPORT for context {context!r}: {answer.message} (error {answer.code}). "
        "The context must be empty, or still be in that mode after an interrupted run"
    )


def _lower_ids(state: State, held: State) -> dict[str, int]:
    """Return the source's highest ids of the contexts in which the target has not given as high an id."""
    return {
        name: context.high_water
        for name, context in sorted(state.contexts.items())
        if context.high_water > max(held.context(name).high_water, *(0, *context.schemas))
    }


def _raise_highest_id(target: Connection, context: str, highest: int) -> None:
    """Register a schema under the highest id and hard-delete it, so that the next id is as high as at the source."""
    subject = qualified(_HIGHEST, context)
    text = f'{{"type":"fixed","name":"HighestId","size":{highest}}}'
    path = f"/subjects/{segment(subject)}/versions"
    target.must("POST", path, {"schema": text, "id": highest, "version": 1})
    _delete_for_good(target, subject)


def _delete_for_good(target: Connection, subject: str) -> None:
    path = f"/subjects/{segment(subject)}"
    target.ask("DELETE", path)
    target.must("DELETE", path, permanent="true")


def _settle(state: State, target: Connection, mode: str | None, held: State) -> None:
    """Set configurations, then modes, because a read-only scope rejects configurations; skip what is already set."""
    configs = [(scope, config) for scope, config in state.configs.items() if held.configs.get(scope) != config]
    for scope, config in track(f"configuring {target.name}", configs):
        change = {"compatibility" if n == "compatibilityLevel" else n: value for n, value in config.fields.items()}
        target.must("PUT", setting_path("config", scope), change)
    wanted = dict(state.modes)
    if mode:
        wanted[None] = mode
    for scope in held.modes:
        if scope not in wanted and held.modes[scope] == _IMPORT:
            _leave_import(target, scope)
    # The wider scopes come last, so an interrupted run leaves the target in mode IMPORT.
    for scope in sorted(wanted, key=lambda name: (name in (None, GLOBAL_SCOPE), str(name))):
        if held.modes.get(scope) != wanted[scope]:
            target.must("PUT", setting_path("mode", scope), {"mode": wanted[scope]})
    print_line(f"{target.name} is in mode {target.get('/mode').get('mode')}")


def _leave_import(target: Connection, scope: str | None) -> None:
    if not target.ask("DELETE", setting_path("mode", scope)).good:
        target.must("PUT", setting_path("mode", scope), {"mode": "READWRITE"})


def _scope_of(context: str) -> Subject | None:
    return None if context == DEFAULT_CONTEXT else Subject(f":{context}:")
