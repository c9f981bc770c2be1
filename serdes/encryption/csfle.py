"""The executors of the CSFLE rule types ENCRYPT, for tagged fields, and ENCRYPT_PAYLOAD, for whole payloads.

A string becomes the base64 text of its ciphertext, bytes become the ciphertext. With key rotation a ciphertext begins
with a zero byte and the version of its key (4 bytes, big-endian).

Rules of this file: every failure is a RuleError that names the field and shows neither its value nor its ciphertext.
"""

import base64
import binascii
import time
from collections.abc import Callable, Mapping
from typing import Any

from strata.serdes.client import RegistryClient
from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.keys import Current, Key, KeyRing, Terms
from strata.serdes.encryption.kms import DRIVERS, KmsDriver
from strata.serdes.errors import RegistryError, RuleError, SerdeError
from strata.serdes.rules.executors import Convert, FieldContext, FieldTransform, RuleContext

__all__ = ["FieldEncryption", "PayloadEncryption"]

_FRONT = 5
_MOST_USES = 1000
_MOST_VERSIONS = 1000
_MODES = ("WRITE", "READ")


class _WithKeys:
    """An executor with a key ring.

    Args:
        client: the registry.
        settings: the executor's; see `strata.serdes.encryption.keys.KeyRing`.
        drivers: the drivers by KMS type.
        clock: returns Unix time in seconds.
    """

    def __init__(
        self,
        client: RegistryClient,
        settings: Mapping[str, object],
        *,
        drivers: Mapping[str, KmsDriver] = DRIVERS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = KeyRing(client, settings, drivers, clock)
        self._uses: dict[tuple[int, int], _Use] = {}

    def _use(self, context: RuleContext) -> "_Use":
        """Return what an encryption rule does; its parameters are parsed once for a rule and a schema.

        Raises:
            RuleError: If the rule is not a TRANSFORM or has a bad parameter, or the record has no subject.
        """
        key = id(context.rule), id(context.target)
        use = self._uses.get(key)
        if use is None or use.subject != context.subject or use.mode != context.mode:
            if len(self._uses) >= _MOST_USES:
                self._uses.clear()
            use = self._uses[key] = _Use(self._keys, _terms(context), context)
        return use

    def prepare(self, context: RuleContext) -> None:
        """Find the data key that a rule writes with, or add it; only to add it, the KMS is needed.

        Raises:
            RuleError: If the rule has a bad parameter, or the key is missing and cannot be added.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        try:
            self._keys.prepare(self._use(context).terms, context.subject)
        except (CipherError, RegistryError) as error:
            raise _error(context, f"there is no data key to encrypt with: {error}") from None


class FieldEncryption(_WithKeys):
    """The executor of ENCRYPT rules: it encrypts string and bytes fields when writing and decrypts them when reading.

    Args:
        client: the registry.
        settings: the executor's; see `strata.serdes.encryption.keys.KeyRing`.
        drivers: the drivers by KMS type.
        clock: returns Unix time in seconds.
    """

    def field_transform(self, context: RuleContext) -> FieldTransform:
        """Return the function that encrypts or decrypts the fields of one record; it raises RuleError.

        Raises:
            RuleError: If the rule is not a TRANSFORM, has a bad parameter, or the record has no subject.
        """
        use = self._use(context)
        if use.transform is None or use.topic != context.topic:
            use.topic, use.transform = context.topic, self._transform(use.convert, context)
        return use.transform

    def converter(self, context: RuleContext, type_name: str) -> Convert:
        """Return the function that encrypts or decrypts one string or bytes; the keys have been found before.

        Raises:
            RuleError: If the rule is not a TRANSFORM, has a bad parameter, or the record has no subject.
        """
        return self._use(context).converter(type_name)

    def _transform(self, convert: Convert, context: RuleContext) -> FieldTransform:
        def transform(field: FieldContext, value: Any) -> object:
            if value is None:
                return None
            kinds = _KINDS.get(field.type_name, ())
            if type(value) not in kinds:
                if not kinds and context.mode == "READ":
                    return value  # a field of this type is never encrypted
                if not isinstance(value, kinds):
                    got = type(value).__name__ if kinds else field.type_name
                    raise _error(context, f"{field.full_name}: expected a string or bytes, got {got}")
            try:
                return convert(value if isinstance(value, str) else bytes(value))
            except (CipherError, SerdeError) as error:
                raise _error(context, f"{field.full_name} cannot be {_done(context)}: {error}") from None

        return transform


class PayloadEncryption(_WithKeys):
    """The executor of ENCRYPT_PAYLOAD rules: it encrypts and decrypts the payloads of whole records.

    Args:
        client: the registry.
        settings: the executor's; see `strata.serdes.encryption.keys.KeyRing`.
        drivers: the drivers by KMS type.
        clock: returns Unix time in seconds.
    """

    def transform(self, context: RuleContext, message: object) -> object:
        """Return the payload, encrypted or decrypted.

        Raises:
            RuleError: If the rule is not a TRANSFORM, has a bad parameter, or the payload cannot be encrypted or
                decrypted.
        """
        convert = self._use(context).convert
        if not isinstance(message, bytes):
            raise _error(context, "ENCRYPT_PAYLOAD needs bytes: make it an encoding rule")
        try:
            return convert(message)
        except (CipherError, SerdeError) as error:
            raise _error(context, f"the payload cannot be {_done(context)}: {error}") from None


_KINDS: Mapping[str, tuple[type, ...]] = {"STRING": (str,), "BYTES": (bytes, bytearray, memoryview)}


def _terms(context: RuleContext) -> Terms:
    """Return the parameters of an encryption rule."""
    if context.rule.kind != "TRANSFORM" or context.mode not in _MODES:
        raise _error(context, "expected an encryption rule of the kind TRANSFORM and the mode WRITE, READ or WRITEREAD")
    if not context.subject:
        raise _error(context, "cannot find the data key without a subject; pass the topic of the record")
    try:
        return Terms.of(context)
    except CipherError as error:
        raise _error(context, str(error)) from None


class _Use:
    """The use of one rule for a schema, a subject and a mode; it keeps the keys at hand.

    Args:
        keys: the keys.
        terms: the parameters of the rule.
        context: the rule; it is kept, so that the ids of rule and schema stay theirs.
    """

    def __init__(self, keys: KeyRing, terms: Terms, context: RuleContext) -> None:
        self._keys, self.terms, self.subject, self.mode = keys, terms, context.subject, context.mode
        self._kept = context.rule, context.target
        self._clock = keys.clock
        self._is_versioned = bool(terms.expiry_days)
        self._current: Current | None = None
        self._read: dict[int, Key] = {}
        self.topic: str | None = None
        self.transform: FieldTransform | None = None
        self.convert = self._encrypted if context.mode == "WRITE" else self._decrypted

    def converter(self, type_name: str) -> Convert:
        """Return `convert` for one type; without rotation it is the cipher itself."""
        current = self._current
        if current is None or self._is_versioned:
            return self.convert
        return current.encrypt_text if type_name == "STRING" else current.encrypt

    def _encrypted(self, value: str | bytes) -> str | bytes:
        current = self._current
        if current is None or (self._is_versioned and self._clock() > current.until):
            current = self._current = self._keys.writing(self.terms, self.subject)
        if isinstance(value, str):
            return current.encrypt_text(value)
        return current.encrypt(value)

    def _decrypted(self, value: str | bytes) -> str | bytes:
        ciphertext, version = _ciphertext(value), 1
        if self._is_versioned:
            version, ciphertext = _split(ciphertext)
        key = self._read.get(version)
        if key is None:
            key = self._keys.reading(self.terms, self.subject, version)
            if len(self._read) < _MOST_VERSIONS:
                self._read[version] = key
        plain = key.cipher.decrypt(ciphertext)
        try:
            return plain.decode() if isinstance(value, str) else plain
        except UnicodeDecodeError:
            raise CipherError("expected encrypted text, got other bytes") from None


def _ciphertext(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise CipherError("the value is not base64, so it is not encrypted") from None


def _split(ciphertext: bytes) -> tuple[int, bytes]:
    version = int.from_bytes(ciphertext[1:_FRONT], "big", signed=True)
    if len(ciphertext) < _FRONT or ciphertext[0] != 0 or version < 1:
        raise CipherError("the ciphertext does not begin with a key version")
    return version, ciphertext[_FRONT:]


def _done(context: RuleContext) -> str:
    return "encrypted" if context.mode == "WRITE" else "decrypted"


def _error(context: RuleContext, detail: str) -> RuleError:
    return RuleError(detail, rule=context.rule.name, subject=context.subject, topic=context.topic)
