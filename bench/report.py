"""Tables of results, printed and kept in a document between the markers of their section."""

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DOCUMENTS", "keep", "table"]

_DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = (_DOCS / "benchmarks.md", _DOCS / "installing.md")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def keep(section: str, text: str) -> None:
    """Replace a section's text in the document that has the section.

    Raises:
        LookupError: no document has such a section.
    """
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    for path in DOCUMENTS:
        document = path.read_text()
        if pattern.search(document):
            path.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document))
            return
    raise LookupError(f"no document of {', '.join(path.name for path in DOCUMENTS)} has a section {section!r}")
