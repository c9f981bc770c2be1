"""The credentials in the configuration of an exporter: encrypted in the log, hidden in answers.

Each value is encrypted by itself, with a key made from `--exporter-secret`. The names of the exporter and of the
setting are authenticated, so an encrypted value is worth nothing in another place.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strata.registry.core.decide.exporters import is_credential
from strata.registry.transfer.copies import TransferError

if TYPE_CHECKING:
    from strata.registry.features.exporters.sealing import Sealing

__all__ = ["HIDDEN", "Credentials", "shown"]

HIDDEN = "[hidden]"
"""What answers show instead of a credential; sent back in a change, it keeps the credential."""


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration as answers show it."""
    return {name: HIDDEN if is_credential(name) else value for name, value in config.items()}


class Credentials:
    """Encrypts and decrypts credentials.

    Args:
        secret: the secret that all nodes of a log share; None if there is none.
    """

    def __init__(self, secret: bytes | None) -> None:
        self._sealing = _sealing(secret) if secret else None

    def sealed(self, exporter: str, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with its credentials encrypted; what is `HIDDEN` stays.

        Args:
            exporter: the name of the exporter.
            config: the configuration.

        Raises:
            TransferError: if there is a credential and no secret.
        """
        sealed = dict(config)
        for name, value in config.items():
            if is_credential(name) and value != HIDDEN:
                if self._sealing is None:
                    raise TransferError(f"{name} cannot be stored: start all nodes with the same --exporter-secret")
                sealed[name] = self._sealing.seal(value, _place(exporter, name))
        return sealed

    def opened(self, exporter: str, config: Mapping[str, str]) -> dict[str, str]:
        """Return a stored configuration with its credentials in plain text.

        Args:
            exporter: the name of the exporter.
            config: the configuration.

        Raises:
            TransferError: if a credential cannot be decrypted.
        """
        opened = dict(config)
        for name, value in config.items():
            if is_credential(name):
                plain = self._sealing.open(value, _place(exporter, name)) if self._sealing else None
                if plain is None:
                    raise TransferError(
                        f"{name} cannot be decrypted: start this node with the --exporter-secret with which it was "
                        "stored, or pause the exporter and set its configuration again"
                    )
                opened[name] = plain
        return opened


def _sealing(secret: bytes) -> "Sealing":
    from strata.registry.features.exporters.sealing import Sealing

    return Sealing(secret)


def _place(exporter: str, name: str) -> bytes:
    return f"{exporter}\0{name}".encode()
