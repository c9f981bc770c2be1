"""How registries judge and take steps: a Strata service all at once, any other one step by step.

Both judge by the registry's own identity. Strata decides a dry run of the same batch that it will get. Of another
registry this asks by look-up: a schema is unchanged if the look-up finds the latest version, or an older one that
equals it. `confluent:version` in metadata does not count: a registry sets it when an older schema becomes the latest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from strata.gitops.desired import qualified
from strata.gitops.errors import GitopsError
from strata.gitops.rights import shown
from strata.gitops.service import APPLY, Service
from strata.gitops.versions import Held
from strata.http.paths import segment, setting_path
from strata.serdes.errors import RegistryError, SerdeError

__all__ = ["Judgement", "Moved", "Outcome", "Registry", "registry_at"]

_MOVED = 40990
_TOO_LARGE = 413
_UNSURE = 500
_UNKNOWN = "It is not known whether anything was written: `strata plan` shows it"
_VERSION = "confluent:version"
_LEVEL = "compatibilityLevel"
_CLOSED = ("READONLY", "READONLY_OVERRIDE")
_NO_RIGHTS = "this registry cannot hold rights; only a Strata service takes them from a manifest"


class Moved(GitopsError):
    """What the plan depends on has changed since it was made; nothing was written."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a step.

    Attributes:
        changed: whether it changes anything.
        version: the version that holds the schema.
        error: why the registry rejects it.
        goes_back: whether an older version holds the schema.
        rights: lines that say which rights come and go.
        basis: the registry's digest of what the step depends on; None if it gives none.
    """

    changed: bool
    version: int | None = None
    error: str | None = None
    goes_back: bool = False
    rights: tuple[str, ...] = ()
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcomes of steps, in their order, and the offset of the registry's log if it has one."""

    outcomes: tuple[Outcome, ...]
    offset: int | None = None


class Registry(Protocol):
    """A registry that steps are for."""

    @property
    def service(self) -> Service:
        """Its REST API."""

    def judge(self, steps: Sequence[Mapping[str, object]]) -> Judgement:
        """Return what would become of steps, without a write."""

    def carry_out(
        self, steps: Sequence[Mapping[str, object]], offset: int | None, done: Callable[[int], None]
    ) -> list[Outcome]:
        """Carry out steps.

        Args:
            steps: the steps, as judged.
            offset: the offset that they were judged at, which counts if a step has no basis.
            done: is called with the number of steps that are done.

        Raises:
            Moved: If the registry has changed since.
            GitopsError: If it rejects a step; the message says what was done.
        """


def registry_at(service: Service) -> Registry:
    """Return the registry behind a REST API: whether it takes batches, it says itself."""
    return _AtOnce(service) if service.takes_batches() else _StepByStep(service)


class _AtOnce:
    """A Strata service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def judge(self, steps: Sequence[Mapping[str, object]]) -> Judgement:
        """Return what the service would do with steps."""
        answer = self._send({"dryRun": True, "steps": [{**step, "basis": None} for step in steps]})
        return Judgement(tuple(map(_outcome, answer["results"])), int(answer["offset"]))

    def carry_out(
        self, steps: Sequence[Mapping[str, object]], offset: int | None, done: Callable[[int], None]
    ) -> list[Outcome]:
        """Send all steps as one batch."""
        is_based = offset is None or all(step.get("basis") for step in steps)
        body = {"steps": list(steps)} if is_based else {"steps": list(steps), "offset": offset}
        try:
            answer = self._send(body)
        except RegistryError as error:
            if error.error_code == _MOVED:
                raise Moved(f"{error.message}. Nothing was written") from None
            if error.status >= _UNSURE:
                raise GitopsError(f"{error}. {_UNKNOWN}") from None
            raise GitopsError(f"nothing was written: {error}") from None
        except SerdeError as error:
            raise GitopsError(f"{error}. {_UNKNOWN}") from None
        done(len(steps))
        return [_outcome(result) for result in answer["results"]]

    def _send(self, body: Mapping[str, object]) -> Any:
        try:
            return self.service.send("POST", APPLY, body)
        except RegistryError as error:
            if error.status == _TOO_LARGE:
                raise GitopsError(f"the schemas are too many for one batch: {error.message}") from None
            raise


def _outcome(result: Mapping[str, Any]) -> Outcome:
    error = result.get("error")
    rights = (*shown(result.get("removed") or (), "-"), *shown(result.get("added") or (), "+"))
    message = None if error is None else str(error["message"])
    return Outcome(bool(result["changed"]), result.get("version"), message, rights=rights, basis=result.get("basis"))


class _StepByStep:
    """A registry that takes one change at a time."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._changing: set[str] = set()  # the scopes whose configuration the steps change
        self._opened: set[str] = set()  # the scopes whose mode they change

    def judge(self, steps: Sequence[Mapping[str, Any]]) -> Judgement:
        """Return what the registry would most likely do with steps, by look-ups."""
        planned: dict[str, int] = {}
        self._changing.clear()
        self._opened.clear()
        deleted = frozenset(str(step["subject"]) for step in steps if step["action"] == "delete")
        judges: dict[str, Callable[[Mapping[str, object]], Outcome]] = {
            "settings": self._judge_settings,
            "register": lambda step: self._judge_schema(step, planned),
            "delete": lambda step: self._judge_deletion(step, deleted),
            "rights": lambda step: Outcome(changed=False, error=_NO_RIGHTS if step["rules"] else None),
        }
        return Judgement(tuple(self._if_open(step, judges[step["action"]](step)) for step in steps))

    def _if_open(self, step: Mapping[str, object], outcome: Outcome) -> Outcome:
        """Return the outcome of a step, which is an error if it changes a scope that is read-only."""
        scope = str(step["subject"])
        is_mode, around = "mode" in step, {scope, qualified("", scope), ""}
        if not outcome.changed or is_mode or step["action"] == "rights" or self._opened & around:
            return outcome
        if self.service.mode_in_force(scope) not in _CLOSED:
            return outcome
        return replace(outcome, changed=False, error=f"{scope or 'the registry'} is in read-only mode")

    def _judge_settings(self, step: Mapping[str, Any]) -> Outcome:
        scope = str(step["subject"])
        config = {("compatibility" if k == _LEVEL else k): v for k, v in self.service.config(scope).items()}
        changed = any(config.get(name) != value for name, value in step.get("config", {}).items())
        self._changing |= {scope} if changed else set()
        if "mode" in step and step["mode"] != self.service.mode(scope):
            self._opened.add(scope)
            changed = True
        return Outcome(changed)

    def _judge_schema(self, step: Mapping[str, object], planned: dict[str, int]) -> Outcome:
        subject = str(step["subject"])
        latest = self.service.version(subject, None)
        is_new = self._refers_to_new(step, planned)
        body = self._pinned(step)
        registered = None if is_new or latest is None else self._look_up(step, body)
        if registered is not None and latest is not None and _is_same(registered, latest):
            return Outcome(changed=False, version=latest.version)
        numbers = self.service.numbers(subject, deleted=True)
        version = planned[subject] = max(numbers, default=0) + 1
        # The registry would check against what it has now, which the steps before may change.
        is_unsure = is_new or latest is None or self._changing & {subject, qualified("", subject), ""}
        error = None if is_unsure else self._refusal(step, body)
        return Outcome(error is None, version, error, goes_back=registered is not None)

    def _judge_deletion(self, step: Mapping[str, object], deleted: frozenset[str]) -> Outcome:
        subject = str(step["subject"])
        users = {
            str(place["subject"])
            for number in self.service.numbers(subject)
            for schema_id in self.service.get(f"/subjects/{segment(subject)}/versions/{number}/referencedby")
            for place in self.service.get(f"/schemas/ids/{schema_id}/versions")
        }
        others = sorted(users - deleted - {subject})
        error = f"{', '.join(others)} refers to it" if others else None
        return Outcome(error is None and bool(self.service.numbers(subject)), error=error)

    def _refers_to_new(self, step: Mapping[str, Any], planned: Mapping[str, int]) -> bool:
        references = step["schema"].get("references", ())
        return any(
            reference["version"] == -1 and qualified(reference["subject"], step["subject"]) in planned
            for reference in references
        )

    def _pinned(self, step: Mapping[str, Any]) -> dict[str, object]:
        """Return the body of a registration with the numbers of latest versions."""
        body = dict(step["schema"])
        if "references" in body:
            body["references"] = [
                {**reference, "version": self._number(qualified(reference["subject"], step["subject"]))}
                if reference["version"] == -1
                else reference
                for reference in body["references"]
            ]
        return body

    def _number(self, subject: str) -> int:
        latest = self.service.version(subject, None)
        return latest.version if latest else -1

    def _look_up(self, step: Mapping[str, object], body: Mapping[str, object]) -> Held | None:
        subject = str(step["subject"])
        latest = self.service.version(subject, None)
        known = {"metadata": latest and latest.metadata, "ruleSet": latest and latest.rule_set}
        completed = {**{name: value for name, value in known.items() if value}, **body}
        query = {"normalize": "true"} if step.get("normalize") else {}
        for asked in (completed, body):
            try:
                answer = self.service.send("POST", f"/subjects/{segment(subject)}", asked, **query)
            except RegistryError as error:
                if error.status not in (404, 422):
                    raise
            else:
                return self.service.version(subject, int(answer["version"]))
        return None

    def _refusal(self, step: Mapping[str, object], body: Mapping[str, object]) -> str | None:
        """Return why the registry would reject a schema, as far as its check of compatibility says."""
        path = f"/compatibility/subjects/{segment(str(step['subject']))}/versions"
        try:
            answer = self.service.send("POST", path, body, verbose="true")
        except RegistryError as error:
            return error.message if error.status == 422 else None
        return None if answer.get("is_compatible") else "; ".join(map(str, answer.get("messages") or ["incompatible"]))

    def carry_out(
        self,
        steps: Sequence[Mapping[str, object]],
        offset: int | None,  # noqa: ARG002 - such a registry has none
        done: Callable[[int], None],
    ) -> list[Outcome]:
        """Send one request after the other, if each subject is at the version that the plan saw."""
        for step in steps:
            numbers = self.service.numbers(str(step["subject"]), deleted=True) if "expects" in step else []
            if "expects" in step and step["expects"] != max(numbers, default=0) + 1:
                raise Moved(f"{step['subject']} has changed since the plan was made; plan again. Nothing was written")
        outcomes: list[Outcome] = []
        for number, step in enumerate(steps, 1):
            try:
                outcomes.append(self._carry_out(step))
            except SerdeError as error:
                raise GitopsError(f"{_so_far(steps, number - 1)}. {error}") from None
            except KeyboardInterrupt:
                raise KeyboardInterrupt(_so_far(steps, number - 1)) from None
            done(number)
        return outcomes

    def _carry_out(self, step: Mapping[str, Any]) -> Outcome:
        subject, action = str(step["subject"]), step["action"]
        tail = f"/{segment(subject)}" if subject else ""
        if action == "delete":
            self.service.send("DELETE", f"/subjects{tail}")
            return Outcome(changed=True)
        if action == "settings":
            for setting in ("config", "mode"):
                if setting in step:
                    body = step[setting] if setting == "config" else {"mode": step[setting]}
                    self.service.send("PUT", setting_path(setting, subject or None), body)
            return Outcome(changed=True)
        fresh = _StepByStep(Service(self.service.client))  # the versions of what it refers to have changed
        body = fresh._pinned(step)
        if step.get("goesBack"):
            body["version"] = -1
        query = {"normalize": "true"} if step.get("normalize") else {}
        answer = self.service.send("POST", f"/subjects{tail}/versions", body, **query)
        version = answer.get("version") or fresh.service.numbers(subject)[-1]
        return Outcome(changed=True, version=int(version))


def _so_far(steps: Sequence[Mapping[str, object]], done: int) -> str:
    """Return which of some steps are done, and which are not."""
    named = [f"{step['action']} {step['subject'] or 'the registry'}" for step in steps]
    before = f" ({', '.join(named[:done])})" if done else ""
    return f"{done} of {len(steps)} steps are done{before}; not done: {', '.join(named[done:])}"


def _is_same(held: Held, latest: Held) -> bool:
    return held.version == latest.version or _content(held) == _content(latest)


def _content(held: Held) -> Held:
    metadata = dict(held.metadata or {})
    properties = {name: value for name, value in (metadata.get("properties") or {}).items() if name != _VERSION}
    metadata["properties"] = properties
    return replace(held, version=0, metadata={name: value for name, value in metadata.items() if value})
