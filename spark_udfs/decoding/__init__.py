"""Columns of registry frames to columns of values."""
