"""The versions in an export file of `strata export`: JSON lines, each with a record's key and value as text."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from strata.gitops.desired import Reference
from strata.gitops.errors import GitopsError
from strata.gitops.versions import Held

__all__ = ["ExportVersions"]

_GZIP = b"\x1f\x8b"


class ExportVersions:
    """The versions in an export file.

    Raises:
        GitopsError: If the file cannot be read, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        self._versions: dict[str, dict[int, Held]] = {}
        self._deleted: set[tuple[str, int]] = set()
        self._configs: dict[str, Mapping[str, object]] = {}
        self._modes: dict[str, str] = {}
        self._rules: list[Mapping[str, str]] = []
        for key, value in _records(path):
            self._add(key, value)

    def _add(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        subject, key_type = str(key.get("subject") or "").removeprefix(":.:"), key.get("keytype")
        if key_type == "CONFIG":
            self._configs[subject] = value
        elif key_type == "NOOP":  # what other registries ignore
            self._rules.append({_RULE_FIELDS.get(name, name): str(text) for name, text in key.items()})
        elif key_type == "MODE":
            self._modes[subject] = str(value.get("mode"))
        elif key_type == "DELETE_SUBJECT":
            last = int(value["version"])
            self._deleted |= {(subject, number) for number in self._versions.get(subject, ()) if number <= last}
        elif key_type == "SCHEMA":
            number = int(key["version"])
            references = tuple(
                Reference(reference["name"], reference["subject"], int(reference["version"]))
                for reference in value.get("references") or ()
            )
            self._versions.setdefault(subject, {})[number] = Held(
                subject, number, value.get("schemaType") or "AVRO", value["schema"], references,
                value.get("metadata"), value.get("ruleSet"),
            )  # fmt: skip
            mark = (subject, number)
            self._deleted.add(mark) if value.get("deleted") else self._deleted.discard(mark)

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects with live versions, sorted."""
        return sorted(name for name in self._versions if self.versions(name))

    def versions(self, subject: str) -> Sequence[Held]:
        """Return the live versions of a subject, oldest first."""
        numbered = sorted(self._versions.get(subject, {}).items())
        return [version for number, version in numbered if (subject, number) not in self._deleted]

    def version(self, subject: str, number: int | None) -> Held | None:
        """Return a version, deleted or not; None for the number is the latest live one."""
        if number is not None:
            return self._versions.get(subject, {}).get(number)
        live = self.versions(subject)
        return live[-1] if live else None

    def level(self, subject: str) -> str | None:
        """Return the compatibility level in force for a subject."""
        scopes = (subject,) if subject in self._configs else (subject, _context(subject), "")
        levels = (self._configs.get(scope, {}).get("compatibilityLevel") for scope in scopes)
        return next((str(level) for level in levels if level), None)

    def group(self, subject: str) -> str | None:
        """Return the metadata property that divides a subject's versions into groups."""
        return self._setting(subject, "compatibilityGroup")

    def policy(self, subject: str) -> str | None:
        """Return how strictly differences of a subject count; None if the file does not say."""
        return self._setting(subject, "compatibilityPolicy")

    def _setting(self, subject: str, name: str) -> str | None:
        settings = (self._configs.get(scope, {}).get(name) for scope in (subject, _context(subject), ""))
        return next((str(value) for value in settings if value), None)

    def scopes(self) -> Sequence[str]:
        """Return the names under which there are settings; the empty name is the registry."""
        return sorted({*self._configs, *self._modes})

    def config(self, scope: str) -> Mapping[str, object]:
        """Return the configuration that a scope itself has."""
        return {k: v for k, v in self._configs.get(scope, {}).items() if k != "subject" and v is not None}

    def mode(self, scope: str) -> str | None:
        """Return the mode that a scope itself has; None if it has none."""
        return self._modes.get(scope)

    def rules(self) -> Sequence[Mapping[str, str]]:
        """Return the rules of access that the log of the registry had."""
        return sorted(self._rules, key=lambda rule: [rule[name] for name in _ORDER])


def _context(subject: str) -> str:
    return subject[: subject.index(":", 2) + 1] if subject.startswith(":.") else ""


def _records(path: Path) -> list[tuple[Mapping[str, object], Mapping[str, object]]]:
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise GitopsError(f"cannot read {path}: {error}") from None
    lines = data.splitlines(keepends=True)
    try:
        if json.loads(lines[0])["format"] != "strata-export":
            raise GitopsError(f"{path} is not an export file of strata")
        if json.loads(lines[-1])["sha256"] != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
            raise GitopsError(f"{path} is damaged: its content does not match the digest in its last line")
        rows = [json.loads(line) for line in lines[1:-1]]
        known = [(json.loads(row["key"]), row["value"]) for row in rows if "key" in row and row.get("value")]
        return [(key, json.loads(value)) for key, value in known if _is_known(key)]
    except (ValueError, LookupError, TypeError) as error:
        raise GitopsError(f"{path} is not an export file of strata, or it is damaged: {error!r}") from None


_KINDS = ("CONFIG", "MODE", "DELETE_SUBJECT", "SCHEMA")
_ORDER = ("principal", "host", "resource_type", "resource", "pattern_type", "operation", "permission")
_RULE_FIELDS = {"resourceType": "resource_type", "patternType": "pattern_type"}


def _is_known(key: Mapping[str, object]) -> bool:
    return key.get("keytype") in _KINDS or (key.get("keytype"), key.get("kind")) == ("NOOP", "ACL")
