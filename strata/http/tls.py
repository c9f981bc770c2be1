"""TLS: the context of a client, and why the certificate of the other side is not accepted."""

import ssl

from urllib3.exceptions import SSLError

__all__ = ["certificate_fault", "tls_context"]


def tls_context(
    *,
    ca_file: str | None = None,
    ca_data: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
    key_password: str | None = None,
) -> ssl.SSLContext:
    """Return a TLS context that checks certificates and host names.

    Args:
        ca_file: CA certificates to trust, in PEM; without them and `ca_data` the system's.
        ca_data: the same as text.
        cert_file: the client certificate, in PEM.
        key_file: the key of `cert_file`; None means that it is in the same file.
        key_password: the password of an encrypted key.

    Raises:
        ValueError: If certificates or the key cannot be used; the message begins with the name of the argument.
    """
    if key_file and not cert_file:
        raise ValueError("key_file needs cert_file")
    try:
        context = ssl.create_default_context(cafile=ca_file, cadata=ca_data)
    except (OSError, ValueError) as error:
        place = f"ca_file: {ca_file}" if ca_file else "ca_data"
        raise ValueError(f"{place}: expected certificates in PEM ({error})") from None
    if cert_file:
        # Without a password OpenSSL would ask for one at the terminal.
        password = _no_password if key_password is None else key_password
        try:
            context.load_cert_chain(cert_file, key_file, password)
        except (OSError, ValueError) as error:
            raise ValueError(f"cert_file: {cert_file}: expected a certificate and its key in PEM ({error})") from None
    return context


def certificate_fault(error: Exception) -> str | None:
    """Return why the certificate of the other side is not accepted; None if that is not the reason of an error.

    Args:
        error: the error of urllib3, or the error after its retries, which holds the last one as its reason.
    """
    reason = getattr(error, "reason", error)
    cause = reason.args[0] if isinstance(reason, SSLError) and reason.args else None
    return cause.verify_message.rstrip(".") if isinstance(cause, ssl.SSLCertVerificationError) else None


def _no_password() -> str:
    raise ValueError("the key is encrypted, and there is no password for it")
