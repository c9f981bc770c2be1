"""Executors of CEL."""
