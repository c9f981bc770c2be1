"""The TLS contexts of a process: for connections of clients, and for calls to other nodes.

They come from files that may be replaced while the service runs. New connections then use the new files; existing ones
stay as they are. Files that cannot be used leave the previous contexts in force. A context is never changed: a new one
also forgets the sessions that clients could resume, so a certificate that is no longer trusted cannot return that way.
"""

import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from strata.registry.node.settings import CoreSettings, SettingRefused
from strata.registry.node.tls_settings import ClientAuth, TlsVersion

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["TlsContexts"]

_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_OLDEST = {TlsVersion.V1_2: ssl.TLSVersion.TLSv1_2, TlsVersion.V1_3: ssl.TLSVersion.TLSv1_3}
_FILES = {"server": "tls_certfile", "client_ca": "tls_client_ca", "node_ca": "node_ca_file"}
_SOON = timedelta(days=14)
_log = logging.getLogger("strata.tls")

_Stamp = tuple[int, int, int] | None


class TlsContexts:
    """The contexts from the files that the settings name.

    Args:
        settings: the settings of the service.

    Raises:
        SettingRefused: if a file cannot be used; the message says which and why.
    """

    def __init__(self, settings: CoreSettings) -> None:
        self._settings = settings
        named = (
            settings.tls_certfile,
            settings.tls_keyfile,
            settings.tls_key_password_file,
            settings.tls_client_ca,
            settings.node_ca_file,
        )
        self._files = [file for file in named if file is not None]
        self._seen = self._loaded = self._stamps()
        self.accepting: ssl.SSLContext | None = None
        self.ends: dict[str, float] = {}
        """When the first certificate of each file ends, in seconds since the epoch."""
        self._calling: ssl.SSLContext | None = None
        self._load()

    def calling(self) -> ssl.SSLContext:
        """Return the context for calls to other nodes; they may ask for a certificate, and get that of this node."""
        if self._calling is None:
            self._calling = _for_calls(self._settings)
        return self._calling

    def refresh(self, *, settled: bool = False) -> None:
        """Load files that have changed.

        Files are replaced one after the other, so the next call loads them if they have not changed again until then.

        Args:
            settled: whether to load changed files at once.
        """
        stamps = self._stamps()
        settled, self._seen = settled or stamps == self._seen, stamps
        if not settled or stamps == self._loaded:
            return
        self._loaded = stamps
        try:
            self._load()
        except SettingRefused as error:
            _log.error(
                "the changed TLS files cannot be used, and the previous ones stay in force: %(reason)s",
                {"event": "tls_files_rejected", "reason": str(error)},
            )
        else:
            _log.info("loaded the changed TLS files; new connections use them", {"event": "tls_files_loaded"})

    def _load(self) -> None:
        settings = self._settings
        accepting = _for_clients(settings) if settings.tls_certfile else None
        # Made on the first call otherwise: most nodes never make one, and reading the system's certificates takes time.
        calling = _for_calls(settings) if settings.node_ca_file else None
        self.accepting, self._calling = accepting, calling
        self.ends = {
            called: min(certificate.not_valid_after_utc.timestamp() for certificate in _certificates(name, file))
            for called, name in _FILES.items()
            if (file := getattr(settings, name)) is not None
        }

    def _stamps(self) -> list[_Stamp]:
        return [_stamp(file) for file in self._files]


def _for_clients(settings: CoreSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _OLDEST[settings.tls_min_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    _warn_of_age(_use_own_certificate(context, settings), settings.tls_certfile)
    if settings.tls_client_ca:
        _trust(context, "tls_client_ca", settings.tls_client_ca)
    context.verify_mode = _VERIFY[settings.tls_client_auth]
    return context


def _for_calls(settings: CoreSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _OLDEST[settings.tls_min_version]
    if settings.node_ca_file:
        _trust(context, "node_ca_file", settings.node_ca_file)
    else:
        context.load_default_certs()
    if settings.tls_certfile:
        _use_own_certificate(context, settings)
    return context


def _use_own_certificate(context: ssl.SSLContext, settings: CoreSettings) -> "x509.Certificate":
    assert settings.tls_certfile  # noqa: S101 - the callers have checked it
    leaf = _certificates("tls_certfile", settings.tls_certfile)[0]
    key_file = settings.tls_keyfile or settings.tls_certfile
    password_file = settings.tls_key_password_file
    password = _read("tls_key_password_file", password_file).strip() if password_file else _no_password
    _read("tls_keyfile", key_file)
    try:
        context.load_cert_chain(settings.tls_certfile, key_file, password)
    except (ssl.SSLError, _PasswordMissing, ValueError) as error:
        _refuse("tls_keyfile", key_file, _why_no_key(error, settings))
    return leaf


class _PasswordMissing(Exception):
    """A key that needs a password; OpenSSL would ask for it at the terminal."""


def _no_password() -> NoReturn:
    raise _PasswordMissing


def _why_no_key(error: Exception, settings: CoreSettings) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(error, _PasswordMissing):
        return "the key is encrypted; expected its password in --tls-key-password-file"
    if reason == "KEY_VALUES_MISMATCH":
        return f"the key does not belong to the first certificate in {settings.tls_certfile}"
    if settings.tls_key_password_file:
        return f"expected a private key in PEM that the password in {settings.tls_key_password_file} decrypts"
    return f"expected a private key in PEM ({reason})" if reason else "expected a private key in PEM"


def _trust(context: ssl.SSLContext, name: str, file: Path) -> None:
    _certificates(name, file)
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        _refuse(name, file, f"expected certificates in PEM ({error.reason})")


def _certificates(name: str, file: Path) -> "list[x509.Certificate]":
    from cryptography import x509  # here, because most nodes need no TLS

    try:
        return x509.load_pem_x509_certificates(_read(name, file))
    except ValueError:
        _refuse(name, file, "expected certificates in PEM")


def _read(name: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        _refuse(name, file, f"it cannot be read: {error.strerror}")


def _refuse(name: str, file: Path, reason: str) -> NoReturn:
    raise SettingRefused(f"--{name.replace('_', '-')} (or STRATA_{name.upper()}) is {str(file)!r}: {reason}") from None


def _warn_of_age(certificate: "x509.Certificate", file: Path | None) -> None:
    now, start, end = datetime.now(UTC), certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end < now:
        _log.warning(
            "the TLS certificate in %(file)s expired at %(at)s; clients will reject it",
            {"event": "certificate_expired", "file": str(file), "at": str(end)},
        )
    elif start > now:
        _log.warning(
            "the TLS certificate in %(file)s is valid only from %(at)s; clients will reject it until then",
            {"event": "certificate_not_yet_valid", "file": str(file), "at": str(start)},
        )
    elif end < now + _SOON:
        _log.warning(
            "the TLS certificate in %(file)s expires soon, at %(at)s",
            {"event": "certificate_expires", "file": str(file), "at": str(end)},
        )


def _stamp(file: Path) -> _Stamp:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_ctime_ns, stat.st_size
