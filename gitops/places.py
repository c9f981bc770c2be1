"""Where the problems of a check are: files as seen from one folder, and schemas that stand in a manifest."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from strata.gitops.checks import Problem
from strata.gitops.desired import Desired
from strata.gitops.positions import Position
from strata.gitops.sources import Selection
from strata.gitops.trees import Folder

__all__ = ["placed"]


def placed(
    problems: Sequence[Problem], checked: Desired, selection: Selection, base: Path
) -> tuple[list[Problem], Desired]:
    """Return problems and subjects with their files relative to a folder.

    Args:
        problems: the problems.
        checked: the subjects, one of which each problem is about, or one that is gone.
        selection: the files of the command.
        base: the folder.
    """
    tree, prefix = Folder(selection.root), os.path.relpath(selection.root, base)
    files: dict[str, str] = {}
    begins: dict[str, Position | None] = {}
    for name, subject in checked.subjects.items():
        files[name] = subject.file
        if subject.text is not None and not (selection.root / subject.file).is_file():
            files[name], begins[name] = _in_manifest(tree, selection.manifests, subject.text)
    files = {name: _joined(prefix, file) for name, file in files.items()}
    subjects = {name: replace(checked_subject, file=files[name]) for name, checked_subject in checked.subjects.items()}
    moved = [
        replace(
            problem,
            file=files[problem.subject],
            position=_moved(problem.position, begins.get(problem.subject, Position())),
        )
        if problem.file
        else problem
        for problem in problems
    ]
    return moved, replace(checked, subjects=subjects)


def _joined(prefix: str, file: str) -> str:
    return os.path.normpath(os.path.join(prefix, file)).replace(os.sep, "/")  # noqa: PTH118 - pathlib keeps `..`


def _moved(position: Position, begin: Position | None) -> Position:
    """Return a place in a schema as a place in the file in which the schema begins, if that is known."""
    if begin is None:
        return Position()
    return Position(position.line + begin.line - 1, position.column + begin.column - 1)


def _in_manifest(tree: Folder, manifests: Sequence[str], schema: str) -> tuple[str, Position | None]:
    """Return the manifest that a schema stands in, and its place there; None if it is written in another way."""
    for manifest in manifests:
        begin = _begin(tree.read(manifest), schema.rstrip().splitlines())
        if begin is not None:
            return manifest, begin
    return manifests[0], None


def _begin(text: str, schema: Sequence[str]) -> Position | None:
    """Return where the lines of a schema begin in a manifest: in one line, or as a block that is indented."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        column = line.find(schema[0]) if schema else -1
        below = lines[number + 1 : number + len(schema)]
        if column >= 0 and [below_line[column:] for below_line in below] == list(schema[1:]):
            return Position(number + 1, column + 1)
    return None
