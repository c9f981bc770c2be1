"""Data contracts: runs the rules of a schema over records. Needs the extra `rules`."""
