"""The routes of a registry for the config and the mode of subjects, or the global ones."""

from collections.abc import Sequence
from typing import Any, get_args

from strata.http.paths import setting_path
from strata.serdes.conf_types import CompatibilityLevel, Mode
from strata.serdes.errors import did_you_mean
from strata.serdes.requests import Requests, flags_set

__all__ = ["ConfigClient"]


class ConfigClient(Requests):
    """The part of a client that reads and sets config and mode; see `strata.serdes.client.RegistryClient`."""

    def get_config(self, subject: str | None = None, *, default_to_global: bool = False) -> dict[str, Any]:
        """Return the config of a subject, or the global one; its level is under `compatibilityLevel`.

        Args:
            subject: the subject; None is the global config.
            default_to_global: whether a subject without a config gets the one in force.

        Raises:
            RegistryError: With error code 40408 if the subject has no config.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = flags_set(defaultToGlobal=default_to_global)
        return self.ask(_properties, "GET", setting_path("config", subject), query=query)

    def set_config(
        self, compatibility: CompatibilityLevel | None = None, subject: str | None = None, **others: object
    ) -> dict[str, Any]:
        """Merge properties into the config of a subject, or the global one, and return the result.

        Args:
            compatibility: the level, such as `BACKWARD`.
            subject: the subject; None is the global config.
            **others: other properties under their names on the wire; None clears one, the absent ones are kept.

        Raises:
            ValueError: If the level is unknown.
            RegistryError: With error code 42205 if the subject is read-only.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        _check_choice("compatibility", compatibility, get_args(CompatibilityLevel))
        body = others if compatibility is None else {"compatibility": compatibility, **others}
        return self.ask(_properties, "PUT", setting_path("config", subject), body=body)

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        """Delete the config of a subject, or the global one, and return the deleted config.

        Raises:
            RegistryError: With error code 40401 if the subject has no config.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
        return self.ask(_properties, "DELETE", setting_path("config", subject))

    def get_mode(self, subject: str | None = None, *, default_to_global: bool = False) -> str:
        """Return the mode of a subject, or the global one.

        Args:
            subject: the subject; None is the global mode.
            default_to_global: whether a subject without a mode gets the one in force.

        Raises:
            RegistryError: With error code 40409 if the subject has no mode.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = flags_set(defaultToGlobal=default_to_global)
        return self.ask(lambda it: str(it["mode"]), "GET", setting_path("mode", subject), query=query)

    def set_mode(self, mode: Mode, subject: str | None = None, *, force: bool = False) -> str:
        """Set the mode of a subject, or the global one, and return it.

        Args:
            mode: READWRITE, READONLY, IMPORT or, globally, FORWARD.
            subject: the subject; None is the global mode.
            force: whether to enter IMPORT although there are schemas.

        Raises:
            ValueError: If the mode is unknown.
            RegistryError: With error code 42205 if the registry does not allow the change.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        _check_choice("mode", mode, get_args(Mode))
        query = flags_set(force=force)
        return self.ask(
            lambda it: str(it["mode"]), "PUT", setting_path("mode", subject), query=query, body={"mode": mode}
        )

    def delete_mode(self, subject: str | None = None) -> str | None:
        """Delete the mode of a subject, or the global one, and return the deleted mode.

        Raises:
            RegistryError: With error code 40401 if the subject has no mode.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
        mode = self.ask(lambda it: it.get("mode"), "DELETE", setting_path("mode", subject))
        return None if mode is None else str(mode)


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError unless a value is one of the choices, in upper or lower case."""
    if value is not None and str(value).upper() not in choices:
        known = f"expected {', '.join(choices)}, got {str(value)[:40]!r}"
        raise ValueError(f"{name}: {known}{did_you_mean(value, choices)}")


def _properties(answer: Any) -> dict[str, Any]:
    return dict(answer)
