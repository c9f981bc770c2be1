"""Builds the programs of `tests/clients`, which use a registry through public clients of other languages.

The results are in `$STRATA_CACHE/clients`, by default `.cache/clients` of the checkout. Each toolchain's own cache
handles a second build of the same sources.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.jars import cache_folder, flink_registry_jars

__all__ = ["CLIENTS", "Client"]

_SOURCES = Path(__file__).resolve().parent.parent / "tests" / "clients"
_BUILD_TIMEOUT_S = 1500


@dataclass(frozen=True, slots=True)
class Client:
    """A program: the tools that it needs on the PATH, and a function that builds it and returns its command."""

    name: str
    tools: tuple[str, ...]
    command: Callable[[], list[str]]

    @property
    def missing(self) -> list[str]:
        """The tools that are not on the PATH."""
        return [tool for tool in self.tools if not shutil.which(tool)]


def _go(program: str) -> list[str]:
    built = _folder("go") / program
    _run("go", "build", "-o", str(built), f"./{program}", folder=_SOURCES / "go")
    return [str(built)]


def _node(script: str) -> list[str]:
    package = (_SOURCES / "node" / "package.json").read_bytes()
    folder = _folder(f"node-{hashlib.sha256(package).hexdigest()[:12]}")
    done = folder / "installed"
    if not done.exists():
        (folder / "package.json").write_bytes(package)
        _run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", folder=folder)
        done.touch()
    shutil.copy(_SOURCES / "node" / script, folder)
    return ["node", str(folder / script)]


def _rust() -> list[str]:
    folder = _folder("rust")
    shutil.copy(_SOURCES / "rust" / "Cargo.toml", folder)
    shutil.copytree(_SOURCES / "rust" / "src", folder / "src", dirs_exist_ok=True)
    _run("cargo", "build", "--quiet", folder=folder)
    return [str(folder / "target" / "debug" / "strata-clients")]


def _java() -> list[str]:
    folder = _folder("java")
    class_path = ":".join(map(str, flink_registry_jars()))
    _run("javac", "-encoding", "UTF-8", "-cp", class_path, "-d", str(folder), str(_SOURCES / "java" / "Story.java"))
    return ["java", "-cp", f"{class_path}:{folder}", "Story"]


CLIENTS = {
    client.name: client
    for client in (
        Client("go-franz", ("go",), lambda: _go("franz")),
        Client("go-confluent", ("go", "gcc"), lambda: _go("confluent")),
        Client("node-confluent", ("node", "npm"), lambda: _node("confluent.mjs")),
        Client("node-kafkajs", ("node", "npm"), lambda: _node("kafkajs.mjs")),
        Client("rust", ("cargo",), _rust),
        Client("java", ("java", "javac"), _java),
    )
}


def _folder(name: str) -> Path:
    folder = cache_folder().parent / "clients" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(*command: str, folder: Path | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise RuntimeError(f"`{' '.join(command)}` failed:\n{tail}")
