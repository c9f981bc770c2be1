"""Changes of the auth file: users are added and removed, and the file is replaced as a whole.

A file that is written in place could be read half written, and a file that others may read gives them the hashes. So
the new file is written beside the old one, for its owner only, and takes its name when it is on disk.
"""

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from strata.registry.features.access import karapace_file
from strata.registry.features.access.auth_file import AuthFileError, parse_auth_file, read_content
from strata.registry.features.access.passwords import PasswordHash
from strata.registry.features.access.watched_file import read_bytes

__all__ = ["add_user", "list_users", "remove_user"]

_Content = dict[str, Any]
_COMMENT = re.compile(rb"(?:^|\s)#", re.MULTILINE)


def add_user(
    path: Path,
    name: str,
    password: PasswordHash,
    *,
    role: str | None = None,
    on: Sequence[str] = (),
    groups: Sequence[str] = (),
    replace: bool = False,
) -> bool:
    """Add a user to an auth file, which is created if there is none.

    Args:
        path: the file.
        name: the name of the user.
        password: the hash of the password.
        role: the user's role; None for none.
        on: the subjects of the role, each a name, `PREFIX*` or `*`.
        groups: the user's groups.
        replace: whether to replace the user of this name; roles and groups that are not given stay.

    Returns:
        Whether the file had comments, which it has no longer.

    Raises:
        AuthFileError: if there is a user of this name and `replace` is not set, or the file is invalid before or after.
    """
    principal = f"User:{name}"
    with _changing(path, must_exist=False) as content:
        users, roles = (content.get(section) or [] for section in ("users", "roles"))
        content |= {"users": users, "roles": roles}
        old = next((user for user in users if user["name"] == name), None)
        if old is not None and not replace:
            raise AuthFileError(f"the user {name!r} exists already; --replace changes the password")
        user = old if old is not None else {"name": name}
        if old is None:
            users.append(user)
        user["password"] = str(password)
        if groups:
            user["groups"] = list(groups)
        if role is not None:
            roles[:] = [held for held in roles if held["principal"] != principal]
            granted = [
                {"principal": principal, "role": role} | ({"on": resource} if resource else {})
                for resource in on or ("",)
            ]
            roles.extend(granted)
        return _had_comments(path)


def remove_user(path: Path, name: str) -> bool:
    """Remove a user from an auth file, with the roles and rules that name the user.

    Args:
        path: the file.
        name: the name of the user.

    Returns:
        Whether the file had comments, which it has no longer.

    Raises:
        AuthFileError: if there is no such user, or the file is invalid.
    """
    with _changing(path) as content:
        users = content.get("users") or []
        left = [user for user in users if user["name"] != name]
        if len(left) == len(users):
            raise AuthFileError(f"there is no user {name!r}")
        content["users"] = left
        for section in ("roles", "rules"):
            if content.get(section):
                content[section] = [entry for entry in content[section] if entry["principal"] != f"User:{name}"]
        return _had_comments(path)


def list_users(path: Path) -> list[tuple[str, list[str], list[str]]]:
    """Return the users of an auth file by name, each with the groups, and with the roles given to the user alone.

    Raises:
        AuthFileError: if the file is invalid.
    """
    data = read_bytes(path)
    auth_file, content = parse_auth_file(data), read_content(data)
    roles: dict[str, list[str]] = {}
    if not karapace_file.is_one(content):
        for role in content.get("roles") or []:
            text = role["role"] + (f" on {role['on']}" if "on" in role else "")
            roles.setdefault(role["principal"], []).append(text)
    users = sorted(auth_file.users.values(), key=lambda user: user.name)
    return [(user.name, sorted(user.groups), roles.get(f"User:{user.name}", [])) for user in users]


@contextmanager
def _changing(path: Path, *, must_exist: bool = True) -> Iterator[_Content]:
    """Yield the content of a valid auth file, and write what becomes of it if that is valid too."""
    path = path.resolve()  # a link stays a link
    with _locked(path.parent):
        is_new = not must_exist and not path.exists()
        data = b"" if is_new else read_bytes(path)
        parse_auth_file(data)
        content = read_content(data)
        if karapace_file.is_one(content):
            raise AuthFileError("this is an auth file of Karapace, which can be read but not changed")
        yield content
        new = _json(content) if data.lstrip().startswith(b"{") else _yaml(content)
        parse_auth_file(new)
        _replace(path, new)


def _had_comments(path: Path) -> bool:
    return path.exists() and _COMMENT.search(read_bytes(path)) is not None


def _json(content: _Content) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _yaml(content: _Content) -> bytes:
    kept = {section: entries for section, entries in content.items() if entries}
    return str(yaml.dump(kept, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=200)).encode()


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """A dumper that leaves `on` and `no` without quotes: `strata/strict_yaml.py` takes every scalar for a text."""


_Dumper.yaml_implicit_resolvers = {}


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - of a descriptor
            with suppress(FileNotFoundError, PermissionError):  # the service may run as another user than this command
                old = path.stat()
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that two commands do not lose each other's change."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
