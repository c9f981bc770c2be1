"""The driver of keys from a shared secret."""
