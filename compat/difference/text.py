"""A difference as text lines for people, and as JSON values for programs."""

from collections.abc import Iterator
from typing import Final

from strata.compat.difference.compare import Change, Difference, Effect
from strata.compat.difference.outcomes import Verdict
from strata.compat.levels import Level

__all__ = ["LABELS", "as_json", "as_lines", "label", "sentences", "title", "values"]

_LEVELS: Final = (Level.BACKWARD, Level.FORWARD, Level.FULL)
LABELS: Final = {
    Verdict.BREAKS: "breaks",
    Verdict.SILENT: "silent: values change",
    Verdict.UNKNOWN: "not judged",
    Verdict.SAFE: "safe",
}
"""The verdicts in words."""
_SENTENCES: Final = {
    Verdict.BREAKS: "{readers} cannot read all {data}.",
    Verdict.SILENT: "{readers} can read {data}, but some values change silently.",
    Verdict.UNKNOWN: "Whether {readers} can read {data} is not judged.",
    Verdict.SAFE: "{readers} can read {data}, with the values that were written.",
}
_SIDES: Final = (
    ("consumers with the new schema", "old data"),
    ("consumers with the old schema", "new data"),
)


def as_lines(difference: Difference, *, most: int = 1000) -> Iterator[str]:
    """Yield the verdicts, a sentence for each direction, and for each change a line with two lines on its meaning.

    Args:
        difference: The difference.
        most: The most changes to show.
    """
    verdicts = (f"{level} {'compatible' if difference.verdicts[level] else 'incompatible'}" for level in _LEVELS)
    yield ", ".join(verdicts)
    yield from sentences(difference)
    for change in difference.changes[:most]:
        yield title(change)
        yield f"  readers ({label(change.readers)}): {_one_line(change.readers.words)}"
        yield f"  writers ({label(change.writers)}): {_one_line(change.writers.words)}"
    more = len(difference.changes) - most + difference.more
    if more > 0:
        yield f"and {more} more changes"


def sentences(difference: Difference) -> tuple[str, str]:
    """Return what the difference means for consumers with the new schema, and for those with the old one."""
    texts = (
        _SENTENCES[verdict].format(readers=readers, data=data)
        for verdict, (readers, data) in zip((difference.readers, difference.writers), _SIDES, strict=True)
    )
    before, after = (text[0].upper() + text[1:] for text in texts)
    return before, after


def label(effect: Effect) -> str:
    """Return a verdict in words, with the refusal of a change that breaks nothing."""
    is_stricter = effect.refused and effect.verdict is not Verdict.BREAKS
    return LABELS[effect.verdict] + "; refused by the check" * is_stricter


def title(change: Change) -> str:
    """Return what happened, on one line: the kind in words, the place, both values."""
    words = [str(change.kind).replace("_", " ").lower(), change.path or "(root)"]
    if change.name and change.name != change.path:
        words.append(change.name)
    before, after = values(change)
    if before is not None and after is not None:
        words.append(f"{before} → {after}")
    else:
        words += [value for value in (before, after) if value is not None and value != change.name]
    return f"{words[0]}: {' '.join(map(_one_line, words[1:]))}"


def values(change: Change) -> tuple[str | None, str | None]:
    """Return the values before and after, each on one line; what changed from or to nothing has the value `(none)`."""
    missing = "(none)" if str(change.kind).endswith("_CHANGED") and (change.before or change.after) else None
    before, after = (_one_line(value) if value else missing for value in (change.before, change.after))
    return before, after


def as_json(difference: Difference, *, most: int = 1000) -> dict[str, object]:
    """Return a difference as JSON values.

    Args:
        difference: The difference.
        most: The most changes to list; `more` counts the others.
    """
    return {
        "verdicts": {level.value: fits for level, fits in difference.verdicts.items()},
        "readers": difference.readers.value,
        "writers": difference.writers.value,
        "changes": [_change_json(change) for change in difference.changes[:most]],
        "more": max(0, len(difference.changes) - most) + difference.more,
    }


def _change_json(change: Change) -> dict[str, object]:
    return {
        "kind": change.kind.value,
        "path": change.path,
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "readers": _effect_json(change.readers),
        "writers": _effect_json(change.writers),
    }


def _effect_json(effect: Effect) -> dict[str, object]:
    causes = [outcome.cause.value for outcome in effect.outcomes]
    return {"verdict": effect.verdict.value, "refused": effect.refused, "causes": causes, "words": effect.words}


def _one_line(text: str) -> str:
    return " ".join(text.split())
