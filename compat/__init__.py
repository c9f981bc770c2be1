"""Schemas and schema evolution: parsing, canonical form, normalizing, compatibility.

Pure functions over text and values. No I/O, no subjects; a version is only a number in a message.
"""
