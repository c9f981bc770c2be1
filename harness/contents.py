"""The files of a folder, each with the first sentence of its docstring: what a table in a page would repeat.

    python -m harness.contents compat/avro [FOLDER …]

Package pages describe folders and how their parts work together. What one file holds is said once, in the file.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["contents", "main"]

_JAVADOC: Final = re.compile(
    r"/\*\*(.*?)\*/\s*(?:@\w+(?:\([^)]*\))?\s+(?://[^\n]*\s+)?)*[\w\s]*?\b(?:class|interface|enum|record)\b", re.DOTALL
)
_SENTENCE: Final = re.compile(r"(.+?\.)(?=\s|$)")


def main(arguments: Sequence[str]) -> int:
    """Print the contents of folders."""
    for folder in arguments:
        for path, sentence in contents(Path(folder)):
            sys.stdout.write(f"{path}\n    {sentence}\n")
    return 0


def contents(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each module and each Java class below a folder, with the first sentence of its description."""
    for path in sorted(folder.rglob("*.*")):
        if path.suffix == ".py" and path.name != "__init__.py":
            yield path, _sentence(ast.get_docstring(ast.parse(path.read_text())) or "")
        elif path.suffix == ".java":
            comment = _JAVADOC.search(path.read_text())
            yield path, _sentence(re.sub(r"(?m)^\s*\*", "", comment[1]) if comment else "")


def _sentence(description: str) -> str:
    text = " ".join(description.split())
    sentence = _SENTENCE.match(text)
    return sentence[1] if sentence else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
