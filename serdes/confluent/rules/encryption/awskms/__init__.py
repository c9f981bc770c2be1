"""The driver of AWS KMS."""
