"""The validity of rule sets beyond the types of their properties, and the key names added to encryption rules (CSFLE).

The rules are the reference's: a name of at most 256 letters, digits, `_` and `-` that begins with a letter or `_` and
is unique in the set; a type; a mode that fits the phase; two actions only if there are two modes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from strata.registry.core import errors
from strata.storage.records import Phase, Rule, RuleSet

__all__ = ["PHASES", "check_rule_set", "with_key_names"]

_MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_RECORD = ("WRITE", "READ", "WRITEREAD")

# Phase -> the allowed modes of its rules.
PHASES: Mapping[Phase, tuple[str, ...]] = {
    "migrationRules": _MIGRATION,
    "domainRules": _RECORD,
    "encodingRules": _RECORD,
}
_TWO_MODES = ("UPDOWN", "WRITEREAD")
_MAX_NAME = 256
_KEY_ID, _KEK_NAME, _KMS_TYPE = "encrypt.kms.key.id", "encrypt.kek.name", "encrypt.kms.type"
_ARN: Final = "arn:"  # prefix of AWS key ids
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def check_rule_set(rule_set: RuleSet) -> None:
    """Validate the rule set of a request.

    Raises:
        RegistryError: 42210, naming the invalid rule and what is wrong with it.
    """
    names: set[str] = set()
    for phase, modes in PHASES.items():
        for index, rule in enumerate(rule_set.get(phase) or ()):
            name = rule.get("name") or ""
            where = f"{phase}[{index}]" + (f" '{name[:_MAX_NAME]}'" if name else "")
            for fault in (*_name_faults(name, names), *_faults(rule, modes)):
                raise errors.invalid_rule_set(f"{where}: {fault}")
            names.add(name)


def with_key_names(rule_set: RuleSet | None) -> RuleSet | None:
    """Add a KEK name to domain rules with a KMS key id, and the KMS type if the id shows it."""
    rules = (rule_set or {}).get("domainRules") or ()
    if not rule_set or not any(_KEY_ID in (rule.get("params") or {}) for rule in rules):
        return rule_set
    return {**rule_set, "domainRules": [_with_key_name(rule) for rule in rules]}


def _with_key_name(rule: Rule) -> Rule:
    params = rule.get("params") or {}
    key_id = params.get(_KEY_ID)
    if key_id is None:
        return rule
    known = {_KEK_NAME: _NOT_IN_NAMES.sub("-", key_id.removeprefix(_ARN))}
    if key_id.startswith(_ARN):
        known[_KMS_TYPE] = "aws-kms"
    return {**rule, "params": dict(sorted({**known, **params}.items()))}


def _name_faults(name: str, taken: set[str]) -> Iterator[str]:
    if not name:
        yield "the rule has no name"
    elif len(name) > _MAX_NAME:
        yield f"the name is longer than {_MAX_NAME} characters"
    elif not (name[0].isalpha() or name[0] == "_"):
        yield "the name must begin with a letter or an underscore"
    elif not all(character.isalnum() or character in "_-" for character in name):
        yield "the name may hold letters, digits, underscores and hyphens only"
    elif name in taken:
        yield "another rule of the set has this name"


def _faults(rule: Rule, modes: tuple[str, ...]) -> Iterator[str]:
    mode = rule.get("mode")
    if not rule.get("type"):
        yield "the rule has no type"
    if mode not in modes:
        yield f"expected one of the modes {', '.join(modes)}, got {mode}"
    for name, action in (("onSuccess", rule.get("onSuccess")), ("onFailure", rule.get("onFailure"))):
        actions = (action or "").count(",") + 1
        most = 2 if mode in _TWO_MODES else 1
        if actions > most:
            yield f"{name} has {actions} actions; the mode {mode} allows {most}"
