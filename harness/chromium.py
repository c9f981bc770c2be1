"""A real Chromium for the tests of the pages: the one on the PATH, otherwise Debian's, installed through apt.

The one without windows comes first. It has the same engine, and needs a third of the CPU time.
"""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from harness.jars import locked

__all__ = ["NoChromium", "chromium"]

_NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
_UPDATE = ["apt-get", "update", "--quiet"]
_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_OPTIONS = ("--yes", "--quiet", "--no-install-recommends", "-oDPkg::Lock::Timeout=60")
_INSTALL = ["apt-get", "install", *_OPTIONS, *_PACKAGES]
_INSTALL_S = 280  # less than a test may take


class NoChromium(RuntimeError):
    """There is no Chromium, and none can be installed."""


@cache
def chromium() -> str:
    """Return the path of a Chromium, and install it first if there is none.

    Raises:
        NoChromium: it cannot be had; the message says why.
    """
    with locked(Path(tempfile.gettempdir()) / f"strata-chromium-{os.getuid()}.lock"):
        found = _found()
        if found is None:
            _install()
            found = _found()
    if found is None:
        raise NoChromium("apt-get installed the package chromium-headless-shell, but there is no such command")
    return found


def _found() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _install() -> None:
    if shutil.which("apt-get") is None or os.getuid():
        raise NoChromium("there is no Chromium on the PATH, and only root of a Debian can install it")
    for command in (_UPDATE, _INSTALL):
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                timeout=_INSTALL_S / 2,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise NoChromium(f"`{' '.join(command)}` did not end within {_INSTALL_S / 2:.0f} s") from error
        if done.returncode:
            raise NoChromium(f"`{' '.join(command)}` failed: {done.stderr[-1000:]}")
