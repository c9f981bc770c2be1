"""Versions that came from AWS Glue, by their UUID there."""
