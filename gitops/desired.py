"""What a tree of files says there should be: each subject with its schema and references, what is referred to first."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from strata.gitops.errors import GitopsError
from strata.gitops.fields import Fields
from strata.gitops.manifest import NO_SETTINGS, Entry, Manifest, Settings
from strata.gitops.names import NAMES, Names, default_name, file_format, stem
from strata.gitops.rights import Resource, Right
from strata.gitops.trees import Tree, matching

__all__ = ["Desired", "Reference", "Subject", "by_convention", "qualified", "work_out"]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference of a schema: the name in its text, and the subject.

    With a version the subject is spelled as a registry has it. Version None is the one of the same tree: its subject
    is qualified.
    """

    name: str
    subject: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject as it should be.

    Attributes:
        name: the qualified name.
        text: the schema; None for a subject that has settings only.
        format: AVRO, JSON or PROTOBUF.
        file: the file of the schema, or the place of its text in the manifest.
        references: the references.
        normalize: whether the registry normalizes the schema.
        metadata: the metadata; None keeps what there is.
        rule_set: the rules; None keeps what there are.
        settings: the settings.
        rights: the rights on it; None keeps what there are.
        unnamed: why its name is not known, which is then that of its file; empty if it is known.
        file_name: the name of its file without the ending, if nothing but the file names the subject.
    """

    name: str
    text: str | None
    format: str = "AVRO"
    file: str = ""
    references: tuple[Reference, ...] = ()
    normalize: bool = False
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, object] | None = None
    settings: Settings = NO_SETTINGS
    rights: tuple[Right, ...] | None = None
    unnamed: str = ""
    file_name: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """What there should be.

    Attributes:
        subjects: the subjects by name, each after those that it refers to.
        scopes: the settings of contexts and, under the empty name, of the registry.
        owner: the mark of subjects that may be deleted.
        rights: the rights on contexts, the registry and whatever else a manifest names.
    """

    subjects: Mapping[str, Subject] = field(default_factory=dict)
    scopes: Mapping[str, Settings] = field(default_factory=dict)
    owner: str | None = None
    rights: Mapping[Resource, tuple[Right, ...]] = field(default_factory=dict)

    def level(self, subject: str) -> str | None:
        """Return the compatibility level that the tree sets for a subject; None if it sets none."""
        return self._setting(subject, "compatibility")

    def group(self, subject: str) -> str | None:
        """Return the metadata property that divides a subject's versions into groups; None if the tree names none."""
        return self._setting(subject, "compatibilityGroup")

    def policy(self, subject: str) -> str | None:
        """Return how strictly differences of a subject count; None if the tree does not say."""
        return self._setting(subject, "compatibilityPolicy")

    def _setting(self, subject: str, name: str) -> str | None:
        own = self.subjects[subject].settings if subject in self.subjects else Settings()
        context = subject[: subject.index(":", 2) + 1] if subject.startswith(":.") else ""
        for settings in (own, self.scopes.get(context), self.scopes.get("")):
            if settings and settings.config and settings.config.get(name):
                return str(settings.config[name])
        return None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A subject whose references are not worked out yet."""

    subject: Subject
    references: tuple[Fields | str, ...] | None
    names: Names
    where: str


def qualified(subject: str, home: str) -> str:
    """Return a subject that a version of another one refers to; a plain name belongs to the context of that one."""
    if subject.startswith(":.:"):
        return subject.removeprefix(":.:")
    if subject.startswith(":.") or not home.startswith(":."):
        return subject
    return home[: home.index(":", 2) + 1] + subject


def work_out(manifest: Manifest, tree: Tree) -> Desired:
    """Return what a manifest describes.

    Raises:
        GitopsError: If a file or a reference is missing, a name is used twice, or references form a cycle.
    """
    drafts: dict[str, _Draft] = {}
    for entry in manifest.entries:
        for draft in _drafts(entry, tree):
            name = draft.subject.name
            if name in drafts:
                raise GitopsError(f"{draft.where}: the subject {name} is also {drafts[name].where}")
            drafts[name] = draft
    return Desired(_linked(drafts), manifest.scopes, manifest.owner, manifest.rights)


def by_convention(tree: Tree, names: Sequence[str]) -> Desired:
    """Return what files without a manifest describe: each is the subject of its name (see `default_name`).

    Raises:
        GitopsError: If two files have the same name.
    """
    drafts: dict[str, _Draft] = {}
    for file in names:
        schema_format = file_format(file)
        if schema_format is None:
            continue
        text = tree.read(file)
        known = NAMES[schema_format](text, file)
        name, file_name = default_name((tree.root / file).absolute().as_posix(), known), stem(posixpath.basename(file))
        if name in drafts:
            other, glob = drafts[name].subject.file, f"**/*{posixpath.splitext(file)[1]}"
            way_out = f"subjects: [{{name: '{{path}}', files: '{glob}'}}]"
            raise GitopsError(
                f"{file} and {other} would both be the subject {name}; name them in a strata.yaml, such as {way_out}"
            )
        drafts[name] = _Draft(Subject(name, text, schema_format, file, file_name=file_name), None, known, file)
    return Desired(_linked(drafts))


def _drafts(entry: Entry, tree: Tree) -> list[_Draft]:
    if entry.files is not None:
        files = [file for file in matching(tree.names, entry.files) if entry.format or file_format(file)]
        if not files:
            raise GitopsError(f"{entry.where}: no file matches {entry.files}")
        return [_draft(entry, file, tree.read(file)) for file in files]
    if entry.file is not None:
        return [_draft(entry, entry.file, tree.read(entry.file))]
    return [_draft(entry, "", entry.text)]


def _draft(entry: Entry, file: str, text: str | None) -> _Draft:
    schema_format = entry.format or file_format(file) or "AVRO"
    names = NAMES[schema_format](text, file) if text is not None else Names()
    plain, unnamed = _named(entry, file, names)
    name = f":.{entry.context}:{plain}" if entry.context and not plain.startswith(":.") else plain
    name = name.removeprefix(":.:")  # a registry lists the subjects of the default context without it
    subject = Subject(
        name, text, schema_format, file or entry.where, (), entry.normalize, entry.metadata, entry.rule_set,
        entry.settings, entry.rights, unnamed,
    )  # fmt: skip
    return _Draft(subject, entry.references, names, entry.where)


def _named(entry: Entry, file: str, names: Names) -> tuple[str, str]:
    """Return the name of a subject, with the placeholders of a template filled in, and why it is not the name.

    A text that defines no name has none for `{fullname}`, most often because it is not a valid schema. The check says
    so of the file, and of all others what it finds.
    """
    if entry.files is None:
        return entry.name, ""
    path = stem(file)
    known = {
        "stem": posixpath.basename(path),
        "path": path.replace("/", "."),
        "parent": posixpath.basename(posixpath.dirname(path)),
        "fullname": names.own,
    }
    missing = next((match for match in _PLACEHOLDER.finditer(entry.name) if not known.get(match[1])), None)
    if missing is None:
        return _PLACEHOLDER.sub(lambda match: known[match[1]], entry.name), ""
    problem = f"{entry.where}: {file} has no {missing[0]}"
    if missing[1] != "fullname":
        raise GitopsError(f"{problem}; expected one of {', '.join(f'{{{name}}}' for name in known)}")
    return file, f"{problem}: its text defines no name"


def _linked(drafts: Mapping[str, _Draft]) -> dict[str, Subject]:
    """Return subjects with their references, in an order in which they can be registered."""
    files: dict[str, str] = {}
    defined: dict[tuple[str, str], str] = {}
    for name, draft in drafts.items():
        files.setdefault(draft.subject.file, name)
        for known in draft.names.defined:
            defined.setdefault((draft.subject.format, known), name)
    linked = {
        name: replace(draft.subject, references=tuple(_references(draft, drafts, files, defined)))
        for name, draft in drafts.items()
    }
    graph = {
        name: [reference.subject for reference in subject.references if reference.subject in linked]
        for name, subject in linked.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise GitopsError(f"references form a cycle: {' -> '.join(reversed(error.args[1]))}") from None
    return {name: linked[name] for name in order}


def _references(
    draft: _Draft, drafts: Mapping[str, _Draft], files: Mapping[str, str], defined: Mapping[tuple[str, str], str]
) -> list[Reference]:
    """Return the references that an entry gives, or else those that its text needs and other files of the tree meet."""
    references: dict[str, Reference] = {}
    for item in draft.references or ():
        fields = Fields(draft.where, {"file": item}) if isinstance(item, str) else item
        file = fields.text("file")
        if file is None:
            subject, number = fields.text("subject") or "", fields.number("version")
            target = qualified(subject, draft.subject.name) if number is None else subject
            reference = Reference(fields.text("name") or subject, target, number)
        elif file not in files:
            raise GitopsError(f"{draft.where}: no subject has the file {file}, which it refers to")
        else:
            target = files[file]
            reference = Reference(fields.text("name") or _name_of(draft, drafts[target]), target)
        references[reference.name] = reference
    for needed in draft.names.needed if draft.references is None else ():
        provider = defined.get((draft.subject.format, _resolved(draft, needed)))
        if needed in references or provider is None or provider == draft.subject.name:
            continue
        if not any(resolved.subject == provider for resolved in references.values()) or draft.subject.format != "AVRO":
            references[needed] = Reference(needed, provider)
    return list(references.values())


def _name_of(draft: _Draft, target: _Draft) -> str:
    """Return the name by which a text refers to a file: the one that it needs, or else the file's own."""
    for needed in draft.names.needed:
        if _resolved(draft, needed) in target.names.defined:
            return needed
    return target.names.own or posixpath.basename(target.subject.file)


def _resolved(draft: _Draft, needed: str) -> str:
    """Return a name as the tree knows it: a `$ref` may be relative to its file."""
    if draft.subject.format == "JSON" and "://" not in needed and not needed.startswith("urn:"):
        return posixpath.normpath(posixpath.join(posixpath.dirname(draft.subject.file), needed))
    return needed
