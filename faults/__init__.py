"""Fault injection: real nodes, real logs, concurrent clients, and a checker of every answer that clients received."""
