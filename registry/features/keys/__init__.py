"""Encryption keys of fields (CSFLE): the key encryption keys and data encryption keys that clients share."""
