"""Fresh virtual environments with the wheel of this checkout, as a user installs it.

    wheel = build_wheel(folder)
    python = fresh_environment(folder / "small", str(wheel))

The package index is the one that pip is configured for.
"""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import distributions
from pathlib import Path

__all__ = ["build_wheel", "fresh_environment", "site_packages", "with_extras", "with_our_dependencies"]

_ROOT = Path(__file__).resolve().parent.parent
_TIMEOUT_S = 900


def build_wheel(folder: Path, source: Path = _ROOT) -> Path:
    """Build a wheel in a folder and return its path.

    pip would build the same, in an environment that it makes for the purpose.

    Args:
        folder: where to put it.
        source: what to make it of; this checkout if it is not named.
    """
    _run("hatchling", "build", "--target", "wheel", "--directory", str(folder), cwd=source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def with_extras(wheel: Path, extras: str) -> str:
    """Return the requirement that installs a wheel with extras, such as `server,kafka`."""
    return f"{wheel}[{extras}]" if extras else str(wheel)


def fresh_environment(folder: Path, *requirements: str, compiled: bool = False) -> Path:
    """Create a virtual environment with the requirements and what they need, and return its Python.

    It has no pip of its own, so that a list of its packages holds only what the requirements bring.

    Args:
        folder: a new folder for the environment.
        requirements: requirements as pip takes them, wheels included.
        compiled: whether to compile all modules, which pip does for users and which takes some seconds.
    """
    python = _empty_environment(folder)
    _pip("--python", str(python), "install", *([] if compiled else ["--no-compile"]), *requirements)
    return python


def with_our_dependencies(folder: Path, wheel: Path) -> Path:
    """Create a virtual environment that has the wheel and borrows all other packages, and return its Python.

    The packages are those of the running Python. Its own installation of Strata stays unseen: an editable one is
    a `.pth` file, and Python reads those only in the environment's own folder. The wheel is unpacked and its commands
    are written as pip does it, which would take more than a second.
    """
    python = _empty_environment(folder)
    packages = site_packages(python)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (installed,) = distributions(path=[str(packages)])
    for command in installed.entry_points.select(group="console_scripts"):
        program = python.with_name(command.name)
        program.write_text(
            f"#!{python}\nimport sys\nfrom {command.module} import {command.attr}\nsys.exit({command.attr}())\n"
        )
        program.chmod(0o755)
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def site_packages(python: Path) -> Path:
    """Return the folder into which packages of an environment are installed."""
    (folder,) = python.parent.parent.glob("lib/python*/site-packages")
    return folder


def _empty_environment(folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def _pip(*arguments: str) -> None:
    _run("pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(module: str, *arguments: str, cwd: Path | None = None) -> None:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)} failed:\n{done.stderr}")
