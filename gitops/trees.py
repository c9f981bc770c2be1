"""Trees of files: a folder, or a revision of a Git repository. Names are relative, with `/` between folders."""

import os
import posixpath
import re
import stat
import subprocess
import weakref
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from strata.gitops.errors import GitopsError

__all__ = ["Folder", "Revision", "Tree", "is_revision", "is_unborn", "matching"]

MAX_BYTES = 8 << 20
_SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "target", "build", "__pycache__"})
_GIT_S = 60
_MOST_LINKS = 10
_LINK = "120000"
# A hook runs with variables that name its own repository, and make the folder of a command the top of the tree.
_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")


class Tree(Protocol):
    """Files by their names."""

    @property
    def root(self) -> Path:
        """The folder that the names are relative to."""

    @property
    def label(self) -> str:
        """What the tree is called in messages."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all files, sorted."""

    def read(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            GitopsError: If there is no such file, or it is not text of bounded size.
        """


class Folder:
    """The files below a folder; hidden folders and those of build tools are left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.label = str(root)

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of all files, sorted."""
        names: list[str] = []
        for folder, below, files in os.walk(self.root):
            below[:] = [name for name in below if not _is_skipped(name)]
            names += (os.path.relpath(os.path.join(folder, name), self.root) for name in files)  # noqa: PTH118 - pathlib takes ten times as long
        return sorted(name.replace(os.sep, "/") for name in names)

    def read(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            GitopsError: If there is no such file, or it is not text of bounded size.
        """
        path = self.root / name
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for a writer
                raise GitopsError(f"cannot read {path}: it is not a file")
            with path.open("rb") as file:
                return _text(str(path), file.read(MAX_BYTES + 1))
        except OSError as error:
            raise GitopsError(f"cannot read {path}: {error.strerror or error}") from None


class Revision:
    """The files of a folder in a revision of the Git repository around it.

    Args:
        root: the folder.
        revision: a commit, branch or tag.

    Raises:
        GitopsError: If there is no such revision, or no repository.
    """

    def __init__(self, root: Path, revision: str) -> None:
        self.root, self.label = root, revision
        verified = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if verified is None:
            raise GitopsError(f"{revision} is not a revision of a Git repository at {root}")
        self._commit = verified.decode().strip()
        self._reader: subprocess.Popen[bytes] | None = None

    @property
    def names(self) -> Sequence[str]:
        """The names of all files, sorted; as in a folder, hidden folders and those of build tools are left out."""
        return sorted(name for name in self._blobs if not any(map(_is_skipped, name.split("/")[:-1])))

    @cached_property
    def _blobs(self) -> dict[str, tuple[str, str]]:
        """The mode and the object of each file, by its name."""
        listed = _git(self.root, "ls-tree", "-r", "-z", self._commit) or b""
        rows = (row.partition("\t") for row in listed.decode("utf-8", "replace").split("\0") if row)
        facts = ((name, *fact.split()[:3]) for fact, _, name in rows)
        return {
            name: (mode, blob) for name, mode, object_type, blob in facts if object_type == "blob"
        }  # not a submodule

    def read(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            GitopsError: If there is no such file, or it is not text of bounded size.
        """
        place = name
        for _ in range(_MOST_LINKS):
            if place not in self._blobs:
                raise GitopsError(f"cannot read {name} in {self.label}: no such file")
            mode, blob = self._blobs[place]
            content = self._content(blob)
            if mode != _LINK:
                return _text(f"{name} in {self.label}", content)
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), content.decode("utf-8", "replace")))
        raise GitopsError(f"cannot read {name} in {self.label}: too many symbolic links")

    def _content(self, blob: str) -> bytes:
        """Return a blob from one process for all of them: a process for each would take most of a check's time."""
        if self._reader is None:
            command = ["git", "-C", str(self.root), "cat-file", "--batch"]
            self._reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environ())  # noqa: S603
            weakref.finalize(self, _stop, self._reader)
        pipes = self._reader
        assert pipes.stdin is not None  # noqa: S101 - both are pipes
        assert pipes.stdout is not None  # noqa: S101
        pipes.stdin.write(f"{blob}\n".encode())
        pipes.stdin.flush()
        header = pipes.stdout.readline().split()
        if len(header) != 3:  # a shallow or damaged repository
            raise GitopsError(f"{self.label}: Git has no object {blob}")
        size = int(header[2])
        return pipes.stdout.read(size + 1)[:size]


def is_revision(root: Path, text: str) -> bool:
    """Return whether a text names a commit of the Git repository around a folder."""
    return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}") is not None


def is_unborn(root: Path, text: str) -> bool:
    """Return whether a text is the HEAD of a repository without commits, which a hook meets at the first one."""
    return text == "HEAD" and not is_revision(root, text) and _git(root, "symbolic-ref", "--quiet", text) is not None


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that match a glob: `*` and `?` stay within a folder, `**` goes through any number of them."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = re.compile("".join(meaning.get(part) or re.escape(part) for part in parts))
    return [name for name in names if regex.fullmatch(name)]


def _is_skipped(folder: str) -> bool:
    return folder in _SKIPPED or folder.startswith(".")


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


def _git(root: Path, *arguments: str) -> bytes | None:
    """Return the output of a Git command; None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command; revisions come after --end-of-options
            ["git", "-C", str(root), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            timeout=_GIT_S,
            check=False,
            env=_environ(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitopsError(f"git does not run: {error}") from None
    return done.stdout if done.returncode == 0 else None


def _text(name: str, data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise GitopsError(f"{name} is longer than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GitopsError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None
