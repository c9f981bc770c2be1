"""What a command line names: the tree of the manifest, and what to compare it with."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strata.gitops.desired import Desired, by_convention, work_out
from strata.gitops.errors import GitopsError
from strata.gitops.manifest import DEFAULT_NAMES, read_manifest
from strata.gitops.names import file_format
from strata.gitops.trees import Folder, Revision, Tree, is_revision, is_unborn
from strata.gitops.versions import TreeVersions, Versions

__all__ = ["Selection", "is_url", "select", "versions_at"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that a command is about.

    Attributes:
        root: the folder that all names are relative to.
        manifests: the manifests; empty for files by convention.
        files: schema files or folders to check, relative to the root; empty for all.
        environment: the environment of the manifest; None for none.
    """

    root: Path
    manifests: tuple[str, ...]
    files: tuple[str, ...] = ()
    environment: str | None = None

    def desired(self, tree: Tree, environ: Mapping[str, str] = os.environ) -> Desired:
        """Return what a tree says there should be, by the same manifests or by convention.

        Raises:
            GitopsError: If a file cannot be read, or a manifest is wrong.
        """
        if self.manifests:
            present = [name for name in self.manifests if name in tree.names]
            if isinstance(tree, Revision) and not present:
                return by_convention(tree, tree.names)
            return work_out(read_manifest(tree, present or self.manifests, environ, self.environment), tree)
        return by_convention(tree, [name for name in tree.names if self._is_named(name)])

    def part(self, desired: Desired) -> Desired:
        """Return the subjects of the files that the command names."""
        if not self.files:
            return desired
        kept = {name: subject for name, subject in desired.subjects.items() if self._is_named(subject.file)}
        return replace(desired, subjects=kept)

    def _is_named(self, file: str) -> bool:
        # Not every JSON file in a folder is a schema.
        by_folder = not file.endswith(".json") or file.endswith(".schema.json")
        return any(
            file == named or (by_folder and (named == "." or file.startswith(f"{named}/")))
            for named in self.files or "."
        )


def select(paths: Sequence[str], manifests: Sequence[str] = (), environment: str | None = None) -> Selection:
    """Return what some paths select: manifests, folders with or without one, or schema files.

    Args:
        paths: files and folders; none means the working folder.
        manifests: manifests that an option names.
        environment: the environment of the manifest.

    Raises:
        GitopsError: If a path does not exist, or is neither a manifest, a folder nor a schema.
    """
    root = Path.cwd()
    manifest_files = [_in_folder(manifest) for manifest in manifests]
    files: list[str] = []
    for path in paths:
        place = Path(path)
        if not place.exists():
            raise GitopsError(f"{path}: no such file or folder")
        if place.suffix in (".yaml", ".yml"):
            manifest_files.append(path)
        elif place.is_dir() or file_format(place.name):
            files.append(path)
        else:
            raise GitopsError(f"{path}: expected a strata.yaml, a folder, or a file ending in .avsc, .proto or .json")
    if len(files) == 1 and not manifest_files and Path(files[0]).is_dir():
        root, files = Path(files[0]), []
    if not manifest_files:
        manifest_files = [in_root for in_root in [_in_folder(str(root))] if in_root != str(root)]
    if manifest_files and not all(Path(manifest).is_file() for manifest in manifest_files):
        raise GitopsError(
            f"{next(manifest for manifest in manifest_files if not Path(manifest).is_file())}: no such file"
        )
    return Selection(
        root,
        tuple(_relative(name, root) for name in manifest_files),
        tuple(_relative(name, root) for name in files),
        environment,
    )


def _in_folder(path: str) -> str:
    files = [str(Path(path) / name) for name in DEFAULT_NAMES if (Path(path) / name).is_file()]
    return files[0] if files else path


def _relative(path: str, root: Path) -> str:
    """Return a path relative to a folder, with `/` between folders."""
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    if relative.startswith("../"):
        raise GitopsError(f"{path} is outside of {root.resolve()}; run the command in a folder above both")
    return relative


def versions_at(text: str, selection: Selection) -> Versions:
    """Return the versions that a folder, an export file or a Git revision holds.

    Raises:
        GitopsError: If it is something else.
    """
    place = Path(text)
    if place.is_dir():
        tree: Tree = Folder(place)
        own = select([text], (), selection.environment)
        manifests = tuple(name for name in selection.manifests if name in tree.names) or own.manifests
        return TreeVersions(Selection(place, manifests, (), selection.environment).desired(tree), text)
    if place.is_file():
        from strata.gitops.exports import ExportVersions

        return ExportVersions(place)
    if is_revision(selection.root, text):
        tree = Revision(selection.root, text)
        return TreeVersions(selection.desired(tree), text)
    if is_unborn(selection.root, text):
        return TreeVersions(Desired(), text)
    raise GitopsError(f"{text} is not a URL, a folder, an export file or a Git revision")


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a registry."""
    return text.lower().startswith(("http://", "https://"))
