"""Plans: the steps that change a registry, each with its reason and, for a schema, the difference by meaning."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strata.compat.check import Previous, check
from strata.compat.difference.compare import difference
from strata.compat.difference.text import as_lines
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.result import Finding
from strata.compat.schema import ParsedSchema, SchemaParseError
from strata.compat.witness.search import budget_within, proven, silent_changes
from strata.compat.witness.text import lines_of
from strata.gitops.desired import Desired, Subject
from strata.gitops.errors import GitopsError
from strata.gitops.findings import finding_json
from strata.gitops.positions import position_in_error
from strata.gitops.registries import Outcome, Registry
from strata.gitops.rights import Resource
from strata.gitops.steps import CONFLUENT_VERSION, OWNER, deletions, register_step, rights_steps, steps_of
from strata.gitops.versions import Held, Parser, TreeVersions, held

__all__ = [
    "Change",
    "Plan",
    "make_plan",
    "name_of",
    "plan_json",
    "plan_markdown",
    "plan_text",
    "read_plan",
    "write_plan",
]

_FORMAT, _VERSION = "strata-plan", 1
_MOST_LINES = 200
_INVALID, _NO_NAME = "invalid schema", "no name"


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
        file: the file of a schema.
        findings: what the subject's level says about the latest version, with proofs, and changes of values.
    """

    step: Mapping[str, Any]
    reason: str
    details: tuple[str, ...] = ()
    version: int | None = None
    error: str | None = None
    file: str = ""
    findings: tuple[Finding, ...] = ()

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
    unnamed = [subject for subject in desired.subjects.values() if subject.unnamed]
    whole, desired = desired, _without(desired, unnamed)
    steps = steps_of(desired)
    gone = _owned(desired, registry) if prune else {}
    steps += [*deletions(gone), *rights_steps(desired, gone, only=prune)]
    judged = registry.judge(steps)
    tree = TreeVersions(whole, label)
    explain = _Explanations(desired, registry, Parser([tree, registry.service]), Parser([registry.service]))
    changes = [
        Change(
            register_step(subject, None),
            _NO_NAME,
            file=subject.file,
            error=explain.fault(subject, None) or subject.unnamed,
        )
        for subject in unnamed
    ]
    unchanged = 0
    kept: dict[str, str] = {}
    for step, outcome in zip(steps, judged.outcomes, strict=True):
        if step["action"] == "delete" and outcome.error is not None:
            kept[step["subject"]] = outcome.error
        elif step["action"] == "rights" and step["resource"] in kept and not step["rules"]:
            continue  # the subject stays, and so do the rights on it
        elif outcome.changed or outcome.error is not None:
            seen: dict[str, object] = {"goesBack": True} if outcome.goes_back else {}
            if judged.offset is None and outcome.version is not None:
                seen["expects"] = outcome.version
            if outcome.basis is not None:
                seen["basis"] = outcome.basis
            changes.append(explain.change({**step, **seen}, outcome))
        else:
            unchanged += 1
    stays = tuple(f"{name}: {reason}" for name, reason in kept.items())
    return Plan(registry.service.label, judged.offset, tuple(changes), unchanged, stays)


def _without(desired: Desired, subjects: Sequence[Subject]) -> Desired:
    names = {subject.name for subject in subjects}
    return replace(desired, subjects={name: subject for name, subject in desired.subjects.items() if name not in names})


def _owned(desired: Desired, registry: Registry) -> dict[str, Held]:
    """Return the subjects with the owner's mark that the tree does not have, with their latest versions."""
    if desired.owner is None:
        raise GitopsError("--prune needs an `owner` in the manifest: it deletes only what carries the owner's mark")
    latest = (
        registry.service.version(name, None) for name in registry.service.subjects() if name not in desired.subjects
    )
    return {
        version.subject: version
        for version in latest
        if version is not None and ((version.metadata or {}).get("properties") or {}).get(OWNER) == desired.owner
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
        subject = self.desired.subjects[step["subject"]]
        change = replace(change, file=subject.file)
        fault = self.fault(subject, outcome.error)
        if fault is not None:
            return replace(change, reason=_INVALID, error=fault)
        if outcome.error is not None:
            shown = outcome.error.replace(subject.text or "", "…")  # it is in the file
            change = replace(change, error=f"{subject.file}: {shown}")
        latest = self.registry.service.version(step["subject"], None)
        if latest is None:
            return replace(change, reason="new subject")
        findings = tuple(self._findings(subject, latest))
        details = (*self._schema(step, latest), *_proof_lines(findings))
        reason = (
            "an older version holds this schema" if step.get("goesBack") else f"differs from version {latest.version}"
        )
        return replace(change, reason=reason, details=details, findings=findings)

    def fault(self, subject: Subject, error: str | None) -> str | None:
        """Return the mistakes in the schema of a subject with their places; None if its format's tools take it.

        Args:
            subject: the subject.
            error: why the registry rejects it; what a registry accepts is not judged again by the rules for new
                schemas.
        """
        try:
            schema = self.new.parse(held(subject), strict=error is not None)
        except SchemaParseError as mistake:
            near = (
                self.new.sources[0].version(reference.subject, None)
                for reference in subject.references
                if reference.version is None
            )
            if broken := next(
                (version for version in near if version is not None and self._is_broken(version, error)), None
            ):
                return f"{subject.file}: it refers to {broken.subject}, which is not valid"
            at = position_in_error(subject.text or "", str(mistake), subject.format)
            return f"{subject.file}:{at.line}:{at.column}: {mistake}"
        except GitopsError:
            return None
        refusals = FORMATS[schema.format].refusals(schema, path=subject.file)
        return (
            "; ".join(
                f"{subject.file}:{refusal.line}:{refusal.column}: {refusal.message} ({refusal.rule})"
                for refusal in refusals
            )
            or None
        )

    def _is_broken(self, version: Held, error: str | None) -> bool:
        try:
            self.new.parse(version, strict=error is not None)
        except SchemaParseError:
            return True
        except GitopsError:
            return False
        return False

    def _settings(self, step: Mapping[str, Any]) -> Iterator[str]:
        scope = step["subject"]
        before = dict(self.registry.service.config(scope))
        before["compatibility"] = before.get("compatibilityLevel")
        for name, value in (step.get("config") or {}).items():
            if before.get(name) != value:
                yield f"{name}: {_shown(before.get(name))} → {_shown(value)}"
        if "mode" in step and step["mode"] != (mode := self.registry.service.mode(scope)):
            yield f"mode: {_shown(mode)} → {step['mode']}"

    def _schemas(self, subject: Subject, latest: Held) -> tuple[ParsedSchema, ParsedSchema]:
        if subject.normalize:
            return self.old.normalized(latest), self.new.normalized(held(subject))
        return self.old.parse(latest, strict=False), self.new.parse(held(subject), strict=False)

    def _findings(self, subject: Subject, latest: Held) -> list[Finding]:
        """Return the findings about the latest version; none if it cannot be compared."""
        level = Level(self.desired.level(subject.name) or self.registry.service.level(subject.name) or Level.BACKWARD)
        limits = Limits().started()
        try:
            before, after = self._schemas(subject, latest)
            previous = [Previous(latest.version, before)]
            refused = check(after, previous, level, limits=limits).incompatibilities
        except (SchemaParseError, GitopsError):
            return []
        budget = budget_within(limits)
        return [
            *proven(after, previous, refused, budget),
            *silent_changes(after, previous, level, refused, budget),
        ]

    def _schema(self, step: Mapping[str, Any], latest: Held) -> Iterator[str]:
        body, subject = step["schema"], self.desired.subjects[step["subject"]]
        try:
            changed = difference(*self._schemas(subject, latest), limits=Limits().started(), version=latest.version)
        except (SchemaParseError, GitopsError) as error:
            yield f"the difference cannot be shown: {error}"
        else:
            if changed.changes:
                yield from as_lines(changed, most=_MOST_LINES)
        for name, before in (("metadata", latest.metadata), ("ruleSet", latest.rule_set)):
            if name in body:
                yield from _edits(name, before or {}, body[name] or {})


def _proof_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        proof = list(lines_of(finding))
        if proof:
            yield f"{finding.rule.replace('_', ' ').lower()}: {finding.field or '(root)'}"
            yield from (f"  {line}" for line in proof)


def _edits(where: str, before: object, after: object) -> Iterator[str]:
    """Yield a line for each value that differs, by its path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            if name != CONFLUENT_VERSION:
                yield from _edits(f"{where}.{name}", before.get(name), after.get(name))
    elif before != after:
        yield f"{where}: {_shown(before)} → {_shown(after)}"


def _shown(value: object) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan to a file.

    Raises:
        GitopsError: If the file cannot be written.
    """
    try:
        path.write_text(plan_json(plan), "utf-8")
    except OSError as error:
        raise GitopsError(f"cannot write {path}: {error.strerror}") from None


def plan_json(plan: Plan) -> str:
    """Return a plan as JSON: the form of plan files, which docs/guides/git.md describes."""
    changes = [
        {"title": change.title, "step": dict(change.step), "reason": change.reason, "details": list(change.details),
         "version": change.version, "error": change.error, "file": change.file,
         "findings": [{"rule": finding.rule, **finding_json(finding)} for finding in change.findings]}
        for change in plan.changes
    ]  # fmt: skip
    content = {"format": _FORMAT, "version": _VERSION, "registry": plan.registry, "offset": plan.offset}
    content |= {"unchanged": plan.unchanged, "changes": changes, "kept": list(plan.kept)}
    return json.dumps(content, indent=1, default=str) + "\n"


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        GitopsError: If it is not a plan file of this version.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
        if (content["format"], content["version"]) != (_FORMAT, _VERSION):
            raise GitopsError(f"{path} is a plan of another version of strata; plan again")
        changes = tuple(
            Change(change["step"], change["reason"], tuple(change["details"]), change["version"])
            for change in content["changes"]
        )
        if rejected := next((change for change in content["changes"] if change.get("error")), None):
            raise GitopsError(f"{path} has a change that the registry rejects: {rejected['error']}")
        return Plan(content["registry"], content["offset"], changes, content["unchanged"])
    except OSError as error:
        raise GitopsError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise GitopsError(f"{path} is not a plan file") from None


def plan_text(plan: Plan) -> str:
    """Return a plan for people."""
    lines: list[str] = []
    for change in plan.changes:
        mark = {"delete": "-", "settings": "~", "rights": "~"}.get(change.step["action"], "+")
        lines.append(f"{mark} {change.title}: {change.reason}")
        lines += (f"    {line}" for line in change.details)
        if change.error:
            lines.append(f"  ! {change.error}")
    lines += (f"  kept {kept}" for kept in plan.kept)
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
    lines += (f"- kept {_markdown(kept)}" for kept in plan.kept)
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    return "".join(
        f"\\{character}" if character in "\\`*_{}[]<>#|" else character for character in text.replace("\n", " ")
    )


def _summary(plan: Plan) -> str:
    rejected = len(plan.errors)
    changes: Sequence[str] = [f"{len(plan.changes) - rejected} to change", f"{plan.unchanged} unchanged"]
    return ", ".join([*changes, *([f"{rejected} rejected"] if rejected else [])])
