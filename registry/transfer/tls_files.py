"""The files with which a command speaks https: certificates that it trusts, and its own."""

import ssl
from pathlib import Path
from typing import NamedTuple

from strata.registry.transfer.copies import TransferError

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

    def context(self) -> ssl.SSLContext:
        """Return a TLS context from these files.

        Raises:
            TransferError: if a file cannot be used, or the key does not belong to the certificate.
        """
        if self.key_file and not self.cert_file:
            raise TransferError("--key-file needs --cert-file")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:
            raise TransferError(f"--ca-file {self.ca_file}: expected certificates in PEM ({error})") from None
        if self.cert_file:
            try:
                context.load_cert_chain(self.cert_file, self.key_file, _no_password)
            except (OSError, ValueError) as error:
                raise TransferError(
                    f"--cert-file {self.cert_file}: expected a certificate and its key, not encrypted, in PEM ({error})"
                ) from None
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")  # OpenSSL would ask for the password at the terminal
