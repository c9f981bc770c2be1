"""Data contracts: the rules of a schema, run over records. Needs the extra `rules`."""
