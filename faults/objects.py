"""Sequential models of objects other than single subjects: references, an alias, encryption keys, associations.

Each object is a small value with its own requests in one table: the effect and the answer of a request, its form over
HTTP, and the part of the answer that is compared. Ids are not compared here; the laws of the log cover them
(`ledger.py`). As in `model.py`, nothing is imported from the registry.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from faults import hot, rights
from faults.kind import Kind
from faults.model import NEW, Answer, Entry, Request, Subject, text_of

__all__ = ["KINDS", "OBJECTS", "READS", "SET_UP", "Keys", "Pair", "chosen_for_object", "object_of"]

_BASE, _USER = ":.r:b", ":.r:u"
_ALIAS, _TARGETS = ":.a:n", {":.a:ta": "a", ":.a:tb": "b"}
_KEY, _RESOURCE, _ASSOCIATED = "kek", "topic-1", "associated"
_BASE_CONTENTS = ("", "a", "b", "ab")
_KEK, _DEK = f"/dek-registry/v1/keks/{_KEY}", f"/dek-registry/v1/keks/{_KEY}/deks/d"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two subjects; each version of the second subject refers to a version of the first."""

    base: Subject = NEW
    user: Subject = NEW

    def part(self, name: str) -> Subject:
        """Return one of the subjects."""
        return self.base if name == _BASE else self.user

    def with_part(self, name: str, part: Subject) -> "Pair":
        """Return the pair with one of the subjects replaced."""
        return Pair(part, self.user) if name == _BASE else Pair(self.base, part)

    def is_referred_to(self, name: str, entry: Entry, *, by_deleted: bool) -> bool:
        """Return whether a version of the second subject refers to a version.

        Args:
            name: the subject of the version.
            entry: the version.
            by_deleted: whether soft-deleted versions count as referring.
        """
        users = self.user.entries if by_deleted else self.user.live
        return name == _BASE and any(user.content == f"@{entry.version}" for user in users)


@dataclass(frozen=True, slots=True)
class Keys:
    """A key encryption key and a data encryption key under it, each with its text and whether it is soft-deleted."""

    kek: tuple[str, bool] | None = None
    dek: tuple[str, bool] | None = None


# --- references


def _pair_register(pair: Pair, request: Request) -> tuple[Pair, Answer]:
    part = pair.part(request.subject)
    if request.content.startswith("@"):
        target = pair.base.get(int(request.content[1:]))
        if target is None or target.deleted:
            return pair, (42201, None)
    for entry in part.live:
        if entry.content == request.content:
            return pair, (200, entry.version)
    version = part.highest() + 1
    # A schema that was soft-deleted here gets a new version; the old one is hard-deleted unless it is referred to.
    kept = tuple(
        entry
        for entry in part.entries
        if entry.content != request.content or pair.is_referred_to(request.subject, entry, by_deleted=True)
    )
    part = Subject(kept).placed(Entry(version, request.content, 0, False))
    return pair.with_part(request.subject, part), (200, version)


def _pair_soft_delete(pair: Pair, request: Request) -> tuple[Pair, Answer]:
    part = pair.part(request.subject)
    refusal, going = _to_delete(part, request.version)
    if refusal:
        return pair, (refusal, None)
    if request.version and going[0].deleted:
        return pair, (40406, None)
    going = [entry for entry in going if not entry.deleted]
    if not going:
        return pair, (40404, None)
    if any(pair.is_referred_to(request.subject, entry, by_deleted=False) for entry in going):
        return pair, (42206, None)
    return pair.with_part(request.subject, part.marked(going)), (200, _versions_of(going, request))


def _pair_hard_delete(pair: Pair, request: Request) -> tuple[Pair, Answer]:
    part = pair.part(request.subject)
    refusal, going = _to_delete(part, request.version)
    if refusal:
        return pair, (refusal, None)
    for entry in going:
        if pair.is_referred_to(request.subject, entry, by_deleted=True):
            return pair, (42206, None)
        if not entry.deleted:
            return pair, (40407 if request.version else 40405, None)
    return pair.with_part(request.subject, part.without(going)), (200, _versions_of(going, request))


def _to_delete(part: Subject, version: int) -> tuple[int, list[Entry]]:
    if not part.entries:
        return 40401, []
    if not version:
        return 0, list(part.entries)
    entry = part.get(version)
    return (0, [entry]) if entry else (40402, [])


def _versions_of(going: Iterable[Entry], request: Request) -> Any:
    return request.version or tuple(entry.version for entry in going)


def _pair_versions(pair: Pair, request: Request) -> tuple[Pair, Answer]:
    live = pair.part(request.subject).live
    return pair, (200, tuple(entry.version for entry in live)) if live else (40401, None)


def _pair_all_versions(pair: Pair, request: Request) -> tuple[Pair, Answer]:
    entries = pair.part(request.subject).entries
    return pair, (200, tuple(entry.version for entry in entries)) if entries else (40401, None)


def _pair_body(request: Request) -> Mapping[str, Any]:
    if not request.content.startswith("@"):
        return {"schema": text_of(request.content)}
    reference = {"name": "R", "subject": _BASE, "version": int(request.content[1:])}
    return {"schema": text_of(request.content), "references": [reference]}


# --- an alias


def _alias_set(_target: str, request: Request) -> tuple[str, Answer]:
    return request.content, (200, request.content)


def _alias_drop(target: str, _request: Request) -> tuple[str, Answer]:
    return "", (200, target) if target else (40401, None)


def _alias_read(target: str, _request: Request) -> tuple[str, Answer]:
    return target, (200, text_of(_TARGETS[target])) if target else (40401, None)


# --- encryption keys


def _kek_make(keys: Keys, request: Request) -> tuple[Keys, Answer]:
    if keys.kek not in (None, (request.content, True)):
        return keys, (40971, None)
    return Keys((request.content, False), keys.dek), (200, request.content)


def _kek_change(keys: Keys, request: Request) -> tuple[Keys, Answer]:
    if keys.kek is None or keys.kek[1]:
        return keys, (40470, None)
    return Keys((request.content, False), keys.dek), (200, request.content)


def _kek_read(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    return keys, (200, keys.kek[0]) if keys.kek and not keys.kek[1] else (40470, None)


def _kek_delete(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    if keys.kek is None:
        return keys, (40470, None)
    if keys.dek and not keys.dek[1]:
        return keys, (42272, None)
    return Keys((keys.kek[0], True), keys.dek), (200, None)


def _kek_purge(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    if keys.kek is None:
        return keys, (40470, None)
    if keys.dek:
        return keys, (42272, None)
    return (Keys(), (200, None)) if keys.kek[1] else (keys, (40471, None))


def _dek_make(keys: Keys, request: Request) -> tuple[Keys, Answer]:
    if keys.kek is None or keys.kek[1]:
        return keys, (40470, None)
    if keys.dek not in (None, (request.content, True)):
        return keys, (40971, None)
    return Keys(keys.kek, (request.content, False)), (200, request.content)


def _dek_read(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    seen = keys.kek and not keys.kek[1] and keys.dek and not keys.dek[1]
    return keys, (200, keys.dek[0]) if seen and keys.dek else (40470, None)


def _dek_delete(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    if keys.dek is None:
        return keys, (40470, None)
    return Keys(keys.kek, (keys.dek[0], True)), (200, None)


def _dek_purge(keys: Keys, _request: Request) -> tuple[Keys, Answer]:
    if keys.dek is None:
        return keys, (40470, None)
    return (Keys(keys.kek), (200, None)) if keys.dek[1] else (keys, (40471, None))


def _kek_body(request: Request) -> Mapping[str, Any]:
    return {"name": _KEY, "kmsType": "local-kms", "kmsKeyId": "id", "doc": request.content, "shared": False}


# --- associations


def _association_make(types: frozenset[str], request: Request) -> tuple[frozenset[str], Answer]:
    return types | {request.content}, (200, None)


def _association_drop(types: frozenset[str], request: Request) -> tuple[frozenset[str], Answer]:
    return types - {request.content}, (200, None)


def _association_read(types: frozenset[str], _request: Request) -> tuple[frozenset[str], Answer]:
    return types, (200, tuple(sorted(types)))


def _association_body(request: Request) -> Mapping[str, Any]:
    wanted = {"subject": _ASSOCIATED, "associationType": request.content, "lifecycle": "WEAK"}
    resource = {"resourceName": "topic", "resourceNamespace": "cluster", "resourceId": _RESOURCE}
    return {**resource, "resourceType": "topic", "associations": [wanted]}


# --- tables


def _subject(request: Request, rest: str = "") -> str:
    return f"/subjects/{quote(request.subject, safe='')}{rest}"


def _part(request: Request, query: str = "") -> str:
    return _subject(request, f"/versions/{request.version}{query}" if request.version else query)


def _nothing(_content: Any) -> None:
    return None


def _whole(content: Any) -> Any:
    return tuple(content) if isinstance(content, list) else content


_RESOURCE_PATH = f"/associations/resources/{_RESOURCE}"
_CONFIG = f"/config/{quote(_ALIAS, safe='')}"
_KINDS: Mapping[str, Kind] = {
    "pair_register": Kind(
        _pair_register, lambda r: ("POST", _subject(r, "/versions"), _pair_body(r)), lambda c: c["version"]
    ),
    "pair_soft_delete": Kind(_pair_soft_delete, lambda r: ("DELETE", _part(r), None), _whole),
    "pair_hard_delete": Kind(_pair_hard_delete, lambda r: ("DELETE", _part(r, "?permanent=true"), None), _whole),
    "pair_versions": Kind(_pair_versions, lambda r: ("GET", _subject(r, "/versions"), None), _whole, writes=False),
    "pair_all_versions": Kind(
        _pair_all_versions, lambda r: ("GET", _subject(r, "/versions?deleted=true"), None), _whole, writes=False
    ),
    "alias_set": Kind(_alias_set, lambda r: ("PUT", _CONFIG, {"alias": r.content}), lambda c: c["alias"]),
    "alias_drop": Kind(_alias_drop, lambda _: ("DELETE", _CONFIG, None), lambda c: c["alias"]),
    "alias_read": Kind(
        _alias_read, lambda r: ("GET", _subject(r, "/versions/latest"), None), lambda c: c["schema"], writes=False
    ),
    "kek_make": Kind(_kek_make, lambda r: ("POST", "/dek-registry/v1/keks", _kek_body(r)), lambda c: c["doc"]),
    "kek_change": Kind(_kek_change, lambda r: ("PUT", _KEK, {"doc": r.content}), lambda c: c["doc"]),
    "kek_read": Kind(_kek_read, lambda _: ("GET", _KEK, None), lambda c: c["doc"], writes=False),
    "kek_delete": Kind(_kek_delete, lambda _: ("DELETE", _KEK, None), _nothing),
    "kek_purge": Kind(_kek_purge, lambda _: ("DELETE", f"{_KEK}?permanent=true", None), _nothing),
    "dek_make": Kind(
        _dek_make, lambda r: ("POST", _DEK, {"encryptedKeyMaterial": r.content}), lambda c: c["encryptedKeyMaterial"]
    ),
    "dek_read": Kind(_dek_read, lambda _: ("GET", _DEK, None), lambda c: c["encryptedKeyMaterial"], writes=False),
    "dek_delete": Kind(_dek_delete, lambda _: ("DELETE", _DEK, None), _nothing),
    "dek_purge": Kind(_dek_purge, lambda _: ("DELETE", f"{_DEK}?permanent=true", None), _nothing),
    "association_make": Kind(_association_make, lambda r: ("POST", "/associations", _association_body(r)), _nothing),
    "association_drop": Kind(
        _association_drop, lambda r: ("DELETE", f"{_RESOURCE_PATH}?associationType={r.content}", None), _nothing
    ),
    "association_read": Kind(
        _association_read,
        lambda _: ("GET", _RESOURCE_PATH, None),
        lambda c: tuple(sorted(one["associationType"] for one in c)),
        writes=False,
    ),
}
KINDS: Mapping[str, Kind] = {**_KINDS, **rights.KINDS, **hot.KINDS}
OBJECTS: Mapping[str, Any] = {
    "references": Pair(),
    "alias": "",
    "keys": Keys(),
    "associations": frozenset(),
    **rights.OBJECTS,
    **hot.OBJECTS,
}
"""The initial value of each object."""

READS = (
    *(Request(kind, subject) for subject in (_BASE, _USER) for kind in ("pair_versions", "pair_all_versions")),
    Request("alias_read", _ALIAS),
    Request("kek_read", "keys"),
    Request("dek_read", "keys"),
    Request("association_read", "associations"),
)
"""Every read request about the objects, without the rights and the hot key."""

SET_UP = ({**_TARGETS, _ASSOCIATED: "ab"}).items()
"""Subjects that must exist before the first request, with the content of their only version."""

_OF = {"pair": "references", "alias": "alias", "kek": "keys", "dek": "keys", "association": "associations"}
_WEIGHTS = {"pair_register": 12, "pair_soft_delete": 3, "kek_delete": 1, "kek_purge": 1, "kek_change": 1}


def object_of(request: Request) -> str | None:
    """Return the object that a request is about, None if it is about a single subject."""
    if request.kind in rights.KINDS:
        return f"right on {request.subject}"
    if request.kind in hot.KINDS:
        return "hot"
    return _OF[request.kind.partition("_")[0]] if request.kind in _KINDS else None


def chosen_for_object(rng: random.Random) -> Request:
    """Return a random request about one of the objects, without the rights and the hot key."""
    kind = rng.choices(list(_KINDS), [_WEIGHTS.get(kind, 2) for kind in _KINDS])[0]
    if kind.startswith("pair"):
        subject = rng.choice((_BASE, _USER))
        if kind == "pair_register":
            content = rng.choice(_BASE_CONTENTS) if subject == _BASE else f"@{rng.randint(1, 4)}"
            return Request(kind, subject, content)
        return Request(kind, subject, version=rng.choice((0, 1, 2, 3, 4)) if "delete" in kind else 0)
    if kind.startswith("alias"):
        return Request(kind, _ALIAS, rng.choice(list(_TARGETS)) if kind == "alias_set" else "")
    if kind.startswith("association"):
        return Request(kind, "associations", rng.choice(("key", "value")))
    return Request(kind, "keys", rng.choice(("eA==", "eQ==")) if kind.endswith(("make", "change")) else "")
