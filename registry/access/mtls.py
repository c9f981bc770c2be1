"""Mutual TLS: the principal of a client's certificate, whose chain the TLS layer has verified."""

from strata.registry.access.certificates import InvalidCertificate, subject_of
from strata.registry.access.names import InvalidName, check_name
from strata.registry.access.principal import Principal
from strata.registry.access.principal_mapping import PrincipalMapping

__all__ = ["InvalidCertificate", "principal_of"]


def principal_of(pem: str, mapping: PrincipalMapping) -> tuple[Principal, float]:
    """Return the principal of a certificate, and until when it is valid, in seconds since 1970.

    Args:
        pem: the client's own certificate.
        mapping: the rules that turn its subject into a name.

    Raises:
        InvalidCertificate: if it names no user, has expired, or no rule matches.
    """
    subject, ends_at = subject_of(pem)
    name = mapping.name(subject)
    if name is None:
        raise InvalidCertificate(f"no rule matches the certificate of {subject!r}")
    try:
        return Principal(check_name(name), mechanism="mtls"), ends_at
    except InvalidName as error:
        raise InvalidCertificate(f"the certificate of {subject!r} gives no name: {error}") from None
