"""Columns of values to columns of registry frames."""
