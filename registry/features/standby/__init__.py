"""A standby: a registry that keeps a copy of another one, and can take its place."""
