"""Environments that hold the wheel beside modules of other people with the names of our folders."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

from harness.environments import fresh_environment, site_packages, with_our_dependencies
from harness.processes import Process, start_tied
from harness.registry import RegistryNode

FOREIGN = ("registry", "storage", "compat", "serdes", "spark_udfs", "gitops")
Run = Callable[..., "CompletedProcess[str]"]


def add_foreign_modules(folder: Path) -> None:
    """Put a module with the name of each of our folders into a folder; it fails when it is imported."""
    for name in FOREIGN:
        (folder / f"{name}.py").write_text(f"raise RuntimeError('this {name} belongs to the user')\n")


@pytest.fixture(scope="session")
def small_python(strata_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and no extra, beside foreign modules."""
    python = fresh_environment(tmp_path_factory.mktemp("small"), str(strata_wheel))
    add_foreign_modules(site_packages(python))
    return python


@pytest.fixture(scope="session")
def full_python(strata_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and all that it can use, beside foreign modules."""
    python = with_our_dependencies(tmp_path_factory.mktemp("full"), strata_wheel)
    add_foreign_modules(site_packages(python))
    return python


@pytest.fixture(scope="session")
def node(full_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryNode]:
    """Yield a registry that the installed command serves from a folder of foreign modules."""
    folder = tmp_path_factory.mktemp("foreign")
    add_foreign_modules(folder)

    def start(command: Sequence[str], *, log: Path) -> Process:
        installed = ["env", "--ignore-environment", "--chdir", str(folder), str(full_python.with_name("strata"))]
        return start_tied([*installed, *command[1:]], log=log)

    with RegistryNode("memory:", start=start) as registry:
        yield registry


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """Return a working directory that holds the foreign modules."""
    add_foreign_modules(tmp_path)
    return tmp_path


@pytest.fixture
def run_in(foreign_folder: Path) -> Run:
    """Return a function that runs a command in the working directory of foreign modules."""

    def command(*arguments: str | Path) -> CompletedProcess[str]:
        return run(arguments, cwd=foreign_folder, env={}, capture_output=True, text=True, timeout=120, check=False)

    return command
