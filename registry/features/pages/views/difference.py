"""The difference of two versions of a subject: by meaning, with the verdict at every level, and line by line."""

import json

from strata.compat.check import Previous, check
from strata.compat.difference.compare import Difference, difference
from strata.compat.difference.text import label, sentences, values
from strata.compat.levels import LEVELS, Level, Policy
from strata.compat.limits import Limits, OutOfTime
from strata.compat.schema import ParsedSchema
from strata.compat.witness.search import budget_within, proven, silent_changes
from strata.compat.witness.text import lines_of
from strata.registry.api.views.addresses import subject_address
from strata.registry.api.views.subject import asked_version
from strata.registry.api.views.view import Page
from strata.registry.core import errors
from strata.registry.core.effective_settings import config_in_force
from strata.registry.core.lookup import LATEST
from strata.registry.core.parsing import parse_version
from strata.registry.features.pages.text_difference import line_rows
from strata.registry.features.pages.texts import indented
from strata.storage.state import SchemaVersion

__all__ = ["difference_address", "show_difference"]

_MOST_CHANGES = 500
_MOST_VERSIONS = 1000
_MOST_PROOFS = 50


def difference_address(subject: str, old: int, new: int) -> str:
    """Return the address of the page of a difference."""
    return subject_address(subject, "diff", **{"from": old, "to": new})


def show_difference(page: Page) -> dict[str, object]:
    """Return what changed from one version of a subject to another; by default from the one before the latest.

    Raises:
        RegistryError: 40301, 40401 or 40402 if there is nothing that the person may read; 42202 if a version is none.
    """
    new = asked_version(page, page.text("to") or str(LATEST))
    every = page.state.versions(new.subject, include_deleted=True)
    earlier = [entry.version for entry in every if entry.version < new.version]
    old = asked_version(page, page.text("from") or str(earlier[-1] if earlier else new.version))
    changes, proofs, fault = _compared(page, old, new)
    return {
        "old": old,
        "new": new,
        "versions": [str(entry.version) for entry in every[-_MOST_VERSIONS:]],
        "found": changes,
        "fault": fault,
        "proofs": proofs,
        "changes": changes.changes[:_MOST_CHANGES] if changes else (),
        "values": values,
        "label": label,
        "sentences": zip((changes.readers, changes.writers), sentences(changes), strict=True) if changes else (),
        "more": max(0, len(changes.changes) - _MOST_CHANGES) + changes.more if changes else 0,
        "levels": [level for level in Level if not LEVELS[level].transitive and level is not Level.NONE],
        "level": config_in_force(page.state, new.subject).level or page.exchange.service.settings.compatibility_level,
        "lines": line_rows(_text(old), _text(new)),
        "contract_lines": line_rows(_contract(old), _contract(new)),
        "swapped": difference_address(new.subject, new.version, old.version),
    }


def _compared(
    page: Page, old: SchemaVersion, new: SchemaVersion
) -> tuple[Difference | None, list[tuple[str, list[str]]], str | None]:
    """Return the difference and the records that show it, or why there is none."""
    limits = page.exchange.limits.started()
    policy = config_in_force(page.state, new.subject).policy
    try:
        ours, theirs = (parse_version(page.state, entry, limits) for entry in (old, new))
        changes = difference(ours, theirs, policy=policy, limits=limits, version=old.version)
        return changes, _proofs(ours, theirs, old.version, policy, limits), None
    except OutOfTime as error:
        return None, [], str(error)
    except errors.RegistryError as error:
        return None, [], error.message


def _proofs(
    old: ParsedSchema, new: ParsedSchema, version: int, policy: Policy, limits: Limits
) -> list[tuple[str, list[str]]]:
    """Return the places that break or change, each with sentences about the smallest record that shows it."""
    previous = [Previous(version, old)]
    refused = check(new, previous, Level.FULL, policy, limits).incompatibilities[:_MOST_PROOFS]
    budget = budget_within(limits)
    proven_ones = proven(new, previous, refused, budget)
    silent_change = [*proven_ones, *silent_changes(new, previous, Level.FULL, refused, budget)][:_MOST_PROOFS]
    shown = ((outcome.field or "(root)", list(lines_of(outcome))) for outcome in silent_change)
    return [(place, sentences) for place, sentences in shown if sentences]


def _contract(entry: SchemaVersion) -> str:
    """Return what a version holds besides its text, as JSON with a line for each part."""
    value = entry.schema.value
    references = {reference.name: f"{reference.subject} version {reference.version}" for reference in value.references}
    held = {"metadata": value.metadata, "rules": value.rule_set, "references": references}
    shown = {name: part for name, part in held.items() if part}
    return json.dumps(shown, indent=2, ensure_ascii=False, sort_keys=True) if shown else ""


def _text(entry: SchemaVersion) -> str:
    text = entry.schema.text
    return text if entry.schema.schema_type == "PROTOBUF" or "\n" in text.strip() else indented(text)
