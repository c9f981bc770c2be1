"""The identity hash of a schema: an MD5 digest whose 16 bytes, printed as a UUID, are its GUID.

The reference fixes which bytes enter it, and in which order (storage/README.md): the schema text, each reference, then
metadata and rule set if present. The digest does not cover the schema type. MD5 serves here as a name, not for
security.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["fingerprint", "guid_of"]

_PRESENT = b"\x01"
_RULE_KINDS = ("migrationRules", "domainRules", "encodingRules")
_RULE_TEXTS = ("name", "doc", "kind", "mode", "type")
_EMPTY = hashlib.md5(usedforsecurity=False)  # a copy takes half the time of a new one
_CHUNK = 2047  # bytes; hashlib releases the interpreter lock for more, and waiting to get it back takes far longer


def fingerprint(
    text: str,
    references: Sequence[tuple[str, str, int]] = (),
    metadata: Mapping[str, object] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the 16-byte digest of a schema text with its references, metadata and rules.

    Args:
        text: The schema text as stored.
        references: (name, subject, version) triples in their stored order.
        metadata: The JSON object with `tags`, `properties`, `sensitive`.
        rule_set: The JSON object with `migrationRules`, `domainRules`, `encodingRules`, `enableAt`.

    Raises:
        AttributeError, TypeError, ValueError: The metadata or rule set has the wrong shape, or a text cannot be
            encoded.
        struct.error: A version does not fit into 32 bits.
    """
    content = text.encode()
    digest = _EMPTY.copy()
    if len(content) <= _CHUNK:
        digest.update(content)
    else:
        for start in range(0, len(content), _CHUNK):
            digest.update(content[start : start + _CHUNK])
    if not (references or metadata or rule_set):
        return digest.digest()
    for name, subject, version in references:
        digest.update(name.encode() + subject.encode() + struct.pack(">i", version))
    if metadata:
        digest.update(_PRESENT)
        for part in _metadata_parts(metadata):
            digest.update(part.encode())
    if rule_set:
        digest.update(_PRESENT)
        for rule in (rule for kind in _RULE_KINDS for rule in rule_set.get(kind) or ()):
            _update_rule(digest, rule)
        digest.update((rule_set.get("enableAt") or "").encode())
    return digest.digest()


def guid_of(digest: bytes) -> str:
    """Return the GUID of a 16-byte fingerprint: the digest printed as a UUID."""
    text = digest.hex()  # a UUID object would take five times as long
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _metadata_parts(metadata: Mapping[str, Any]) -> Iterable[str]:
    for key, values in sorted((metadata.get("tags") or {}).items()):
        yield key
        yield from sorted(values)
    for key, value in sorted((metadata.get("properties") or {}).items()):
        yield key
        yield value
    yield from sorted(metadata.get("sensitive") or ())


def _update_rule(digest: "hashlib._Hash", rule: Mapping[str, Any]) -> None:
    for name in _RULE_TEXTS:
        digest.update((rule.get(name) or "").encode())
    for tag in sorted(rule.get("tags") or ()):
        digest.update(tag.encode())
    for key, value in sorted((rule.get("params") or {}).items()):
        digest.update(key.encode() + value.encode())
    for name in ("expr", "onSuccess", "onFailure"):
        digest.update((rule.get(name) or "").encode())
    if rule.get("disabled"):
        digest.update(_PRESENT)
