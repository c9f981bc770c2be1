"""The destination of an exporter over REST: what it holds, the mode IMPORT, and the requests of a plan."""

import threading
from collections.abc import Collection

from strata.http.paths import segment, setting_path
from strata.registry.features.exporters.choice import Place
from strata.registry.features.exporters.plan import Held, Plan
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection, is_object
from strata.registry.transfer.rest_source import listed_versions
from strata.registry.transfer.rest_versions import take
from strata.storage.records import DEFAULT_CONTEXT, SchemaId, Subject, Version, context_of

__all__ = ["Stopped", "Target"]

_IMPORT = "IMPORT"
_REFERENCED = 42206


class Stopped(Exception):
    """The end of a copy that was stopped."""


class Target:
    """A destination during one copy.

    Args:
        connection: the connection to it.
        stop: ends the copy at the next request.
    """

    def __init__(self, connection: Connection, stop: threading.Event) -> None:
        self._connection, self._stop = connection, stop
        self._ready: set[str] = set()
        self._is_import: bool | None = None

    def held(self, contexts: Collection[str]) -> dict[Place, Held]:
        """Return the versions in some contexts.

        Raises:
            TransferError: if the destination does not respond.
            Stopped: if the copy was stopped.
        """
        versions: dict[Place, Held] = {}
        for context in [None] if DEFAULT_CONTEXT in contexts else sorted(contexts):
            self._check()
            for item in listed_versions(self._connection, context):
                try:
                    place = Subject(item["subject"]), Version(int(item["version"]))
                    held = Held(SchemaId(int(item["id"])), str(item["schema"]), bool(item["deleted"]))
                except (KeyError, TypeError, ValueError):
                    raise TransferError(f"{self._connection.name} listed an invalid schema: {item}") from None
                if context_of(place[0]) in contexts:
                    versions[place] = held
        return versions

    def carry_out(self, plan: Plan, held: dict[Place, Held]) -> None:
        """Carry out a plan.

        Args:
            plan: the plan.
            held: what the destination holds.

        Raises:
            TransferError: if the destination rejects something.
            Stopped: if the copy was stopped.
        """
        self._drop(list(plan.drops), held)
        for step in plan.steps:
            self._check()
            _, subject, _, deletes = step
            if not deletes:
                self._enter_import(subject)
            take(self._connection, plan.state, step)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _drop(self, places: list[Place], held: dict[Place, Held]) -> None:
        """Delete versions for good; one that is referred to has to wait for those that refer to it."""
        while places:
            waiting = [place for place in places if not self._is_dropped(place, held[place])]
            if len(waiting) == len(places):
                subject, version = waiting[0]
                raise TransferError(
                    f"{self._connection.name} did not delete {subject!r} version {version}: others refer to it there"
                )
            places = waiting

    def _is_dropped(self, place: Place, held: Held) -> bool:
        """Delete a version for good; return whether it is gone, not still referred to."""
        self._check()
        path = f"/subjects/{segment(place[0])}/versions/{place[1]}"
        queries = [{"permanent": "true"}] if held.deleted else [{}, {"permanent": "true"}]
        for query in queries:
            answer = self._connection.ask("DELETE", path, **query)
            if answer.code == _REFERENCED:
                return False
            if not answer.good and not answer.missing:
                raise TransferError(
                    f"{self._connection.name} did not delete {place[0]!r} version {place[1]}: {answer.message} "
                    f"(error {answer.code})"
                )
        return True

    def _enter_import(self, subject: str) -> None:
        """See to it that versions keep their ids: put an empty context, or an empty subject, into mode IMPORT.

        A whole context of the destination is the exporter's; of the default context only the subjects that it writes.
        """
        context = context_of(subject)
        scope = subject if context == DEFAULT_CONTEXT else f":{context}:"
        if scope in self._ready or (context == DEFAULT_CONTEXT and self._imports_everything()):
            return
        path = setting_path("mode", scope)
        shown = self._connection.ask("GET", path, None, is_object, defaultToGlobal="true")
        if not (shown.good and shown.body.get("mode") == _IMPORT):
            answer = self._connection.ask("PUT", path, {"mode": _IMPORT})
            if not answer.good:
                raise TransferError(
                    f"{self._connection.name} rejected mode IMPORT for {scope!r}: {answer.message} "
                    f"(error {answer.code}). It must be empty, or already in that mode"
                )
        self._ready.add(scope)

    def _imports_everything(self) -> bool:
        if self._is_import is None:
            answer = self._connection.ask("GET", "/mode", None, is_object)
            self._is_import = answer.good and answer.body.get("mode") == _IMPORT
        return self._is_import
