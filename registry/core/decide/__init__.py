"""Decisions: pure functions from State and request to records and answer."""
