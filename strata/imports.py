"""Imports that wait until a name is used, and clear errors for optional dependencies that are not installed."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["MissingExtra", "deferred", "lazy", "require"]


class MissingExtra(ModuleNotFoundError):
    """A module needs an optional dependency that is not installed; the message names the extra that brings it."""


def require(extra: str, user: str, *modules: str) -> None:
    """Check that the dependencies of an extra can be imported, without importing them.

    Args:
        extra: the extra of `strata-registry` that installs the modules.
        user: what needs them, for the message: a module or a command.
        modules: names of modules, also inside a package (`google.protobuf`).

    Raises:
        MissingExtra: at least one of the modules is not installed.
    """
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        needed = " and ".join(missing)
        raise MissingExtra(
            f"{user} needs {needed}: install strata-registry[{extra}] (docs/installing.md)",
            name=missing[0],
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it, or an extra that the package requires
        return False


def lazy(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports a public name on its first use.

    It also computes `__all__`, on its first use too: the names whose modules and extras are installed. So
    `from package import *` works without the extras, and the import of a name without its extra raises `MissingExtra`.

    Args:
        package: the package's `__name__`.
        modules: the public names by the module that defines them, relative to the package.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> object:
        if name == "__all__":
            installed = {module for module in modules if _is_installed(f"{package}.{module}")}
            return sorted(public for public, module in homes.items() if module in installed)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute


def deferred(module: str) -> Any:
    """Return what stands for a module, which is imported when one of its names is first used.

    It is for what a program may never need, or not at its start. Type checkers see the module itself:

        if TYPE_CHECKING:
            from strata.compat import check
        else:
            check = deferred("strata.compat.check")

    Args:
        module: the full name of the module.
    """
    return _Deferred(module)


class _Deferred:
    """A module that is imported when it is used, and then takes its place in the module that uses it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        module = import_module(self._name)
        users = sys._getframe(1).f_globals
        users.update({known: module for known, value in list(users.items()) if value is self})
        return getattr(module, name)
