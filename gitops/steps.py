"""The steps that bring a registry to what a tree says, in the JSON of `POST /v1/apply`. Pure.

A mode that allows writing comes first, then the other settings, so that a schema is judged under its new level; a mode
that forbids writing comes after the schemas, and rights come after all.
"""

from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from strata.gitops.desired import Desired, Reference, Subject, qualified
from strata.gitops.rights import Resource, Right, on_subject
from strata.gitops.versions import Held

__all__ = ["CONFLUENT_VERSION", "OWNER", "deletions", "register_step", "rights_steps", "schema_body", "steps_of"]

OWNER = "strata.owner"
"""The metadata property that marks the schemas of a manifest with its owner."""
CONFLUENT_VERSION = "confluent:version"
"""The metadata property that a registry writes when an older schema becomes the latest again."""
_LATEST = -1
_OPEN = "READWRITE"


def steps_of(desired: Desired) -> list[dict[str, Any]]:
    """Return the steps for all that a tree says, whether or not the registry has it already."""
    scopes = {
        **desired.scopes,
        **{name: subject.settings for name, subject in desired.subjects.items() if subject.settings},
    }
    modes = [
        {"action": "settings", "subject": name, "mode": scope.mode} for name, scope in scopes.items() if scope.mode
    ]
    steps: list[dict[str, Any]] = [step for step in modes if step["mode"] == _OPEN]
    steps += (
        {"action": "settings", "subject": name, "config": scope.config}
        for name, scope in scopes.items()
        if scope.config
    )
    steps += (
        register_step(subject, desired.owner) for subject in desired.subjects.values() if subject.text is not None
    )
    return steps + [step for step in modes if step["mode"] != _OPEN]


def register_step(subject: Subject, owner: str | None) -> dict[str, object]:
    """Return the step that registers the schema of a subject."""
    step = {"action": "register", "subject": subject.name, "schema": schema_body(subject, owner)}
    return step | ({"normalize": True} if subject.normalize else {})


def deletions(gone: Mapping[str, Held]) -> list[dict[str, object]]:
    """Return the steps that delete some subjects, those that refer to others first.

    Args:
        gone: the latest version of each subject.
    """
    users: dict[str, list[str]] = {name: [] for name in gone}
    for name, latest in gone.items():
        for reference in latest.references:
            target = qualified(reference.subject, name)
            if target in users and target != name:
                users[target].append(name)
    return [{"action": "delete", "subject": name} for name in TopologicalSorter(users).static_order()]


def rights_steps(desired: Desired, gone: Collection[str], *, only: bool) -> list[dict[str, object]]:
    """Return the steps that set the rights of a tree.

    Args:
        desired: the tree.
        gone: subjects that are deleted, whose rights go with them.
        only: whether to delete all other rights on what the tree has rights for.
    """
    wanted: dict[Resource, tuple[Right, ...]] = dict(desired.rights)
    for name, subject in desired.subjects.items():
        if subject.rights is not None:
            about = on_subject(name)
            wanted[about] = wanted.get(about, ()) + subject.rights
    steps = [_rights_step(about, rights, only=only) for about, rights in wanted.items() if rights or only]
    # A manifest without any rights needs no right to change those.
    return steps + [_rights_step(on_subject(name), (), only=True) for name in gone if wanted]


def _rights_step(about: Resource, rights: Sequence[Right], *, only: bool) -> dict[str, object]:
    named = {"resource_type": about.type, "resource": about.name, "pattern_type": about.pattern}
    rules = [right._asdict() for right in dict.fromkeys(rights)]
    return {"action": "rights", "subject": "", **named, "rules": rules} | ({"only": True} if only else {})


def schema_body(subject: Subject, owner: str | None) -> dict[str, object]:
    """Return the body of the registration of a subject; references into the tree are to the latest version."""
    body: dict[str, object] = {"schema": subject.text, "schemaType": subject.format}
    if subject.references:
        body["references"] = [
            {
                "name": reference.name,
                "subject": _spelled(reference, subject.name),
                "version": reference.version or _LATEST,
            }
            for reference in subject.references
        ]
    metadata = subject.metadata
    if owner is not None:
        properties = {**((metadata or {}).get("properties") or {}), OWNER: owner}
        metadata = {**(metadata or {}), "properties": properties}
    return (
        body
        | ({} if metadata is None else {"metadata": metadata})
        | ({} if subject.rule_set is None else {"ruleSet": subject.rule_set})
    )


def _spelled(reference: Reference, home: str) -> str:
    """Return the shortest name of a subject in a reference of another one: plain within one context."""
    subject = reference.subject
    if reference.version is not None:
        return subject
    context = home[: home.index(":", 2) + 1] if home.startswith(":.") else ""
    if context and subject.startswith(context):
        return subject.removeprefix(context)
    return f":.:{subject}" if context and not subject.startswith(":.") else subject
