"""Faults on purpose: real nodes, real logs, concurrent clients, and a checker of what the clients were told."""
