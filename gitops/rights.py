"""Rights in a manifest: who may do what with a subject, a context, the registry, or what an entry itself names.

The words are those of a registry's `/security/acls`; the registry checks them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from strata.gitops.errors import GitopsError
from strata.gitops.fields import Fields

__all__ = [
    "REGISTRY",
    "Resource",
    "Right",
    "entries_of",
    "on_context",
    "on_subject",
    "read_named",
    "read_rights",
    "shown",
]

_ANYWHERE = "*"
_LISTS = {"allow": "ALLOW", "deny": "DENY"}
_RIGHT = dict.fromkeys(("principal", "host", *_LISTS))
_ABOUT = ("resource_type", "resource", "pattern_type")
_DEFAULT = ":.:"


class Resource(NamedTuple):
    """What rights are about, as the registry names it."""

    type: str
    name: str = ""
    pattern: str = "LITERAL"

    def __str__(self) -> str:
        """Return the resource in words."""
        noun, star = self.type.lower(), "*" if self.pattern == "PREFIXED" else ""
        return f"{noun} {self.name}{star}" if self.name else f"the {noun}"


class Right(NamedTuple):
    """One operation that a principal may do, or may not."""

    principal: str
    operation: str
    permission: str = "ALLOW"
    host: str = _ANYWHERE


REGISTRY = Resource("REGISTRY")


def on_subject(name: str) -> Resource:
    """Return a subject as a resource."""
    return Resource("SUBJECT", name.removeprefix(_DEFAULT))


def on_context(scope: str) -> Resource:
    """Return all subjects of a context, `:.name:`, as a resource."""
    return Resource("SUBJECT", scope, "PREFIXED")


def read_rights(section: Fields) -> tuple[Right, ...] | None:
    """Return the `rights` of a subject or context; None if there are none, which leaves them as they are.

    Raises:
        GitopsError: If they cannot be read.
    """
    if "rights" not in section:
        return None
    items = (Fields(where, item).only(_RIGHT) for where, item in section.items("rights"))
    return tuple(right for item in items for right in _rights(item))


def read_named(section: Fields) -> dict[Resource, tuple[Right, ...]]:
    """Return the `rights` at the top of a manifest, by what each entry names; without a name it is the registry.

    Raises:
        GitopsError: If they cannot be read.
    """
    rights: defaultdict[Resource, tuple[Right, ...]] = defaultdict(tuple)
    if "rights" in section:
        rights[REGISTRY] = ()
    for where, item in section.items("rights"):
        entry = Fields(where, item).only({**_RIGHT, **dict.fromkeys(_ABOUT)})
        type_name, name, pattern = (entry.text(key) for key in _ABOUT)
        if type_name is None and (name or pattern):
            raise GitopsError(f"{where}: `resource` needs a `resource_type`: SUBJECT or KEK")
        about = Resource((type_name or REGISTRY.type).upper(), name or "", (pattern or REGISTRY.pattern).upper())
        rights[on_subject(about.name) if about[::2] == ("SUBJECT", "LITERAL") else about] += tuple(_rights(entry))
    return dict(rights)


def _rights(entry: Fields) -> Iterable[Right]:
    principal = entry.text("principal")
    if not principal or not any(key in entry for key in _LISTS):
        raise GitopsError(f"{entry.where}: rights need a principal, and operations to allow or to deny")
    for key, permission in _LISTS.items():
        for where, operation in entry.items(key):
            if not isinstance(operation, str):
                raise GitopsError(f"{where}: expected an operation such as READ")
            yield Right(principal, operation.upper(), permission, entry.text("host") or _ANYWHERE)


def entries_of(rules: Iterable[Mapping[str, str]]) -> dict[Resource, list[dict[str, object]]]:
    """Return rules of a registry as entries of a manifest, by what they are about."""
    grouped: dict[Resource, dict[tuple[str, str], dict[str, Any]]] = {}
    for rule in rules:
        about = Resource(*(rule[name] for name in _ABOUT))
        whom = rule["principal"], rule["host"]
        principal = {"principal": whom[0]} | ({} if whom[1] == _ANYWHERE else {"host": whom[1]})
        entry = grouped.setdefault(about, {}).setdefault(whom, principal)
        entry.setdefault(rule["permission"].lower(), []).append(rule["operation"])
    return {about: list(entries.values()) for about, entries in grouped.items()}


def shown(rules: Sequence[Mapping[str, str]], mark: str) -> list[str]:
    """Return lines for rules of a registry."""
    verbs = {"ALLOW": "may", "DENY": "may not"}
    return [
        f"{mark} {rule['principal']} {verbs.get(rule['permission'], rule['permission'])} {rule['operation']}"
        + ("" if rule["host"] == _ANYWHERE else f" from {rule['host']}")
        for rule in rules
    ]
