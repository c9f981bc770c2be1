"""Plans: the steps that change a registry, each with its reason and, for a schema, the difference by meaning."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strata.compat.difference.compare import difference
from strata.compat.difference.text import as_lines
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError
from strata.gitops.desired import Desired
from strata.gitops.errors import GitopsError
from strata.gitops.registries import Outcome, Registry
from strata.gitops.rights import Resource
from strata.gitops.steps import CONFLUENT_VERSION, OWNER, deletions, rights_steps, steps_of
from strata.gitops.versions import Held, Parser, TreeVersions, held

__all__ = ["Change", "Plan", "make_plan", "name_of", "plan_markdown", "plan_text", "read_plan", "write_plan"]

_FORMAT, _VERSION = "strata-plan", 1
_MOST_LINES = 200


def name_of(step: Mapping[str, Any]) -> str:
    """Return what a step is about."""
    if step["action"] == "rights":
        return f"the rights on {Resource(step['resource_type'], step['resource'], step['pattern_type'])}"
    name = str(step["subject"] or "the registry")
    return f"the settings of {name}" if step["action"] == "settings" else name


@dataclass(frozen=True, slots=True)
class Change:
    """A step that changes something, or that the registry rejects.

    Attributes:
        step: the step, as the registry gets it.
        reason: why it is in the plan, in a few words.
        details: lines that say what changes.
        version: the version that a schema gets.
        error: why the registry rejects it.
    """

    step: Mapping[str, Any]
    reason: str
    details: tuple[str, ...] = ()
    version: int | None = None
    error: str | None = None

    @property
    def title(self) -> str:
        """What the step does, on one line."""
        verbs = {"settings": "change", "rights": "change", "delete": "delete"}
        verb = verbs.get(self.step["action"], "register")
        numbered = verb == "register" and self.version is not None  # what is rejected may have no number
        return f"{verb} {name_of(self.step)}" + (f" version {self.version}" if numbered else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """What an apply would do.

    Attributes:
        registry: the URL of the registry.
        offset: the offset of its log, at which the plan was made; None if it has none.
        changes: the changes, in order.
        unchanged: how many steps change nothing.
        kept: subjects that would be deleted if nothing referred to them, with the reason.
    """

    registry: str
    offset: int | None
    changes: tuple[Change, ...] = ()
    unchanged: int = 0
    kept: tuple[str, ...] = ()

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The steps of all changes."""
        return [change.step for change in self.changes]

    @property
    def errors(self) -> list[Change]:
        """The changes that the registry rejects."""
        return [change for change in self.changes if change.error is not None]


def make_plan(desired: Desired, registry: Registry, *, prune: bool, label: str) -> Plan:
    """Return the plan that brings a registry to what a tree says.

    Args:
        desired: the tree.
        registry: the registry.
        prune: whether to delete the subjects with the owner's mark that the tree does not have.
        label: the name of the tree, for messages.

    Raises:
        GitopsError: If there is no owner to prune for, or a reference leads nowhere.
    """
    steps = steps_of(desired)
    gone = _owned(desired, registry) if prune else {}
    steps += [*deletions(gone), *rights_steps(desired, gone, only=prune)]
    judged = registry.judge(steps)
    tree = TreeVersions(desired, label)
    explain = _Explanations(desired, registry, Parser([tree, registry.service]), Parser([registry.service]))
    changes, unchanged = list[Change](), 0
    kept: dict[str, str] = {}
    for step, outcome in zip(steps, judged.outcomes, strict=True):
        if step["action"] == "delete" and outcome.error is not None:
            kept[step["subject"]] = outcome.error
        elif step["action"] == "rights" and step["resource"] in kept and not step["rules"]:
            continue  # the subject stays, and so do the rights on it
        elif outcome.changed or outcome.error is not None:
            seen: dict[str, Any] = {"goesBack": True} if outcome.goes_back else {}
            if judged.offset is None and outcome.version is not None:
                seen["expects"] = outcome.version
            changes.append(explain.change({**step, **seen}, outcome))
        else:
            unchanged += 1
    stays = tuple(f"{name}: {reason}" for name, reason in kept.items())
    return Plan(registry.service.label, judged.offset, tuple(changes), unchanged, stays)


def _owned(desired: Desired, registry: Registry) -> dict[str, Held]:
    """Return the subjects with the owner's mark that the tree does not have, with their latest versions."""
    if desired.owner is None:
        raise GitopsError("--prune needs an `owner` in the manifest: it deletes only what carries the owner's mark")
    latest = (
        registry.service.version(name, None) for name in registry.service.subjects() if name not in desired.subjects
    )
    return {
        one.subject: one
        for one in latest
        if one is not None and ((one.metadata or {}).get("properties") or {}).get(OWNER) == desired.owner
    }


@dataclass(frozen=True, slots=True)
class _Explanations:
    """Says why steps are in a plan."""

    desired: Desired
    registry: Registry
    new: Parser
    old: Parser

    def change(self, step: Mapping[str, Any], outcome: Outcome) -> Change:
        """Return a step as a change."""
        change = Change(step, "", (), outcome.version, outcome.error)
        if step["action"] == "settings":
            return replace(change, reason="settings differ", details=tuple(self._settings(step)))
        if step["action"] == "rights":
            return replace(change, reason="rights differ", details=outcome.rights)
        if step["action"] == "delete":
            return replace(change, reason="the manifest no longer has it")
        latest = self.registry.service.version(step["subject"], None)
        if latest is None:
            return replace(change, reason="new subject")
        details = tuple(self._schema(step, latest))
        reason = (
            "an older version holds this schema" if step.get("goesBack") else f"differs from version {latest.version}"
        )
        return replace(change, reason=reason, details=details)

    def _settings(self, step: Mapping[str, Any]) -> Iterator[str]:
        scope = step["subject"]
        before = dict(self.registry.service.config(scope))
        before["compatibility"] = before.get("compatibilityLevel")
        for name, value in (step.get("config") or {}).items():
            if before.get(name) != value:
                yield f"{name}: {_shown(before.get(name))} → {_shown(value)}"
        if "mode" in step and step["mode"] != (mode := self.registry.service.mode(scope)):
            yield f"mode: {_shown(mode)} → {step['mode']}"

    def _schema(self, step: Mapping[str, Any], latest: Held) -> Iterator[str]:
        body, subject = step["schema"], self.desired.subjects[step["subject"]]
        try:
            if subject.normalize:
                schemas = self.old.normalized(latest), self.new.normalized(held(subject))
            else:
                schemas = self.old.parse(latest, strict=False), self.new.parse(held(subject), strict=False)
            found = difference(*schemas, limits=Limits().started(), version=latest.version)
        except (SchemaParseError, GitopsError) as error:
            yield f"the difference cannot be shown: {error}"
        else:
            if found.changes:
                yield from as_lines(found, most=_MOST_LINES)
        for name, before in (("metadata", latest.metadata), ("ruleSet", latest.rule_set)):
            if name in body:
                yield from _edits(name, before or {}, body[name] or {})


def _edits(where: str, before: Any, after: Any) -> Iterator[str]:
    """Yield a line for each value that differs, by its path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            if name != CONFLUENT_VERSION:
                yield from _edits(f"{where}.{name}", before.get(name), after.get(name))
    elif before != after:
        yield f"{where}: {_shown(before)} → {_shown(after)}"


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan to a file.

    Raises:
        GitopsError: If the file cannot be written.
    """
    changes = [
        {"step": dict(one.step), "reason": one.reason, "details": list(one.details), "version": one.version}
        for one in plan.changes
    ]
    content = {"format": _FORMAT, "version": _VERSION, "registry": plan.registry, "offset": plan.offset}
    try:
        path.write_text(
            json.dumps({**content, "unchanged": plan.unchanged, "changes": changes}, indent=1) + "\n", "utf-8"
        )
    except OSError as error:
        raise GitopsError(f"cannot write {path}: {error.strerror}") from None


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        GitopsError: If it is no plan file of this version.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
        if (content["format"], content["version"]) != (_FORMAT, _VERSION):
            raise GitopsError(f"{path} is a plan of another version of strata; plan again")
        changes = tuple(
            Change(one["step"], one["reason"], tuple(one["details"]), one["version"]) for one in content["changes"]
        )
        return Plan(content["registry"], content["offset"], changes, content["unchanged"])
    except OSError as error:
        raise GitopsError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise GitopsError(f"{path} is no plan file") from None


def plan_text(plan: Plan) -> str:
    """Return a plan for people."""
    lines: list[str] = []
    for change in plan.changes:
        mark = {"delete": "-", "settings": "~", "rights": "~"}.get(change.step["action"], "+")
        lines.append(f"{mark} {change.title}: {change.reason}")
        lines += (f"    {line}" for line in change.details)
        if change.error:
            lines.append(f"  ! {change.error}")
    lines += (f"  kept {one}" for one in plan.kept)
    return "\n".join([*lines, _summary(plan)]) + "\n"


def plan_markdown(plan: Plan) -> str:
    """Return a plan as Markdown, for a comment on a pull request."""
    lines = [f"### Schemas: {_summary(plan)}", ""]
    for change in plan.changes:
        mark = ":x: " if change.error else ""
        lines.append(f"- {mark}**{_markdown(change.title)}**: {_markdown(change.reason)}")
        if change.error:
            lines.append(f"  > {_markdown(change.error)}")
        if change.details:
            fence = "`" * (max((line.count("`") for line in change.details), default=0) + 3)
            lines += ["  <details><summary>difference</summary>", "", f"  {fence}text"]
            lines += (f"  {line}" for line in change.details)
            lines += [f"  {fence}", "  </details>"]
    lines += (f"- kept {_markdown(one)}" for one in plan.kept)
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|" else one for one in text.replace("\n", " "))


def _summary(plan: Plan) -> str:
    rejected = len(plan.errors)
    changes: Sequence[str] = [f"{len(plan.changes) - rejected} to change", f"{plan.unchanged} unchanged"]
    return ", ".join([*changes, *([f"{rejected} rejected"] if rejected else [])])
