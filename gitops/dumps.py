"""Write a registry as files and a manifest, whose plan against the same registry is empty."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import yaml

from strata.gitops.desired import qualified
from strata.gitops.errors import GitopsError
from strata.gitops.manifest import DEFAULT_NAMES
from strata.gitops.names import NAMES
from strata.gitops.rights import REGISTRY, Resource, entries_of, on_context, on_subject
from strata.gitops.steps import CONFLUENT_VERSION, OWNER
from strata.gitops.versions import Held

__all__ = ["Source", "dump", "indented", "left_out", "manifest_text"]

_ENDINGS = {"AVRO": "avsc", "PROTOBUF": "proto", "JSON": "json"}
_LONGEST_NAME = 150
_LEVEL = "compatibilityLevel"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_VARIABLE = re.compile(r"\$\{")


class Source(Protocol):
    """What a dump is made of: a registry or an export file."""

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects with live versions, sorted."""

    def scopes(self) -> Sequence[str]:
        """Return the names under which there may be settings, besides those of subjects with versions."""

    def version(self, subject: str, number: int | None) -> Held | None:
        """Return a version; None for the number is the latest live one."""

    def config(self, scope: str) -> Mapping[str, object]:
        """Return the configuration that a scope itself has."""

    def mode(self, scope: str) -> str | None:
        """Return the mode that a scope itself has; None if it has none."""

    def rules(self) -> Sequence[Mapping[str, str]]:
        """Return the rules of access in the registry's log."""


def dump(source: Source, folder: Path, patterns: Sequence[str], owner: str | None, *, rights: bool = True) -> int:
    """Write the latest versions of subjects and their settings; return the number of subjects.

    Args:
        source: the registry.
        folder: the folder; files that are there are replaced, a manifest is not.
        patterns: the subjects, each a name or `PREFIX*`; none means all, and the settings of contexts and the registry.
        owner: the owner to write into the manifest; None for none.
        rights: whether to write the rights.

    Raises:
        GitopsError: If the folder has a manifest, or cannot be written.
    """
    latest = {name: source.version(name, None) for name in source.subjects() if _is_named(name, patterns)}
    dumped = {name: version for name, version in latest.items() if version is not None and version.format in _ENDINGS}
    files = _file_names(dumped)
    top: dict[str, Any] = {} if owner is None else {"owner": owner}
    entries = [_entry(version, files, dumped, source, owner) for version in dumped.values()]
    for scope in source.scopes():
        if scope in dumped or not _is_named(scope, patterns) or (patterns and _is_wide(scope)):
            continue
        settings = _settings(source, scope)
        if scope == "":
            top |= {name: value for name, value in settings.items() if (name, value) != ("mode", "READWRITE")}
        elif not settings:
            continue
        elif _is_wide(scope):
            top.setdefault("contexts", {})[scope[2:-1]] = settings
        else:
            entries.append({"name": scope, **settings})
    if rights:
        _add_rights(top, entries, source, whole=not patterns)
    top["subjects"] = sorted(entries, key=lambda entry: str(entry["name"]))
    _write(folder, top, {files[name]: version for name, version in dumped.items()})
    return len(dumped)


def left_out(source: Source, patterns: Sequence[str]) -> list[str]:
    """Return the subjects with versions that a dump cannot have: an alias hides them, or their format is unknown."""
    named = (name for name in source.subjects() if _is_named(name, patterns))
    latest = ((name, source.version(name, None)) for name in named)
    return [name for name, version in latest if version is None or version.format not in _ENDINGS]


def _add_rights(top: dict[str, Any], entries: Sequence[dict[str, object]], source: Source, *, whole: bool) -> None:
    """Add the rights on subjects and contexts to their entries and, of a whole registry, all others at the top."""
    places = {on_subject(str(entry["name"])): entry for entry in entries}
    places |= {on_context(f":.{name}:"): section for name, section in top.get("contexts", {}).items()}
    for about, rules in entries_of(source.rules()).items():
        if about in places:
            places[about]["rights"] = rules
        elif whole:
            top.setdefault("rights", []).extend({**rule, **_about(about)} for rule in rules)


def _about(about: Resource) -> dict[str, str]:
    named = {"resource_type": about.type, "resource": about.name, "pattern_type": about.pattern}
    return {name: value for name, value in named.items() if value not in ("", "LITERAL") and about != REGISTRY}


def _entry(
    version: Held, files: Mapping[str, str], dumped: Mapping[str, Held], source: Source, owner: str | None
) -> dict[str, object]:
    """Return the entry of a subject in the manifest."""
    entry: dict[str, object] = {"name": version.subject, "file": files[version.subject]}
    references = [_reference(reference.name, reference.subject, reference.version, version.subject, dumped, files)
                  for reference in version.references]  # fmt: skip
    if references or NAMES[version.format](version.text, files[version.subject]).needed:
        entry["references"] = references
    metadata = dict(version.metadata or {})
    left_out = (CONFLUENT_VERSION,) if owner is None else (CONFLUENT_VERSION, OWNER)
    properties = {name: value for name, value in (metadata.get("properties") or {}).items() if name not in left_out}
    metadata |= {"properties": properties}
    if any(metadata.values()):
        entry["metadata"] = {name: value for name, value in metadata.items() if value}
    if version.rule_set:
        entry["rules"] = version.rule_set
    return entry | _settings(source, version.subject)


def _reference(
    name: str, subject: str, number: int | None, home: str, dumped: Mapping[str, Held], files: Mapping[str, str]
) -> dict[str, object]:
    """Return a reference: by file if the dump has the version, and the subject is spelled as a plan would."""
    target = qualified(subject, home)
    latest = dumped.get(target)
    same_context = qualified("", target) == qualified("", home)
    if latest is not None and latest.version == number and subject == (_plain(target) if same_context else subject):
        return {"name": name, "file": files[target]}
    return {"name": name, "subject": subject, "version": number}


def _plain(subject: str) -> str:
    return subject[subject.index(":", 2) + 1 :] if subject.startswith(":.") else subject


def _settings(source: Source, scope: str) -> dict[str, object]:
    config = dict(source.config(scope))
    level, alias, mode = config.pop(_LEVEL, None), config.pop("alias", None), source.mode(scope)
    settings = {"compatibility": level, "alias": alias, "config": config or None, "mode": mode}
    if alias is not None and source.version(scope, None) is not None:  # a manifest has one or the other
        settings |= {"alias": None, "config": {**config, "alias": alias}}
    return {name: value for name, value in settings.items() if value is not None}


def _is_wide(scope: str) -> bool:
    return scope == "" or (scope.startswith(":.") and scope.endswith(":"))


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )


def _file_names(dumped: Mapping[str, Held]) -> dict[str, str]:
    """Return the files of subjects; a name that is too long, or differs from another in case only, gets a digest."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for subject, version in dumped.items():
        name = quote(subject, safe=" ")
        name = f"%2E{name[1:]}" if name.startswith(".") else name
        if len(name) > _LONGEST_NAME or name.lower() in taken:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(subject.encode()).hexdigest()[:8]}"
        taken.add(name.lower())
        names[subject] = f"schemas/{name}.{_ENDINGS[version.format]}"
    return names


def _write(folder: Path, top: Mapping[str, object], schemas: Mapping[str, Held]) -> None:
    manifest = folder / DEFAULT_NAMES[0]
    if manifest.exists():
        raise GitopsError(f"{manifest} exists; dump into another folder, or move it away")
    text = manifest_text(top)
    try:
        (folder / "schemas").mkdir(parents=True, exist_ok=True)
        for name, version in schemas.items():
            content = version.text if version.format == "PROTOBUF" else indented(version.text)
            (folder / name).write_text(content if content.endswith("\n") else f"{content}\n", "utf-8", newline="")
        manifest.write_text(text, "utf-8")
    except (OSError, UnicodeEncodeError) as error:
        raise GitopsError(f"cannot write to {folder}: {error}") from None


def manifest_text(top: Mapping[str, object]) -> str:
    """Return a manifest as YAML."""
    text: str = yaml.dump(_escaped(top), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """A dumper without aliases, which a manifest may not have."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        """Return True: nothing is written as an alias."""
        return True


def _escaped(value: object) -> object:
    """Return a value whose texts have no variables of the environment."""
    if isinstance(value, Mapping):
        return {key: _escaped(each) for key, each in value.items()}
    if isinstance(value, str):
        return _VARIABLE.sub("$${", value)
    return [_escaped(each) for each in value] if isinstance(value, Iterable) else value


def indented(text: str) -> str:
    """Return a JSON text with a line for each value, and nothing changed but white space."""
    lines, line, depth, previous = list[str](), "", 0, ""
    for part in _TOKEN.findall(text):
        if part in "]}" and previous not in "[{":
            depth -= 1
            lines.append(line)
            line = "  " * depth + part
        elif part in "]}":
            depth -= 1
            line += part
        else:
            if previous in ("[", "{") or (previous == "," and line.endswith(",")):
                lines.append(line)
                line = "  " * depth
            line += f"{part} " if part == ":" else part
            depth += part in "[{"
        previous = part
    return "\n".join([*lines, line]) + "\n"
