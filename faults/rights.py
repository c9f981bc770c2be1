"""Rights that change in mid-run: a superuser grants and revokes them on random nodes, while their users register.

The right to write to a guarded subject is an object with a sequential model, as those of `objects.py`. So one order of
all changes and registrations must explain every answer: a registration that was sent after a revocation had been
acknowledged is refused on every node, and one that was sent after a grant is accepted. Each registration has a content
of its own, and only the users of this file write to guarded subjects; so the log shows what became of each, and
`may_write` says whether it might land there.
"""

import base64
import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlencode

from faults.kind import Kind
from faults.model import GUARDED_CONTENTS, Answer, Operation, Request, text_of
from strata.storage.records import AclKey

__all__ = [
    "GUARDED",
    "KINDS",
    "OBJECTS",
    "READS",
    "SUPERUSER",
    "changes",
    "credentials",
    "may_write",
    "misplaced",
    "node_options",
    "registrations",
]

SUPERUSER = "root"


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Who registers under a subject, and the principal and pattern of the rules that permit or deny it."""

    user: str
    principal: str
    pattern: str


GUARDED: Mapping[str, _Guarded] = {
    ":.guarded:one": _Guarded("ula", "User:ula", "LITERAL"),
    ":.guarded:two": _Guarded("otto", "Group:writers", "PREFIXED"),
}
"""The guarded subjects. Ula may always read hers; Otto has no rights but those that change."""

_AUTH_FILE = """users:
  - {{name: root, password: "{hash}"}}
  - {{name: ula, password: "{hash}"}}
  - {{name: otto, password: "{hash}", groups: [writers]}}
roles:
  - {{principal: User:ula, role: consumer, on: "*"}}
"""
_PASSWORD, _SALT = "not a secret", b"of all nodes of a run"
_PATH = "/security/acls"
_CHANGES = ("right_allow", "right_allow", "right_disallow", "right_deny", "right_undeny", "right_undeny", "right_read")


# --- identity


def node_options(folder: Path) -> list[str]:
    """Return the flags of nodes with access control, and write the files that they name.

    Args:
        folder: for the files.
    """
    auth_file, secret = folder / "auth.yaml", folder / "node-secret"
    # A cheap hash: nodes start often, and each compares the passwords again.
    digest = hashlib.scrypt(_PASSWORD.encode(), salt=_SALT, n=16, r=1, p=1, dklen=32)
    salt, digest_text = (base64.b64encode(part).decode().rstrip("=") for part in (_SALT, digest))
    auth_file.write_text(_AUTH_FILE.format(hash=f"$scrypt$ln=4,r=1,p=1${salt}${digest_text}"))
    secret.write_text("a secret of the nodes, the same for all of them")
    return [f"--auth-file={auth_file}", f"--superusers=User:{SUPERUSER}", f"--node-secret={secret}"]


def credentials(user: str) -> dict[str, str]:
    """Return the header by which a user proves who it is."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{_PASSWORD}'.encode()).decode()}"}


# --- the model of a right


@dataclass(frozen=True, slots=True)
class Right:
    """Whether a rule permits to write to a subject, and whether one denies it."""

    allowed: bool = False
    denied: bool = False

    @property
    def holds(self) -> bool:
        """Whether the user may write."""
        return self.allowed and not self.denied


def _set(**fields: bool) -> Callable[[Right, Request], tuple[Right, Answer]]:
    return lambda right, _: (replace(right, **fields), (200, None))


def _use(right: Right, _request: Request) -> tuple[Right, Answer]:
    return right, (200, None) if right.holds else (40301, None)


def _read(right: Right, _request: Request) -> tuple[Right, Answer]:
    return right, (200, (right.allowed, right.denied))


def _rule(subject: str, permission: str) -> dict[str, str]:
    guarded = GUARDED[subject]
    return {
        "principal": guarded.principal,
        "host": "*",
        "resource_type": "SUBJECT",
        "resource": subject,
        "pattern_type": guarded.pattern,
        "operation": "WRITE",
        "permission": permission,
    }


def _change(permission: str, method: str, **fields: bool) -> Kind:
    return Kind(_set(**fields), lambda r: (method, _PATH, [_rule(r.subject, permission)]), lambda _: None)


KINDS: Mapping[str, Kind] = {
    "right_allow": _change("ALLOW", "POST", allowed=True),
    "right_disallow": _change("ALLOW", "DELETE", allowed=False),
    "right_deny": _change("DENY", "POST", denied=True),
    "right_undeny": _change("DENY", "DELETE", denied=False),
    # It changes nothing about the right.
    "right_use": Kind(
        _use,
        lambda r: ("POST", f"/subjects/{quote(r.subject, safe='')}/versions", {"schema": text_of(r.content)}),
        lambda _: None,
        writes=False,
    ),
    "right_read": Kind(
        _read,
        lambda r: ("GET", f"{_PATH}?{urlencode({'resource': r.subject})}", None),
        lambda c: tuple(any(rule["permission"] == wanted for rule in c) for wanted in ("ALLOW", "DENY")),
        writes=False,
    ),
}
OBJECTS: Mapping[str, Right] = {f"right on {subject}": Right() for subject in GUARDED}
"""The right on each guarded subject at the start."""

READS = tuple(Request("right_read", subject) for subject in GUARDED)
"""Every read request about the rights."""


def changes(rng: random.Random) -> Iterator[Request]:
    """Yield random requests of the superuser: changes of the rights, and reads."""
    while True:
        yield Request(rng.choice(_CHANGES), rng.choice(list(GUARDED)))


def registrations(subject: str) -> Iterator[Request]:
    """Yield the registrations under a guarded subject, each with a content of its own."""
    return (Request("right_use", subject, content) for content in GUARDED_CONTENTS)


# --- the log


def may_write(rules: Collection[AclKey], subject: str) -> bool:
    """Return whether the rules in the log permit the user of a guarded subject to write to it."""
    allowed, denied = (AclKey(**_rule(subject, permission)) in rules for permission in ("ALLOW", "DENY"))
    return allowed and not denied


def misplaced(operations: Iterable[Operation], registered: Collection[tuple[str, int, int, str]]) -> Iterator[str]:
    """Yield registrations under guarded subjects whose answers differ from the log.

    Args:
        operations: the history.
        registered: every version that the log ever held: subject, version, id, content.
    """
    landed = {(subject, content) for subject, _, _, content in registered}
    for operation in operations:
        request = operation.request
        if request.kind != "right_use" or operation.answer is None:
            continue
        is_there = (request.subject, request.content) in landed
        if is_there != (operation.answer[0] == 200):
            what = "refused, but in the log" if is_there else "acknowledged, but not in the log"
            yield f"{what}: {operation}"
