"""What a TLS connection tells the app: the `tls` extension of ASGI, version 0.2. Pure."""

import ssl

__all__ = ["tls_extension"]

_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}


def tls_extension(connection: ssl.SSLObject) -> dict[object, object]:
    """Return the value of `scope["extensions"]["tls"]`.

    Its `client_cert_chain` has only the client's own certificate, not those by which it was verified.

    Args:
        connection: the TLS connection after its handshake.
    """
    der = connection.getpeercert(binary_form=True)
    cipher = connection.cipher()
    return {
        "server_cert": None,  # not known here
        "client_cert_chain": [] if der is None else [ssl.DER_cert_to_PEM_cert(der)],
        "client_cert_name": None if der is None else _name(der),
        "client_cert_error": None,  # a certificate that is not valid ends the handshake
        "tls_version": _VERSIONS.get(connection.version() or ""),
        "cipher_suite": None if cipher is None else _suite(connection.context, cipher[0]),
    }


def _name(der: bytes) -> str | None:
    """Return the subject in the form of RFC 4514; None if it is malformed."""
    from cryptography import x509  # here, because most nodes need no TLS

    try:
        return x509.load_der_x509_certificate(der).subject.rfc4514_string()
    except ValueError:
        return None


def _suite(context: ssl.SSLContext, name: str) -> int | None:
    return next((int(cipher["id"]) & 0xFFFF for cipher in context.get_ciphers() if cipher["name"] == name), None)
