"""Mutual TLS: the principal of a client's certificate, whose chain the TLS layer has verified."""

import time

from cryptography import x509

from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.features.access.principal_mapping import PrincipalMapping

__all__ = ["InvalidCertificate", "principal_of"]

_SPIFFE = "spiffe://"


class InvalidCertificate(Exception):
    """A certificate that does not say who its owner is; the message is for the service's own log."""


def principal_of(pem: str, mapping: PrincipalMapping) -> tuple[Principal, float]:
    """Return the principal of a certificate, and until when it is valid, in seconds since 1970.

    Args:
        pem: the client's own certificate.
        mapping: the rules that turn its subject into a name.

    Raises:
        InvalidCertificate: if it names no user, has expired, or no rule matches.
    """
    subject, ends_at = _subject_of(pem)
    name = mapping.name(subject)
    if name is None:
        raise InvalidCertificate(f"no rule matches the certificate of {subject!r}")
    try:
        return Principal(check_name(name), mechanism="mtls"), ends_at
    except InvalidName as error:
        raise InvalidCertificate(f"the certificate of {subject!r} does not give a name: {error}") from None


def _subject_of(pem: str) -> tuple[str, float]:
    """Return who a certificate was issued to, and until when it is valid.

    Args:
        pem: the certificate.

    Returns:
        The subject, and the end of the certificate in seconds since 1970. The subject is the SPIFFE
        ID if there is one among the alternative names, otherwise the distinguished name in the form of RFC 4514, most
        specific part first: `CN=etl,OU=Services,O=Example`. Kafka shows attributes without a short name, such as
        e-mail addresses, in hexadecimal; here they are text.

    Raises:
        InvalidCertificate: if it cannot be read, has expired, has several SPIFFE IDs, or neither an ID nor a name.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
        name = certificate.subject.rfc4514_string()
        ends_at = certificate.not_valid_after_utc.timestamp()
        ids = [uri for uri in _uris(certificate) if uri.lower().startswith(_SPIFFE)]
    except ValueError as error:  # also of names and extensions that are malformed
        raise InvalidCertificate(f"the client's certificate cannot be read: {error}") from None
    if len(ids) > 1:
        raise InvalidCertificate("the client's certificate has more than one SPIFFE ID")
    if not ids and not name:
        raise InvalidCertificate("the client's certificate has no subject")
    if ends_at <= time.time():  # the handshake has checked it, but connections last
        raise InvalidCertificate("the client's certificate has expired")
    return ids[0] if ids else name, ends_at


def _uris(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None
    return names.value.get_values_for_type(x509.UniformResourceIdentifier)
