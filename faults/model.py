"""Sequential model of one subject of a registry: the effect and the answer of each request.

It is written from the rules of the reference (docs/compatibility.md), and imports nothing from the code under test.
Schemas are Avro records named by their fields: a lower-case letter is a field with a default, an upper-case letter is
one without, so compatibility depends on two sets of letters only.

Answers are `(code, payload)`: 200 with the content of the answer, or the registry's error code with None.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

__all__ = [
    "CONTENTS",
    "GUARDED_CONTENTS",
    "LEVELS",
    "MANY_CONTENTS",
    "MODES",
    "NEW",
    "NOT_WRITTEN",
    "WRITES_TO_SUBJECTS",
    "Answer",
    "Entry",
    "Operation",
    "Request",
    "Subject",
    "compatible",
    "content_of",
    "context_of",
    "follow",
    "perform",
    "text_of",
]

CONTENTS = ("", "a", "b", "ab", "abc", "A", "aA", "abA", "aB", "bAB")
MANY_CONTENTS = (*CONTENTS, *("".join(letters) for letters in itertools.combinations("cdefghij", 3)))
GUARDED_CONTENTS = tuple("".join(letters) for letters in itertools.combinations("klmnopqrstuvwxyz", 5))
LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
MODES = ("READONLY", "READWRITE")
_VERSION_WRITES = ("register", "import", "soft_delete", "hard_delete")
_SETTING_WRITES = ("set_level", "force_level", "drop_level", "set_mode", "drop_mode")
WRITES_TO_SUBJECTS = frozenset({*_VERSION_WRITES, *_SETTING_WRITES})
NOT_WRITTEN = 503
"""The code of an answer that says that nothing was written."""
_DEFAULT_LEVEL = "BACKWARD"

Answer = tuple[int, Any]


class Entry(NamedTuple):
    """A version of a subject; `schema_id` is 0 while no client knows the id."""

    version: int
    content: str
    schema_id: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """The versions of a subject, oldest first, with its own compatibility level and mode, if any."""

    entries: tuple[Entry, ...] = ()
    level: str = ""
    mode: str = ""

    @property
    def is_read_only(self) -> bool:
        """Whether only the mode may be changed."""
        return self.mode == "READONLY"

    @property
    def live(self) -> tuple[Entry, ...]:
        """The versions that are not soft-deleted."""
        return tuple(entry for entry in self.entries if not entry.deleted)

    def without(self, going: Iterable[Entry]) -> "Subject":
        """Return the subject after a hard deletion; its level and mode are deleted with its last version."""
        left = tuple(entry for entry in self.entries if entry not in set(going))
        return replace(self, entries=left) if left else NEW

    def marked(self, going: Iterable[Entry]) -> "Subject":
        """Return the subject after a soft deletion."""
        marked = set(going)
        return replace(self, entries=tuple(e._replace(deleted=e.deleted or e in marked) for e in self.entries))

    def placed(self, entry: Entry) -> "Subject":
        """Return the subject with a version added or replaced."""
        others = [other for other in self.entries if other.version != entry.version]
        return replace(self, entries=tuple(sorted([*others, entry])))

    def get(self, version: int) -> Entry | None:
        """Return a version, soft-deleted or not."""
        return next((entry for entry in self.entries if entry.version == version), None)

    def highest(self) -> int:
        """Return the highest version in use, soft-deleted ones included."""
        return max((entry.version for entry in self.entries), default=0)


NEW = Subject()


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request.

    `version` 0 is the whole subject in a deletion, and the next version in an import. In a request that sets a mode,
    `level` is the mode. The content `@3` refers to version 3 of another subject.
    """

    kind: str
    subject: str
    content: str = ""
    schema_id: int = 0
    version: int = 0
    level: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A request with its start, end and answer, in seconds of one clock.

    A request without an answer may have taken effect at any time after its start, or never.
    """

    number: int
    client: str
    node: int
    request: Request
    start: float
    end: float
    answer: Answer | None


def context_of(subject: str) -> str:
    """Return the context of a subject: `:.context:subject` names one, every other name is in the default context."""
    return subject.split(":", 2)[1] if subject.startswith(":.") else "."


def text_of(content: str) -> str:
    """Return the schema text of a content, in canonical form."""
    if content.startswith("@"):
        return _REFERRING
    fields = [
        {"name": letter, "type": "int", **({"default": 0} if letter.islower() else {})} for letter in sorted(content)
    ]
    return json.dumps({"type": "record", "name": "R", "fields": fields}, separators=(",", ":"))


def content_of(text: str, refers_to: int | None = None) -> str:
    """Return the content of a schema text, with the version of its reference if it has one."""
    if text == _REFERRING:
        return f"@{refers_to}"
    return _BY_TEXT.get(text, f"unknown: {text}")


_REFERRING = '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'
_BY_TEXT = {text_of(content): content for content in (*MANY_CONTENTS, *GUARDED_CONTENTS)}


def compatible(content: str, live: Iterable[str], level: str) -> bool:
    """Return whether a content is compatible with the live contents, oldest first, under a level."""
    previous = list(live) if level.endswith("TRANSITIVE") else list(live)[-1:]
    backward = level.startswith(("BACKWARD", "FULL"))
    forward = level.startswith(("FORWARD", "FULL"))
    return all((not backward or _reads(content, old)) and (not forward or _reads(old, content)) for old in previous)


def _reads(reader: str, writer: str) -> bool:
    if "@" in reader + writer:
        return True  # versions that can be referred to differ only in fields with a default
    return all(letter.islower() for letter in set(reader) - set(writer))


def perform(subject: Subject, request: Request, fresh_id: int = 0) -> tuple[Subject, Answer]:
    """Return the subject after a request, and the answer.

    Args:
        subject: the subject before the request.
        request: the request.
        fresh_id: the id of a new schema; 0 if no client knows it.
    """
    return _REQUESTS[request.kind](subject, request, fresh_id)


def follow(subject: Subject, operation: Operation) -> Subject | None:
    """Return the subject after an operation, None if its answer contradicts the subject.

    An id that no client knew becomes known with the first answer that names it.
    """
    answer = operation.answer
    fresh_id = _told_id(operation)
    after, expected = perform(subject, operation.request, fresh_id)
    if answer is None or answer == expected:
        return after
    if answer[0] == expected[0] == 200 and fresh_id:
        return _bound(after, expected, answer, fresh_id)
    return None


def _told_id(operation: Operation) -> int:
    if operation.answer is None or operation.answer[0] != 200 or operation.request.kind not in _TELLS_ID:
        return 0
    return int(operation.answer[1][0])


def _bound(after: Subject, expected: Answer, answer: Answer, schema_id: int) -> Subject | None:
    if expected[1][0] != 0 or expected[1][1:] != answer[1][1:]:
        return None
    entry = after.get(expected[1][1])
    if entry is None or any(e.schema_id == schema_id and e.content != entry.content for e in after.entries):
        return None
    return after.placed(entry._replace(schema_id=schema_id))


def _register(subject: Subject, request: Request, fresh_id: int) -> tuple[Subject, Answer]:
    for entry in subject.live:
        if entry.content == request.content:
            return subject, (200, (entry.schema_id, entry.version))
    if subject.is_read_only:
        return subject, (42205, None)
    level = subject.level or _DEFAULT_LEVEL
    if not compatible(request.content, [entry.content for entry in subject.live], level):
        return subject, (40901, None)
    # A schema that was soft-deleted here gets its id and a new version; the old version is hard-deleted.
    replaced = [entry for entry in subject.entries if entry.content == request.content]
    schema_id = next((entry.schema_id for entry in replaced if entry.schema_id), fresh_id)
    version = subject.highest() + 1
    kept = replace(subject, entries=tuple(entry for entry in subject.entries if entry not in replaced))
    return kept.placed(Entry(version, request.content, schema_id, False)), (200, (schema_id, version))


def _import(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    """Import a content: the caller gives the id, in a context that contains only this subject."""
    holders = [entry for entry in subject.entries if entry.schema_id == request.schema_id]
    for entry in reversed(holders):
        if request.version == 0 and entry.content == request.content and not entry.deleted:
            return subject, (200, (entry.schema_id, entry.version))
    if subject.is_read_only or any(entry.content != request.content for entry in holders):
        return subject, (42205, None)
    version = request.version or subject.highest() + 1
    entry = Entry(version, request.content, request.schema_id, False)
    return subject.placed(entry), (200, (request.schema_id, version))


def _look_up(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    for entry in subject.live:
        if entry.content == request.content:
            return subject, (200, (entry.schema_id, entry.version))
    return subject, (40403 if subject.live else 40401, None)


def _latest(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return subject, _shown(subject.live[-1]) if subject.live else (40401, None)


def _version(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    entry = subject.get(request.version)
    if entry and not entry.deleted:
        return subject, _shown(entry)
    return subject, (40402 if subject.live else 40401, None)


def _versions(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return subject, (200, tuple(e.version for e in subject.live)) if subject.live else (40401, None)


def _all_versions(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return subject, (200, tuple(e.version for e in subject.entries)) if subject.entries else (40401, None)


def _absent(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    """Model a "not found" by id: if the id is nowhere in the context, it is not in this subject."""
    here = any(entry.schema_id == request.schema_id for entry in subject.entries)
    return subject, (200 if here else 40403, None)


def _soft_delete(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    if not subject.entries:
        return subject, (40401, None)
    if not request.version:
        if not subject.live:
            return subject, (40404, None)
        if subject.is_read_only:
            return subject, (42205, None)
        return subject.marked(subject.live), (200, tuple(entry.version for entry in subject.live))
    entry = subject.get(request.version)
    if entry is None:
        return subject, (40402, None)
    if entry.deleted:
        return subject, (40406, None)
    return (subject, (42205, None)) if subject.is_read_only else (subject.marked([entry]), (200, entry.version))


def _hard_delete(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    if not subject.entries:
        return subject, (40401, None)
    if not request.version:
        if subject.is_read_only or subject.live:
            return subject, (42205 if subject.is_read_only else 40405, None)
        return NEW, (200, tuple(entry.version for entry in subject.entries))
    entry = subject.get(request.version)
    if entry is None:
        return subject, (40402, None)
    if subject.is_read_only:
        return subject, (42205, None)
    return (subject.without([entry]), (200, entry.version)) if entry.deleted else (subject, (40407, None))


def _level(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return subject, (200, subject.level) if subject.level else (40408, None)


def _set_level(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    if subject.is_read_only:
        return subject, (42205, None)
    return replace(subject, level=request.level), (200, request.level)


def _force_level(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    """Model another product's write to the log, which ignores modes."""
    return replace(subject, level=request.level), (200, request.level)


def _drop_level(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    if not subject.level:
        return subject, (40401, None)
    if subject.is_read_only:
        return subject, (42205, None)
    return replace(subject, level=""), (200, subject.level)


def _mode(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return subject, (200, subject.mode) if subject.mode else (40409, None)


def _set_mode(subject: Subject, request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    return replace(subject, mode=request.level), (200, request.level)


def _drop_mode(subject: Subject, _request: Request, _fresh_id: int) -> tuple[Subject, Answer]:
    if not subject.mode:
        return subject, (40401, None)
    return replace(subject, mode=""), (200, subject.mode)


def _shown(entry: Entry) -> Answer:
    return 200, (entry.schema_id, entry.version, entry.content)


_REQUESTS: Mapping[str, Callable[[Subject, Request, int], tuple[Subject, Answer]]] = {
    "register": _register,
    "import": _import,
    "look_up": _look_up,
    "latest": _latest,
    "version": _version,
    "versions": _versions,
    "all_versions": _all_versions,
    "absent": _absent,
    "soft_delete": _soft_delete,
    "hard_delete": _hard_delete,
    "level": _level,
    "set_level": _set_level,
    "force_level": _force_level,
    "drop_level": _drop_level,
    "mode": _mode,
    "set_mode": _set_mode,
    "drop_mode": _drop_mode,
}
_TELLS_ID = frozenset({"register", "import", "look_up", "latest", "version"})
