"""Associations: which subjects belong to a resource, such as a topic."""
