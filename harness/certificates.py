"""Certificates for tests on loopback: a CA, and certificates that it signs; or a single self-signed one.

All are valid from one day ago until one day from now, unless the test says otherwise.
"""

import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Pair", "certificate_files"]

_KEYS: dict[str, Callable[[], Any]] = {
    "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
}
_NAMES = {"CN": NameOID.COMMON_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "O": NameOID.ORGANIZATION_NAME}
_DAY = timedelta(days=1)
_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_NO_USE = dict.fromkeys(_USES, False)
_PEM, _PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


class Pair(NamedTuple):
    """The files of a certificate and its key, in PEM."""

    cert: str
    key: str


class Authority:
    """A CA of its own; `file` holds its certificate.

    Args:
        folder: the folder for all files.
        name: its common name, and the name of its file.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = _KEYS["EC"]()
        self._name = _subject(f"CN={name}")
        self._serial = 1
        built = _builder(self._name, self._name, self._key, self._key, 1, (-_DAY, _DAY), [], is_ca=True)
        file = folder / f"{name}.pem"
        file.write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(_PEM))
        self.file = str(file)

    def issue(
        self,
        name: str,
        *,
        subject: str = "",
        kind: str = "EC",
        valid: tuple[timedelta, timedelta] = (-_DAY, _DAY),
        uris: Sequence[str] = (),
        password: bytes | None = None,
    ) -> Pair:
        """Return the files of a new certificate for 127.0.0.1 and localhost, and of its key.

        Args:
            name: the name of the files; those of an earlier certificate are replaced, one after the other.
            subject: the subject, as `CN=…,OU=…,O=…`; by default the common name is `name`.
            kind: the kind of key, a name in `_KEYS`.
            valid: from when until when, relative to now.
            uris: URIs among the alternative names.
            password: encrypts the key.
        """
        self._serial += 1
        key = _KEYS[kind]()
        subject_name = _subject(subject or f"CN={name}")
        built = _builder(subject_name, self._name, key, self._key, self._serial, valid, uris, is_ca=False)
        return _written(self._folder, name, built.sign(self._key, hashes.SHA256()), key, password)

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts this CA, and shows a certificate if one is given."""
        context = ssl.create_default_context(cafile=self.file)
        if pair is not None:
            context.load_cert_chain(*pair)
        return context


def certificate_files(folder: Path, kind: str = "EC") -> Pair:
    """Return the files of a new self-signed certificate for 127.0.0.1, `cert.pem` and `cert-key.pem`, in a folder.

    Args:
        folder: the folder for the files.
        kind: the kind of key, a name in `_KEYS`.
    """
    key = _KEYS[kind]()
    name = _subject("CN=registry")
    built = _builder(name, name, key, key, 1, (-_DAY, _DAY), [], is_ca=True)
    return _written(folder, "cert", built.sign(key, hashes.SHA256()), key, None)


def _subject(text: str) -> x509.Name:
    parts = (part.partition("=") for part in text.split(","))
    return x509.Name([x509.NameAttribute(_NAMES[name], value) for name, _, value in reversed(list(parts))])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Any,
    issuer_key: Any,
    serial: int,
    valid: tuple[timedelta, timedelta],
    uris: Sequence[str],
    *,
    is_ca: bool,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    hosts: list[x509.GeneralName] = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
    names = [*hosts, *map(x509.UniformResourceIdentifier, uris)]
    uses = {"digital_signature": True, "key_cert_sign": is_ca, "crl_sign": is_ca}
    # Python 3.13 and later check what RFC 5280 requires: the identifiers of both keys, and the use of the CA's key.
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USE | uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _written(folder: Path, name: str, certificate: x509.Certificate, key: Any, password: bytes | None) -> Pair:
    pair = Pair(str(folder / f"{name}.pem"), str(folder / f"{name}-key.pem"))
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    Path(pair.cert).write_bytes(certificate.public_bytes(_PEM))
    Path(pair.key).write_bytes(key.private_bytes(_PEM, _PKCS8, encryption))
    return pair
