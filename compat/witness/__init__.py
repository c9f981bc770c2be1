"""Proofs of findings: the record that a reader refuses or reads as another value, or why there is none.

The values are in `strata.compat.proofs`. `search.py` asks the module of a format for the proof of each finding. The
modules take two parsed schemas and return values: no I/O.
"""
