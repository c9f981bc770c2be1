"""The files with which a command speaks https: certificates that it trusts, and its own."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["TlsFiles"]


class TlsFiles(NamedTuple):
    """Files in PEM.

    Attributes:
        ca_file: the CA certificates to trust; None means the system's.
        cert_file: the client certificate.
        key_file: the key of `cert_file`; None means that it is in the same file.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def settings(self) -> dict[str, str]:
        """Return the files as settings of `strata.http`."""
        return {name: str(file) for name, file in self._asdict().items() if file is not None}
