"""Tables of results, printed and kept in `docs/benchmarks.md` between the markers of their section."""

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DOCUMENT", "keep", "table"]

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def keep(section: str, text: str) -> None:
    """Replace a section's text in docs/benchmarks.md.

    Raises:
        LookupError: the document has no such section.
    """
    document = DOCUMENT.read_text()
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    if begin not in document or end not in document:
        raise LookupError(f"{DOCUMENT} has no section {section!r}")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    DOCUMENT.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document))
