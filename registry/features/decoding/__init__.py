"""Decoding one record at a glance: its frame, its value, or where in the bytes it breaks and why. Pure.

This is for people who look at a record, not for clients: it is slow, bounded, and remembers the place of every part.
"""
