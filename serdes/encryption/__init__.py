"""Encryption of fields and payloads by rules: a data key for each subject, wrapped by a key that a KMS holds.

Needs the extra `encryption`, and a registry with the DEK registry's routes.
"""
