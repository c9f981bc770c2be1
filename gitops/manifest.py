"""The manifest `strata.yaml`: which subjects there should be, and what they should hold.

A file of domnikl's schema-registry-gitops is a manifest as it is. `strata.schema.json` beside this file describes the
format for editors. Several files add up: a later one wins, subject by subject and key by key, and so does a section of
`environments`. Entries of one list never merge: two globs may have the same template for names, or two contexts the
same subject. `${NAME}` in any text is an environment variable, `${NAME:-text}` has a default, `$${` is `${`.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata.gitops.errors import GitopsError
from strata.gitops.fields import Fields
from strata.gitops.rights import Resource, Right, on_context, read_named, read_rights
from strata.gitops.trees import Tree

__all__ = ["DEFAULT_NAMES", "NO_SETTINGS", "Entry", "Manifest", "Settings", "read_manifest"]

DEFAULT_NAMES = ("strata.yaml", "strata.yml")
FORMATS = ("AVRO", "JSON", "PROTOBUF")
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "aliasForDeks", "compatibilityGroup", "compatibilityPolicy")
_OBJECTS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
_CONFIG = dict.fromkeys((*_FLAGS, *_TEXTS, *_OBJECTS))
_SETTINGS = dict.fromkeys(("compatibility", "config", "mode"))
_TOP = _SETTINGS | dict.fromkeys(("context", "contexts", "environments", "normalize", "owner", "rights", "subjects"))
_CONTEXT = _SETTINGS | {"rights": None}
_SUBJECT = _SETTINGS | dict.fromkeys(
    ("alias", "context", "file", "files", "metadata", "name", "normalize", "references", "rights", "rules", "schema",
     "tags", "type")
)  # fmt: skip
_PATHS = ("file", "files")
_SOURCES = ("file", "files", "schema")
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_RULE_SETS = ("defaultRuleSet", "overrideRuleSet")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a subject, a context or the registry; what is absent is left as it is.

    Attributes:
        config: the configuration, as a request changes it.
        mode: the mode.
    """

    config: Mapping[str, object] | None = None
    mode: str | None = None

    def __bool__(self) -> bool:
        return bool(self.config) or self.mode is not None


NO_SETTINGS = Settings()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `subjects`, which may stand for many files.

    Attributes:
        where: its place, for errors.
        name: the name, or a template for names.
        context: the context of a plain name; empty for the default one.
        file: the file of the schema.
        files: a glob.
        text: the schema itself.
        format: AVRO, JSON or PROTOBUF; None if the file's name says it.
        references: files, or mappings of name, subject, version and file; None: they are found in the text.
        normalize: whether the registry normalizes the schema.
        metadata: the metadata; None keeps what there is.
        rule_set: the rules; None keeps what there are.
        settings: the settings of the subject.
        rights: the rights on the subject; None keeps what there are.
    """

    where: str
    name: str
    context: str = ""
    file: str | None = None
    files: str | None = None
    text: str | None = None
    format: str | None = None
    references: tuple[Fields | str, ...] | None = None
    normalize: bool = False
    metadata: Mapping[str, object] | None = None
    rule_set: Mapping[str, object] | None = None
    settings: Settings = NO_SETTINGS
    rights: tuple[Right, ...] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """All manifests of a run, merged.

    Attributes:
        owner: the mark of the subjects that `--prune` may delete; None for no mark.
        scopes: the settings of contexts (`:.name:`) and, under the empty name, of the registry.
        entries: the subjects.
        rights: the rights on contexts, the registry and whatever else the manifest names.
    """

    owner: str | None
    scopes: Mapping[str, Settings]
    entries: tuple[Entry, ...]
    rights: Mapping[Resource, tuple[Right, ...]]


def read_manifest(
    tree: Tree, names: Sequence[str], environ: Mapping[str, str], environment: str | None = None
) -> Manifest:
    """Return the manifest that some files of a tree add up to.

    Args:
        tree: the files.
        names: the names of the manifests, in order.
        environ: the environment variables.
        environment: the section of `environments` to add; None for none.

    Raises:
        GitopsError: If a file is not a manifest, or no file has the environment.
    """
    merged: dict[str, object] = {}
    known = environment is None
    for name in names:
        document = _document(tree, name, environ)
        layers = Fields(name, document).only(_TOP).inner("environments")
        _merge(merged, {key: value for key, value in document.items() if key != "environments"}, name)
        if environment is not None and environment in layers:
            known = True
            layer = Fields(f"{layers.where}.{environment}", layers.raw(environment)).only(
                {key: None for key in _TOP if key != "environments"}
            )
            _merge(merged, {key: layer.raw(key) for key in layer.names()}, name)
    if not known:
        raise GitopsError(f"{', '.join(names)}: no environment {environment!r}")
    return _manifest(Fields(" + ".join(names), merged))


def _document(tree: Tree, name: str, environ: Mapping[str, str]) -> dict[str, object]:
    from strata.strict_yaml import InvalidText, read_text  # YAML is slow to import, and many trees have no manifest

    try:
        value = read_text(tree.read(name))
    except InvalidText as error:
        raise GitopsError(f"{name}: {error}") from None
    if not isinstance(value, dict):
        raise GitopsError(f"{name}: expected a mapping")
    return dict(_expanded(value, environ, name))


def _expanded(value: object, environ: Mapping[str, str], where: str) -> Any:
    """Return a value with the environment variables in its texts replaced."""
    if isinstance(value, dict):
        return {key: _expanded(each, environ, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, environ, f"{where}[{index}]") for index, each in enumerate(value)]
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else value

    def variable(match: re.Match[str]) -> str:
        if match[1] is None:
            return "${"
        value = environ.get(match[1], match[2])
        if value is None:
            raise GitopsError(f"{where}: the environment variable {match[1]} is not set")
        return value

    return _VARIABLE.sub(variable, value)


def _merge(merged: dict[str, Any], layer: Mapping[str, object], file: str) -> None:
    """Merge a layer into a document; paths in it are relative to its file."""
    folder = posixpath.dirname(file)
    for key, value in layer.items():
        if key == "subjects":
            items: list[dict[str, object]] = []
            for where, item in Fields(file, layer).items("subjects"):
                if not Fields(where, item).only(_SUBJECT).text("name"):
                    raise GitopsError(f"{where}: a subject needs a name")
                items.append(_placed(item, folder))
            merged["subjects"] = _merged_subjects(merged.get("subjects") or [], items)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            _merge_mappings(merged[key], value)
        else:
            merged[key] = value


def _merged_subjects(
    before: Sequence[dict[str, object]], layer: Sequence[dict[str, object]]
) -> list[dict[str, object]]:
    """Return subjects with those of a layer merged over them; an entry that merges with none is a new one."""
    merged = [*before]
    for item in layer:
        places = [index for index, entry in enumerate(before) if _is_overridden(entry, item)]
        if len(places) > 1:  # the layer may say which of them it means
            own = {key: item[key] for key in _SOURCES if key in item}
            places = [index for index in places if own.items() <= before[index].items()]
        for index in places:
            merged[index] = {**merged[index], **item}
        if not places:
            merged.append(item)
    return merged


def _is_overridden(entry: Mapping[str, object], item: Mapping[str, object]) -> bool:
    """Return whether an item of a later layer is about the subjects of an entry."""
    same_context = item.get("context", entry.get("context")) == entry.get("context", item.get("context"))
    return bool(entry["name"] == item["name"]) and same_context


def _merge_mappings(merged: dict[str, Any], layer: Mapping[str, object]) -> None:
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            _merge_mappings(merged[key], value)
        else:
            merged[key] = value


def _placed(subject: Mapping[str, Any], folder: str) -> dict[str, object]:
    """Return a subject whose paths are relative to the tree."""

    def placed(path: object) -> object:
        if not isinstance(path, str):
            return path
        place = posixpath.normpath(posixpath.join(folder, path))
        if place.startswith(("/", "..")):
            raise GitopsError(f"{subject.get('name')}: {path} is outside of the folder in which the command runs")
        return place

    content = {key: placed(value) if key in _PATHS else value for key, value in subject.items()}
    if isinstance(subject.get("references"), list):
        content["references"] = [
            {**reference, "file": placed(reference["file"])}
            if isinstance(reference, dict) and "file" in reference
            else placed(reference)
            for reference in subject["references"]
        ]
    return content


def _manifest(top: Fields) -> Manifest:
    context = _context(top)
    scopes, rights = {"": _settings(top)}, read_named(top)
    contexts = top.inner("contexts")
    for name in contexts.names():
        section = Fields(f"{contexts.where}.{name}", contexts.raw(name)).only(_CONTEXT)
        scope = f":.{name.removeprefix('.')}:"
        scopes[scope] = _settings(section)
        section_rights, about = read_rights(section), on_context(scope)
        if section_rights is not None:
            rights[about] = rights.get(about, ()) + section_rights
    normalize = top.flag("normalize") or False
    entries = tuple(_entry(Fields(where, item), context, normalize=normalize) for where, item in top.items("subjects"))
    return Manifest(
        top.text("owner"), {scope: settings for scope, settings in scopes.items() if settings}, entries, rights
    )


def _context(section: Fields) -> str | None:
    context = section.text("context")
    return None if context is None else context.removeprefix(".")


def _entry(section: Fields, context: str | None, *, normalize: bool) -> Entry:
    name = section.text("name") or ""
    sources = [key for key in ("file", "files", "schema") if key in section]
    alias = section.text("alias")
    if len(sources) > 1 or (alias and sources):
        present = " and ".join([*sources, *(["alias"] if alias else [])])
        raise GitopsError(f"{section.where} ({name}): expected one of file, files, schema and alias, got {present}")
    own, own_context = section.flag("normalize"), _context(section)
    rules = None if "rules" not in section else _rule_set(section.inner("rules"))
    return Entry(
        f"{section.where} ({name})",
        name,
        (context if own_context is None else own_context) or "",
        section.text("file"),
        section.text("files"),
        section.text("schema"),
        section.choice("type", FORMATS),
        _references(section),
        normalize if own is None else own,
        _metadata(section),
        rules,
        _settings(section, alias),
        read_rights(section),
    )


def _references(section: Fields) -> tuple[Fields | str, ...] | None:
    if "references" not in section:
        return None
    return tuple(_reference(where, item) for where, item in section.items("references"))


def _reference(where: str, item: object) -> Fields | str:
    if isinstance(item, str):
        return item
    fields = Fields(where, item).only(dict.fromkeys(("file", "name", "subject", "version")))
    if ("file" in fields) == ("subject" in fields):
        raise GitopsError(f"{where}: expected a file, or a mapping with either file or subject")
    return fields


def _metadata(section: Fields) -> Mapping[str, object] | None:
    """Return the metadata of a subject, into which `tags` is merged."""
    if "metadata" not in section and "tags" not in section:
        return None
    metadata = dict(section.inner("metadata").only(dict.fromkeys(("properties", "sensitive", "tags"))).raw_all())
    inner = section.inner("metadata")
    for fields in (inner.inner("tags"), section.inner("tags")):
        for path in fields.names():
            fields.texts(path)
    properties = inner.inner("properties")
    for name in properties.names():
        properties.text(name)
    inner.texts("sensitive")
    if "tags" in section:
        metadata["tags"] = {**(metadata.get("tags") or {}), **section.inner("tags").raw_all()}
    return {name: value for name, value in metadata.items() if value}


def _rule_set(section: Fields) -> Mapping[str, object]:
    """Return rules with their flags as booleans."""
    phases = dict(section.raw_all())
    for phase in ("migrationRules", "domainRules", "encodingRules"):
        rules = [Fields(where, item).raw_all() for where, item in section.items(phase)]
        if rules:
            phases[phase] = [
                {**rule, "disabled": rule["disabled"] == "true"} if "disabled" in rule else dict(rule) for rule in rules
            ]
    return phases


def _settings(section: Fields, alias: str | None = None) -> Settings:
    config = section.inner("config").only(_CONFIG)
    settings: dict[str, object] = {name: config.flag(name) for name in _FLAGS if name in config}
    settings |= {name: config.text(name) for name in _TEXTS if name in config}
    settings |= {
        name: _rule_set(config.inner(name)) if name in _RULE_SETS else config.inner(name).raw_all()
        for name in _OBJECTS
        if name in config
    }
    level = section.choice("compatibility", LEVELS)
    if level is not None:
        settings = {"compatibility": level, **settings}
    if alias is not None:
        settings["alias"] = alias
    return Settings(settings or None, section.choice("mode", MODES))
