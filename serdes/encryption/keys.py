"""The data key for a record: the rule's parameters, the registry's answers, and a cache of unwrapped keys.

A rule without `encrypt.dek.expiry.days` has one data key, version 1. With it, the newest version is used until it
reaches that age; then the first client to notice adds a new version.

Rules of this file: one thread asks for all that miss a key; unknown keys are cached for a while, so that a topic of
damaged records does not cause one request per record.
"""

import time
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strata.serdes.client import RegistryClient, context_of
from strata.serdes.encryption.ciphers import ALGORITHMS, Cipher, CipherError, cipher_of, new_material
from strata.serdes.encryption.dek_registry import LATEST, Dek, DekRegistry, Kek
from strata.serdes.encryption.kms import KmsDriver, Service
from strata.serdes.errors import RegistryError, RegistryUnavailable
from strata.serdes.rules.executors import RuleContext
from strata.shared_cache import SharedCache

__all__ = ["Current", "Key", "KeyRing", "Terms"]

_DAY = 24 * 60 * 60.0
_PAUSE = 60.0
"""Seconds until a failed rotation is retried; the old key is used meanwhile, as in Confluent's clients."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A rule's parameters for its keys."""

    kek: str
    kms_type: str | None
    kms_key_id: str | None
    algorithm: str
    expiry_days: int

    @classmethod
    def of(cls, context: RuleContext) -> "Terms":
        """Parse the parameters of a rule.

        Raises:
            CipherError: If a parameter is missing or not allowed.
        """
        kek = context.parameter("encrypt.kek.name")
        if not kek:
            raise CipherError("the rule has no parameter encrypt.kek.name")
        algorithm = context.parameter("encrypt.dek.algorithm") or "AES256_GCM"
        if algorithm not in ALGORITHMS:
            raise CipherError(f"encrypt.dek.algorithm: expected {', '.join(ALGORITHMS)}, got {algorithm}")
        days = context.parameter("encrypt.dek.expiry.days") or "0"
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise CipherError(f"encrypt.dek.expiry.days: expected a whole number from 0, got {days}")
        kms_type, key_id = (context.parameter(name) or None for name in ("encrypt.kms.type", "encrypt.kms.key.id"))
        return cls(kek, kms_type, key_id, algorithm, int(days))


@dataclass(frozen=True, slots=True)
class Key:
    """An unwrapped version of a data key."""

    version: int
    cipher: Cipher


@dataclass(frozen=True, slots=True)
class Current:
    """The key to encrypt with, until a time (Unix time in seconds).

    With rotation, a ciphertext begins with a zero byte and the version of the key.
    """

    encrypt: Callable[[bytes], bytes]
    encrypt_text: Callable[[str], str]
    until: float

    @classmethod
    def of(cls, key: Key, terms: Terms, until: float) -> "Current":
        """Return a key for a rule."""
        encrypt = key.cipher.encrypt
        if not terms.expiry_days:
            return cls(encrypt, key.cipher.encrypt_text, until)
        front = b"\x00" + key.version.to_bytes(4, "big")
        return cls(
            lambda plain: front + encrypt(plain),
            lambda text: b2a_base64(front + encrypt(text.encode()), newline=False).decode(),
            until,
        )


@dataclass(frozen=True, slots=True)
class _Missing:
    until: float


class KeyRing:
    """The keys of one executor, safe to share between threads.

    Args:
        client: the registry.
        settings: the executor's: `kms.allowed`, `encrypt.alternate.kms.key.ids`, and the settings of the KMS.
        drivers: the drivers by KMS type.
        clock: returns Unix time in seconds, for the age of keys.
    """

    def __init__(
        self,
        client: RegistryClient,
        settings: Mapping[str, object],
        drivers: Mapping[str, KmsDriver],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry, self._settings, self._drivers, self.clock = DekRegistry(client), settings, drivers, clock
        self._missing_ttl = client.settings.missing_ttl
        capacity = client.settings.cache_size
        self._keks: SharedCache[tuple[str, str], Kek | _Missing] = SharedCache(capacity)
        self._own_keks: SharedCache[tuple[str, str], Kek] = SharedCache(capacity)  # a writer never uses a cached miss
        self._kms: SharedCache[Kek, Service] = SharedCache(capacity)
        self._current: SharedCache[tuple[Terms, str], Current] = SharedCache(capacity)
        self._stored: SharedCache[tuple[str, str, str, int], Dek | _Missing] = SharedCache(capacity)
        self._opened: SharedCache[tuple[Kek, str, str, int], Key] = SharedCache(capacity)

    def writing(self, terms: Terms, subject: str) -> Current:
        """Return the key to encrypt with, and until when; add one on first use.

        Args:
            terms: the rule's parameters.
            subject: the subject of the record.

        Raises:
            CipherError: If no key exists or can be added, the KMS fails, or rule and registry disagree on the KEK.
            RegistryError: If the registry rejects a request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        return self._current.get(
            (terms, subject), lambda: self._renewed(terms, subject), is_fresh=lambda key: self.clock() <= key.until
        )

    def prepare(self, terms: Terms, subject: str) -> None:
        """Find the key that `writing` returns, or add it; a key that exists need not be unwrapped here.

        Args:
            terms: the rule's parameters.
            subject: the subject of the record.

        Raises:
            CipherError: If no key exists or can be added, or rule and registry disagree on the KEK.
            RegistryError: If the registry rejects a request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        failure = None
        try:
            self.writing(terms, subject)
        except CipherError as error:
            failure = error
        # A caller may keep the answers for processes that cannot ask: request the key again, if it was just added.
        kek, dek = self._registry.find_kek(terms.kek, subject), self._find(terms, subject, _newest(terms))
        if failure is not None and (kek is None or dek is None):
            raise failure
        if kek is not None:
            _agreed(kek, terms)

    def reading(self, terms: Terms, subject: str, version: int) -> Key:
        """Return a version of the key to decrypt with, soft-deleted versions included.

        Args:
            terms: the rule's parameters.
            subject: the subject of the record.
            version: the version of the data key.

        Raises:
            CipherError: If there is no such key, the KMS fails, or rule and registry disagree on the KEK.
            RegistryError: If the registry rejects a request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        kek = self._keks.get(
            (context_of(subject), terms.kek),
            lambda: self._registry.find_kek(terms.kek, subject) or self._missing(),
            is_fresh=self._is_believed,
        )
        if isinstance(kek, _Missing):
            raise CipherError(f"the registry has no key encryption key {terms.kek}")

        def load() -> Dek | _Missing:
            dek = self._registry.find_dek(terms.kek, subject, terms.algorithm, version, deleted=True)
            return self._missing() if dek is None else dek

        place = (terms.kek, subject, terms.algorithm, version)
        dek = self._stored.get(place, load, is_fresh=self._is_believed)
        if isinstance(dek, _Missing):
            raise CipherError(f"the registry has no version {version} of the data key of {terms.kek} and {subject}")
        return self._open(_agreed(kek, terms), dek, terms, subject)

    def _renewed(self, terms: Terms, subject: str) -> Current:
        kek = self._own_keks.get((context_of(subject), terms.kek), lambda: self._found_or_added(terms, subject))
        _agreed(kek, terms)
        dek = self._find(terms, subject, _newest(terms))
        if dek is None:
            dek = self._add(kek, terms, subject, 1)
        if not terms.expiry_days:
            return Current.of(self._open(kek, dek, terms, subject), terms, float("inf"))
        life = terms.expiry_days * _DAY
        if self.clock() > dek.created_at + life:
            try:
                dek = self._add(kek, terms, subject, dek.version + 1)
            except (RegistryError, RegistryUnavailable, CipherError):
                return Current.of(self._open(kek, dek, terms, subject), terms, self.clock() + _PAUSE)
        until = max(dek.created_at + life, self.clock() + _PAUSE)  # the clocks of clients and registry may differ
        return Current.of(self._open(kek, dek, terms, subject), terms, until)

    def _found_or_added(self, terms: Terms, subject: str) -> Kek:
        kek = self._registry.find_kek(terms.kek, subject)
        if kek is not None:
            return kek
        if terms.kms_type is None or terms.kms_key_id is None:
            raise CipherError(
                f"the registry has no key encryption key {terms.kek}, and to add it the rule needs "
                "encrypt.kms.type and encrypt.kms.key.id"
            )
        missing = Kek(terms.kek, terms.kms_type, terms.kms_key_id)
        self._service(missing).check()
        added = self._registry.add_kek(missing, subject)
        kek = self._registry.find_kek(terms.kek, subject) if added is None else added
        if kek is None:
            raise CipherError(f"the registry did not accept the key encryption key {terms.kek}")
        return kek

    def _find(self, terms: Terms, subject: str, version: int) -> Dek | None:
        return self._registry.find_dek(terms.kek, subject, terms.algorithm, version, deleted=False)

    def _add(self, kek: Kek, terms: Terms, subject: str, version: int) -> Dek:
        """Add a version; if another client was first, use its key."""
        wrapped = None
        if not kek.shared:
            wrapped = self._service(kek).wrap(new_material(terms.algorithm))
        dek = self._registry.add_dek(terms.kek, subject, terms.algorithm, version, wrapped)
        if dek is None:
            dek = self._find(terms, subject, version)
        if dek is None:
            raise CipherError(
                f"the registry did not accept version {version} of the data key of {terms.kek} and {subject}"
            )
        return dek

    def _open(self, kek: Kek, dek: Dek, terms: Terms, subject: str) -> Key:
        if dek.algorithm != terms.algorithm:
            raise CipherError(f"data key: expected the algorithm {terms.algorithm}, got {dek.algorithm}")

        def unwrap() -> Key:
            material = self._unwrapped(kek, dek) if dek.material is None else dek.material
            return Key(dek.version, cipher_of(terms.algorithm, material))

        return self._opened.get((kek, subject, terms.algorithm, dek.version), unwrap)

    def _unwrapped(self, kek: Kek, dek: Dek) -> bytes:
        if dek.wrapped is None:
            raise CipherError(f"the registry returned no material for the data key of {kek.name}")
        return self._service(kek).unwrap(dek.wrapped)

    def _service(self, kek: Kek) -> Service:
        return self._kms.get(kek, lambda: Service(kek, self._settings, self._drivers))

    def _missing(self) -> _Missing:
        return _Missing(self.clock() + self._missing_ttl)

    def _is_believed(self, key: object) -> bool:
        return not isinstance(key, _Missing) or self.clock() < key.until


def _newest(terms: Terms) -> int:
    """Return the version of the data key to encrypt with: without rotation there is only the first."""
    return LATEST if terms.expiry_days else 1


def _agreed(kek: Kek, terms: Terms) -> Kek:
    """Return the KEK if its KMS type and key id are those of the rule; else raise CipherError."""
    for what, ours, theirs in (("type", terms.kms_type, kek.kms_type), ("key id", terms.kms_key_id, kek.kms_key_id)):
        if ours is not None and ours != theirs:
            raise CipherError(
                f"{terms.kek}: expected the KMS {what} {ours} of the rule, got {theirs} from the registry"
            )
    return kek
