"""Client-side field level encryption (CSFLE): a data key for each subject, wrapped by a key in a KMS.

Rules of the types ENCRYPT and ENCRYPT_PAYLOAD encrypt fields and payloads. Needs the extra `encryption`, and a registry
with the routes of the DEK registry.
"""

from strata.imports import require

require("encryption", "strata.serdes.encryption", "cryptography")
