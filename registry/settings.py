"""The settings of the service: flags of `strata serve` or `STRATA_…` variables; flags take precedence."""

import os
from typing import Final, Self

from pydantic import ValidationError, model_validator

from strata.registry.features.access.settings import IdentitySettings
from strata.registry.features.audit.settings import AuditSettings
from strata.registry.features.exporters.settings import ExporterSettings
from strata.registry.features.metrics.settings import MetricsSettings
from strata.registry.features.pages.settings import PageSettings
from strata.registry.features.standby.settings import FollowSettings
from strata.registry.features.tracing.settings import TraceSettings
from strata.registry.features.usage.settings import UsageSettings
from strata.registry.node.settings import PREFIX, CoreSettings, SettingRefused
from strata.registry.node.tls_settings import ClientAuth
from strata.storage.addresses import without_password

__all__ = ["Settings", "load_settings"]

# pydantic's words for these are about its own way of reading.
_EXPECTED: Final = {
    "int_parsing": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
}


class Settings(
    CoreSettings,
    PageSettings,
    IdentitySettings,
    AuditSettings,
    MetricsSettings,
    UsageSettings,
    TraceSettings,
    FollowSettings,
    ExporterSettings,
):
    """The settings of `strata serve`; each field is the flag `--name` and the variable `STRATA_NAME`."""

    @model_validator(mode="after")
    def _check_certificates(self) -> Self:
        if self.tls_principal_rules and self.tls_client_auth is ClientAuth.NONE:
            raise ValueError("--tls-principal-rules needs --tls-client-auth optional or required, and --tls-client-ca")
        return self


def load_settings(**flags: object) -> Settings:
    """Return the settings from flags and environment variables.

    Args:
        flags: settings by field name; None means that the flag is not given.

    Raises:
        SettingRefused: naming each invalid setting, why it is rejected and what is allowed.
    """
    try:
        return Settings.model_validate(_variables() | {name: flag for name, flag in flags.items() if flag is not None})
    except ValidationError as error:
        raise SettingRefused("\n".join(_refusal(dict(item)) for item in error.errors())) from None


def _variables() -> dict[str, object]:
    """Return the settings of the environment, where names may be written in any case."""
    variables = {name.upper(): text for name, text in os.environ.items()}
    return {name: variables[key] for name in Settings.model_fields if (key := PREFIX + name.upper()) in variables}


def _refusal(item: dict[str, object]) -> str:
    reason = _EXPECTED.get(str(item["type"])) or str(item["msg"]).removeprefix("Value error, ")
    if not isinstance(item["loc"], tuple) or not item["loc"]:
        return reason  # about several settings
    name = str(item["loc"][0])
    flag = name.replace("_", "-")
    refused = item["input"]
    shown = without_password(refused) if isinstance(refused, str) else refused
    return f"--{flag} (or {PREFIX}{name.upper()}) is {shown!r}: {without_password(reason)}"
