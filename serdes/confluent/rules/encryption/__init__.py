"""Executors of encryption, and drivers of KMS."""
