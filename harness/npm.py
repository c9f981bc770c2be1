"""Packages of npm, each installed once into the cache folder."""

import subprocess
import tempfile
from pathlib import Path

from harness.jars import cache_folder, locked

__all__ = ["installed"]

_INSTALL_S = 300


def installed(package: str) -> Path:
    """Return the folder in which a package is installed, and install it first if it is not.

    Args:
        package: its name and exact version, such as `axe-core@4.14.1`.

    Raises:
        RuntimeError: npm cannot install it.
    """
    folder = cache_folder().parent / "npm" / package
    if not folder.is_dir():
        with locked(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _install(package, folder)
    return folder


def _install(package: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        target = Path(scratch) / "installed"
        target.mkdir()
        (target / "package.json").write_text('{"private": true}')
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        done = subprocess.run(
            ["npm", "install", *options, package],
            cwd=target,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise RuntimeError(f"npm cannot install {package}:\n{done.stderr[-2000:]}")
        target.rename(folder)
